package fuse

import (
	"math"
	"math/bits"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// interval bounds an integer of the mask over a tile: low and high, both included, are I64 expressions
// whose magnitudes are at most 2^bits.
type interval struct {
	low, high *ir.Expr
	bits      int
}

// Magnitudes that arithmetic of bounds relies on.
const (
	indexBits = 48 // of a position: no tensor has 2^48 elements
	mostBits  = 62 // of an operand that may be added without wrapping
)

// bitsOf is the bits of magnitude of an integer type or of bool.
func bitsOf(t ir.DType) int {
	_, n := math.Frexp(t.Info().Max)
	if t == ir.I64 || t == ir.Index { // the largest value rounds up to a power of two
		n--
	}
	return n
}

// tilePart is a part of the mask, lowered, whose bounds are read from memory.
type tilePart struct {
	expr      *ir.Expr
	low, high *ir.Expr // over a tile, in the type of expr
}

func (lo attendKernel) bounds() []*bounded {
	if lo.r.stream == nil || lo.r.stream.Chained {
		return nil
	}
	return lo.program.bounds[lo.r.stream.Weight.Max.From]
}

// readParts reads the bounds of the mask's parts for the current tile: it combines those of all groups of
// positions in the tile. A group past the last one is read as the last.
func (t *tileBounds) readParts(first map[*ir.Range]string, points map[*ir.Range]int) {
	lo := t.lo
	for _, p := range (attendKernel{lo}).bounds() {
		at := lo.r.at[lo.r.stream.Weight.Max.From]
		along := at[p.along]
		if along == nil || along.Op != ir.OpRange || first[along.Range] == "" {
			continue
		}
		groups := p.low.Axes[len(p.low.Axes)-1].Extent
		low, high := ir.OpMin, ir.OpMax
		if p.expr.Type == ir.Bool {
			low, high = ir.OpAnd, ir.OpOr
		}
		part := tilePart{expr: lo.expr(ir.Substitute(p.expr, at))}
		for n := 0; n*boundGroup < points[along.Range]; n++ {
			group := ir.Apply(ir.OpFloorDiv, ir.Sym(first[along.Range]), ir.IntConst(boundGroup))
			group = ir.Apply(ir.OpAdd, group, ir.IntConst(int64(n)))
			group = ir.Apply(ir.OpMin, group, ir.Apply(ir.OpSub, groups, ir.IntConst(1)))
			read := func(v *ir.Value) *ir.Expr {
				var indices []*ir.Expr
				for _, r := range p.others {
					indices = append(indices, at[r])
				}
				return lo.expr(ir.Load(v, append(indices, group), nil))
			}
			part.low, part.high = ir.Join(low, part.low, read(p.low)), ir.Join(high, part.high, read(p.high))
		}
		t.parts = append(t.parts, part)
	}
}

// part returns the part of the mask that equals e; nil for none.
func (t *tileBounds) part(e *ir.Expr) *tilePart {
	for i := range t.parts {
		if ir.Equal(t.parts[i].expr, e) {
			t.mask.Table = true
			return &t.parts[i]
		}
	}
	return nil
}

// fixed reports whether e is the same at all points of a tile.
func (t *tileBounds) fixed(e *ir.Expr) bool {
	for r := range ir.FreeRanges(e) {
		if !slices.Contains(t.a.Batch, r) {
			return false
		}
	}
	return !ir.Has(e, ir.OpLocal)
}

// interval bounds an integer over the tile. Where an operation in e could wrap, the conditions under
// which it does not are joined to sure.
func (t *tileBounds) interval(e *ir.Expr, sure **ir.Expr) (interval, bool) {
	if e.Type.IsFloat() {
		return interval{}, false
	}
	if p := t.part(e); p != nil {
		return interval{ir.Cast(p.low, ir.I64), ir.Cast(p.high, ir.I64), bitsOf(e.Type)}, true
	}
	if !algebra.ReadsMemory(e) {
		return t.positions(e)
	}
	if t.fixed(e) {
		x := ir.Cast(e, ir.I64)
		return interval{x, x, bitsOf(e.Type)}, true
	}
	if !boundable(e) {
		return interval{}, false
	}
	args := make([]interval, len(e.Args))
	for i, a := range e.Args {
		var ok bool
		if args[i], ok = t.interval(a, sure); !ok {
			return interval{}, false
		}
	}
	x := applied(e, args)
	if x.bits > mostBits {
		return x, false
	}
	return within(x, e.Type, sure), true
}

// positions bounds an integer that depends on positions alone.
func (t *tileBounds) positions(e *ir.Expr) (interval, bool) {
	x, ok := t.index(e)
	if !ok {
		return interval{}, false
	}
	low, high := ir.Bounds(ir.Simplify(x, t.facts), t.facts)
	if low == nil || high == nil {
		return interval{}, false
	}
	width := indexBits
	if e.Op == ir.OpConst {
		width = bits.Len64(uint64(max(e.Int, -e.Int)))
	}
	return interval{ir.Cast(low, ir.I64), ir.Cast(high, ir.I64), width}, true
}

// applied is the interval of an operation, given those of its operands.
func applied(e *ir.Expr, args []interval) interval {
	x := args[0]
	switch e.Op {
	case ir.OpNeg:
		return interval{ir.Apply(ir.OpNeg, x.high), ir.Apply(ir.OpNeg, x.low), x.bits + 1}
	case ir.OpCast:
		return x
	}
	y := args[1]
	wide := max(x.bits, y.bits)
	switch e.Op {
	case ir.OpAdd:
		return interval{ir.Apply(ir.OpAdd, x.low, y.low), ir.Apply(ir.OpAdd, x.high, y.high), wide + 1}
	case ir.OpSub:
		return interval{ir.Apply(ir.OpSub, x.low, y.high), ir.Apply(ir.OpSub, x.high, y.low), wide + 1}
	case ir.OpMul:
		if e.Args[0].Op == ir.OpConst {
			x, y = y, x
		}
		if y.low.Int < 0 {
			x.low, x.high = x.high, x.low
		}
		return interval{ir.Apply(ir.OpMul, x.low, y.low), ir.Apply(ir.OpMul, x.high, y.low), x.bits + y.bits}
	}
	return interval{ir.Apply(e.Op, x.low, y.low), ir.Apply(e.Op, x.high, y.high), wide}
}

// within is an interval after conversion to a type. The conditions under which all its values fit the type
// are joined to sure.
func within(x interval, t ir.DType, sure **ir.Expr) interval {
	info, width := t.Info(), bitsOf(t)
	if info.Signed && x.bits <= width {
		return x
	}
	least, most := int64(0), int64(math.MaxInt64)
	if info.Signed {
		least = math.MinInt64
	}
	if width <= mostBits {
		most = 1<<width - 1
		if info.Signed {
			least = -most - 1
		}
	}
	for _, c := range []*ir.Expr{
		ir.Apply(ir.OpLe, ir.IntNum(ir.I64, least), x.low), ir.Apply(ir.OpLe, x.high, ir.IntNum(ir.I64, most)),
	} {
		*sure = ir.Join(ir.OpAnd, *sure, c)
	}
	x.bits = width
	return x
}

// intervalComparison bounds a comparison by the intervals of its sides.
func (t *tileBounds) intervalComparison(e *ir.Expr) (some, all *ir.Expr) {
	var sure *ir.Expr
	a, okA := t.interval(e.Args[0], &sure)
	b, okB := t.interval(e.Args[1], &sure)
	if !okA || !okB {
		return nil, nil
	}
	op := e.Op
	switch op {
	case ir.OpGt:
		op, a, b = ir.OpLt, b, a
	case ir.OpGe:
		op, a, b = ir.OpLe, b, a
	}
	switch op {
	case ir.OpLt, ir.OpLe:
		some, all = ir.Apply(op, a.low, b.high), ir.Apply(op, a.high, b.low)
	default:
		meet := ir.Apply(ir.OpAnd, ir.Apply(ir.OpLe, a.low, b.high), ir.Apply(ir.OpLe, b.low, a.high))
		same := ir.Apply(ir.OpAnd, ir.Apply(ir.OpLe, a.high, b.low), ir.Apply(ir.OpLe, b.high, a.low))
		some, all = meet, same
		if op == ir.OpNe {
			some, all = not(same), not(meet)
		}
	}
	if sure != nil {
		some, all = ir.Apply(ir.OpOr, not(sure), some), ir.Apply(ir.OpAnd, sure, all)
	}
	return some, all
}
