package explain

import (
	"fmt"
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
)

// notWarpgroups says why the matrix product of a kernel does not run by wgmma on tiles that the
// tensor copy engine brings, which is the fastest way. It is "" if it does, if there is no
// product, or if another way is estimated to be faster.
func (x *explainer) notWarpgroups(k *ir.Kernel, chosen *ir.Variant) string {
	v := productIn(k)
	if v == nil || onWarpgroups(chosen) {
		return ""
	}
	if !x.device.Warpgroups() {
		return fmt.Sprintf("%s has no wgmma", x.device.Name)
	}
	least, found := []*ir.Expr(nil), false
	for _, other := range k.Variants {
		if onWarpgroups(other) && other.Schedule.Index64 == chosen.Schedule.Index64 {
			if missing := x.missing(other.When); !found || lessMissing(missing, least) {
				least, found = missing, true
			}
		}
	}
	switch {
	case !found:
		return x.withoutWarpgroups(k, v, chosen)
	case len(least) == 0:
		return ""
	}
	return x.missingText(least[0])
}

// productIn is a value of a kernel that multiplies matrices. Windows of each channel alone, and products with a vector, are no
// work for tensor cores.
func productIn(k *ir.Kernel) *ir.Value {
	for _, v := range k.Members {
		if multipliesMatrices(v) && !form.OnlyForNaN(v.Reduce.Where, v.Reduce.Ranges) {
			return v
		}
	}
	return nil
}

// multipliesMatrices reports whether a value sums products of two operands each of which has rows that the other lacks.
func multipliesMatrices(v *ir.Value) bool {
	if !form.IsMatrixProduct(v) {
		return false
	}
	a, b := form.SidesOf(v)
	inA, inB := form.AxesIn(v, a), form.AxesIn(v, b)
	return !algebra.Subset(inA, inB) && !algebra.Subset(inB, inA)
}

func onWarpgroups(v *ir.Variant) bool {
	return v.Schedule.Mapping == ir.WarpgroupMapping || v.Schedule.Mapping == ir.AttendWarpgroupMapping || v.Schedule.Mapping == ir.ChainWarpgroupMapping
}

// missing lists the parts of a condition that do not hold at the sizes, or of which that is not
// known.
func (x *explainer) missing(when *ir.Expr) []*ir.Expr {
	var out []*ir.Expr
	for _, e := range ir.Conjuncts(algebra.OrTrue(when)) {
		if holds, known := x.eval(e); !known || holds == 0 {
			out = append(out, e)
		}
	}
	return out
}

// lessMissing reports whether a lacks less than b: fewer conditions, or one with a lower bound.
func lessMissing(a, b []*ir.Expr) bool {
	if len(a) != len(b) || len(a) == 0 {
		return len(a) < len(b)
	}
	bound := func(e *ir.Expr) int64 {
		if e.Op == ir.OpLe && e.Args[0].Op == ir.OpConst {
			return e.Args[0].Int
		}
		return 0
	}
	return bound(a[0]) < bound(b[0])
}

// missingText describes a condition on a size or a stride that does not hold. It is "" for
// other conditions: those compare costs, so another way is faster.
func (x *explainer) missingText(e *ir.Expr) string {
	a, b := e.Args[0], e.Args[1]
	value := func(e *ir.Expr) string {
		if n, ok := x.eval(e); ok && e.Op != ir.OpConst {
			return fmt.Sprintf("%s = %d", e, n)
		}
		return e.String()
	}
	switch {
	case e.Op == ir.OpEq && a.Op == ir.OpMod && b.IsConst(0):
		n := a.Args[1].Int
		return fmt.Sprintf("%s is not a multiple of %d: a row of so many elements is no multiple of the %d bytes that the tensor copy engine takes",
			value(a.Args[0]), n, copyBytes)
	case e.Op == ir.OpLe && a.Op == ir.OpConst:
		return fmt.Sprintf("%s is less than %d, and would leave most of a tile empty", value(b), a.Int)
	case e.Op == ir.OpLe && b.Op == ir.OpConst:
		return fmt.Sprintf("%s is more than %d, which is what fits on chip", value(a), b.Int)
	}
	return ""
}

// copyBytes is what addresses and strides of the tensor copy engine are multiples of.
const copyBytes = 16

// withoutWarpgroups says why a product has no variant for warpgroups at any size.
func (x *explainer) withoutWarpgroups(k *ir.Kernel, v *ir.Value, chosen *ir.Variant) string {
	if k.Numerics == ir.Strict {
		return "@strict keeps each rounding of a plain sum"
	}
	if chosen.Attend != nil && chosen.Attend.Parts > 0 {
		return "attention of f32 multiplies terms of bf16 by mma.sync, which leaves sums where the softmax needs them"
	}
	if !x.tf32 && x.device.TensorCores() && readsF32Alone(v) {
		if why := passes.WithoutParts(x.graph, v, x.sizesOrGuess()); why != "" {
			return why
		}
		return otherOperands
	}
	factors := form.FactorsOf(v.Body)
	other := form.WithoutCasts(factors[0])
	for _, f := range factors {
		f = form.WithoutCasts(f)
		if f.Op != ir.OpLoad {
			return "an operand is computed on the way: the tensor copy engine brings tensors as they lie in memory"
		}
		switch t := f.From.Type; {
		case !form.IsHalf(t) && !form.ByteTile(t) && !(x.tf32 && t == ir.F32):
			return fmt.Sprintf("%s is %s: wgmma takes bf16 and f16, two operands of f8 or i8, and f32", f.From.Name, t)
		case other.Op == ir.OpLoad && other.From.Type != t:
			return fmt.Sprintf("%s is %s and %s %s: wgmma takes two operands of one type", other.From.Name,
				other.From.Type, f.From.Name, t)
		}
	}
	if why := passes.WithoutLayout(x.graph, v); why != "" {
		return why
	}
	for _, f := range factors {
		if load := form.WithoutCasts(f); x.acrossSum(v, load) {
			return fmt.Sprintf("%s does not lie along the sum, which wgmma asks of operands that are not of 16 bits", load.From.Name)
		}
	}
	for _, f := range factors {
		if why := rowsApart(form.WithoutCasts(f).From); why != "" {
			return why
		}
	}
	return otherOperands
}

// acrossSum reports whether neighbours along the sum are no neighbours in an operand that is not of 16 bits.
func (x *explainer) acrossSum(v *ir.Value, load *ir.Expr) bool {
	const anyOrder = 2 // bytes of the operands of which wgmma takes either order
	facts := x.graph.Facts()
	facts.Positive = true
	stride, ok := ir.Stride(ir.FlatOffset(load.From.Shape(), load.Args), algebra.Innermost(v.Reduce.Ranges), facts)
	return load.Type.Size() != anyOrder && (!ok || !stride.IsConst(1))
}

// readsF32Alone reports whether both operands of a product are computed from numbers of f32.
func readsF32Alone(v *ir.Value) bool {
	return !slices.ContainsFunc(ir.Loads(v.Body), func(l *ir.Expr) bool { return l.Type != ir.F32 })
}

const otherOperands = "the operands are not read as plain tiles of their tensors, or what follows the product reads other elements than those it computes"

// rowsApart says that rows of a tensor are no multiple of what the tensor copy engine takes; "" where they are, or where that
// depends on sizes. Rows lie along the last axis of several elements.
func rowsApart(v *ir.Value) string {
	wide := algebra.Widened(v.Axes)
	if len(wide) == 0 {
		return ""
	}
	n := wide[len(wide)-1].Extent
	if bytes := n.Int * int64(v.Type.Size()); n.Op == ir.OpConst && bytes%copyBytes != 0 {
		return fmt.Sprintf("rows of %s are %d bytes apart: the tensor copy engine takes multiples of %d", v.Name, bytes, copyBytes)
	}
	return ""
}

// sizesOrGuess are the known sizes, and the planner's guesses for the others.
func (x *explainer) sizesOrGuess() map[string]int64 {
	sizes := algebra.DefaultSizes(x.graph)
	maps.Copy(sizes, x.sizes)
	return sizes
}
