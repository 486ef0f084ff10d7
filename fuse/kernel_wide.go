package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// vector is the number of elements in one access: 16 bytes of the narrowest
// tensor that the innermost loop walks.
func (lo *kernel) vector() int {
	return min(forecast.WidestVector, forecast.AccessBytes/lo.smallest())
}

// smallest is the bytes of the narrowest element among the kernel's tensors.
func (lo *kernel) smallest() int {
	size := forecast.AccessBytes
	for _, a := range lo.k.Args {
		if len(a.Buffer.Shape) > 0 {
			size = min(size, a.Type.Size())
		}
	}
	return size
}

// widen marks the accesses that take a whole vector along lane, and returns the condition on
// the symbols that makes them aligned; nil if they always are. wide is the number of these
// accesses, or 0 if none of the largest accesses is among them. If the extent of lane is a
// product, such as the height times the width of an image, the product has to be a multiple of
// the vector. If that gives fewer vectors than requiring it of each symbol, each symbol has to
// be one.
func (lo *kernel) widen(v *ir.Variant, lane *ir.Range, vector int) (needs *ir.Expr, wide int) {
	if lane == nil {
		return nil, 0
	}
	before, symbols := v.Facts, lo.wholeVectors(v.Locals, lane, vector)
	needs, wide = lo.widenUnder(v, lane, vector, symbols)
	product, ok := algebra.Whole(lo.inside(ir.FullLevel), int64(vector), wholeExtent(v.Locals, lane))
	if needs == nil || !ok {
		return needs, wide
	}
	each := v.Facts
	v.Facts = before
	if whole, asWide := lo.widenUnder(v, lane, vector, product); asWide == wide {
		return whole, wide
	}
	v.Facts = each
	return lo.widenUnder(v, lane, vector, symbols)
}

// widenUnder marks the accesses that take a whole vector if facts hold. If some of them need
// these facts, they become the variant's.
func (lo *kernel) widenUnder(v *ir.Variant, lane *ir.Range, vector int, facts ir.Facts) (needs *ir.Expr, wide int) {
	offer := &algebra.Offer{Known: lo.inside(ir.FullLevel), Facts: facts}
	if v.Schedule.Mapping == ir.RowMapping && len(lo.k.Cols) > 1 { // a vector must not run into the next column range
		if !offer.Holds(func(f ir.Facts) bool { return ir.Multiple(lane.Extent, int64(vector), f) }) {
			return nil, 0
		}
	}
	contiguous := func(offset *ir.Expr) bool {
		return offer.Holds(func(f ir.Facts) bool { return algebra.Contiguous(offset, lane, int64(vector), f) })
	}
	check := func(guard, offset *ir.Expr) bool {
		used := offer.Used
		if !lo.uniform(guard, lane, vector, offer) || lo.variesThroughLocals(offset, lane) || !contiguous(offset) {
			offer.Used = used // only vectors need the facts
			return false
		}
		wide++
		return true
	}
	for _, l := range v.Locals {
		l.Wide = false
		if r := algebra.ReadIn(l.Def); r != nil {
			l.Wide = check(r.Guard, r.Args[0])
		} else if drawn(l.Def.Op, vector) {
			l.Wide = contiguous(l.Def.Args[1])
		}
	}
	for _, s := range v.Sections {
		for _, st := range s.Stores {
			st.Wide = check(st.Guard, st.Offset)
		}
		for _, p := range s.Partials {
			p.Wide = check(nil, p.Offset)
		}
	}
	if wide > 0 && !lo.movesWide(v, lane) {
		wide = 0
	}
	if !offer.Used {
		return nil, wide
	}
	v.Facts = ir.Facts{Divisible: facts.Divisible, Multiples: facts.Multiples}
	return algebra.Divisible(facts), wide
}

// movesWide reports whether one of the largest accesses is a vector: one that runs along lane, and none of the
// others has all of its ranges and more strides. Otherwise only small accesses, such as weights that all rows
// share, would be vectors. Then a thread would access the elements of a large tensor one by one, with neighbours
// in a warp a vector apart in memory. If nothing runs along lane, any vector will do.
func (lo *kernel) movesWide(v *ir.Variant, lane *ir.Range) bool {
	accesses := lo.accessesAlong(v, lane)
	for i, a := range accesses {
		largest := !slices.ContainsFunc(accesses, func(b laneAccess) bool {
			return b.strides > a.strides && algebra.Subset(a.ranges, b.ranges)
		})
		if largest && accesses[i].wide {
			return true
		}
	}
	return len(accesses) == 0
}

// laneAccess is a read or a store that is contiguous in memory along the lane.
type laneAccess struct {
	ranges  map[*ir.Range]bool // that its offset depends on, also through indices that are read
	strides int                // number of different strides of these: the tap of a window has that of the axis it moves along
	wide    bool
}

// accessesAlong lists a body's accesses that run along lane.
func (lo *kernel) accessesAlong(v *ir.Variant, lane *ir.Range) (out []laneAccess) {
	add := func(offset *ir.Expr, wide bool) {
		if stride, ok := ir.Stride(offset, lane, ir.Facts{Positive: true}); !wide && (!ok || !stride.IsConst(1)) {
			return
		}
		a := laneAccess{ranges: map[*ir.Range]bool{}, wide: wide}
		ir.WalkThrough(func(e *ir.Expr) bool {
			if e.Op == ir.OpRange {
				a.ranges[e.Range] = true
			}
			return true
		}, offset)
		var strides []*ir.Expr
		for r := range a.ranges {
			stride, _ := ir.Stride(offset, r, ir.Facts{Positive: true})
			if !slices.ContainsFunc(strides, func(e *ir.Expr) bool { return ir.Equal(e, stride) }) {
				strides = append(strides, stride)
			}
		}
		a.strides = len(strides)
		out = append(out, a)
	}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil {
			add(r.Args[0], l.Wide)
		}
	}
	for _, s := range v.Sections {
		for _, st := range s.Stores {
			add(st.Offset, st.Wide)
		}
		for _, p := range s.Partials {
			add(p.Offset, p.Wide)
		}
	}
	return out
}

// wholeVectors is the facts that hold if the sizes along lane are whole numbers of vectors.
func (lo *kernel) wholeVectors(locals []*ir.Local, lane *ir.Range, vector int) ir.Facts {
	facts := lo.inside(ir.FullLevel)
	if vector == 1 {
		return facts
	}
	sizes := []*ir.Expr{lane.Extent}
	if lane.Extent.Op == ir.OpConst { // a chunk of a longer range: rows start at multiples of its size
		for _, l := range locals {
			if r := algebra.ReadIn(l.Def); r != nil && algebra.UnitStride(r, lane) {
				sizes = append(sizes, r.Args[0], wholeExtent(locals, lane))
			}
		}
	}
	return algebra.Assuming(facts, algebra.MultiplesIn(int64(vector), sizes...))
}

// wholeExtent is the extent of the range of which the lane is a chunk, taken from the guards of
// reads; the extent of the lane if it is no chunk.
func wholeExtent(locals []*ir.Local, lane *ir.Range) *ir.Expr {
	for _, l := range locals {
		if r := algebra.ReadIn(l.Def); r != nil && r.Guard != nil && r.Guard.Op == ir.OpLt && ir.DependsOn(r.Guard.Args[0], lane) {
			return r.Guard.Args[1]
		}
	}
	return lane.Extent
}

// variesThroughLocals reports whether e contains a local that may differ between lanes: an
// index read from memory, or, in the flat mapping, the result of a reduction.
func (lo *kernel) variesThroughLocals(e *ir.Expr, lane *ir.Range) bool {
	found := false
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpLocal {
			if l := e.Local; l.Def != nil {
				found = found || ir.DependsOn(l.Def, lane)
			} else {
				found = found || l.Level == ir.FullLevel || !slices.Contains(lo.k.Cols, lane)
			}
		}
		return !found
	}, e)
	return found
}

// uniform reports whether a guard holds for all lanes of an aligned vector or for none. It does
// if it does not depend on the lane, or if it compares an index that grows with the lane from a
// multiple of the vector to a bound that is a multiple too.
func (lo *kernel) uniform(guard *ir.Expr, lane *ir.Range, vector int, offer *algebra.Offer) bool {
	if guard != nil && lo.variesThroughLocals(guard, lane) {
		return false
	}
	if guard == nil || !ir.DependsOn(guard, lane) {
		return true
	}
	switch guard.Op {
	case ir.OpAnd:
		return lo.uniform(guard.Args[0], lane, vector, offer) && lo.uniform(guard.Args[1], lane, vector, offer)
	case ir.OpLt:
		gap := ir.Simplify(ir.Apply(ir.OpSub, guard.Args[0], guard.Args[1]), offer.Facts)
		return offer.Holds(func(f ir.Facts) bool { return algebra.Contiguous(gap, lane, int64(vector), f) })
	case ir.OpLe: // the opposite of a comparison the other way round
		gap := ir.Simplify(ir.Apply(ir.OpSub, guard.Args[1], guard.Args[0]), offer.Facts)
		return offer.Holds(func(f ir.Facts) bool { return algebra.Contiguous(gap, lane, int64(vector), f) })
	}
	return false
}

// drawn reports whether a vector of random bits is a whole number of the blocks in which they
// are drawn: four words each, or eight halves of words for random_bits16.
func drawn(op ir.Op, vector int) bool {
	return vector%4 == 0 && (op == ir.OpRandom || op == ir.OpRandom16 && (vector == 4 || vector%8 == 0))
}

// storesWide reports whether a body writes some result in vectors, an element for each column or lane.
func storesWide(v *ir.Variant) bool {
	return slices.ContainsFunc(v.Sections, func(sec *ir.Section) bool {
		return slices.ContainsFunc(sec.Stores, func(st *ir.Store) bool { return st.Wide })
	})
}

// alignAlong reports whether vectors of an access along a row range are aligned. With assume it
// may add what that requires to the variant's condition.
func (lo *kernel) alignAlong(v *ir.Variant, offset *ir.Expr, along *ir.Range, assume bool) bool {
	vector := int64(v.Schedule.Vector)
	if vector == 1 {
		return false
	}
	known := lo.inside(ir.RowLevel)
	promised := ir.Facts{Positive: known.Positive, Within: known.Within, Divisible: v.Facts.Divisible, Multiples: v.Facts.Multiples}
	contiguous := func(f ir.Facts) bool { return algebra.Contiguous(offset, along, vector, f) }
	if !assume {
		return contiguous(known)
	}
	whole, product := algebra.Whole(promised, vector, along.Extent)
	offer := algebra.Offer{Known: known, Facts: whole}
	ok := product && offer.Holds(contiguous)
	if !ok {
		offer = algebra.Offer{Known: known, Facts: algebra.Assuming(promised, algebra.MultiplesIn(vector, along.Extent))}
		ok = offer.Holds(contiguous)
	}
	if offer.Used {
		v.Facts = offer.Facts
		v.When = algebra.And(v.When, algebra.Divisible(offer.Facts))
	}
	return ok
}
