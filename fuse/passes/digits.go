package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// A program that cuts an image into windows and multiplies these, w @ unfold2d(x), has one range for the channel and both taps of
// an element, and one for the rows and columns of windows. The input is then read at quotients and remainders of these
// ranges, the digits of their indices. Over a range for each digit such a product is a windowed contraction, as a convolution is.

// splitDigits gives large products that read digits of their ranges a range for each digit, where they are windowed
// contractions then. The order of the elements is the same.
func splitDigits(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	sizes := algebra.DefaultSizes(g)
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if loadsMultiplied(v) == nil || v.Reduce.Where != nil || !manyTerms(v, sizes) || hasWindows(v) {
			return nil
		}
		reduce := *v.Reduce
		u := &ir.Value{Name: v.Name + "_digits", Type: v.Type, Axes: slices.Clone(v.Axes), Body: v.Body, Reduce: &reduce, Origin: v.Origin}
		digits := splitAll(g, u)
		if !hasWindows(u) {
			return nil
		}
		var cuts [][]*ir.Range
		for _, r := range algebra.AllRanges(v) {
			cuts = append(cuts, digits[r])
		}
		made := viewDigits(g, u, cuts)
		if len(u.Axes) == len(v.Axes) {
			v.Reduce, v.Body = u.Reduce, u.Body
			return made
		}
		at := algebra.UnitIndices(u.Axes)
		for _, a := range v.Axes {
			for r, digit := range ir.Digits(digits[a], a.At()) {
				if !algebra.IsUnit(r) {
					at[slices.Index(u.Axes, r)] = ir.Simplify(digit, g.Facts())
				}
			}
		}
		v.Reduce, v.Body = nil, ir.Load(freshAxes(g, u), at, nil).At(v.Body.Span)
		return append(made, u)
	})
}

// hasWindows reports whether a value is a product of weights with windows of several places, or with places between them.
func hasWindows(v *ir.Value) bool {
	p := windowedProduct(v)
	return p != nil && moves(p.input)
}

// splitAll cuts the ranges and the axes of a sum at their digits. It returns the ranges that each became, the outermost first.
func splitAll(g *ir.Graph, u *ir.Value) map[*ir.Range][]*ir.Range {
	digits := map[*ir.Range][]*ir.Range{}
	for _, r := range algebra.AllRanges(u) {
		digits[r] = []*ir.Range{r}
	}
	facts := g.Facts()
	facts.Positive = true // an empty tensor has no windows
	f := fitting{g: g, v: u, facts: facts, size: algebra.Divisions, inside: true}
	for _, split := range []func() (*ir.Range, []*ir.Range){f.split, f.splitAxis} {
		for r, parts := split(); r != nil; r, parts = split() {
			for whole, of := range digits {
				if i := slices.Index(of, r); i >= 0 {
					digits[whole] = slices.Replace(slices.Clone(of), i, i+1, parts...)
				}
			}
		}
	}
	return digits
}

// splitAxis does with an axis what split does with ranges that are summed over.
func (f *fitting) splitAxis() (a *ir.Range, parts []*ir.Range) {
	for i, a := range f.v.Axes {
		for _, n := range f.divisors(a) {
			parts := f.cut(a, n)
			if parts == nil {
				continue
			}
			old := f.v.Axes
			f.v.Axes = slices.Replace(slices.Clone(old), i, i+1, parts...)
			if f.replace(f.v.Reduce.Ranges, map[*ir.Range]*ir.Expr{a: placeOfDigits(parts)}) {
				return a, parts
			}
			f.v.Axes = old
		}
	}
	return nil, nil
}

// viewDigits makes loads of a sum that go through all digits of a dim, as those of weights [O, C KH KW] do, loads of views with a dim
// for each digit, so that later passes find one for the channel. It returns the views.
func viewDigits(g *ir.Graph, u *ir.Value, cuts [][]*ir.Range) (made []*ir.Value) {
	u.Body = ir.Rewrite(u.Body, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad {
			return e
		}
		for _, parts := range cuts {
			for d, at := range e.Args {
				if len(parts) > 1 && ir.SameSize(e.From.Axes[d].Extent, extentOfDigits(parts)) && ir.SameIndex(at, placeOfDigits(parts), ir.Facts{}) {
					e = splitDim(g, e, d, parts)
					made = append(made, e.From)
					break
				}
			}
		}
		return e
	})
	return made
}

// extentOfDigits is the extent of a range that was cut into others.
func extentOfDigits(parts []*ir.Range) *ir.Expr {
	return ir.Simplify(algebra.Product(parts), ir.Facts{})
}
