package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestDistinctOffsets: the row-major place in any order of a few ranges is another one at each of their points. A place that leaves a
// range out, or moves by too little along one, is not: kernels that update a state in place would write an element twice.
func TestDistinctOffsets(t *testing.T) {
	pr := newProgram(ir.NewGraph("g"), ir.Devices()[0])
	var all []*ir.Range
	for d, extent := range []int64{7, 5, 3, 2}[:mostOrders] {
		all = append(all, &ir.Range{ID: d, Name: string(rune('a' + d)), Extent: ir.IntConst(extent)})
	}
	place := func(order []*ir.Range) *ir.Expr {
		shape := make([]*ir.Expr, len(order))
		for d, r := range order {
			shape[d] = r.Extent
		}
		return ir.FlatOffset(shape, ir.Indices(order))
	}
	for n := 1; n <= len(all); n++ {
		ranges, orders := all[:n], 0
		eachOrder(ranges, func(order []*ir.Range) {
			orders++
			assert.True(t, pr.distinct(ranges, place(order)), "%v", place(order))
			assert.False(t, pr.distinct(ranges, place(order[1:])), "without %s", order[0].Name)
			if n < len(all) {
				assert.False(t, pr.distinct(all[:n+1], place(order)), "without %s", all[n].Name)
			}
		})
		assert.Equal(t, []int{1, 2, 6, 24}[n-1], orders)
		if n > 1 {
			near := ir.Apply(ir.OpAdd, place(ranges[1:]), ranges[0].At()) // as far along the first range as along the last
			assert.False(t, pr.distinct(ranges, near), "%v", near)
		}
	}
}

// eachOrder calls of with the ranges in every order.
func eachOrder(ranges []*ir.Range, of func([]*ir.Range)) {
	if len(ranges) == 0 {
		of(nil)
		return
	}
	for i, first := range ranges {
		rest := append(append([]*ir.Range(nil), ranges[:i]...), ranges[i+1:]...)
		eachOrder(rest, func(order []*ir.Range) { of(append([]*ir.Range{first}, order...)) })
	}
}
