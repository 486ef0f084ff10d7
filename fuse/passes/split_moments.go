package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A sum of squares about a centre that does not depend on the summed range, such
// as a variance about the mean, is cut into chunks by
//
//	sum over all of (x - m)^2 = sum over chunks of [S + n*(u - m)^2]
//
// where n is the number of points of a chunk, u the mean of x over it and S the sum of (x - u)^2 (Chan,
// Golub, LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances", 1979). The
// chunks do not depend on m, so the mean and the squares about it are computed in one pass over x. No
// large numbers cancel, because S is about the mean of the chunk. The chunk is kept in registers between
// its own mean and S.

// persistentChunk is the elements of a chunk that a block keeps in registers while it computes their mean
// and the squares about it.
const persistentChunk = 8192

// If one point of the outermost range has at least wholeChunk elements, each point is a chunk of its own,
// as long as there are at most mostChunks of them. Such chunks need no predicate for a shorter last one,
// and no division.
const (
	wholeChunk = 1024
	mostChunks = 256
)

// longestPersistent is the elements of a row beyond which no candidate keeps it on chip, whatever its
// type: its squares would be a second pass over memory.
const longestPersistent = 1 << 17

// squares is a sum of (x - centre)^2.
type squares struct{ x, centre *ir.Expr }

// squaresOf recognises a sum of squares about a centre that does not depend on the reduced ranges.
func squaresOf(g *ir.Graph, v *ir.Value) (squares, bool) {
	if g.Numerics == ir.Strict || v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || v.Body.Op != ir.OpMul {
		return squares{}, false
	}
	d := v.Body.Args[0]
	if d.Op != ir.OpSub || !v.Body.Type.IsFloat() || !ir.Equal(d, v.Body.Args[1]) {
		return squares{}, false
	}
	bound := map[*ir.Range]bool{}
	for _, r := range v.Reduce.Ranges {
		bound[r] = true
	}
	for i, m := range d.Args {
		if x := d.Args[1-i]; !algebra.DependsOnAny(m, bound) && algebra.DependsOnAny(x, bound) && m.Op != ir.OpConst {
			return squares{x, m}, true
		}
	}
	return squares{}, false
}

// plain is the sum of what is squared, as a value to compare others with.
func (s squares) plain(v *ir.Value) *ir.Value {
	return &ir.Value{Type: v.Type, Axes: v.Axes, Body: s.x, Reduce: &ir.Reduction{Op: ir.Sum, Ranges: v.Reduce.Ranges}}
}

// persistentChunks returns the chunks of the reductions that are split together with sums of squares: the
// squares themselves, and the sums of which their centres are computed.
func (s *splitter) persistentChunks() map[*ir.Value]int64 {
	g, sizes := s.g, s.sizes
	chunks := map[*ir.Value]int64{}
	sums := map[uint64][]*ir.Value{}
	for _, v := range g.Values {
		if v.Reduce != nil && v.Reduce.Op == ir.Sum {
			sums[form.CanonicalHash(v)] = append(sums[form.CanonicalHash(v)], v)
		}
		squares, ok := squaresOf(g, v)
		if !ok || s.whole[v] {
			continue
		}
		chunk := chunkOf(v, sizes, forecast.FullDevice)
		if chunk == 0 && !knownLonger(g, algebra.Product(v.Reduce.Ranges), longestPersistent) {
			continue
		}
		chunk = max(chunk, splitChunk)
		if inner := algebra.PointsAt(v.Reduce.Ranges[1:], sizes); contiguousColumns(v, sizes) {
			chunk = 1
			outer := algebra.Estimate(v.Reduce.Ranges[0].Extent, sizes)
			for float64(2*chunk)*inner <= persistentChunk && (inner < wholeChunk || outer > mostChunks*float64(chunk)) {
				chunk *= 2
			}
		}
		if float64(chunk) >= algebra.Estimate(v.Reduce.Ranges[0].Extent, sizes) {
			continue
		}
		chunks[v] = chunk
		plain := squares.plain(v)
		for _, u := range sums[form.CanonicalHash(plain)] {
			if form.SameDefinition(u, plain) {
				chunks[u] = chunk
			}
		}
	}
	return chunks
}

// knownLonger reports whether a size is above n for all values of the symbols that have no default.
func knownLonger(g *ir.Graph, size *ir.Expr, n int64) bool {
	least := map[string]int64{}
	for _, s := range g.Symbols {
		least[s.Name] = max(s.Default, 1)
	}
	return algebra.Estimate(size, least) > float64(n)
}

// splitSquares makes v, a sum of squares, the reduction of the chunks' sums and of the squares about their
// means, and returns these values.
func splitSquares(g *ir.Graph, v *ir.Value, s squares, chunk int64) []*ir.Value {
	c := newChunking(g, v, chunksOf(v, chunk))
	sum := c.partial(g, v, v.Name+"_sum_part", s.x)
	mean := func(part *ir.Range, axes []*ir.Range) *ir.Expr {
		total := ir.Load(sum, append([]*ir.Expr{part.At()}, algebra.UnitIndices(axes)...), nil)
		points := ir.Apply(ir.OpMax, c.points(part), ir.IntConst(1))
		return ir.Apply(ir.OpDiv, total, ir.Cast(points, total.Type))
	}
	d := ir.Apply(ir.OpSub, ir.Cast(s.x, sum.Type), mean(c.part, c.axes)) // sums of narrow floats are wider
	about := c.partial(g, v, v.Name+"_part", ir.Apply(ir.OpMul, d, d))

	over := g.NewRange(c.part.Name, c.part.Extent)
	gap := ir.Apply(ir.OpSub, mean(over, v.Axes), ir.Cast(s.centre, sum.Type))
	points := c.points(over)
	apart := ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, gap, gap), ir.Cast(points, gap.Type))
	whole := ir.Apply(ir.OpAdd, ir.Load(about, append([]*ir.Expr{over.At()}, algebra.UnitIndices(v.Axes)...), nil), apart)
	where := ir.Apply(ir.OpLt, ir.IntConst(0), points) // the mean of an empty chunk would be NaN
	return append([]*ir.Value{sum, about}, combine(g, v, whole, over, where)...)
}
