package cpu

import (
	"slices"
	"sync"

	"github.com/fusec/fusec/ir"
)

// A sum of products of two factors is a matrix product where the rows of the kernel split in three: those that only the
// left factor depends on (m), those that only the right one depends on (n), and a batch. The columns of the kernel are the
// range of the sum (k). Such a sum is computed in blocks (Goto and van de Geijn, Anatomy of High-Performance Matrix
// Multiplication, 2008): parts of both factors are packed into panels of a few rows or columns that lie in the order in
// which the micro-kernel reads them. The factors may be any expressions: the instructions that would compute a tile of
// terms compute the lines that are packed. Each result takes its terms in the order of the columns, in runs of runSteps
// whose sums are added in turn, so that it does not depend on the blocks or the cores.

// matrixProduct is a kernel whose pass over the columns is matrix products.
type matrixProduct[T float] struct {
	table       *opTable[T]
	at          bank[T]
	point       func(w *worker, reg int, tile []T) // has a register be the tile
	batch       []axis
	m, n, k     []axis
	terms       []productTerm
	rest        *code     // what stands behind the sums, lanes along n
	points, sum int64     // points of the batch and of k
	rows, cols  int64     // of m and n
	idle        sync.Pool // of *productScratch
}

// productTerm is one sum.
type productTerm struct {
	left, right *factor
	where       *factor // which steps the sum takes; nil for all
	result      int     // register of the result in the rest
}

// factor is the code that computes lines of a factor.
type factor struct {
	code    *code
	line    int  // register of a line
	along   bool // lines run along the sum; else along m or n
	lasting bool // the next line does not overwrite the one before it
}

// fewestProductRows is the least points of m and of n for which packing pays; see BenchmarkProduct. With fewer, each element
// of the longer factor that is packed is used as often.
const fewestProductRows = 4

// fewestProducts is the least multiplications of a product for which packing pays. Tests set it to others.
var fewestProducts int64 = 1 << 9

// sides is how the rows of a kernel split.
type sides struct{ batch, m, n, k []*ir.Range }

// lowerProduct compiles a kernel as matrix products; it returns nil where it is not one, or too small a one.
func lowerProduct(k *ir.Kernel, v *ir.Variant, symbols map[string]int64) (step, error) {
	if !productSections(k, v) {
		return nil, nil
	}
	g, err := newGen(k, symbols)
	if err != nil {
		return nil, err
	}
	g.coalesce(k.Rows, v)
	g.coalesce(k.Cols, v)
	class := classOf(v.Sections[0].Folds[0].Body.Type)
	factors := g.factorsOf(v.Sections[0], class)
	if factors == nil {
		return nil, nil
	}
	split, ok := g.split(k, v.Sections[0].Folds, factors)
	if !ok || !g.worthPacking(split) {
		return nil, nil
	}
	if class == classF32 {
		p := &matrixProduct[float32]{table: &opsF32, at: f32s, point: func(w *worker, reg int, tile []float32) { w.f32[reg] = tile }}
		p.lower(g, v, split, factors)
		return p, nil
	}
	p := &matrixProduct[float64]{table: &opsF64, at: f64s, point: func(w *worker, reg int, tile []float64) { w.f64[reg] = tile }}
	p.lower(g, v, split, factors)
	return p, nil
}

// productSections reports whether a variant is one pass that only sums, and then what is made of the sums.
func productSections(k *ir.Kernel, v *ir.Variant) bool {
	if k.Numerics == ir.Strict || k.Template == ir.AttendTemplate || v.Contract != nil && v.Contract.Product != nil ||
		len(k.Accumulated) > 0 || len(k.Cols) == 0 || len(v.Sections) < 2 {
		return false
	}
	for i, s := range v.Sections {
		if pass := s.Level == ir.FullLevel; pass != (i == 0) || pass != (len(s.Folds) > 0) || pass && len(s.Stores) > 0 || len(s.Partials) > 0 {
			return false
		}
	}
	return !v.Sections[0].Reverse
}

// factorsOf returns the two factors of each sum; nil where one is no plain sum of products in the class.
func (g *gen) factorsOf(s *ir.Section, c class) (out [][2]*ir.Expr) {
	for _, f := range s.Folds {
		body := g.behind(f.Body)
		if f.Op != ir.Sum || f.Prefix != ir.WholeRow || f.After != nil || f.Running != nil ||
			body.Op != ir.OpMul || classOf(f.Body.Type) != c || c == classInt {
			return nil
		}
		out = append(out, [2]*ir.Expr{body.Args[0], body.Args[1]})
	}
	return out
}

// split finds the rows that only one factor depends on. With more than one sum, they share the split. Which steps a sum takes
// must not depend on these rows.
func (g *gen) split(k *ir.Kernel, folds []*ir.Fold, factors [][2]*ir.Expr) (sides, bool) {
	var out sides
	for _, r := range k.Rows {
		left, right := g.dependsOn(factors[0][0], r), g.dependsOn(factors[0][1], r)
		switch {
		case g.extent[r] == 1 || left == right:
			out.batch = append(out.batch, r)
		case left:
			out.m = append(out.m, r)
		default:
			out.n = append(out.n, r)
		}
	}
	out.k = k.Cols
	for i, f := range folds {
		if !g.orient(&factors[i], out) || f.Where != nil && (g.dependsOnAny(f.Where, out.m) || g.dependsOnAny(f.Where, out.n)) {
			return out, false
		}
	}
	return out, true
}

func (g *gen) dependsOnAny(e *ir.Expr, ranges []*ir.Range) bool {
	return slices.ContainsFunc(ranges, func(r *ir.Range) bool { return g.dependsOn(e, r) })
}

// orient puts the factor first that depends on m only; false where none does or the other depends on m, too.
func (g *gen) orient(f *[2]*ir.Expr, s sides) bool {
	if g.dependsOnAny(f[0], s.n) {
		f[0], f[1] = f[1], f[0]
	}
	return !g.dependsOnAny(f[0], s.n) && !g.dependsOnAny(f[1], s.m)
}

func (g *gen) points(ranges []*ir.Range) int64 {
	n := int64(1)
	for _, r := range ranges {
		n *= g.extent[r]
	}
	return n
}

func (g *gen) worthPacking(s sides) bool {
	m, n, k := g.points(s.m), g.points(s.n), g.points(s.k)
	if fewestProducts == 0 {
		return min(m, n) > 1
	}
	return min(m, n) >= fewestProductRows && times(m, n, k) >= fewestProducts
}

// lower compiles the parts of a product.
func (p *matrixProduct[T]) lower(g *gen, v *ir.Variant, s sides, factors [][2]*ir.Expr) {
	rest := &ir.Variant{Sections: v.Sections[1:]}
	lanes := g.cheapest(surveyOf(rest), append(slices.Clone(s.m), s.n...))
	if slices.Contains(s.m, lanes) {
		s.m, s.n = s.n, s.m
		for i := range factors {
			factors[i][0], factors[i][1] = factors[i][1], factors[i][0]
		}
	}
	s.n = g.innermost(s.n, lanes)
	inner := func(ranges []*ir.Range) *ir.Range { return g.innermost(ranges, nil)[len(ranges)-1] }
	if r := g.cheapest(surveyOfValue(factors[0][0]), append(slices.Clone(s.m), inner(s.k))); slices.Contains(s.m, r) {
		s.m = g.innermost(s.m, r)
	}
	p.batch, p.m, p.n, p.k = g.axes(s.batch), g.axes(s.m), g.axes(s.n), g.axes(g.innermost(s.k, nil))
	p.points, p.rows, p.cols, p.sum = g.points(s.batch), g.points(s.m), g.points(s.n), g.points(s.k)
	results := p.lowerRest(g, v, lanes)
	for i, f := range factors {
		t := productTerm{left: g.lowerFactor(f[0], inner(s.m), inner(s.k)), right: g.lowerFactor(f[1], inner(s.n), inner(s.k)),
			result: results[i]}
		if where := v.Sections[0].Folds[i].Where; where != nil {
			t.where = g.lowerFactor(where, inner(s.k), inner(s.k))
		}
		p.terms = append(p.terms, t)
	}
}

// innermost moves a range to the end, where it is not nil, and ranges of one element to the front.
func (g *gen) innermost(ranges []*ir.Range, last *ir.Range) []*ir.Range {
	place := func(r *ir.Range) int {
		switch {
		case r == last:
			return 2
		case g.extent[r] > 1:
			return 1
		}
		return 0
	}
	out := slices.Clone(ranges)
	slices.SortStableFunc(out, func(a, b *ir.Range) int { return place(a) - place(b) })
	return out
}

// axes are the loops over ranges of more than one element: the index of any other is 0.
func (g *gen) axes(ranges []*ir.Range) (out []axis) {
	for _, r := range ranges {
		if g.extent[r] != 1 {
			out = append(out, axis{g.slot[r], g.extent[r]})
		}
	}
	return out
}

// cheapest is the range along which the accesses of a survey are cheapest.
func (g *gen) cheapest(s *survey, ranges []*ir.Range) *ir.Range {
	best, bestCost := ranges[len(ranges)-1], 0.0
	for i, r := range ranges {
		if cost := g.stepCost(s, r); i == 0 || cost <= bestCost {
			best, bestCost = r, cost
		}
	}
	return best
}

func surveyOfValue(e *ir.Expr) *survey {
	s := &survey{direct: map[*ir.Range]bool{}}
	s.visit(e, map[*ir.Expr]bool{})
	return s
}

// part starts the compilation of a part of the kernel whose lanes run along r.
func (g *gen) part(s *survey, r *ir.Range) *gen {
	out := *g
	out.code = &code{name: g.name, bufs: g.bufs, slots: g.slots, pinned: map[pinnedReg]bool{}}
	out.job, out.folds, out.moving = map[node]operand{}, map[*ir.Local]*fold{}, map[*ir.Local]operand{}
	out.along(s, r)
	out.lane, out.tile = axis{g.slot[r], g.extent[r]}, min(tileLanes, g.extent[r])
	if out.block == 0 {
		out.block = out.lane.extent
	}
	return &out
}

// lowerFactor compiles a factor, with lines along one of two ranges.
func (g *gen) lowerFactor(e *ir.Expr, across, along *ir.Range) *factor {
	s := surveyOfValue(e)
	lanes := g.cheapest(s, []*ir.Range{along, across})
	f := g.part(s, lanes)
	f.passes = true
	body := &section{}
	f.beginSection(body)
	line := f.vector(e)
	f.pin(line)
	f.sections = append(f.sections, body)
	f.allocate()
	return &factor{f.code, line.reg, lanes == along, !f.used[line.class][line.reg]}
}

// lowerRest compiles what stands behind the pass, and returns the registers of the sums.
func (p *matrixProduct[T]) lowerRest(g *gen, v *ir.Variant, lanes *ir.Range) (results []int) {
	rest := g.part(surveyOf(&ir.Variant{Sections: v.Sections[1:]}), lanes)
	for i, src := range v.Sections[0].Folds {
		f := rest.newFold(src, i)
		rest.folds[src.Result] = f
		rest.code.folds = append(rest.code.folds, f)
		results = append(results, f.finished.reg)
	}
	for _, s := range v.Sections[1:] {
		out := &section{}
		rest.beginSection(out)
		for _, st := range s.Stores {
			rest.store(st)
		}
		rest.sections = append(rest.sections, out)
	}
	rest.allocate()
	for i, f := range rest.code.folds {
		rest.used[f.class][results[i]] = false // it is a part of a block
	}
	p.rest = rest.code
	return results
}
