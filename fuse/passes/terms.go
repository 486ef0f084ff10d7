package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// termsColumns is the least length of a reduction with which computing one more value for each result
// costs nothing.
const termsColumns = 64

// separateTerms makes a value of the terms of a reduction where they are computed from results of other
// reductions, one for each term, and from something else. An example is the losses of rows, of which the
// mean is taken. The terms then become an epilogue of the kernel that has those results, computed by as
// many blocks as there are rows, and the reduction reads one number for each term.
func separateTerms(g *ir.Graph) {
	if g.OneKernel {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if !foldsResults(v, sizes) {
			return nil
		}
		terms, load := operandValue(g, v, v.Body)
		terms.Name = v.Name + "_terms"
		v.Body = load
		return []*ir.Value{terms}
	})
}

// foldsResults reports whether a reduction's terms are computed from several values, one of which is a
// long reduction's result for each term. It is false where another of them depends on a reduction over the
// terms, as an exponential about their maximum does, because both may become one stream. It is false for
// scores of attention and for products too, which are reduced where they are computed.
func foldsResults(v *ir.Value, sizes map[string]int64) bool {
	if v.Reduce == nil || v.Reduce.Rank != nil || form.ScanOf(v) != nil || len(v.Loads()) < 2 {
		return false
	}
	long := false
	for _, l := range ir.Loads(v.Body) {
		of := l.From.Reduce
		if of == nil {
			continue
		}
		if m, _ := form.Crossing(l.From); m != nil || form.IsMatrixProduct(l.From) || !forEachTerm(v, l) {
			return false
		}
		long = long || algebra.PointsAt(of.Ranges, sizes) >= termsColumns
	}
	return long
}

// forEachTerm reports whether a load reads a different element for each term of a reduction.
func forEachTerm(v *ir.Value, l *ir.Expr) bool {
	own := map[*ir.Range]bool{}
	for _, e := range l.Args {
		if e.Op == ir.OpRange {
			own[e.Range] = true
		}
	}
	for _, r := range algebra.AllRanges(v) {
		if !algebra.IsUnit(r) && !own[r] {
			return false
		}
	}
	return l.Fill == nil
}
