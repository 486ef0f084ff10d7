package passes

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// TestWeightsOfChains: chains have one weight where the computed values that they weigh by are the same, whatever inputs they weigh and
// whatever products stand beside.
func TestWeightsOfChains(t *testing.T) {
	g := ir.NewGraph("g")
	i, k := g.NewRange("i", ir.IntConst(7)), g.NewRange("k", ir.IntConst(9))
	value := func(id int, body *ir.Expr) *ir.Value {
		return &ir.Value{ID: id, Type: ir.F32, Axes: []*ir.Range{g.NewRange("a", ir.IntConst(7))}, Body: body}
	}
	at := func(v *ir.Value) *ir.Expr { return ir.Load(v, []*ir.Expr{i.At()}, nil) }
	a, b := value(1, nil), value(2, nil)
	p, q := value(3, ir.Apply(ir.OpExp, at(a))), value(4, ir.Apply(ir.OpTanh, at(a)))
	product := value(5, at(a))
	product.Reduce = &ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{k}}
	key := func(of ...*ir.Value) uint64 {
		body := at(of[0])
		for _, v := range of[1:] {
			body = ir.Apply(ir.OpMul, body, at(v))
		}
		return weightKey(&form.Stream{Out: value(6, body)})
	}
	assert.Equal(t, key(p, a), key(p, b), "other values under one weight")
	assert.Equal(t, key(p, a), key(a, p), "in another order")
	assert.Equal(t, key(p, a), key(p, product, a), "with a product beside it")
	for _, other := range []uint64{key(q, a), key(p, q, a), key(a)} {
		assert.NotEqual(t, key(p, a), other, "another weight")
	}
	assert.NotEqual(t, key(q, a), key(p, q, a))
}
