package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Limits of small matrices whose elements become values of their own.
const (
	mostElements     = 25    // elements of a matrix: each takes a register
	mostElementTerms = 128   // terms of all elements of a product: with more, threads should share a matrix
	mostElementNodes = 20000 // nodes of the expressions of a group, all elements of it
)

// separateElements makes values of the elements of small matrices that others multiply, transpose or take elements of, such as rotations
// of points: an element of a product needs a row and a column, which other threads compute, so each matrix would go through memory. Once
// each element is a value over the points, one thread has all elements of a point in registers. What reads a matrix in another way reads
// the elements beside each other.
func separateElements(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	m := newMatrices(g)
	elements := map[*ir.Value][]*ir.Value{}
	for _, group := range m.groups() {
		if m.pays(group) {
			for _, v := range group {
				elements[v] = nil
			}
		}
	}
	if len(elements) == 0 {
		return
	}
	insertBefore(g, func(v *ir.Value) []*ir.Value {
		if _, ok := elements[v]; !ok {
			return nil
		}
		elements[v] = m.elementsOf(v, elements)
		v.Body, v.Reduce = besideEachOther(v, m.short[v], elements[v]), nil
		return elements[v]
	})
	DropDead(g)
}

// elementsOf makes a value of each element of a matrix, over its points.
func (m *matrices) elementsOf(v *ir.Value, elements map[*ir.Value][]*ir.Value) (out []*ir.Value) {
	long := v.Axes[:len(v.Axes)-len(m.short[v])]
	eachPoint(m.short[v], map[*ir.Range]*ir.Expr{}, func(at map[*ir.Range]*ir.Expr) {
		u := &ir.Value{Name: v.Name + "_element", Type: v.Type, Origin: v.Origin}
		to := map[*ir.Range]*ir.Expr{}
		for r, e := range at {
			to[r] = e
		}
		for _, r := range long {
			axis := m.graph.NewRange(r.Name, r.Extent)
			u.Axes, to[r] = append(u.Axes, axis), axis.At()
		}
		facts := m.facts
		facts.Within = u.Axes
		place := func(e *ir.Expr) *ir.Expr { return m.readElements(ir.Simplify(ir.Substitute(e, to), facts), elements) }
		if v.Reduce == nil {
			u.Body = place(v.Body)
		} else {
			u.Body = m.eachTerm(v, place)
		}
		out = append(out, m.graph.Adopt(u))
	})
	return out
}

// eachTerm is a reduction of a known number of terms as an expression.
func (m *matrices) eachTerm(v *ir.Value, place func(*ir.Expr) *ir.Expr) (out *ir.Expr) {
	op := v.Reduce.Op
	eachPoint(v.Reduce.Ranges, map[*ir.Range]*ir.Expr{}, func(at map[*ir.Range]*ir.Expr) {
		term := ir.Cast(place(ir.Substitute(v.Body, at)), op.Accumulator(v.Body.Type))
		if out != nil {
			term = ir.Apply(op.Info().Combine, out, term).At(v.Body.Span)
		}
		out = term
	})
	return ir.Cast(out, v.Type)
}

// readElements is an expression that reads elements of matrices where it read these at known places.
func (m *matrices) readElements(e *ir.Expr, elements map[*ir.Value][]*ir.Value) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad || len(elements[e.From]) == 0 || e.Fill != nil {
			return e
		}
		short := m.short[e.From]
		points, at := e.Args[:len(e.Args)-len(short)], 0
		for d, r := range short {
			i := e.Args[len(points)+d]
			if i.Op != ir.OpConst {
				return e
			}
			at = at*int(r.Extent.Int) + int(i.Int)
		}
		return ir.Load(elements[e.From][at], points, nil).At(e.Span)
	})
}

// besideEachOther is the body of a matrix that picks its elements by the place.
func besideEachOther(v *ir.Value, short []*ir.Range, elements []*ir.Value) *ir.Expr {
	if len(short) == 0 {
		return ir.Load(elements[0], ir.Indices(v.Axes[:len(elements[0].Axes)]), nil).At(v.Origin.Span)
	}
	var body *ir.Expr
	each := len(elements) / int(short[0].Extent.Int)
	for i := int(short[0].Extent.Int) - 1; i >= 0; i-- {
		e := besideEachOther(v, short[1:], elements[i*each:(i+1)*each])
		if body == nil {
			body = e
		} else {
			body = ir.Where(ir.Apply(ir.OpLt, short[0].At(), ir.IntConst(int64(i+1))), e, body)
		}
	}
	return body
}

// matrices is what separateElements asks about a graph.
type matrices struct {
	graph   *ir.Graph
	sizes   map[string]int64
	facts   ir.Facts
	results map[*ir.Value]bool
	short   map[*ir.Value][]*ir.Range // the last axes of values that may be computed element by element, which are short
	may     map[*ir.Value]bool        // such values
}

func newMatrices(g *ir.Graph) *matrices {
	m := &matrices{graph: g, sizes: algebra.DefaultSizes(g), facts: g.Facts(), results: resultsOf(g),
		short: map[*ir.Value][]*ir.Range{}, may: map[*ir.Value]bool{}}
	for _, v := range g.Values {
		if m.may[v] = m.isSmall(v); m.may[v] {
			m.short[v] = shortAxes(v)
		}
	}
	return m
}

// shortAxes is the last axes of a value, as far as they are short.
func shortAxes(v *ir.Value) []*ir.Range {
	first, n := len(v.Axes), 1
	for first > 0 {
		each := knownPoints(v.Axes[first-1 : first])
		if each < 1 || n*each > mostElements {
			break
		}
		first, n = first-1, n*each
	}
	return v.Axes[first:]
}

// isSmall reports whether a value has known short axes and sums, over many points, and is not made for tensor cores or of windows.
func (m *matrices) isSmall(v *ir.Value) bool {
	if v.IsInput() || !isPlain(v) || form.IsTileProduct(v) || !ir.Has(v.Body, ir.OpLoad) || ir.Has(v.Body, ir.OpRandom, ir.OpRandom16) {
		return false
	}
	if len(shortAxes(v)) == len(v.Axes) {
		return false
	}
	if v.Reduce == nil {
		return true
	}
	terms, reduced := knownPoints(v.Reduce.Ranges), algebra.RangeSet(v.Reduce.Ranges)
	windows := &components{sizes: m.sizes}
	return terms > 0 && terms*knownPoints(shortAxes(v)) <= mostElementTerms &&
		!slices.ContainsFunc(v.Loads(), func(l *ir.Expr) bool { return windows.readsWindows(l, reduced) })
}

// inside reports whether a load reads a matrix of such a value in another, of the same points, at places that are known for each element.
func (m *matrices) inside(l *ir.Expr, reader *ir.Value) bool {
	if !m.may[reader] || !m.may[l.From] || l.Fill != nil {
		return false
	}
	long, own := reader.Axes[:len(reader.Axes)-len(m.short[reader])], len(l.Args)-len(m.short[l.From])
	if own != len(long) {
		return false
	}
	for d, at := range l.Args[:own] {
		if at.Op != ir.OpRange || at.Range != long[d] {
			return false
		}
	}
	known := algebra.RangeSet(m.short[reader])
	if reader.Reduce != nil {
		for _, r := range reader.Reduce.Ranges {
			known[r] = true
		}
	}
	return !slices.ContainsFunc(l.Args[own:], func(at *ir.Expr) bool { return ir.Has(at, ir.OpLoad) || !algebra.Subset(ir.FreeRanges(at), known) })
}
