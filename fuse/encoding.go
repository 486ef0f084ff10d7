package fuse

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
)

// encoding is a region as bytes.
type encoding struct {
	r       *region
	bounds  map[*ir.Value][]*bounded
	parts   map[*ir.Value]concatPart
	buffers map[*ir.Value]*ir.Buffer
	bytes   []byte
	number  map[*ir.Value]int
	values  []*ir.Value // by number
	ranges  map[*ir.Range]int
	exprs   map[uint64][]numbered // by hash
	count   int                   // of exprs
}

type numbered struct {
	expr   *ir.Expr
	number int
}

func (c *encoding) put(n int) { c.bytes = binary.AppendVarint(c.bytes, int64(n)) }

func (c *encoding) bits(n uint64) { c.bytes = binary.LittleEndian.AppendUint64(c.bytes, n) }

func (c *encoding) flag(b bool) {
	if b {
		c.bytes = append(c.bytes, 1)
	} else {
		c.bytes = append(c.bytes, 0)
	}
}

// known writes the number of x, and reports whether x had one already. If not, x gets the next
// number.
func known[T comparable](c *encoding, numbers map[T]int, x T) bool {
	n, ok := numbers[x]
	if !ok {
		n = len(numbers)
		numbers[x] = n
	}
	c.put(n)
	return ok
}

func (c *encoding) rng(r *ir.Range) {
	if !known(c, c.ranges, r) {
		c.expr(r.Extent)
	}
}

func (c *encoding) value(v *ir.Value) {
	if known(c, c.number, v) {
		return
	}
	c.values = append(c.values, v)
	c.flag(v.IsInput())
	c.flag(v.Parts)
	c.put(int(v.Type))
	c.put(len(v.Axes))
	for _, r := range v.Axes {
		c.expr(r.Extent)
	}
}

// member writes what the region computes for v, over its own ranges, and where those lie
// in the region's space.
func (c *encoding) member(v *ir.Value) {
	c.value(v)
	b := c.buffers[v]
	c.flag(b != nil)
	if c.flag(b != nil && b.Updates != nil); b != nil && b.Updates != nil {
		c.value(b.Updates.Value)
	}
	place, isPart := c.parts[v]
	if c.flag(isPart); isPart {
		c.value(place.whole)
		c.put(place.axis)
		c.expr(place.from)
	}
	own := slices.Clone(v.Axes)
	c.flag(v.Reduce != nil)
	if v.Reduce != nil {
		own = append(own, v.Reduce.Ranges...)
		c.put(int(v.Reduce.Op))
		c.put(len(v.Reduce.Ranges))
		c.expr(v.Reduce.Where)
		c.expr(v.Reduce.Rank)
		c.flag(v.Reduce.Inverse)
	}
	at := c.r.at[v]
	var more []*ir.Range // further ranges of the member, such as the reduced range of a scan
	for r := range at {
		if !slices.Contains(own, r) {
			more = append(more, r)
		}
	}
	slices.SortFunc(more, func(a, b *ir.Range) int { return cmp.Compare(a.ID, b.ID) })
	own = append(own, more...)
	c.put(len(own))
	for _, r := range own {
		c.rng(r)
		c.expr(at[r])
	}
	c.expr(v.Body)
	c.expr(c.r.stored[v])
}

func (c *encoding) expr(e *ir.Expr) {
	if e == nil {
		c.put(-1)
		return
	}
	for _, n := range c.exprs[e.Hash()] {
		if ir.Equal(n.expr, e) {
			c.put(n.number)
			return
		}
	}
	c.put(c.count)
	c.exprs[e.Hash()] = append(c.exprs[e.Hash()], numbered{e, c.count})
	c.count++
	c.put(int(e.Op))
	c.put(int(e.Type))
	switch e.Op {
	case ir.OpConst:
		c.bits(math.Float64bits(e.Val))
		c.bits(uint64(e.Int))
	case ir.OpSym:
		c.put(len(e.Name))
		c.bytes = append(c.bytes, e.Name...)
	case ir.OpRange:
		c.rng(e.Range)
	case ir.OpLoad:
		c.value(e.From)
	}
	c.put(len(e.Args))
	for _, a := range e.Args {
		c.expr(a)
	}
	c.expr(e.Fill)
	c.expr(e.Guard)
}

// accumulated writes over which rows partial results are folded, and where there are rows.
func (c *encoding) accumulated(r *region) {
	for _, s := range r.space {
		c.flag(r.accumulated[s])
	}
	c.expr(r.inside)
}

// rowProduct writes which product waits for its rows.
func (c *encoding) rowProduct(r *region) {
	if c.flag(r.product != nil); r.product != nil {
		c.value(r.product)
	}
}

// folded writes how a product is folded.
func (c *encoding) folded(r *region) {
	t := r.folded
	if c.flag(t != nil); t == nil {
		return
	}
	c.value(t.product)
	c.put(len(t.depth))
	for _, d := range t.depth {
		c.rng(d)
	}
	c.expr(t.index)
	c.expr(t.extent)
}

// stream writes which part of a stream each value is; their bodies say the rest.
func (c *encoding) stream(r *region) {
	s := r.stream
	if c.flag(s != nil); s == nil {
		return
	}
	c.flag(s.Chained)
	c.put(len(s.Others))
	for _, l := range s.Products() {
		c.value(l.From)
		c.expr(l)
	}
	for _, v := range append([]*ir.Value{s.Out}, s.Sums...) {
		c.value(v)
	}
	for _, r := range s.Keys {
		c.rng(r)
	}
	for _, e := range []*ir.Expr{s.Weight.Logit, s.Weight.Max, s.Factor, s.Value} {
		c.expr(e)
	}
	c.bits(math.Float64bits(s.Weight.Scale))
	for _, r := range c.r.space {
		c.flag(s.Own[r])
		c.flag(s.depth[r])
	}
	if c.flag(s.also != nil); s.also != nil {
		c.value(s.also.Out)
		c.expr(s.also.Factor)
		c.expr(s.also.Value)
		for _, l := range s.also.Products() {
			c.value(s.same[l.From])
		}
	}
	if s.Chained {
		return
	}
	for _, b := range c.bounds[s.Weight.Max.From] {
		c.expr(b.expr)
		c.rng(b.along)
		for _, o := range b.others {
			c.rng(o)
		}
		c.value(b.low)
		c.value(b.high)
	}
}
