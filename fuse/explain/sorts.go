package explain

import (
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// sorts are the kernels of a plan that put elements in order, by the operations of the program that do so: passes give the values new names.
type sorts map[ir.Origin]*sorting

// sorting is such a kernel, as it runs at the sizes that are explained.
type sorting struct {
	variant *ir.Variant
	kernel  *ir.Kernel
	counted bool // in the unfused program
}

func (s sorts) add(v *ir.Variant, k *ir.Kernel) {
	one := &sorting{variant: v, kernel: k}
	for _, m := range k.Members {
		if form.SortOf(m) != nil {
			s[m.Origin] = one
		}
	}
}

// unfused adds to a kernel of the unfused program the work of the order that its value picks from: what it takes in the plan, as
// a library sorts no faster. Values that pick from one order, as the largest elements and their places do, have one kernel for it in a
// library too, so that the order counts once.
func (s sorts) unfused(v *ir.Value, t *tally, x *explainer) {
	one := s[v.Origin]
	if one == nil || one.counted || form.SortOf(v) == nil {
		return
	}
	one.counted = true
	t.sort(one.variant, one.kernel, x)
}

// sort adds the work of putting the columns of each row in order.
func (t *tally) sort(v *ir.Variant, k *ir.Kernel, x *explainer) {
	rows, cols := x.points(k.Rows, t), x.points(k.Cols, t)
	keys := points{rows.n * cols.n, ir.Simplify(ir.Apply(ir.OpMul, rows.size, cols.size), ir.Facts{})}
	if keys.n > 0 {
		t.done(keys, Work{Flops: forecast.SortFlops(v, x.device, rows.n, cols.n) / keys.n})
	}
}
