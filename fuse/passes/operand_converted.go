package passes

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Operands that a program converts to 16 bits, from bytes or from f32, are read in a type that is not that of tiles. The tensor copy engine
// would copy them as they are. So threads multiply such operands in f32, or tiles of mma.sync convert each element again.

// Products worth operands of 16 bits that are made of bytes or f32. With fewer rows of the other side threads multiply them as they are
// as fast as memory takes them back, or tensor cores where the other side is in 16 bits already.
var (
	convertedProduct     = largeProduct{rows: 128, depth: 64, work: 1 << 28}
	halfConvertedProduct = largeProduct{rows: 256, depth: 64, work: 1 << 28}
)

// convertOperands gives operands of 16-bit products that are converted to these values of their own, in the order in which they are
// read. If sizes are symbols, the default sizes decide; the graph then records for which sizes it was rewritten.
func convertOperands(g *ir.Graph) {
	if !mayAddKernels(g) {
		return
	}
	c := &converting{g: g, sizes: algebra.DefaultSizes(g), streams: productsOfStreams(g)}
	insertBefore(g, c.separate)
}

// converting is a graph whose products get operands of 16 bits.
type converting struct {
	g       *ir.Graph
	sizes   map[string]int64
	streams map[*ir.Value]bool // products of streams, which take all their operands in one type
}

// productsOfStreams are the products of streams and of chains.
func productsOfStreams(g *ir.Graph) map[*ir.Value]bool {
	out := form.InStreams(g)
	for _, s := range form.NewRecogniser(g).Streams() {
		out[s.Out], out[s.Score.From] = true, true
	}
	return out
}

// separate moves the converted sides of a product to new values, and returns these.
func (c *converting) separate(v *ir.Value) (made []*ir.Value) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || form.IsTileProduct(v) || c.streams[v] || form.ReadsThroughWindow(v) {
		return nil
	}
	a, b := form.SidesOf(v)
	if a == nil || b == nil || !sameHalves(a, b) {
		return nil
	}
	worth := convertedProduct
	if form.Halves(a) || form.Halves(b) {
		worth = halfConvertedProduct
	}
	if !worth.holds(v, a, b, c.sizes) {
		return nil
	}
	when, body := worth.at(v, a, b), v.Body
	for _, side := range []**ir.Expr{&a, &b} {
		if convertedOperand(v, *side) && !unpackedForFew(v, *side, c.sizes) {
			value, load := operandInOrder(c.g, v, form.WithoutWidening(*side))
			*side, made = ir.Cast(load, (*side).Type).At((*side).Span), append(made, value)
		}
	}
	if len(made) == 0 {
		return nil
	}
	v.Body = ir.Apply(ir.OpMul, a, b).At(body.Span)
	if when != nil {
		c.g.For = ir.Join(ir.OpOr, c.g.For, when)
	}
	return made
}

// sameHalves reports whether both sides of a product have values of one 16-bit type, not converted from one 8-bit type that tensor
// cores multiply as it is.
func sameHalves(a, b *ir.Expr) bool {
	t := form.WithoutWidening(a).Type
	if !form.IsHalf(t) || form.WithoutWidening(b).Type != t {
		return false
	}
	x, y := byteValue(a).Type, byteValue(b).Type
	return x != y || !form.ByteTile(x) || !x.IsFloat()
}

// convertedOperand reports whether a factor of a product is computed from tensors, and repeats in tiles of the other side.
func convertedOperand(v *ir.Value, factor *ir.Expr) bool {
	factor = form.WithoutWidening(factor)
	if factor.Op == ir.OpLoad {
		return false
	}
	for _, l := range ir.Loads(factor) {
		if l.From.Reduce != nil {
			return false
		}
	}
	return repeatsInTiles(v, factor)
}
