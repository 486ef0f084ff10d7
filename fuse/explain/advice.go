package explain

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// rewrite says how a program could be changed so that a refused merge becomes possible; "" if
// the merge is impossible, or would gain nothing.
func rewrite(g *ir.Graph, reason ir.Reason, producer, consumer *ir.Value) string {
	switch reason {
	case ir.ReasonWritten:
		if isOutput(g, producer) {
			return "leave it out of the results"
		}
	case ir.ReasonIndexMismatch:
		if !reordered(producer, consumer) {
			return ""
		}
		return "let the reader take the elements as they are computed: apply the transpose, slice or reshape between the two to the inputs, or to the result"
	case ir.ReasonRecompute:
		return "compute less before it is read at many points, or give it fewer readers"
	case ir.ReasonCycle:
		return "compute what stands between them from the inputs, not from this"
	case ir.ReasonResources:
		return "narrower types or shorter rows, or fewer tensors at once"
	case ir.ReasonDifferentRanges:
		return differentRanges(producer, consumer)
	}
	return ""
}

// reordered reports whether a value reads another at one place for each point, in another order or a part of it, as through a
// transpose, a slice or a reshape. Windows, neighbours of an element and gathers are no such reads: the program cannot
// take them to the inputs.
func reordered(producer, consumer *ir.Value) bool {
	var read *ir.Expr
	for _, load := range consumer.Loads() {
		if load.From != producer {
			continue
		}
		if read != nil && !ir.Equal(read, load) || slices.ContainsFunc(load.Args, func(at *ir.Expr) bool { return isWindow(consumer, at) || len(ir.Loads(at)) > 0 }) {
			return false
		}
		read = load
	}
	return read != nil && !inOrder(consumer, read)
}

// isWindow reports whether an index goes over neighbours: depends on an axis of the value and on one that it reduces.
func isWindow(v *ir.Value, at *ir.Expr) bool {
	own, summed := false, false
	ir.Walk(at, func(e *ir.Expr) bool {
		if e.Op == ir.OpRange {
			isOwn := slices.Contains(v.Axes, e.Range)
			own, summed = own || isOwn, summed || !isOwn
		}
		return true
	})
	return own && summed
}

// inOrder reports whether a load has the axes of the value that reads it as they are: its own in order, then those that it
// reduces. The right operand of a product has these before the last.
func inOrder(v *ir.Value, load *ir.Expr) bool {
	var own, summed []int
	ownFirst := true
	for _, at := range load.Args {
		if at.Op != ir.OpRange {
			return false
		}
		if i := slices.Index(v.Axes, at.Range); i >= 0 {
			own, ownFirst = append(own, i), ownFirst && len(summed) == 0
		} else {
			summed = append(summed, slices.Index(v.Reduce.Ranges, at.Range))
		}
	}
	return slices.IsSorted(own) && slices.IsSorted(summed) && (ownFirst || own[len(own)-1] == len(v.Axes)-1)
}

// differentRanges advises where one loop would have to run inside another.
func differentRanges(producer, consumer *ir.Value) string {
	switch {
	case form.IsMatrixProduct(consumer) && scalesRows(producer, consumer):
		return "multiply the product, not its operand, by what belongs to a row: (x * r[:, none]) @ w is (x @ w) * r[:, none]"
	case multipliesMatrices(consumer) && multipliesMatrices(producer):
		return "multiply the weights first where that is less work: (x @ a) @ b is x @ (a @ b)"
	case consumer.Reduce != nil && producer.Reduce != nil:
		return "reduce over one axis, or over all of them at once: the second reduction waits for the first"
	}
	return ""
}

// scalesRows reports whether a factor or divisor of a pointwise operand of a product belongs to its rows: does not depend on
// the axes that the product sums over.
func scalesRows(operand, product *ir.Value) bool {
	if operand.Reduce != nil || operand.IsInput() {
		return false
	}
	summed := map[*ir.Range]bool{}
	for _, load := range ir.Loads(product.Body) {
		for i, at := range load.Args {
			if load.From == operand && at.Op == ir.OpRange && slices.Contains(product.Reduce.Ranges, at.Range) {
				summed[operand.Axes[i]] = true
			}
		}
	}
	return slices.ContainsFunc(factorsAndDivisors(operand.Body), func(f *ir.Expr) bool {
		axes := form.AxesIn(operand, f)
		return len(ir.Loads(f)) > 0 && !slices.ContainsFunc(operand.Axes, func(r *ir.Range) bool { return axes[r] && summed[r] })
	})
}

// factorsAndDivisors flattens products and quotients, and what is converted in between.
func factorsAndDivisors(e *ir.Expr) []*ir.Expr {
	return ir.Flattened(e, func(e *ir.Expr) []*ir.Expr {
		switch e = form.WithoutCasts(e); e.Op {
		case ir.OpMul, ir.OpDiv:
			return e.Args
		}
		return nil
	})
}

func isOutput(g *ir.Graph, v *ir.Value) bool {
	for _, o := range g.Outputs {
		if o.Value == v {
			return true
		}
	}
	return false
}

// roof names the resource that bounds a kernel's estimate, and the part of the estimate that
// this resource alone takes. Near 1, the kernel is as fast as the device allows.
func (x *explainer) roof(t *tally, total Total) (name string, part *float64) {
	bytes := float64(*total.Read.Bytes) + float64(*total.Written.Bytes)
	most := 0.0
	for _, r := range []struct {
		name    string
		seconds float64
	}{
		{"memory", bytes / x.device.Bandwidth},
		{"arithmetic", t.flops / x.device.F32Rate},
		{"special functions", t.special / x.device.SpecialRate},
		{"products", t.products / max(t.rate, 1)},
		{"launch", x.device.Launch},
	} {
		if r.seconds > most {
			name, most = r.name, r.seconds
		}
	}
	of := min(1, most/max(*total.Seconds, 1e-12))
	return name, &of
}
