package fuse

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Reductions of a product without writing it first. Where all that reads a product
// reduces it along one axis, or picks elements of that axis by an index, the axis is
// cut into chunks as wide as a tile: a tile's sums are folded where they lie, in
// registers, and what is written is one partial result a row and chunk. A sum of
// exponentials about the row's maximum is taken about the chunk's maximum, and
// rescaled when the chunks are combined (Milakov and Gimelshein, "Online normalizer
// calculation for softmax", 2018). A picked element is the sum of the chunk's
// elements whose index is the one that is asked for.

const (
	foldTile  = 128     // points of a chunk; the width of a tile is a multiple
	foldLeast = 1 << 21 // elements of a product: tiles enough for a large device
)

// tileFold is a product that need not be written.
type tileFold struct {
	product *ir.Value
	axis    int         // the one that is folded
	folds   []*ir.Value // readers that reduce it
}

// foldProducts cuts the reductions of products. A graph that is to be one kernel
// stays whole, as the partial results are combined by another.
func foldProducts(g *ir.Graph) {
	if g.OneKernel || g.Numerics != ir.Fast {
		return
	}
	for {
		m := newRecogniser(g)
		folds, _ := m.tileFolds()
		if len(folds) == 0 {
			return
		}
		(&foldRewrite{recogniser: m, tileFold: folds[0], before: map[*ir.Value][]*ir.Value{}}).run()
	}
}

// tileFolds returns the products of the graph that need not be written, and why
// others that are reduced are.
func (m *recogniser) tileFolds() (out []*tileFold, refused []ir.Refusal) {
	sizes := algebra.DefaultSizes(m.g)
	var streams map[*ir.Value]bool
	for _, v := range m.g.Values {
		if !m.products[v] || !isTileProduct(v) || algebra.Estimate(algebra.Product(v.Axes), sizes) < foldLeast {
			continue
		}
		t, no := m.tileFold(v)
		if streams == nil && (t != nil || no != nil) {
			streams = inStreams(m.g)
		}
		switch {
		case streams[v]:
		case t != nil:
			out = append(out, t)
		case no != nil:
			refused = append(refused, ir.Refusal{Producer: v.Name, Consumer: no.product.Name, Span: no.span,
				Template: ir.ContractTemplate, Reason: no.reason, Detail: no.detail, Bytes: algebra.Bytes(v)})
		}
	}
	return out, refused
}

// tileFold says how a product's readers use it; neither result is set where none of
// them reduces it. The product of a miss is the reader in the way.
func (m *recogniser) tileFold(v *ir.Value) (*tileFold, *miss) {
	t := &tileFold{product: v, axis: -1}
	common := map[int]bool{}
	for _, u := range m.users[v] {
		axes := m.reducedAxes(u, v)
		if len(axes) == 0 {
			continue
		}
		for d := range v.Axes {
			common[d] = axes[d] && (common[d] || len(t.folds) == 0)
		}
		t.folds = append(t.folds, u)
	}
	if len(t.folds) == 0 {
		return nil, nil
	}
	no := func(u *ir.Value, reason ir.Reason, format string, args ...any) (*tileFold, *miss) {
		return nil, &miss{refuse(reason, u.Origin.Span, format, args...), u}
	}
	for d := range v.Axes {
		if common[d] && foldableAxis(v, v.Axes[d]) {
			t.axis = d
		}
	}
	if t.axis >= 0 && v.Axes[t.axis].Extent.Op == ir.OpConst && v.Axes[t.axis].Extent.Int <= foldTile {
		return nil, nil // one chunk as it is
	}
	if t.axis < 0 {
		return no(t.folds[0], ir.ReasonDifferentRanges, "what reduces %s does not do so along one axis, of rows of one operand", v.Name)
	}
	for _, o := range m.g.Outputs {
		if o.Value == v {
			return no(t.folds[0], ir.ReasonResources, "%s is a result, and then is written anyway", v.Name)
		}
	}
	follows := m.following(v)
	for _, u := range m.users[v] {
		switch {
		case !contains(t.folds, u):
			if !m.picksOnly(u, t) {
				return no(u, ir.ReasonResources, "%s needs all of %s, which then is written anyway", u.Name, v.Name)
			}
		case !m.foldsAlone(u, t, follows):
			return no(u, ir.ReasonDifferentRanges, "%s needs another reduction of %s to be complete", u.Name, v.Name)
		}
	}
	return t, nil
}

// foldableAxis reports whether r is the only axis that one side of a product has
// alone: its points are the columns of the tiles.
func foldableAxis(v *ir.Value, r *ir.Range) bool {
	a, b := sidesOf(v)
	if a == nil || b == nil {
		return false
	}
	left, right := axesIn(v, a), axesIn(v, b)
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

// reducedAxes are the axes of a product that u reduces, reading it at no other points
// than those of its own loops; none where u is another kind of reader.
func (m *recogniser) reducedAxes(u, v *ir.Value) map[int]bool {
	if u.Reduce == nil || u.Reduce.Rank != nil || scanOf(u) != nil || u.Reduce.Op.IsArg() && (len(u.Reduce.Ranges) > 1 || u.Reduce.Where != nil) {
		return nil
	}
	load := onlyLoad(m.whole[u], v)
	if load == nil || !plainIndices(load) {
		return nil
	}
	at, reduced, out := map[*ir.Range]bool{}, algebra.RangeSet(u.Reduce.Ranges), map[int]bool{}
	for d, e := range load.Args {
		if e.Op != ir.OpRange {
			continue
		}
		if !ir.SameSize(e.Range.Extent, v.Axes[d].Extent) {
			return nil
		}
		at[e.Range] = true
		if reduced[e.Range] {
			out[d] = true
		}
	}
	for _, r := range algebra.Widened(algebra.AllRanges(u)) {
		if !at[r] {
			return nil
		}
	}
	return out
}

// onlyLoad returns the load of v in e where all are the same.
func onlyLoad(e *ir.Expr, v *ir.Value) *ir.Expr {
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

// following returns the values that depend on v.
func (m *recogniser) following(v *ir.Value) map[*ir.Value]bool {
	out := map[*ir.Value]bool{v: true}
	for _, u := range m.g.Values {
		for _, l := range u.Loads() {
			out[u] = out[u] || out[l.From]
		}
	}
	return out
}

// foldsAlone reports whether a reduction depends on the product at its own point only,
// or beside that on the maximum that it takes exponentials about.
func (m *recogniser) foldsAlone(u *ir.Value, t *tileFold, follows map[*ir.Value]bool) bool {
	if u.Reduce.Where != nil {
		for _, l := range ir.Loads(u.Reduce.Where) {
			if follows[l.From] {
				return false
			}
		}
	}
	waits := false
	for _, l := range ir.Loads(m.whole[u]) {
		waits = waits || l.From != t.product && follows[l.From]
	}
	if !waits {
		return true
	}
	_, _, ok := m.weighed(u, t, follows)
	return ok
}

// weighed takes a sum of exp(scale*(logit - max))*rest apart; rest is nil for 1.
func (m *recogniser) weighed(u *ir.Value, t *tileFold, follows map[*ir.Value]bool) (x exponential, rest *ir.Expr, ok bool) {
	if u.Reduce.Op != ir.Sum || u.Reduce.Where != nil || len(u.Reduce.Ranges) != 1 {
		return x, nil, false
	}
	var others []*ir.Expr
	for _, f := range factorsOf(stripped(m.whole[u])) {
		if e := stripped(f); e.Op == ir.OpExp && !ok {
			if x, ok = m.exponential(e.Args[0], algebra.RangeSet(u.Reduce.Ranges)); ok && contains(t.folds, x.max.From) && plainIndices(x.max) {
				continue
			}
			ok = false
		}
		others = append(others, f)
	}
	for _, f := range others {
		for _, l := range ir.Loads(f) {
			ok = ok && (l.From == t.product || !follows[l.From])
		}
	}
	if len(others) > 0 {
		rest = productOf(others)
	}
	return x, rest, ok
}

// picksOnly reports whether a reader picks elements of the folded axis.
func (m *recogniser) picksOnly(u *ir.Value, t *tileFold) bool {
	if u.Reduce != nil && u.Reduce.Where != nil {
		for _, l := range ir.Loads(u.Reduce.Where) {
			if m.products[l.From] || m.near[l.From] {
				return false
			}
		}
	}
	for _, l := range ir.Loads(m.whole[u]) {
		if l.From == t.product && !t.picks(l) {
			return false
		}
	}
	return true
}

// picks reports whether a load takes, for each point of the other axes, one element of
// the folded axis.
func (t *tileFold) picks(l *ir.Expr) bool {
	seen := map[*ir.Range]bool{}
	for d, e := range l.Args {
		switch {
		case d == t.axis || algebra.IsUnit(t.product.Axes[d]):
		case e.Op != ir.OpRange || seen[e.Range] || !ir.SameSize(e.Range.Extent, t.product.Axes[d].Extent):
			return false
		default:
			seen[e.Range] = true
		}
	}
	return algebra.Subset(ir.FreeRanges(l.Args[t.axis]), seen)
}

// minusInfinity is the maximum of nothing.
func minusInfinity() *ir.Expr { return ir.Num(ir.F32, math.Inf(-1)) }
