package interp

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// pointByPoint evaluates as Run does, without runs of lanes.
func pointByPoint(t *testing.T, g *ir.Graph, inputs []*Tensor, opts Options) []*Tensor {
	values := map[*ir.Value]*Tensor{}
	for i, v := range g.Inputs {
		values[v] = inputs[i].rounded()
	}
	for _, v := range g.Values {
		if v.IsInput() {
			continue
		}
		c := newCompiler(opts.Mode, nil)
		c.leaf = func(e *ir.Expr) code { return c.load(e, values[e.From]) }
		points, body, err := c.value(v)
		require.NoError(t, err)
		out, f := New(v.Type, shapeOf(points)...), c.frame()
		points.each(f, func(n int64) { out.set(n, body.eval(f)) })
		require.NoError(t, f.err)
		values[v] = out
	}
	var out []*Tensor
	for _, o := range g.Outputs {
		out = append(out, values[o.Value].rounded())
	}
	return out
}

// drawnValues are chains of values with indices, reductions and operations at random.
type drawnValues struct {
	builder
	rng    *rand.Rand
	values []*ir.Value
}

func (d *drawnValues) pick(n int) int { return d.rng.IntN(n) }

// index draws an index out of ranges: steady, reversed, strided, shifted, of data, or wrapped around.
func (d *drawnValues) index(ranges []*ir.Range) *ir.Expr {
	at := ranges[d.pick(len(ranges))].At()
	number := func(n int) *ir.Expr { return ir.IntConst(int64(d.pick(n))) }
	switch d.pick(7) {
	case 0:
		return ir.Apply(ir.OpSub, number(40), at)
	case 1:
		return ir.Apply(ir.OpSub, ir.Apply(ir.OpMul, at, ir.IntConst(int64(1+d.pick(3)))), number(5))
	case 2:
		return ir.Apply(ir.OpAdd, at, ranges[d.pick(len(ranges))].At())
	case 3:
		return ir.Apply(ir.OpMod, at, ir.IntConst(int64(1+d.pick(20))))
	case 4:
		return ir.Apply(ir.OpFloorDiv, at, ir.IntConst(int64(1+d.pick(20))))
	}
	return at
}

func (d *drawnValues) load(t ir.DType, ranges []*ir.Range) *ir.Expr {
	from := d.values[d.pick(len(d.values))]
	at := make([]*ir.Expr, len(from.Axes))
	for i := range at {
		at[i] = d.index(ranges)
	}
	e := ir.Load(from, at, ir.Num(from.Type, float64(d.pick(3))))
	if from.Type != t {
		return ir.Cast(e, t)
	}
	return e
}

func (d *drawnValues) expr(t ir.DType, ranges []*ir.Range, depth int) *ir.Expr {
	if depth == 0 {
		return d.load(t, ranges)
	}
	a := d.expr(t, ranges, depth-1)
	switch d.pick(9) {
	case 0:
		return ir.Apply(ir.OpMul, a, a)
	case 1:
		return ir.Apply(ir.OpTanh, a)
	case 2:
		return ir.Apply(ir.OpSelect, ir.Apply(ir.OpLt, ranges[0].At(), ir.IntConst(int64(d.pick(20)))), a, d.load(t, ranges))
	case 3:
		return ir.Apply(ir.OpMax, a, d.load(t, ranges))
	case 4:
		return ir.Apply(ir.OpSub, a, ir.Num(t, 0.3))
	case 5:
		narrow := ir.Cast(a, ir.BF16)
		return ir.Cast(ir.Apply(ir.OpMul, narrow, narrow), t)
	case 6:
		return ir.Apply(ir.OpAdd, a, d.load(t, ranges))
	}
	return ir.Apply(ir.OpMul, a, d.load(t, ranges))
}

// value draws a value of one or two axes, reduced over up to two ranges or none.
func (d *drawnValues) value(name string) *ir.Value {
	extents := []int64{1, 2, 3, 8, 20, 33, 300}
	extent := func() *ir.Expr { return ir.IntConst(extents[d.pick(len(extents)-1)]) }
	shape := []*ir.Expr{ir.IntConst(extents[d.pick(len(extents))])}
	if d.pick(2) == 0 {
		shape = []*ir.Expr{extent(), extent()}
	}
	t := []ir.DType{ir.F32, ir.F32, ir.F64, ir.F16}[d.pick(4)]
	axes := d.NewAxes(shape)
	ranges := append([]*ir.Range{}, axes...)
	var over []*ir.Range
	for range d.pick(4) {
		n := extent()
		if d.pick(20) == 0 {
			n = ir.IntConst(0)
		}
		over = append(over, d.NewRange("k", n))
	}
	ranges = append(ranges, over...)
	body := d.expr(t, ranges, d.pick(4))
	if len(over) > 0 {
		r := &ir.Reduction{Op: []ir.Monoid{ir.Sum, ir.Sum, ir.Max, ir.Prod, ir.ArgMax}[d.pick(5)], Ranges: over}
		switch d.pick(3) {
		case 0:
			r.Where = ir.Apply(ir.OpLe, over[d.pick(len(over))].At(), axes[d.pick(len(axes))].At())
		case 1:
			r.Where = ir.Apply(ir.OpNe, ir.Apply(ir.OpMod, over[0].At(), ir.IntConst(3)), ir.IntConst(1))
		}
		body = ir.Reduce(r, body)
	}
	return d.Define(name, axes, body, ir.Origin{})
}

// TestRunsOfLanes: values computed in runs have the bits that they have point by point, and so have samples of them, however many are
// asked for.
func TestRunsOfLanes(t *testing.T) {
	for seed := range uint64(400) {
		d := &drawnValues{builder: build(), rng: rand.New(rand.NewPCG(seed, 5))}
		var inputs []*Tensor
		for i, shape := range [][]int{{20, 20}, {33}, {5, 40}} {
			dtype := []ir.DType{ir.F32, ir.F64, ir.BF16}[i]
			d.values = append(d.values, d.in(fmt.Sprintf("x%d", i), dtype, dims(int64(shape[0]), int64(shape[len(shape)-1]))[:len(shape)]...))
			x := New(dtype, shape...)
			for n := range x.F {
				x.F[n] = d.rng.NormFloat64()
			}
			inputs = append(inputs, x.rounded())
		}
		for i := range 1 + d.pick(3) {
			v := d.value(fmt.Sprintf("v%d", i))
			d.values = append(d.values, v)
			d.Output(v.Name, v, v.Origin.Span)
		}
		for _, mode := range []Mode{Exact, Strict} {
			opts := Options{Mode: mode}
			want := pointByPoint(t, d.Graph, inputs, opts)
			have, err := Run(d.Graph, inputs, opts)
			require.NoError(t, err)
			s, err := NewSampler(d.Graph, inputs, opts)
			require.NoError(t, err)
			for o := range want {
				same(t, want[o], have[o])
				for range 200 {
					if want[o].Len() == 0 {
						break
					}
					n := d.pick(want[o].Len())
					v, err := s.At(Point{o, indexOf(n, want[o].Shape)})
					require.NoError(t, err)
					if want[o].F != nil {
						assert.Equal(t, bits(want[o].F[n]), bits(v.F))
					} else {
						assert.Equal(t, want[o].I[n], v.I)
					}
				}
			}
			if t.Failed() {
				t.Fatalf("seed %d, mode %d:\n%s", seed, mode, ir.Print(d.Graph))
			}
		}
	}
}

func indexOf(n int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d], n = n%shape[d], n/shape[d]
	}
	return out
}
