package explain

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
)

// unfused is the cost of the program when every operation as written (an
// operator, or a pointwise part of one library function) is a kernel that reads
// its operands from memory and writes its result. Moving elements about is free,
// but for operands of products that no library reads as they lie.
func unfused(g *ir.Graph, x *explainer) *tally {
	work := g.Clone()
	passes.DropUnits(work)
	passes.InlineViews(work)
	sum := newTally()
	for _, v := range work.Values {
		if !v.IsInput() {
			eager(v, x, sum)
		}
	}
	return sum
}

// Figures from which a plan is said to lose: parts of the unfused time, and seconds of a few launches, as copies to other
// layouts take them.
const (
	losingTimes   = 1.1
	losingSeconds = 10e-6
)

// Loses reports whether the plan is estimated to take longer than the operations one by one. No program has to be like that:
// the planner chose badly. Copies of operands in another order do not count: the operations one by one are taken to multiply operands
// as they lie at the rate of the best order, which no library does either.
func (x Explanation) Loses() bool {
	if x.Fused.Seconds == nil || x.Unfused.Seconds == nil {
		return false
	}
	fused, unfused := *x.Fused.Seconds, *x.Unfused.Seconds
	for _, k := range x.Kernels {
		if k.Copies != nil && k.Copies.Inserted && k.Seconds != nil {
			fused -= *k.Seconds
		}
	}
	return fused > losingTimes*unfused && fused > unfused+losingSeconds
}

// Costliest is the position of the kernel that is estimated to take the longest; -1 where times are not known.
func (x Explanation) Costliest() int {
	worst := -1
	for i, k := range x.Kernels {
		if k.Seconds != nil && (worst < 0 || *k.Seconds > *x.Kernels[worst].Seconds) {
			worst = i
		}
	}
	return worst
}

// eager adds a kernel for each operation of a value: the parts of its body that
// stand at one place of the program, and its reduction.
func eager(v *ir.Value, x *explainer, sum *tally) {
	e := &eagerValue{v: v, x: x, sum: sum, done: map[*ir.Expr]*ir.Expr{}}
	if v.Reduce == nil {
		e.kernel(v.Body, algebra.Bytes(v))
		return
	}
	k := newEagerKernel()
	k.write(algebra.Bytes(v))
	at := x.points(termsPoints(v), k.tally)
	if form.IsMatrixProduct(v) { // every library has a kernel for it
		t := ir.F32
		for _, f := range form.FactorsOf(v.Body) {
			f = form.WithoutCasts(f)
			e.factor(f, k)
			t = f.Type
		}
		k.done(at, Work{Products: 2})
		if k.rate = x.device.F32Rate * x.filled; form.IsHalf(t) {
			k.rate = x.multiplies(t)
		}
		if form.ReadsThroughWindow(v) {
			k.rate *= x.windowed
		}
	} else {
		e.operand(v.Body, k)
		x.sorts.unfused(v, k.tally, x)
		x.scatters.unfused(v, k.tally)
		k.operation(v.Reduce.Op.Info().Combine, at)
	}
	e.finish(k)
}

// factor adds what a product reads of a factor. A library multiplies views of tensors; what a reshape leaves in no such order it copies.
func (e *eagerValue) factor(f *ir.Expr, k *eagerKernel) {
	a, b := form.SidesOf(e.v)
	for _, sides := range [][2]*ir.Expr{{a, b}, {b, a}} {
		if f.Op == ir.OpLoad && form.WithoutCasts(sides[0]) == f && passes.ReadsDigits(e.v, f, sides[1], e.x.sizes) {
			e.result(f, k)
			return
		}
	}
	e.operand(f, k)
}

// termsPoints is the ranges over which a reduction has terms. Every library adds by indices without looking at all terms
// for each place.
func termsPoints(v *ir.Value) []*ir.Range {
	loops, where := slices.Clone(form.LoopsOf(v)), form.ConditionOf(v)
	if where == nil {
		return loops
	}
	places := form.PlacesOf(where, v.Axes, v.Reduce.Ranges)
	return slices.DeleteFunc(loops, func(r *ir.Range) bool {
		return slices.ContainsFunc(places, func(p form.Place) bool { return p.To == r })
	})
}

type eagerValue struct {
	v    *ir.Value
	x    *explainer
	sum  *tally
	done map[*ir.Expr]*ir.Expr // roots of kernels already counted, to the bytes they wrote
}

// eagerKernel is one kernel of the unfused program. Like a kernel of a plan, it reads each element once, however often
// its operation uses it.
type eagerKernel struct {
	*tally
	from   []*ir.Value // the tensors it reads
	loads  map[*ir.Value][]*ir.Expr
	others map[*ir.Expr]bool // the results of other kernels that it reads
}

func newEagerKernel() *eagerKernel {
	k := &eagerKernel{tally: newTally(), loads: map[*ir.Value][]*ir.Expr{}, others: map[*ir.Expr]bool{}}
	k.kernels = 1
	return k
}

func (k *eagerKernel) load(l *ir.Expr) {
	if k.loads[l.From] == nil {
		k.from = append(k.from, l.From)
	}
	k.loads[l.From] = append(k.loads[l.From], l)
}

func (e *eagerValue) finish(k *eagerKernel) {
	for _, v := range k.from {
		k.read(bytesOf(v, k.loads[v]))
	}
	e.x.total(k.tally) // times it
	e.sum.add(k.tally)
}

// kernel counts the operations around root that share its place, as one kernel.
func (e *eagerValue) kernel(root, written *ir.Expr) {
	k := newEagerKernel()
	k.write(written)
	at := e.x.points(algebra.RangesOf(ir.FreeRanges(root)), k.tally)
	seen := map[*ir.Expr]bool{}
	var visit func(n *ir.Expr)
	visit = func(n *ir.Expr) {
		if seen[n] {
			return
		}
		seen[n] = true
		if n != root && (n.Op == ir.OpLoad || n.Op < ir.OpRandom || n.Span != root.Span) {
			e.operand(n, k)
			return
		}
		if n.Op == ir.OpLoad { // a copy
			e.operand(n, k)
			return
		}
		k.operation(n.Op, at)
		for _, a := range n.Args {
			visit(a)
		}
	}
	visit(root)
	e.finish(k)
}

// operand adds what kernel k reads for n: a tensor, or the result of another
// kernel, which is counted first. Constants, sizes and indices are not in memory.
func (e *eagerValue) operand(n *ir.Expr, k *eagerKernel) {
	switch {
	case n.Op == ir.OpLoad:
		k.load(n)
		for _, a := range n.Args {
			for _, inner := range ir.Loads(a) {
				k.load(inner)
			}
		}
	case n.Op < ir.OpRandom || k.others[n]:
	default:
		e.result(n, k)
	}
}

// result adds what kernel k reads for the result of another kernel, which is counted first.
func (e *eagerValue) result(n *ir.Expr, k *eagerKernel) {
	k.others[n] = true
	if e.done[n] == nil {
		elements := algebra.Product(algebra.RangesOf(ir.FreeRanges(n)))
		e.done[n] = ir.Apply(ir.OpMul, elements, ir.IntConst(int64(n.Type.Size())))
		e.kernel(n, e.done[n])
	}
	k.read(e.done[n])
}
