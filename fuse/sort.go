package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// A reduction at a rank picks an element of an order. With the rank an axis of the
// value, it is a sort of every row, cut off at the axis's extent; several values that
// pick from one order (the elements and where they were) share its kernel, and what
// is computed from them at the same place is done before they are stored.

// Figures of the sort kernels; measured on an H200, see docs/performance.md.
const (
	selectPlaces  = 256     // places up to which a row is not sorted whole
	selectTimes   = 8       // as many columns for each of them, at least, or the row is
	wordBits      = 32      // of a key that takes one register
	sortThreads   = 1024    // that the registers of a multiprocessor should be enough for
	selectThreads = 896     // likewise, to find the first places
	orderThreads  = 512     // likewise, where there is more to hold than a word for each key
	windowThreads = 256     // of a block that sorts windows, at most
	windowReserve = 9 << 10 // bytes beside its keys and columns
)

// sortRung is a block that holds a row: its threads and the columns of each.
type sortRung struct{ threads, items int }

// selecting is the blocks that select: those that hold a row, and the one for rows that
// none holds.
type selecting struct {
	rungs []sortRung
	piece sortRung
}

// Blocks that sort, and that select by keys of one register and of two.
var (
	sortRungs   = []sortRung{{32, 8}, {32, 32}, {64, 32}, {128, 32}, {256, 32}, {512, 32}, {1024, 32}}
	selectWords = selecting{[]sortRung{{32, 8}, {32, 32}, {128, 32}}, sortRung{256, 32}}
	selectPairs = selecting{[]sortRung{{32, 8}, {128, 16}}, sortRung{256, 16}}
)

// sortIn returns a member of the region that picks from an order; nil where none does.
func sortIn(r *region) *ir.Value {
	for _, v := range r.members {
		if form.SortOf(v) != nil {
			return v
		}
	}
	return nil
}

// sort makes r the region of one order: its space is the places of every row.
func (r *region) sort(v *ir.Value, s *form.Sorted) {
	for _, own := range algebra.Widened(v.Axes) {
		r.space = append(r.space, own)
		r.at[v][own] = own.At()
	}
	r.at[v][s.Over] = s.Over.At()
}

// sortedIn lists the ranges that orders of the regions run over. A kernel walks the places
// of an order, not what is in order.
func sortedIn(regions ...*region) map[*ir.Range]bool {
	out := map[*ir.Range]bool{}
	for _, r := range regions {
		for _, v := range r.members {
			if s := form.SortOf(v); s != nil {
				out[s.Over] = true
			}
		}
	}
	return out
}

// keepsOrder refuses to put anything into the kernel of an order but what picks from
// the same order and what is computed from it point by point.
func (f *fuser) keepsOrder(a, b *region, al *alignment) *form.Refusal {
	va, vb := sortIn(a), sortIn(b)
	switch {
	case va == nil && vb == nil:
		return nil
	case vb == nil && f.reads(b, a) && len(b.cols) == 0 && len(b.walk) == 0 && asLoops(a, va):
		return nil
	case va != nil && vb != nil && sameOrder(a, va, b, vb, al):
		return nil
	}
	v := vb
	if v == nil {
		v = va
	}
	return form.Refuse(ir.ReasonDifferentRanges, v.Origin.Span, "%s is sorted in a kernel of its own", v.Name)
}

// asLoops reports whether v's axes are loops of the region as they are.
func asLoops(r *region, v *ir.Value) bool {
	for _, axis := range algebra.Widened(v.Axes) {
		if r.at[v][axis].Op != ir.OpRange {
			return false
		}
	}
	return true
}

// sameOrder reports whether two values pick from one order.
func sameOrder(a *region, va *ir.Value, b *region, vb *ir.Value, al *alignment) bool {
	sa, sb := form.SortOf(va), form.SortOf(vb)
	if !asLoops(a, va) || !asLoops(b, vb) || va.Reduce.Op.Descending() != vb.Reduce.Op.Descending() ||
		va.Body.Type != vb.Body.Type || !ir.SameSize(sa.Over.Extent, sb.Over.Extent) {
		return false
	}
	toA := map[*ir.Range]*ir.Expr{sb.Over: sa.Over.At()}
	for _, r := range vb.Axes {
		if e := b.at[vb][r]; e != nil && al.to[e.Range] != nil {
			toA[r] = al.to[e.Range].At()
		}
	}
	if !ir.Equal(toA[sb.Place], a.at[va][sa.Place]) {
		return false
	}
	return ir.Equal(ir.Substitute(va.Body, a.at[va]), ir.Substitute(vb.Body, toA))
}

// lowerSort lowers a member that picks from the kernel's order.
func (lo *lowering) lowerSort(v *ir.Value, s *form.Sorted) *ir.Expr {
	if lo.order == nil {
		t := v.Body.Type
		lo.order = &ir.Sort{Key: ir.Cast(lo.expr(ir.Substitute(v.Body, lo.r.at[v])), t.Info().Compute), Type: t,
			Descending: v.Reduce.Op.Descending(), Places: lo.r.at[v][s.Place].Range,
			Value: lo.local(v.Name, t.Info().Compute, ir.FullLevel), Index: lo.local(v.Name+"_index", ir.I64, ir.FullLevel)}
		lo.k.Cols = []*ir.Range{s.Over}
		var rows []*ir.Range
		for _, r := range lo.k.Rows {
			if r != lo.order.Places {
				rows = append(rows, r)
			}
		}
		lo.k.Rows = rows
	}
	picked := lo.order.Value
	if v.Reduce.Op.IsArg() {
		picked = lo.order.Index
	}
	if picked.Value == nil {
		picked.Value, picked.Span = v, v.Origin.Span
	}
	return lo.rounded(ir.LocalRef(picked), v.Type)
}

// sortKernel makes the variants of a kernel that puts rows in order.
type sortKernel struct{ *kernel }

// sortVariants makes the kernel's bodies: the rungs of blocks that hold a row, then
// one for rows of any length.
func (lo sortKernel) sortVariants() []*ir.Variant {
	for _, s := range lo.stores {
		lo.order.Stores = append(lo.order.Stores, s.Store)
	}
	if n := lo.order.Places.Extent; n.Op == ir.OpConst && n.Int <= selectPlaces {
		return lo.selectVariants(n.Int)
	}
	var out []*ir.Variant
	window := sortRungs[0]
	for _, r := range sortRungs {
		if lo.sortFits(ir.SortMapping, r) {
			out = append(out, lo.sortVariant(ir.SortMapping, r))
		}
		if lo.sortFits(ir.WindowMapping, r) && r.threads <= windowThreads {
			window = r
		}
	}
	return append(out, lo.sortVariant(ir.WindowMapping, window))
}

// selectVariants is sortVariants where few places are wanted.
func (lo sortKernel) selectVariants(places int64) []*ir.Variant {
	blocks := selectWords
	if 8*lo.order.Type.Size() > wordBits {
		blocks = selectPairs
	}
	var out []*ir.Variant
	for _, r := range blocks.rungs {
		m := ir.SortMapping
		if selectTimes*places <= int64(r.threads*r.items) {
			m = ir.SelectMapping
		}
		out = append(out, lo.sortVariant(m, r))
	}
	return append(out, lo.sortVariant(ir.PieceMapping, blocks.piece))
}

// sortVariant is the body for rows that a block holds, or the last one, for all others.
func (lo sortKernel) sortVariant(m ir.Mapping, r sortRung) *ir.Variant {
	threads := sortThreads
	switch {
	case m == ir.SelectMapping:
		threads = selectThreads
	case m != ir.SortMapping || !lo.order.OneWord():
		threads = orderThreads
	}
	var when *ir.Expr
	if m == ir.SortMapping || m == ir.SelectMapping {
		when = ir.Apply(ir.OpLe, algebra.Product(lo.k.Cols), ir.IntConst(int64(r.threads*r.items)))
	}
	return &ir.Variant{When: algebra.And(when, nil), Sort: lo.order, Schedule: ir.Schedule{Mapping: m, Threads: r.threads,
		RowThreads: r.threads, Vector: 1, Items: r.items, MinBlocks: min(threads/r.threads, lo.device.Blocks())}}
}

// sortFits reports whether a block has the registers and the shared memory to sort by a
// rung: a word of padding for every 32 that are exchanged; for keys of more than a word
// those and their order; for windows the columns too, and what finds their bounds.
func (lo sortKernel) sortFits(m ir.Mapping, r sortRung) bool {
	const word, place = wordBits / 8, 2
	size := r.threads * r.items
	bytes := word * (size + size/32)
	if m == ir.WindowMapping || !lo.order.OneWord() {
		bytes += size * (max(word, lo.order.Type.Size()) + place)
		if r.threads > orderThreads {
			return false
		}
	}
	if m == ir.WindowMapping {
		bytes += word*size + windowReserve
	}
	return bytes <= lo.device.SharedBlock
}
