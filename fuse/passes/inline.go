package passes

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Limits of substitution, in issue slots of one evaluation (OpInfo.Cost). A
// memory-bound kernel on any supported GPU has at least 40 slots to spare for
// each 4-byte element it moves.
const (
	cheapSlots   = 40   // most slots of a value that every reader computes again
	freeSlots    = 12   // most slots of a value that is computed again for every point of a larger reader
	tileSlots    = 80   // most slots of a value that is computed again for a tile of a larger reader
	tilePoints   = 64   // most points of the reader that share a tile and use one such element
	largestNodes = 300  // most nodes of an expression after substitution
	joinedNodes  = 4096 // most nodes of one that picks among parts by the place, of which a point needs one part
)

// inlineCheap substitutes pointwise values into their readers where computing
// them again costs less than writing and reading them.
func inlineCheap(g *ir.Graph) {
	readers, sizes, recognised := countReaders(g), algebra.DefaultSizes(g), form.NewRecogniser(g)
	unwritten := recognised.Unwritten()
	inlined, multiplied, written := map[*ir.Value]form.Cost{}, operandsOf(g), tileOperands(g, sizes)
	products := map[*ir.Value]bool{} // sums of products that nothing else reads, and that are written
	folded := map[*ir.Value]bool{}   // all reductions of that kind
	again := newSubstitution(g, sizes)
	repaid := map[*ir.Value]bool{} // values that readers compute again for points at which they are the same
	copied := copiedOperands(g, sizes)
	maps.Copy(copied, joinedParts(g, recognised))
	for _, v := range g.Values {
		if v.Body == nil {
			continue
		}
		v.MapExprs(func(e *ir.Expr) *ir.Expr { return expandFitting(e, v, inlined, repaid, copied, sizes) })
		if v.Reduce != nil {
			if readers[v] == 1 && !unwritten[v] {
				products[v], folded[v] = form.Crosses(v), true
			}
		} else {
			c, follows := form.CostOf(v.Body), followsOne(v, products)
			if multiplied[v] { // tensor cores read it from memory; otherwise each tile would compute it again, from more bytes
				follows = followsOne(v, folded)
			}
			if written[v] && readers[v] > 1 && readsLess(v, sizes) {
				continue // a product needs it written, so its other readers read it too
			}
			if readers[v] == 1 && !(follows && multiplied[v]) || c.Slots <= cheapSlots && !follows {
				inlined[v] = c
				repaid[v] = c.Slots > freeSlots && !multiplied[v] && again.pays(v, c.Slots)
			}
		}
	}
	DropDead(g)
}

// operandsOf is the values that sums of products read.
func operandsOf(g *ir.Graph) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	for _, v := range g.Values {
		if form.Crosses(v) {
			for _, l := range v.Loads() {
				out[l.From] = true
			}
		}
	}
	return out
}

// tileOperands is the values that products read as operands of tensor cores. They are written, because otherwise each
// tile would compute them again.
func tileOperands(g *ir.Graph, sizes map[string]int64) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	if g.OneKernel {
		return out
	}
	for _, v := range g.Values {
		if !form.IsTileProduct(v) {
			continue
		}
		a, b := form.SidesOf(v)
		if a == nil { // its factors do not fall into two sides
			continue
		}
		for _, side := range []*ir.Expr{a, b} {
			if side = form.WithoutWidening(side); side.Op == ir.OpLoad && form.IsHalf(side.Type) && repeatsInTiles(v, side) && !sharesTile(side, v, sizes) {
				out[side.From] = true
			}
		}
	}
	return out
}

// readsLess reports whether a value takes fewer bytes than the tensors that it is computed from.
func readsLess(v *ir.Value, sizes map[string]int64) bool {
	made, points, seen := 0.0, algebra.PointsAt(v.Axes, sizes), map[*ir.Value]bool{}
	for _, l := range v.Loads() {
		if !seen[l.From] {
			made += min(algebra.BytesAt(l.From, sizes), points*float64(l.From.Type.Size()))
		}
		seen[l.From] = true
	}
	return points*float64(v.Type.Size()) < made
}

// followsOne reports whether a value is computed element by element, with its axes in any order, from one of the
// given reductions that nothing else reads. The kernel of the reduction then computes the value from the results in
// its registers and writes it in their place; otherwise each reader would compute it again. Products that are never
// written, such as the scores of a stream, are not among the reductions.
func followsOne(v *ir.Value, reductions map[*ir.Value]bool) bool {
	for _, l := range v.Loads() {
		p := l.From
		if !reductions[p] || len(p.Axes) != len(v.Axes) {
			continue
		}
		same, seen := true, map[*ir.Range]bool{}
		for d, r := range p.Axes {
			at := l.Args[d]
			same = same && (algebra.IsUnit(r) || at.Op == ir.OpRange && slices.Contains(v.Axes, at.Range) && !seen[at.Range])
			if at.Op == ir.OpRange {
				seen[at.Range] = true
			}
		}
		if same {
			return true
		}
	}
	return false
}

// expandFitting substitutes the values of inlined that v loads, except those whose work would be repeated
// along ranges of v on which the load does not depend.
// What is copied to tiles as it lies stays a value. All loads of one element are substituted, or none, so that a chain of values
// which are read several times each is cut at one value, and not at all those of its last steps.
func expandFitting(e *ir.Expr, reader *ir.Value, inlined map[*ir.Value]form.Cost, repaid map[*ir.Value]bool, copied map[*ir.Value][]*ir.Value, sizes map[string]int64) *ir.Expr {
	fits := func(e *ir.Expr) bool {
		c, ok := inlined[e.From]
		return ok && !isLaidOut(e, reader) && !slices.Contains(copied[reader], e.From) &&
			!(repeats(e, reader) && c.Slots > freeSlots && !repaid[e.From] && !splitsDims(e.From) && !(c.Slots <= tileSlots && sharesTile(e, reader, sizes)))
	}
	nodes := map[uint64]int{} // by the hash of a load, what substituting all that are equal to it adds
	for _, l := range ir.Loads(e) {
		nodes[l.Hash()] += inlined[l.From].Nodes
	}
	size, taken := form.CostOf(e).Nodes, map[uint64]bool{}
	joins := picksByPlace(e)
	most := func(from *ir.Value) int {
		if joins && picksByPlace(from.Body) {
			return joinedNodes
		}
		return largestNodes
	}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op != ir.OpLoad || !fits(e) {
			return e
		}
		if at := e.Hash(); !taken[at] {
			more, known := nodes[at]
			if !known { // its index has changed
				more = inlined[e.From].Nodes
			}
			if size+more > most(e.From) {
				return e
			}
			taken[at] = known
			size += more
		}
		return form.BodyAt(e)
	})
}

// picksByPlace reports whether an expression is one of two, by its place alone, as an element of a concatenation is.
func picksByPlace(e *ir.Expr) bool {
	return e.Op == ir.OpSelect && !ir.Has(e.Args[0], ir.OpLoad)
}

// repeats reports whether reader evaluates the load more than once for an element: some range of the
// reader does not occur in the indices. The range of a scatter's places does not count, because each
// column goes to one place.
func repeats(load *ir.Expr, reader *ir.Value) bool {
	used := map[*ir.Range]bool{}
	for _, a := range load.Args {
		for r := range ir.FreeRanges(a) {
			used[r] = true
		}
	}
	scatter := form.ScatterIn(reader)
	for _, r := range algebra.AllRanges(reader) {
		if !used[r] && !algebra.IsUnit(r) && (scatter == nil || r != scatter.To) {
			return true
		}
	}
	return len(algebra.Widened(load.From.Axes)) < len(used) // as in a window, one axis has several ranges in its index
}

// sharesTile reports whether reader is a sum of products in which the points that use an element of the
// load share a tile: they are few, and none differs in the reduced ranges. The element must be larger than
// what it is computed from, as an unpacked weight is.
func sharesTile(load *ir.Expr, reader *ir.Value, sizes map[string]int64) bool {
	if reader.Reduce == nil || reader.Reduce.Op != ir.Sum || reader.Body.Op != ir.OpMul {
		return false
	}
	used := map[*ir.Range]bool{}
	for _, a := range load.Args {
		for r := range ir.FreeRanges(a) {
			used[r] = true
		}
	}
	for _, r := range algebra.Widened(reader.Reduce.Ranges) {
		if !used[r] {
			return false
		}
	}
	made := 0.0
	for _, l := range load.From.Loads() {
		made += algebra.BytesAt(l.From, sizes)
	}
	if made >= algebra.BytesAt(load.From, sizes) {
		return false
	}
	var others []*ir.Range
	for _, r := range reader.Axes {
		if !used[r] {
			others = append(others, r)
		}
	}
	return len(algebra.Widened(load.From.Axes)) >= len(used) && algebra.PointsAt(others, sizes) <= tilePoints
}

func countReaders(g *ir.Graph) map[*ir.Value]int {
	n := map[*ir.Value]int{}
	for _, v := range g.Values {
		seen := map[*ir.Value]bool{}
		for _, l := range v.Loads() {
			if !seen[l.From] {
				seen[l.From] = true
				n[l.From]++
			}
		}
	}
	for _, o := range g.Outputs {
		n[o.Value]++
	}
	return n
}
