package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// termsColumns is the least length of a reduction beside whose kernel a value for each of
// its results costs nothing.
const termsColumns = 64

// separateTerms gives the terms of a fold values of their own where they are computed
// from the results of other reductions, one of each a term, and from something else: the
// losses of rows, of which the mean is taken. They are then computed in the kernel that
// has those results, by as many blocks as there are rows; the fold reads one number a
// term, and looks up nothing.
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

// foldsResults reports whether a fold's terms are computed from several values, one of
// them a long reduction's result for each term. Where another waits for a reduction over
// the terms, as an exponential about their maximum does, both may become one stream; and
// scores of attention and tiles of products are folded as they are.
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

// forEachTerm reports whether a load reads an element of its own for each term of a fold.
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
