package interp

import (
	"cmp"
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
)

// order is a reduction that picks an element by its place.
type order struct {
	*fold
	rank  func(*frame) int64
	place bool  // where the element at rank stands, in place of the element that stands there
	signs bool  // whether -0 comes before +0, as in an engine that sorts words without their places
	slots []int // of the indices that the elements depend on
	at    []int64
	all   []element // sorted elements of the order that at says
}

func (c *compiler) newOrder(v *ir.Value) *order {
	r := &order{fold: c.newFold(v.Reduce.Op, nil, v.Body), rank: c.root(v.Reduce.Rank).int, place: v.Reduce.Inverse}
	r.signs = c.chooser != nil && !v.Reduce.Op.IsArg() && c.chooser.coin()
	free := ir.FreeRanges(v.Body)
	for _, axis := range v.Axes {
		if free[axis] {
			r.slots = append(r.slots, c.slot(axis))
		}
	}
	return r
}

// sorted returns the elements in order. It reuses those of the last call if the order is the
// same.
func (r *order) sorted(f *frame, b box) []element {
	at := make([]int64, len(r.slots))
	for i, slot := range r.slots {
		at[i] = f.at[slot]
	}
	if r.all != nil && slices.Equal(at, r.at) {
		return r.all
	}
	r.at, r.all = at, make([]element, 0, b.len())
	b.each(f, func(n int64) { r.all = append(r.all, element{r.body.eval(f), n}) })
	sortElements(r.all, r.op.Descending(), r.bodyType.IsFloat())
	if r.signs {
		orderZeros(r.all, r.op.Descending())
	}
	if r.place { // of each element, as if that were the element
		places := make([]element, len(r.all))
		for i, e := range r.all {
			places[e.at].at = int64(i)
		}
		r.all = places
	}
	return r.all
}

// code compiles the choice among the points of b.
func (r *order) code(b box, t ir.DType) code {
	pick := func(f *frame) Scalar {
		rank := r.rank(f)
		all := r.sorted(f, b)
		if rank < 0 || rank >= int64(len(all)) {
			r.reset()
			return r.result()
		}
		if r.op.IsArg() {
			return Scalar{I: all[rank].at}
		}
		return all[rank].value
	}
	if t.IsFloat() {
		return code{float: func(f *frame) float64 { return pick(f).F }}
	}
	return code{int: func(f *frame) int64 { return pick(f).I }}
}

// element is a value and its index.
type element struct {
	value Scalar
	at    int64
}

// sortElements sorts stably, with NaN above every number.
func sortElements(all []element, descending, float bool) {
	compare := func(a, b element) int { return cmp.Compare(a.value.I, b.value.I) }
	if float { // cmp.Compare puts NaN first
		compare = func(a, b element) int { return -cmp.Compare(-a.value.F, -b.value.F) }
	}
	slices.SortStableFunc(all, func(a, b element) int {
		if descending {
			return compare(b, a)
		}
		return compare(a, b)
	})
}

// orderZeros puts the negative zeros of sorted elements before the positive ones, or after them in descending
// order.
func orderZeros(all []element, descending bool) {
	isZero := func(e element) bool { return e.value.F == 0 }
	first := slices.IndexFunc(all, isZero)
	if first < 0 {
		return
	}
	zeros := all[first:]
	if end := slices.IndexFunc(zeros, func(e element) bool { return !isZero(e) }); end >= 0 {
		zeros = zeros[:end]
	}
	slices.SortStableFunc(zeros, func(a, b element) int {
		if math.Signbit(a.value.F) == math.Signbit(b.value.F) {
			return 0
		}
		if math.Signbit(a.value.F) != descending {
			return -1
		}
		return 1
	})
}

// sorting is the work of a sort kernel, compiled.
type sorting struct {
	*ir.Sort
	key          code
	none         Scalar // the value past the last column
	places       box
	value, index *Scalar
	stores       []func(*frame)
}

func (x *kernel) sorting(s *ir.Sort) (out *sorting, err error) {
	out = &sorting{Sort: s, value: &Scalar{}, index: &Scalar{}}
	x.results[s.Value], x.results[s.Index] = out.value, out.index
	if out.places, err = x.box([]*ir.Range{s.Places}); err != nil {
		return nil, err
	}
	op := ir.Min
	if s.Descending {
		op = ir.Max
	}
	id := op.Identity(s.Type)
	out.none = Scalar{F: id.Val, I: id.Int}
	out.key = x.cast(s.Key.Type, s.Type, x.root(s.Key))
	for _, st := range s.Stores {
		out.stores = append(out.stores, x.store(st))
	}
	return out, nil
}

// run sorts the current row and stores its places.
func (s *sorting) run(x *kernel) {
	var all []element
	x.cols.each(x.frame, func(n int64) { all = append(all, element{s.key.eval(x.frame), n}) })
	sortElements(all, s.Descending, s.Type.IsFloat())
	s.places.each(x.frame, func(n int64) {
		*s.value, *s.index = s.none, Scalar{}
		if n < int64(len(all)) {
			*s.value, *s.index = all[n].value, Scalar{I: all[n].at}
		}
		for _, store := range s.stores {
			store(x.frame)
		}
	})
}
