package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// readJoined lets streams of few queries read the parts of a concatenation where these lie, such as a cache of keys and
// the key of a new token. Such a stream reads each key once, so writing the whole beforehand would move each key three
// times. Streams of many queries read each key many times, by the tensor copy engine, which knows one tensor at a time.
func readJoined(g *ir.Graph) {
	streams := form.NewRecogniser(g).Streams()
	for _, s := range streams {
		if !forecast.FewQueries(queriesOf(g, s)) {
			continue
		}
		for _, v := range []*ir.Value{s.Score.From, s.Out} {
			lanes := lanesOf(s, v)
			v.MapExprs(func(e *ir.Expr) *ir.Expr {
				return ir.Rewrite(e, func(l *ir.Expr) *ir.Expr {
					if l.Op == ir.OpLoad && isJoined(l.From) && !dependsAlong(l, lanes) {
						return form.BodyAt(l)
					}
					return l
				})
			})
		}
	}
	DropDead(g)
}

// lanesOf is the ranges along which threads copy the operands of a stream's product or weighted sum: those that a score
// sums over, and those of the values alone.
func lanesOf(s *form.Stream, v *ir.Value) map[*ir.Range]bool {
	if v == s.Out {
		return s.Own
	}
	return algebra.RangeSet(v.Reduce.Ranges)
}

// isJoined reports whether each element of a value is that of one of several tensors, by its place.
func isJoined(v *ir.Value) bool {
	return !v.IsInput() && v.Reduce == nil && v.Body.Op == ir.OpSelect && choosesLoads(v.Body)
}

// choosesLoads reports whether an expression is a load or 0, or a choice between such by conditions on places alone.
func choosesLoads(e *ir.Expr) bool {
	if e.Op == ir.OpSelect {
		return !ir.Has(e.Args[0], ir.OpLoad) && choosesLoads(e.Args[1]) && choosesLoads(e.Args[2])
	}
	return form.PlainLoad(e) || e.IsConst(0)
}

// dependsAlong reports whether the tensor that a load of a joined value takes its element from depends on some ranges.
func dependsAlong(l *ir.Expr, ranges map[*ir.Range]bool) bool {
	return ir.Contains(form.BodyAt(l), func(e *ir.Expr) bool {
		return e.Op == ir.OpSelect && algebra.DependsOnAny(e.Args[0], ranges)
	})
}

// joinedParts is, of each joined value that a stream of few queries reads, the tensors that it joins. These stay values,
// because the stream copies them as they lie.
func joinedParts(g *ir.Graph, m *form.Recogniser) map[*ir.Value][]*ir.Value {
	out := map[*ir.Value][]*ir.Value{}
	streams := m.Streams()
	for _, s := range streams {
		if !forecast.FewQueries(queriesOf(g, s)) {
			continue
		}
		for _, l := range append(s.Score.From.Loads(), s.Out.Loads()...) {
			if isJoined(l.From) {
				for _, part := range l.From.Loads() {
					out[l.From] = append(out[l.From], part.From)
				}
			}
		}
	}
	return out
}
