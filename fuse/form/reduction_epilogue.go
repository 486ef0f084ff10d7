package form

import (
	"math"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Reduction epilogues: reductions of a product that is not written. Where all readers of a product reduce
// it along one axis, or pick elements of that axis by an index, the axis is cut into chunks as wide as a
// tile. The sums of a tile are reduced in the registers that hold them, and one partial result is written
// for each row and chunk. A sum of exponentials about the row's maximum is taken about the chunk's
// maximum, and rescaled when the chunks are combined (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018). A picked element is the sum of the chunk's elements whose index is the
// picked one.

const (
	FoldTile  = 128     // points of a chunk; tiles are a multiple of it wide
	FoldLeast = 1 << 21 // least elements of a product: enough tiles for a large device
)

// ReductionEpilogue is a product that need not be written.
type ReductionEpilogue struct {
	Product *ir.Value
	Axis    int         // axis of the product that is reduced
	Folds   []*ir.Value // readers that reduce the product
}

// ReductionEpilogues returns the products of the graph that need not be written, and for others that are
// reduced the reason why they must be.
func (m *Recogniser) ReductionEpilogues() (out []*ReductionEpilogue, refused []ir.Refusal) {
	sizes := algebra.DefaultSizes(m.Graph)
	var streams map[*ir.Value]bool
	for _, v := range m.Graph.Values {
		if !m.products[v] || !IsTileProduct(v) || algebra.Estimate(algebra.Product(v.Axes), sizes) < FoldLeast {
			continue
		}
		t, no := m.reductionEpilogue(v)
		if streams == nil && (t != nil || no != nil) {
			streams = InStreams(m.Graph)
		}
		switch {
		case streams[v]:
		case t != nil:
			out = append(out, t)
		case no != nil:
			refused = append(refused, ir.Refusal{Producer: v.Name, Consumer: no.product.Name, Span: no.Span,
				Template: ir.ContractTemplate, Reason: no.Reason, Detail: no.Detail, Bytes: algebra.Bytes(v)})
		}
	}
	return out, refused
}

// Unwritten is the products of the graph that no kernel need write: scores of streams, products with a
// reduction epilogue, and products that are only reduced.
func (m *Recogniser) Unwritten() map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	if m.Graph.Numerics == ir.Strict {
		return out
	}
	streams, _ := m.StreamsAndRefused()
	for _, s := range streams {
		out[s.Score.From] = true
	}
	folds, _ := m.ReductionEpilogues()
	for _, t := range folds {
		out[t.Product] = true
	}
	m.expandAll()
	for v, users := range m.users {
		keeps := func(u *ir.Value) bool {
			axes, _ := m.reducedAxes(u, v)
			return len(axes) == 0
		}
		out[v] = out[v] || !slices.ContainsFunc(users, keeps)
	}
	return out
}

// reductionEpilogue describes how a product's readers use it; neither result is set if none of them
// reduces it. The product of a miss is the reader because of which the product must be written.
func (m *Recogniser) reductionEpilogue(v *ir.Value) (*ReductionEpilogue, *miss) {
	t := &ReductionEpilogue{Product: v, Axis: -1}
	common := map[int]bool{}
	var odd *miss
	for _, u := range m.usersOf(v) {
		axes, no := m.reducedAxes(u, v)
		if no != nil && odd == nil {
			odd = &miss{no, u}
		}
		if len(axes) == 0 {
			continue
		}
		for d := range v.Axes {
			common[d] = axes[d] && (common[d] || len(t.Folds) == 0)
		}
		t.Folds = append(t.Folds, u)
	}
	if len(t.Folds) == 0 {
		return nil, odd
	}
	no := func(u *ir.Value, reason ir.Reason, format string, args ...any) (*ReductionEpilogue, *miss) {
		return nil, &miss{Refuse(reason, u.Origin.Span, format, args...), u}
	}
	for d := range v.Axes {
		if common[d] && foldableAxis(v, v.Axes[d]) {
			t.Axis = d
		}
	}
	if t.Axis >= 0 && v.Axes[t.Axis].Extent.Op == ir.OpConst && v.Axes[t.Axis].Extent.Int <= FoldTile {
		return nil, nil // the axis is a single chunk already
	}
	if t.Axis < 0 {
		return no(t.Folds[0], ir.ReasonDifferentRanges, "%s is not reduced along one axis that only one of its operands has, and is written for that", v.Name)
	}
	for _, o := range m.Graph.Outputs {
		if o.Value == v {
			return nil, &miss{WrittenAnyway(t.Folds[0].Origin.Span, v, nil), t.Folds[0]}
		}
	}
	follows := m.Following(v)
	for _, u := range m.usersOf(v) {
		switch {
		case !slices.Contains(t.Folds, u):
			if !m.picksOnly(u, t) {
				return nil, &miss{WrittenAnyway(u.Origin.Span, v, u), u}
			}
		case !m.foldsAlone(u, t, follows):
			return no(u, ir.ReasonDifferentRanges, "%s has to wait until another reduction of %s is complete", u.Name, v.Name)
		}
	}
	return t, nil
}

// foldableAxis reports whether r is the only axis on which one side of a product depends alone: then its
// points are the columns of the tiles.
func foldableAxis(v *ir.Value, r *ir.Range) bool {
	a, b := SidesOf(v)
	if a == nil || b == nil {
		return false
	}
	left, right := AxesIn(v, a), AxesIn(v, b)
	if left[r] {
		left, right = right, left
	}
	if left[r] || !right[r] {
		return false
	}
	for _, axis := range algebra.Widened(v.Axes) {
		if axis != r && !left[axis] {
			return false
		}
	}
	return !algebra.Subset(left, right)
}

// reducedAxes are the axes of a product that u reduces, where it reads the product only at the points of
// its own loops. There are none where u is another kind of reader; the refusal is set where the points are
// the reason.
func (m *Recogniser) reducedAxes(u, v *ir.Value) (map[int]bool, *Refusal) {
	if u.Reduce == nil || u.Reduce.Rank != nil || ScanOf(u) != nil || u.Reduce.Op.IsArg() && (len(u.Reduce.Ranges) > 1 || u.Reduce.Where != nil) {
		return nil, nil
	}
	at, reduced, out := map[*ir.Range]bool{}, algebra.RangeSet(u.Reduce.Ranges), map[int]bool{}
	load := OnlyLoad(m.Whole(u), v)
	if load == nil {
		return nil, Refuse(ir.ReasonIndexMismatch, u.Origin.Span,
			"%s combines several elements of %s, and a product is reduced where it is computed only element by element", u.Name, v.Name)
	}
	if !PlainIndices(load) {
		return nil, foldedAt(u, load, reduced)
	}
	for d, e := range load.Args {
		if e.Op != ir.OpRange {
			continue
		}
		if !ir.SameSize(e.Range.Extent, v.Axes[d].Extent) {
			return nil, Refuse(ir.ReasonIndexMismatch, load.Span, "%s reads %s of the %s elements along an axis of %s, and a product is reduced where it is computed only along a whole axis",
				u.Name, e.Range.Extent, v.Axes[d].Extent, v.Name)
		}
		at[e.Range] = true
		if reduced[e.Range] {
			out[d] = true
		}
	}
	for _, r := range algebra.Widened(algebra.AllRanges(u)) {
		if !at[r] {
			return nil, Refuse(ir.ReasonDifferentRanges, u.Origin.Span, "%s runs over an axis of %s that %s does not have", u.Name, r.Extent, v.Name)
		}
	}
	return out, nil
}

// foldedAt says at which index a reduction reads a product other than by a whole axis; nil where the
// reduction does not run along it.
func foldedAt(u *ir.Value, load *ir.Expr, reduced map[*ir.Range]bool) *Refusal {
	for _, e := range load.Args {
		if e.Op != ir.OpRange && algebra.DependsOnAny(e, reduced) {
			return Refuse(ir.ReasonIndexMismatch, load.Span,
				"%s reduces part of an axis of %s, and a product is reduced where it is computed only along a whole axis", u.Name, load.From.Name)
		}
	}
	return nil
}

// OnlyLoad returns the load of v in e where all are the same.
func OnlyLoad(e *ir.Expr, v *ir.Value) *ir.Expr {
	var found *ir.Expr
	for _, l := range ir.Loads(e) {
		if l.From != v {
			continue
		}
		if found != nil && !ir.Equal(found, l) {
			return nil
		}
		found = l
	}
	return found
}

// Following returns the values that depend on v.
func (m *Recogniser) Following(v *ir.Value) map[*ir.Value]bool {
	out := map[*ir.Value]bool{v: true}
	for _, u := range m.Graph.Values {
		for _, l := range u.Loads() {
			out[u] = out[u] || out[l.From]
		}
	}
	return out
}

// foldsAlone reports whether a reduction depends on the product only at its own point, and otherwise at
// most on the maximum about which it takes exponentials.
func (m *Recogniser) foldsAlone(u *ir.Value, t *ReductionEpilogue, follows map[*ir.Value]bool) bool {
	if u.Reduce.Where != nil {
		for _, l := range ir.Loads(u.Reduce.Where) {
			if follows[l.From] {
				return false
			}
		}
	}
	waits := false
	for _, l := range ir.Loads(m.Whole(u)) {
		waits = waits || l.From != t.Product && follows[l.From]
	}
	if !waits {
		return true
	}
	_, _, ok := m.Weighed(u, t, follows)
	return ok
}

// Weighed matches a sum of exp(scale*(logit - max))*rest; rest is nil for 1.
func (m *Recogniser) Weighed(u *ir.Value, t *ReductionEpilogue, follows map[*ir.Value]bool) (x Exponential, rest *ir.Expr, ok bool) {
	if u.Reduce.Op != ir.Sum || u.Reduce.Where != nil || len(u.Reduce.Ranges) != 1 {
		return x, nil, false
	}
	var others []*ir.Expr
	for _, f := range FactorsOf(Stripped(m.Whole(u))) {
		if e := Stripped(f); e.Op == ir.OpExp && !ok {
			if x, ok = m.Exponential(e.Args[0], algebra.RangeSet(u.Reduce.Ranges)); ok && slices.Contains(t.Folds, x.Max.From) && PlainIndices(x.Max) {
				continue
			}
			ok = false
		}
		others = append(others, f)
	}
	for _, f := range others {
		for _, l := range ir.Loads(f) {
			ok = ok && (l.From == t.Product || !follows[l.From])
		}
	}
	if len(others) > 0 {
		rest = ProductOf(others)
	}
	return x, rest, ok
}

// picksOnly reports whether a reader does nothing but pick elements of the reduced axis.
func (m *Recogniser) picksOnly(u *ir.Value, t *ReductionEpilogue) bool {
	if u.Reduce != nil && u.Reduce.Where != nil {
		for _, l := range ir.Loads(u.Reduce.Where) {
			if m.products[l.From] || m.near[l.From] {
				return false
			}
		}
	}
	for _, l := range ir.Loads(m.Whole(u)) {
		if l.From == t.Product && !t.Picks(l) {
			return false
		}
	}
	return true
}

// Picks reports whether a load takes one element of the reduced axis for each point of the other axes.
func (t *ReductionEpilogue) Picks(l *ir.Expr) bool {
	seen := map[*ir.Range]bool{}
	for d, e := range l.Args {
		switch {
		case d == t.Axis || algebra.IsUnit(t.Product.Axes[d]):
		case e.Op != ir.OpRange || seen[e.Range] || !ir.SameSize(e.Range.Extent, t.Product.Axes[d].Extent):
			return false
		default:
			seen[e.Range] = true
		}
	}
	return algebra.Subset(ir.FreeRanges(l.Args[t.Axis]), seen)
}

// MinusInfinity is the maximum over nothing.
func MinusInfinity() *ir.Expr { return ir.Num(ir.F32, math.Inf(-1)) }
