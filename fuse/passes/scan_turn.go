package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// turnScans turns the axes of scans that are only read backwards: with n points, s[n - 1 - i] is the fold of the terms from n - 1 - i on
// down, which is a scan in the other direction of the terms from the other end. What reads it then reads the element that is computed beside
// it, and shares its kernel. Where the terms were read backwards, so that the program scans between two reversals, nothing is reversed any more.
// Values that are computed point by point on the way to a scan, and read backwards themselves, are turned in the same way.
func turnScans(g *ir.Graph) {
	if g.Numerics == ir.Strict || !slices.ContainsFunc(g.Values, func(v *ir.Value) bool { return form.ScanOf(v) != nil }) {
		return // strict scans add up in the order that is written
	}
	readers, backwards := readersOf(g), &backwardReads{known: map[*ir.Range]bool{}}
	for _, v := range slices.Backward(g.Values) {
		if slices.ContainsFunc(g.Outputs, func(o ir.Output) bool { return o.Value == v }) {
			continue
		}
		for d, ranges := range turnable(v) {
			if len(ranges) > 0 && backwards.gains(readers[v], v, ranges, d) {
				turnAxis(v, ranges, d, readers[v], g.Facts())
			}
		}
	}
}

// gains reports whether a value is read at all of its points, from the end of dim d to its beginning, and either reads backwards itself,
// or is a scan that what reads it may join once it is turned.
func (b *backwardReads) gains(readers []*ir.Value, v *ir.Value, ranges []*ir.Range, d int) bool {
	found, joins := false, v.Reduce != nil
	for _, u := range readers {
		for _, l := range u.Loads() {
			if l.From != v {
				continue
			}
			if !mirrors(l, d) {
				return false
			}
			found, joins = true, joins && u.Reduce == nil
		}
	}
	return found && (joins || b.of(v, ranges[len(ranges)-1]))
}

// mirrors reports whether a load visits all points of a tensor once, in order but along dim d, which it goes through from the end.
func mirrors(l *ir.Expr, d int) bool {
	seen := map[*ir.Range]bool{}
	for i, at := range l.Args {
		free := algebra.RangesOf(ir.FreeRanges(at))
		if len(free) != 1 || seen[free[0]] || !ir.SameSize(free[0].Extent, l.From.Axes[i].Extent) {
			return false
		}
		if seen[free[0]] = true; i != d && at.Op != ir.OpRange || i == d && !stepsBack(at, free[0]) {
			return false
		}
	}
	return true
}

// stepsBack reports whether an index goes down by 1 as a range goes up by 1.
func stepsBack(at *ir.Expr, r *ir.Range) bool {
	c, ok := coefficient(at, r)
	return ok && c == -1
}

// backwardReads knows which values read backwards as a range of theirs goes up.
type backwardReads struct{ known map[*ir.Range]bool }

// of reports whether a value reads something at places that depend on a range, and all that it reads so from the end, or through other values
// that may be turned and read so.
func (b *backwardReads) of(v *ir.Value, r *ir.Range) bool {
	if out, ok := b.known[r]; ok {
		return out
	}
	found := false
	for _, l := range v.Loads() {
		for d, at := range l.Args {
			if !ir.DependsOn(at, r) {
				continue
			}
			found = stepsBack(at, r)
			if own := turnable(l.From)[d]; at.Op == ir.OpRange && len(own) > 0 {
				found = b.of(l.From, own[len(own)-1])
			}
			if !found {
				b.known[r] = false
				return false
			}
		}
	}
	b.known[r] = found
	return found
}

// turnable lists, for each axis of a value that may run the other way, the ranges that then do: for a scan its axis and what it folds over.
func turnable(v *ir.Value) [][]*ir.Range {
	out := make([][]*ir.Range, len(v.Axes))
	s := form.ScanOf(v)
	for d, r := range v.Axes {
		switch {
		case s != nil && s.Axis == r:
			out[d] = []*ir.Range{r, s.Over}
		case !v.IsInput() && v.Reduce == nil:
			out[d] = []*ir.Range{r}
		}
	}
	return out
}

// turnAxis makes ranges of a value run the other way, of which one is its dim d, and readers count that dim from its end.
func turnAxis(v *ir.Value, ranges []*ir.Range, d int, readers []*ir.Value, facts ir.Facts) {
	last, turned := lastOf(v.Axes[d].Extent), map[*ir.Range]*ir.Expr{}
	for _, r := range ranges {
		turned[r] = ir.Apply(ir.OpSub, last, r.At())
	}
	v.MapExprs(func(e *ir.Expr) *ir.Expr { return ir.Simplify(ir.Substitute(e, turned), facts) })
	for _, u := range readers {
		u.MapExprs(func(e *ir.Expr) *ir.Expr { return readFromEnd(e, v, d, last, facts) })
	}
}

// readFromEnd is an expression whose loads of v count dim d from its end.
func readFromEnd(e *ir.Expr, v *ir.Value, d int, last *ir.Expr, facts ir.Facts) *ir.Expr {
	return ir.Rewrite(e, func(l *ir.Expr) *ir.Expr {
		if l.Op != ir.OpLoad || l.From != v {
			return l
		}
		at := slices.Clone(l.Args)
		at[d] = ir.Simplify(ir.Apply(ir.OpSub, last, at[d]), facts)
		return ir.Load(v, at, l.Fill).At(l.Span)
	})
}
