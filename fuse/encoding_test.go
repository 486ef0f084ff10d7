package fuse

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestEncodingsTellApart: expressions have one encoding where they are equal, and else not, whichever parts they have more than once: kernels
// whose regions have one encoding have one body.
func TestEncodingsTellApart(t *testing.T) {
	i, j := &ir.Range{ID: 1, Name: "i", Extent: ir.IntConst(7)}, &ir.Range{ID: 2, Name: "j", Extent: ir.IntConst(9)}
	leaves := []*ir.Expr{i.At(), j.At(), ir.IntConst(1), ir.IntConst(2), ir.Sym("N"), ir.Sym("M")}
	encode := func(exprs ...*ir.Expr) string {
		c := &encoding{number: map[*ir.Value]int{}, ranges: map[*ir.Range]int{}, exprs: map[uint64][]numbered{}}
		for _, e := range exprs {
			c.expr(e)
		}
		return string(c.bytes)
	}
	draw := func(t *rapid.T) *ir.Expr {
		parts := append([]*ir.Expr(nil), leaves...)
		for range rapid.IntRange(1, 5).Draw(t, "operations") {
			op := rapid.SampledFrom([]ir.Op{ir.OpAdd, ir.OpMul, ir.OpMax, ir.OpMin}).Draw(t, "op")
			a, b := rapid.SampledFrom(parts).Draw(t, "a"), rapid.SampledFrom(parts).Draw(t, "b")
			parts = append(parts, ir.Apply(op, a, b), ir.Apply(op, a, b))
		}
		return parts[len(parts)-1]
	}
	rapid.Check(t, func(t *rapid.T) {
		a, b := draw(t), draw(t)
		before := leaves[:rapid.IntRange(0, len(leaves)).Draw(t, "known")]
		require.Equal(t, ir.Equal(a, b), encode(append(append([]*ir.Expr{i.At(), j.At()}, before...), a)...) ==
			encode(append(append([]*ir.Expr{i.At(), j.At()}, before...), b)...), "%v and %v", a, b)
	})
	sum, product := ir.Apply(ir.OpAdd, leaves[0], leaves[1]), ir.Apply(ir.OpMul, leaves[0], leaves[1])
	both := ir.Apply(ir.OpMax, sum, product)
	require.NotEqual(t, encode(ir.Apply(ir.OpMin, both, sum)), encode(ir.Apply(ir.OpMin, both, product)), "each part twice")
	for extent, same := range map[int64]bool{7: true, 8: false} {
		other := &ir.Range{ID: 3, Name: "k", Extent: ir.IntConst(extent)}
		require.Equal(t, same, encode(i.At()) == encode(other.At()), "ranges are their extents")
	}
}

// TestEncodedValuesTellApart: values that differ in one thing that bodies depend on have another encoding, and those that
// differ in their names have the same.
func TestEncodedValuesTellApart(t *testing.T) {
	encode := func(change func(v *ir.Value)) string {
		v := &ir.Value{Name: "v", Type: ir.F32, Axes: []*ir.Range{{ID: 1, Name: "i", Extent: ir.IntConst(7)}}}
		change(v)
		c := &encoding{number: map[*ir.Value]int{}, ranges: map[*ir.Range]int{}, exprs: map[uint64][]numbered{}}
		c.value(v)
		return string(c.bytes)
	}
	plain := encode(func(*ir.Value) {})
	require.Equal(t, plain, encode(func(v *ir.Value) { v.Name, v.Axes[0].Name = "w", "j" }))
	met := map[string]bool{plain: true}
	for i, change := range []func(v *ir.Value){
		func(v *ir.Value) { v.Type = ir.BF16 },
		func(v *ir.Value) { v.Axes[0].Extent = ir.IntConst(8) },
		func(v *ir.Value) { v.Axes = append(v.Axes, v.Axes[0]) },
		func(v *ir.Value) { v.Axes = nil },
		func(v *ir.Value) { v.Parts = true },
		func(v *ir.Value) { v.Body = ir.Num(ir.F32, 1) },
	} {
		text := encode(change)
		require.False(t, met[text], "change %d", i)
		met[text] = true
	}
}

// TestEncodedLoopsTellApart: regions whose loops are in another order, or of which others are columns, have another encoding.
func TestEncodedLoopsTellApart(t *testing.T) {
	i, j := &ir.Range{ID: 1, Name: "i", Extent: ir.IntConst(7)}, &ir.Range{ID: 2, Name: "j", Extent: ir.IntConst(9)}
	met := map[string]int{}
	for n, r := range []*region{
		{space: []*ir.Range{i, j}},
		{space: []*ir.Range{j, i}},
		{space: []*ir.Range{i, j}, cols: map[*ir.Range]bool{j: true}},
		{space: []*ir.Range{j, i}, cols: map[*ir.Range]bool{j: true}},
		{space: []*ir.Range{i}},
	} {
		text := string(encode(r, nil, &program{}).bytes)
		require.NotContains(t, met, text, "regions %d and %d", n, met[text])
		met[text] = n
	}
}

// TestEncodedMembersTellApart: what a member computes, and where its ranges lie in the loops, are told apart, also where all of its ranges
// have the same points: a transposition and a copy of a square have one encoding of all else.
func TestEncodedMembersTellApart(t *testing.T) {
	at := func(id int, name string) *ir.Range { return &ir.Range{ID: id, Name: name, Extent: ir.IntConst(7)} }
	a, b, i, j := at(1, "a"), at(2, "b"), at(3, "i"), at(4, "j")
	x := &ir.Value{ID: 1, Name: "x", Type: ir.F32, Axes: []*ir.Range{at(5, "p"), at(6, "q")}}
	met := map[string]int{}
	for n, c := range []struct {
		read   []*ir.Expr
		places map[*ir.Range]*ir.Expr
	}{
		{[]*ir.Expr{i.At(), j.At()}, map[*ir.Range]*ir.Expr{i: a.At(), j: b.At()}},
		{[]*ir.Expr{j.At(), i.At()}, map[*ir.Range]*ir.Expr{i: a.At(), j: b.At()}},
		{[]*ir.Expr{i.At(), i.At()}, map[*ir.Range]*ir.Expr{i: a.At(), j: b.At()}},
		{[]*ir.Expr{j.At(), j.At()}, map[*ir.Range]*ir.Expr{i: a.At(), j: b.At()}},
		{[]*ir.Expr{i.At(), i.At()}, map[*ir.Range]*ir.Expr{i: b.At(), j: a.At()}},
		{[]*ir.Expr{i.At(), j.At()}, map[*ir.Range]*ir.Expr{i: b.At(), j: a.At()}},
	} {
		v := &ir.Value{ID: 2, Name: "v", Type: ir.F32, Axes: []*ir.Range{i, j}, Body: ir.Load(x, c.read, nil)}
		r := &region{space: []*ir.Range{a, b}, members: []*ir.Value{v}, at: map[*ir.Value]map[*ir.Range]*ir.Expr{v: c.places}}
		text := string(encode(r, nil, &program{}).bytes)
		require.NotContains(t, met, text, "members %d and %d", n, met[text])
		met[text] = n
	}
}
