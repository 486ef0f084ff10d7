package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of expressions that are computed once instead of at each point of their value.
const (
	repeatedSlots = 20      // least slots: a table is read instead, once for each point
	repeatedTimes = 4       // least points for each element
	repeatedWork  = 1 << 27 // least slots in all: a device takes some microseconds for them, which is what a kernel takes to start
)

// separateRepeated makes values of costly expressions that depend on few of the axes of their value, such as the sines of rope's
// angles, which are the same for all heads. Threads would compute them again at each point of the other axes. What depends on the
// results of reductions stays: their kernels compute it for their rows.
func separateRepeated(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	r := &repeating{graph: g, sizes: algebra.DefaultSizes(g), reduced: map[*ir.Value]bool{}}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if v.IsInput() {
			return nil
		}
		r.reduced[v] = v.Reduce != nil || slices.ContainsFunc(v.Loads(), func(l *ir.Expr) bool { return r.reduced[l.From] })
		if v.Reduce != nil { // what products multiply has passes of its own
			return nil
		}
		r.ranges = algebra.Widened(algebra.AllRanges(v))
		r.points = algebra.PointsAt(r.ranges, r.sizes)
		if forecast.ComputesAgain(float64(r.slots(v)), float64(r.bytes(v))) {
			return nil
		}
		var made []*ir.Value
		v.Body = ir.Replace(v.Body, func(e *ir.Expr) *ir.Expr {
			if !r.repeats(e) {
				return e
			}
			u, load := r.valueOf(v, e)
			made = append(made, u)
			return load
		})
		return made
	})
}

// repeating looks for such expressions in one value after the other.
type repeating struct {
	graph   *ir.Graph
	sizes   map[string]int64
	reduced map[*ir.Value]bool // values that depend on results of reductions

	ranges []*ir.Range // of the present value
	points float64     // of these
}

// slots is what such expressions of a value take at one point.
func (r *repeating) slots(v *ir.Value) (slots int) {
	ir.Replace(v.Body, func(e *ir.Expr) *ir.Expr {
		if !r.repeats(e) {
			return e
		}
		slots += form.CostOf(e).Slots
		return ir.Num(e.Type, 0)
	})
	return slots
}

// bytes is what goes through memory for one point of a value.
func (r *repeating) bytes(v *ir.Value) int {
	most := 0
	for _, l := range v.Loads() {
		if free := ir.FreeRanges(l); len(free) >= len(r.ranges) {
			most = max(most, l.Type.Size())
		}
	}
	return most + v.Type.Size()
}

// repeats reports whether an expression is costly and depends on few axes.
func (r *repeating) repeats(e *ir.Expr) bool {
	if !e.Type.IsFloat() || e.Op == ir.OpLoad || form.CostOf(e).Slots < repeatedSlots || !isPure(e) ||
		slices.ContainsFunc(ir.Loads(e), func(l *ir.Expr) bool { return r.reduced[l.From] }) {
		return false
	}
	own := r.axesOf(e)
	elements := algebra.PointsAt(own, r.sizes)
	return len(own) > 0 && len(own) < len(r.ranges) && r.points >= repeatedTimes*elements && float64(form.CostOf(e).Slots)*(r.points-elements) >= repeatedWork
}

// axesOf are the ranges of the present value on which an expression depends.
func (r *repeating) axesOf(e *ir.Expr) []*ir.Range {
	free := ir.FreeRanges(e)
	return slices.DeleteFunc(slices.Clone(r.ranges), func(axis *ir.Range) bool { return !free[axis] })
}

// valueOf is an expression of v as a value over its axes, and the load of that.
func (r *repeating) valueOf(v *ir.Value, e *ir.Expr) (u *ir.Value, load *ir.Expr) {
	u, load = operandValue(r.graph, v, form.GuardLoads(e))
	r.graph.Rename(u, v.Name+"_repeated")
	for d, at := range load.Args {
		u.Axes[d].Name = at.Range.Name
	}
	return u, load
}

// isPure reports whether an expression is the same wherever it is computed: it draws no random numbers, and sums nothing.
func isPure(e *ir.Expr) bool { return !ir.Has(e, ir.OpRandom, ir.OpRandom16, ir.OpReduce) }
