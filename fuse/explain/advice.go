package explain

import (
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// rewrite says how a program could be changed so that a refused merge becomes possible; "" if the merge is impossible, would gain
// nothing, or needs a program that computes something else.
func (x *explainer) rewrite(g *ir.Graph, reason ir.Reason, producer, consumer *ir.Value) string {
	switch reason {
	case ir.ReasonWritten:
		if isOutput(g, producer) {
			return "leave it out of the results"
		}
	case ir.ReasonIndexMismatch:
		if isTransposed(producer, consumer) {
			return "let the reader take the elements as they are computed: apply the transpose between the two to the inputs, or to the result"
		}
	case ir.ReasonRecompute:
		return "compute less before it is read at many points, or give it fewer readers"
	case ir.ReasonResources:
		if !form.IsMatrixProduct(producer) && !form.IsMatrixProduct(consumer) { // which share no rows, whatever their types
			return "narrower types or shorter rows, or fewer tensors at once"
		}
	case ir.ReasonDifferentRanges:
		if readers(g, producer) > 1 || isOutput(g, producer) {
			return "" // it is computed for the others in any case
		}
		return x.differentRanges(producer, consumer)
	}
	return ""
}

// isTransposed reports whether a value computes something of all elements of another, each read once and with its axes in another
// order. Slices, reshapes, windows, neighbours of an element and gathers are no such reads: the program cannot take them past what
// is computed.
func isTransposed(producer, consumer *ir.Value) bool {
	read := onlyRead(producer, consumer)
	if read == nil || form.WithoutCasts(consumer.Body) == read && consumer.Reduce == nil {
		return false
	}
	used := map[*ir.Range]bool{}
	for d, at := range read.Args {
		if at.Op != ir.OpRange || used[at.Range] || !ir.SameSize(at.Range.Extent, producer.Axes[d].Extent) {
			return false
		}
		used[at.Range] = true
	}
	return !inOrder(consumer, read)
}

// onlyRead is the load through which a value reads another; nil where it reads it at several places.
func onlyRead(producer, consumer *ir.Value) (read *ir.Expr) {
	for _, load := range consumer.Loads() {
		if load.From != producer {
			continue
		}
		if read != nil && !ir.Equal(read, load) {
			return nil
		}
		read = load
	}
	return read
}

// sizeUnknown stands for a symbol without a size, which may be any.
const sizeUnknown = 4096

// extent is how many points ranges have together.
func (x *explainer) extent(ranges ...*ir.Range) float64 {
	n := 1.0
	for _, r := range ranges {
		if extent, ok := x.eval(r.Extent); ok {
			n *= float64(extent)
		} else {
			n *= sizeUnknown
		}
	}
	return n
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
func (x *explainer) differentRanges(producer, consumer *ir.Value) string {
	switch {
	case form.IsMatrixProduct(consumer) && isScaledRows(producer, consumer):
		return "multiply the product, not its operand, by what belongs to a row: (x * r[:, none]) @ w is (x @ w) * r[:, none]"
	case multipliesMatrices(consumer) && multipliesMatrices(producer):
		if isFactor(producer, consumer) && x.isLessWork(producer, consumer) {
			return "multiply the weights first, which is less work: (x @ a) @ b is x @ (a @ b)"
		}
	case x.isFoldOfFolds(producer, consumer):
		return "reduce over both at once: the second reduction waits for the first, and changes nothing between"
	}
	return ""
}

// isFactor reports whether a product multiplies another value as it is, once.
func isFactor(operand, product *ir.Value) bool {
	read := slices.DeleteFunc(slices.Clone(form.FactorsOf(product.Body)), func(f *ir.Expr) bool {
		return !slices.ContainsFunc(ir.Loads(f), func(l *ir.Expr) bool { return l.From == operand })
	})
	return len(read) == 1 && form.WithoutCasts(read[0]).Op == ir.OpLoad
}

// isFoldOfFolds reports whether a value folds the results of another fold with the same operator, with factors at most, and one fold
// over both has no more terms.
func (x *explainer) isFoldOfFolds(producer, consumer *ir.Value) bool {
	p, c := producer.Reduce, consumer.Reduce
	if p == nil || c == nil || p.Op != c.Op || p.Rank != nil || c.Rank != nil || p.Op.IsArg() || onlyRead(producer, consumer) == nil {
		return false
	}
	if form.WithoutCasts(consumer.Body).Op != ir.OpLoad && !(p.Op == ir.Sum && isFactor(producer, consumer)) {
		return false
	}
	inner, outer := x.extent(p.Ranges...), x.extent(consumer.Axes...)*x.extent(c.Ranges...)
	return outer*inner <= x.extent(producer.Axes...)*inner+outer
}

// isLessWork reports whether (x @ a) @ b, whose first product is first, has more terms than x @ (a @ b).
func (x *explainer) isLessWork(first, second *ir.Value) bool {
	read := onlyRead(first, second)
	if read == nil || slices.ContainsFunc(read.Args, func(at *ir.Expr) bool { return at.Op != ir.OpRange }) {
		return false
	}
	kept, summed, batch := 1.0, 1.0, 1.0
	a, b := form.SidesOf(first)
	inA, inB := form.AxesIn(first, a), form.AxesIn(first, b)
	for d, r := range first.Axes {
		n := x.extent(r)
		switch {
		case inA[r] && inB[r]:
			batch *= n
		case slices.ContainsFunc(second.Reduce.Ranges, func(r *ir.Range) bool { return ir.DependsOn(read.Args[d], r) }):
			summed *= n
		default:
			kept *= n
		}
	}
	own, inner := x.extent(second.Axes...)/(kept*batch), x.extent(first.Reduce.Ranges...)
	asWritten := batch*kept*summed*inner + batch*kept*summed*own
	weightsFirst := batch*inner*summed*own + batch*kept*inner*own
	return weightsFirst < asWritten
}

// isScaledRows reports whether an operand of a product is a value that is only multiplied and divided by what belongs to its rows:
// by what does not depend on the axes that the product sums over.
func isScaledRows(operand, product *ir.Value) bool {
	if operand.Reduce != nil || operand.IsInput() || !isFactor(operand, product) {
		return false
	}
	summed := map[*ir.Range]bool{}
	for _, load := range ir.Loads(product.Body) {
		for i, at := range load.Args {
			if load.From == operand && slices.ContainsFunc(product.Reduce.Ranges, func(r *ir.Range) bool { return ir.DependsOn(at, r) }) {
				summed[operand.Axes[i]] = true
			}
		}
	}
	rows, others := 0, 0
	for _, f := range factorsAndDivisors(operand.Body) {
		axes := form.AxesIn(operand, f)
		switch {
		case len(ir.Loads(f)) > 0 && !slices.ContainsFunc(operand.Axes, func(r *ir.Range) bool { return axes[r] && summed[r] }):
			rows++
		case f.Op == ir.OpLoad:
			others++
		case len(ir.Loads(f)) > 0:
			return false // what would still be computed before the product
		}
	}
	return rows > 0 && others == 1
}

// factorsAndDivisors flattens products and quotients, and what is converted in between.
func factorsAndDivisors(e *ir.Expr) []*ir.Expr {
	factors := ir.Flattened(e, func(e *ir.Expr) []*ir.Expr {
		switch e = form.WithoutCasts(e); e.Op {
		case ir.OpMul, ir.OpDiv:
			return e.Args
		}
		return nil
	})
	for i, f := range factors {
		factors[i] = form.WithoutCasts(f)
	}
	return factors
}

// readers is how many values read another.
func readers(g *ir.Graph, v *ir.Value) int {
	n := 0
	for _, w := range g.Values {
		if slices.ContainsFunc(w.Loads(), func(l *ir.Expr) bool { return l.From == v }) {
			n++
		}
	}
	return n
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
