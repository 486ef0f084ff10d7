package cpu

import (
	"github.com/fusec/fusec/ir"
)

// access is one read or store of a variant.
type access struct {
	offset *ir.Expr
	store  bool
}

// survey is what a variant's expressions do with ranges.
type survey struct {
	accesses  []access
	places    []*ir.Expr         // that folds report
	divisions []*ir.Expr         // of integers, in offsets and elsewhere
	direct    map[*ir.Range]bool // ranges used other than in an offset
}

func surveyOf(v *ir.Variant) *survey {
	s := &survey{direct: map[*ir.Range]bool{}}
	seen := map[*ir.Expr]bool{}
	for _, section := range v.Sections {
		for _, f := range section.Folds {
			s.visit(f.Where, seen)
			s.visit(f.Body, seen)
			s.visit(f.Rescale, seen)
			if f.Index != nil {
				s.places = append(s.places, f.Index)
			}
		}
		for _, st := range section.Stores {
			s.visit(st.Guard, seen)
			s.visit(st.Value, seen)
			s.accesses = append(s.accesses, access{st.Offset, true})
			s.divide(st.Offset)
		}
	}
	return s
}

func (s *survey) visit(e *ir.Expr, seen map[*ir.Expr]bool) {
	if e == nil || seen[e] {
		return
	}
	seen[e] = true
	switch {
	case e.Op == ir.OpRange:
		s.direct[e.Range] = true
	case e.Op == ir.OpLocal:
		s.visit(e.Local.Def, seen)
	case e.Op == ir.OpRead:
		s.accesses = append(s.accesses, access{e.Args[0], false})
		s.divide(e.Args[0])
		s.visit(e.Guard, seen)
		s.visit(e.Fill, seen)
		return
	}
	for _, a := range e.Args {
		s.visit(a, seen)
	}
}

// divide notes the divisions in an offset.
func (s *survey) divide(e *ir.Expr) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpLocal && e.Local.Def != nil {
			s.divide(e.Local.Def)
		}
		if e.Op == ir.OpFloorDiv || e.Op == ir.OpMod {
			s.divisions = append(s.divisions, e)
		}
		return true
	})
}

// along analyses as if the lanes ran along r.
func (g *gen) along(s *survey, r *ir.Range) {
	g.vec, g.vecRow, g.deps, g.block = r, r != nil && !g.isCol[r], map[*ir.Expr]dep{}, 0
	g.block = g.blockOf(s)
}

// coalesce joins neighbouring ranges that every access walks as one: the inner
// one gets all their points, the outer one is left with a single one.
func (g *gen) coalesce(ranges []*ir.Range, v *ir.Variant) {
	s := surveyOf(v)
	inner := -1
	for d := len(ranges) - 1; d >= 0; d-- {
		switch {
		case g.extent[ranges[d]] == 1:
		case inner >= 0 && g.joinable(s, ranges[d], ranges[inner]):
			g.extent[ranges[inner]] *= g.extent[ranges[d]]
			g.extent[ranges[d]] = 1
		default:
			inner = d
		}
	}
}

func (g *gen) joinable(s *survey, outer, inner *ir.Range) bool {
	if s.direct[outer] || s.direct[inner] {
		return false
	}
	for _, a := range s.accesses {
		if !g.joins(a.offset, outer, inner) {
			return false
		}
	}
	for _, place := range s.places {
		if !g.joins(place, outer, inner) {
			return false
		}
	}
	return true
}

// joins reports whether an offset goes from the end of the inner range on to the next point of
// the outer one as it goes from one point of the inner one to the next.
func (g *gen) joins(offset *ir.Expr, outer, inner *ir.Range) bool {
	g.along(&survey{}, outer)
	far, ok := g.stride(offset)
	if !ok {
		return false
	}
	g.along(&survey{}, inner)
	near, ok := g.stride(offset)
	return ok && far == near*g.extent[inner]
}

// chooseLanes picks the range that lanes run along: the one along which the
// accesses are cheapest, from their strides and its length.
func (g *gen) chooseLanes(k *ir.Kernel, v *ir.Variant) {
	s := surveyOf(v)
	var best *ir.Range
	bestCost := 0.0
	ranges := append(append([]*ir.Range(nil), k.Rows...), k.Cols...)
	if len(k.Accumulated) > 0 { // lanes of one tile would be folded into one value
		ranges = k.Cols
	}
	if g.scatter != nil {
		ranges = g.scatter.Lanes(k.Rows)
	}
	for _, r := range ranges {
		if g.extent[r] < 2 {
			continue
		}
		if cost := g.laneCost(k, s, r); best == nil || cost <= bestCost {
			best, bestCost = r, cost
		}
	}
	g.along(s, best)
}

// laneCost is about the nanoseconds of one point: of moving its elements, and its
// share of what a step and a job cost whatever their length.
func (g *gen) laneCost(k *ir.Kernel, s *survey, r *ir.Range) float64 {
	const perJob = 150.0
	total := g.stepCost(s, r)
	job := g.lanesOf(r)
	if g.isCol[r] {
		job = 1
	}
	for _, c := range k.Cols {
		job *= float64(max(g.extent[c], 1))
	}
	return total + perJob/job
}

// stepCost is laneCost without the share of a job.
func (g *gen) stepCost(s *survey, r *ir.Range) float64 {
	const uniform, contiguous, strided, gathered, perInstruction = 0.05, 0.15, 1.2, 2.0, 25.0
	g.along(s, r)
	total := 0.2
	for _, a := range s.accesses {
		stride, ok := g.stride(a.offset)
		switch {
		case !ok:
			total += gathered
		case stride == 0:
			total += uniform
		case stride == 1:
			total += contiguous
		default:
			total += strided
		}
	}
	return total + perInstruction*float64(len(s.accesses)+1)/g.lanesOf(r)
}

// lanesOf is the most lanes of a tile along the range that was analysed last.
func (g *gen) lanesOf(r *ir.Range) float64 {
	lanes := float64(min(g.extent[r], tileLanes))
	if g.block > 0 {
		lanes = min(lanes, float64(g.block))
	}
	return lanes
}
