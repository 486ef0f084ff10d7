package interp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

var nan, inf = math.NaN(), math.Inf(1)

func floats(t ir.DType, shape []int, v ...float64) *Tensor {
	return &Tensor{Type: t, Shape: shape, F: v}
}

func ints(t ir.DType, shape []int, v ...int64) *Tensor { return &Tensor{Type: t, Shape: shape, I: v} }

func vector(v ...float64) *Tensor { return floats(ir.F32, []int{len(v)}, v...) }

func dims(d ...int64) []*ir.Expr {
	out := make([]*ir.Expr, len(d))
	for i, n := range d {
		out[i] = ir.IntConst(n)
	}
	return out
}

// builder makes small graphs readable.
type builder struct{ *ir.Graph }

func build(symbols ...string) builder {
	g := ir.NewGraph("test")
	for _, s := range symbols {
		g.Symbols = append(g.Symbols, ir.Symbol{Name: s})
	}
	return builder{g}
}

func (b builder) in(name string, t ir.DType, shape ...*ir.Expr) *ir.Value {
	return b.Input(name, t, shape, diag.Span{})
}

// out defines y[axes of shape] = body(indices) and makes it an output.
func (b builder) out(shape []*ir.Expr, body func(at []*ir.Expr) *ir.Expr) *ir.Value {
	axes := b.NewAxes(shape)
	v := b.Define("y", axes, body(ir.Indices(axes)), ir.Origin{})
	b.Output("y", v, diag.Span{})
	return v
}

// bits tells zeros apart and no NaN from another.
func bits(v float64) uint64 {
	if v != v {
		return math.Float64bits(nan)
	}
	return math.Float64bits(v)
}

// same is equality of bits.
func same(t *testing.T, want, have *Tensor) {
	t.Helper()
	assert.Equal(t, want.Shape, have.Shape)
	assert.Equal(t, want.Type, have.Type)
	assert.Equal(t, want.I, have.I)
	require.Len(t, have.F, len(want.F))
	for i := range want.F {
		assert.Equal(t, bits(want.F[i]), bits(have.F[i]),
			"element %d: want %v, have %v", i, want.F[i], have.F[i])
	}
}

func run(t *testing.T, b builder, opts Options, inputs ...*Tensor) *Tensor {
	t.Helper()
	out, err := Run(b.Graph, inputs, opts)
	require.NoError(t, err)
	require.Len(t, out, 1)
	return out[0]
}

// Every row of the op table gives, through a graph, what its function gives.
func TestEveryOp(t *testing.T) {
	data := []float64{-2.5, -1, -0.5, 0, 0.25, 1, 2, 3.5, inf, -inf, nan}
	whole := []int64{-7, -1, 0, 1, 2, 3, 63, 120, -128, 127, 5}
	for _, op := range ir.Ops() {
		if op == ir.OpCast || op == ir.OpSelect {
			continue
		}
		if info := op.Info(); info.Float != nil {
			t.Run(op.String()+"/f64", func(t *testing.T) {
				in := floats(ir.F64, []int{len(data)}, data...)
				have := run(t, unary(op, ir.F64, len(data)), Options{}, in)
				for i, a := range data {
					want := info.Float(a, data[(i+1)%len(data)], 0)
					if have.F == nil {
						assert.Equal(t, int64(want), have.I[i], "%v", a)
					} else {
						assert.Equal(t, bits(want), bits(have.F[i]), "%v", a)
					}
				}
			})
		}
		if info := op.Info(); info.Int != nil && info.On.Has(ir.KindInt) {
			t.Run(op.String()+"/i64", func(t *testing.T) {
				have := run(t, unary(op, ir.I64, len(whole)), Options{}, ints(ir.I64, []int{len(whole)}, whole...))
				for i, a := range whole {
					assert.Equal(t, info.Int(a, whole[(i+1)%len(whole)], 0), have.I[i], "%v", a)
				}
			})
		}
	}
}

// unary is y[i] = op(x[i]) or op(x[i], x[(i+1) % n]).
func unary(op ir.Op, t ir.DType, n int) builder {
	b := build()
	x := b.in("x", t, dims(int64(n))...)
	b.out(dims(int64(n)), func(at []*ir.Expr) *ir.Expr {
		args := []*ir.Expr{ir.Load(x, at, nil)}
		if op.Info().Arity == 2 {
			next := ir.Apply(ir.OpMod, ir.Apply(ir.OpAdd, at[0], ir.IntConst(1)), ir.IntConst(int64(n)))
			args = append(args, ir.Load(x, []*ir.Expr{next}, nil))
		}
		return ir.Apply(op, args...)
	})
	return b
}

func TestIntegersWrap(t *testing.T) {
	cases := []struct {
		op         ir.Op
		t          ir.DType
		a, b, want int64
	}{
		{ir.OpAdd, ir.I8, 127, 1, -128},
		{ir.OpAdd, ir.U8, 255, 1, 0},
		{ir.OpSub, ir.U8, 0, 1, 255},
		{ir.OpMul, ir.I16, 300, 300, 300*300 - 65536},
		{ir.OpMul, ir.U32, 0xffffffff, 0xffffffff, 1},
		{ir.OpAdd, ir.I64, math.MaxInt64, 1, math.MinInt64},
		{ir.OpShl, ir.I32, 1, 31, math.MinInt32},
		{ir.OpShl, ir.I32, 1, 32, 0},
		{ir.OpShr, ir.I8, -128, 9, -1},
		{ir.OpShr, ir.U32, 0x80000000, 31, 1},
		{ir.OpFloorDiv, ir.I32, -7, 2, -4},
		{ir.OpMod, ir.I32, -7, 2, 1},
		{ir.OpFloorDiv, ir.I32, 1, 0, 0},
	}
	for _, c := range cases {
		b := build()
		x := b.in("x", c.t, dims(2)...)
		b.out(nil, func([]*ir.Expr) *ir.Expr {
			return ir.Apply(c.op, ir.Load(x, dims(0), nil), ir.Load(x, dims(1), nil))
		})
		have := run(t, b, Options{}, ints(c.t, []int{2}, c.a, c.b))
		assert.Equal(t, []int64{c.want}, have.I, "%s %s %d %d", c.op, c.t, c.a, c.b)
	}
}

func TestCasts(t *testing.T) {
	cast := func(in *Tensor, to ir.DType, opts Options) *Tensor {
		b := build()
		x := b.in("x", in.Type, dims(int64(in.Len()))...)
		b.out(dims(int64(in.Len())), func(at []*ir.Expr) *ir.Expr { return ir.Cast(ir.Load(x, at, nil), to) })
		return run(t, b, opts, in)
	}
	data := vector(-1.9, 2.9, 300, -300, nan, inf, -inf, 0)
	assert.Equal(t, []int64{-1, 2, 127, -128, 0, 127, -128, 0}, cast(data, ir.I8, Options{}).I)
	assert.Equal(t, []int64{0, 2, 255, 0, 0, 255, 0, 0}, cast(data, ir.U8, Options{}).I)
	assert.Equal(t, []int64{1, 1, 1, 1, 1, 1, 1, 0}, cast(data, ir.Bool, Options{}).I)
	assert.Equal(t, int64(math.MaxInt64), cast(vector(inf), ir.I64, Options{}).I[0])
	assert.Equal(t, []int64{-1, 44, 1}, cast(ints(ir.I32, []int{3}, 255, 300, 1), ir.I8, Options{}).I)
	assert.Equal(t, []int64{1, 1, 0}, cast(ints(ir.I32, []int{3}, 256, -1, 0), ir.Bool, Options{}).I)
	same(t, floats(ir.BF16, []int{1}, 0x1.02p8), cast(vector(257.5), ir.BF16, Options{}))
	// 2^24+1 in f32, rounded once from the integer.
	same(t, vector(1<<24), cast(ints(ir.I64, []int{1}, 1<<24+1), ir.F32, Options{Mode: Strict}))
}

func TestModesRoundDifferently(t *testing.T) {
	sum3 := func(mode Mode) *Tensor {
		b := build()
		x := b.in("x", ir.BF16, dims(3)...)
		load := func(i int64) *ir.Expr { return ir.Load(x, dims(i), nil) }
		b.out(nil, func([]*ir.Expr) *ir.Expr {
			return ir.Apply(ir.OpAdd, ir.Apply(ir.OpAdd, load(0), load(1)), load(2))
		})
		return run(t, b, Options{Mode: mode}, floats(ir.BF16, []int{3}, 256, 1, 1))
	}
	assert.Equal(t, 258.0, sum3(Exact).F[0])
	assert.Equal(t, 256.0, sum3(Strict).F[0], "256 + 1 is 256 in bf16, twice")
}

// reduction is y = op over [r: n where pred] of x[r].
func reduction(op ir.Monoid, t ir.DType, n int64, where func(r *ir.Expr) *ir.Expr) builder {
	b := build()
	x := b.in("x", t, dims(n)...)
	r := b.NewRange("r", ir.IntConst(n))
	reduce := &ir.Reduction{Op: op, Ranges: []*ir.Range{r}}
	if where != nil {
		reduce.Where = where(r.At())
	}
	b.out(nil, func([]*ir.Expr) *ir.Expr { return ir.Reduce(reduce, ir.Load(x, []*ir.Expr{r.At()}, nil)) })
	return b
}

func TestReductions(t *testing.T) {
	cases := []struct {
		op     ir.Monoid
		in     []float64
		want   float64
		wantAt int64
	}{
		{op: ir.Sum, in: []float64{1, 2, 3.5}, want: 6.5},
		{op: ir.Sum, in: []float64{}, want: 0},
		{op: ir.Prod, in: []float64{2, -3}, want: -6},
		{op: ir.Prod, in: []float64{}, want: 1},
		{op: ir.Max, in: []float64{1, nan, inf}, want: nan},
		{op: ir.Max, in: []float64{-3, -2}, want: -2},
		{op: ir.Max, in: []float64{}, want: -inf},
		{op: ir.Min, in: []float64{inf, nan}, want: nan},
		{op: ir.Min, in: []float64{}, want: inf},
		{op: ir.ArgMax, in: []float64{1, 5, 5}, wantAt: 1},
		{op: ir.ArgMax, in: []float64{1, nan, 9, nan}, wantAt: 1},
		{op: ir.ArgMax, in: []float64{-inf, -inf}, wantAt: 0},
		{op: ir.ArgMin, in: []float64{1, 0, 0}, wantAt: 1},
		{op: ir.ArgMin, in: []float64{}, wantAt: 0},
	}
	for _, c := range cases {
		for _, mode := range []Mode{Exact, Strict} {
			have := run(t, reduction(c.op, ir.F32, int64(len(c.in)), nil), Options{Mode: mode}, vector(c.in...))
			if c.op.IsArg() {
				assert.Equal(t, c.wantAt, have.I[0], "%s %v", c.op, c.in)
			} else {
				assert.Equal(t, bits(c.want), bits(have.F[0]), "%s %v", c.op, c.in)
			}
		}
	}
}

func TestIntegerReductions(t *testing.T) {
	have := run(t, reduction(ir.Sum, ir.I8, 3, nil), Options{}, ints(ir.I8, []int{3}, 100, 100, 100))
	same(t, ints(ir.I64, []int{}, 300), have)
	have = run(t, reduction(ir.Max, ir.U8, 0, nil), Options{}, New(ir.U8, 0))
	assert.Equal(t, []int64{0}, have.I)
	have = run(t, reduction(ir.Min, ir.I16, 0, nil), Options{}, New(ir.I16, 0))
	assert.Equal(t, []int64{32767}, have.I)
	bools := ints(ir.Bool, []int{3}, 0, 1, 0)
	assert.Equal(t, []int64{1}, run(t, reduction(ir.Any, ir.Bool, 3, nil), Options{}, bools).I)
	assert.Equal(t, []int64{0}, run(t, reduction(ir.All, ir.Bool, 3, nil), Options{}, bools).I)
	assert.Equal(t, []int64{1}, run(t, reduction(ir.Sum, ir.Bool, 3, nil), Options{}, bools).I)
	assert.Equal(t, []int64{1}, run(t, reduction(ir.ArgMax, ir.Bool, 3, nil), Options{}, bools).I)
}

func TestPredicate(t *testing.T) {
	odd := func(r *ir.Expr) *ir.Expr {
		return ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, r, ir.IntConst(2)), ir.IntConst(1))
	}
	in := vector(100, 1, 100, 7, 100)
	assert.Equal(t, 8.0, run(t, reduction(ir.Sum, ir.F32, 5, odd), Options{}, in).F[0])
	best := run(t, reduction(ir.ArgMax, ir.F32, 5, odd), Options{}, in)
	assert.Equal(t, int64(3), best.I[0], "positions count all points")
	assert.Equal(t, -inf, run(t, reduction(ir.Max, ir.F32, 1, odd), Options{}, vector(3)).F[0])
}

// Argmax over two ranges gives the row-major position.
func TestArgOverTwoRanges(t *testing.T) {
	b := build()
	x := b.in("x", ir.F32, dims(2, 3)...)
	r := b.NewAxes(dims(2, 3))
	b.out(nil, func([]*ir.Expr) *ir.Expr {
		return ir.Reduce(&ir.Reduction{Op: ir.ArgMax, Ranges: r}, ir.Load(x, ir.Indices(r), nil))
	})
	assert.Equal(t, []int64{4}, run(t, b, Options{}, floats(ir.F32, []int{2, 3}, 0, 1, 2, 3, 9, 9)).I)
}

func TestReadsOutside(t *testing.T) {
	shifted := func(fill *ir.Expr) builder {
		b := build("N")
		x := b.in("x", ir.F32, ir.Sym("N"))
		b.out([]*ir.Expr{ir.Sym("N")}, func(at []*ir.Expr) *ir.Expr {
			return ir.Load(x, []*ir.Expr{ir.Apply(ir.OpSub, at[0], ir.IntConst(1))}, fill)
		})
		return b
	}
	same(t, vector(0, 1, 2), run(t, shifted(ir.Num(ir.F32, 0)), Options{}, vector(1, 2, 3)))
	same(t, vector(-inf, 1, 2), run(t, shifted(ir.Num(ir.F32, -inf)), Options{}, vector(1, 2, 3)))
	_, err := Run(shifted(nil).Graph, []*Tensor{vector(1, 2)}, Options{})
	assert.EqualError(t, err, "value y: read outside x, which has no fill")
	_, err = Sample(shifted(nil).Graph, []*Tensor{vector(1, 2)}, []Point{{0, []int{0}}}, Options{})
	assert.EqualError(t, err, "read outside x, which has no fill")
}

// A select reads only the branch it takes.
func TestSelectIsLazy(t *testing.T) {
	b := build()
	x, y := b.in("x", ir.F32, dims(2)...), b.in("z", ir.F32, dims(1)...)
	b.out(dims(3), func(at []*ir.Expr) *ir.Expr {
		tail := ir.Load(y, []*ir.Expr{ir.Apply(ir.OpSub, at[0], ir.IntConst(2))}, nil)
		return ir.Where(ir.Apply(ir.OpLt, at[0], ir.IntConst(2)), ir.Load(x, at, nil), tail)
	})
	same(t, vector(1, 2, 3), run(t, b, Options{}, vector(1, 2), vector(3)))
}

func TestGatherAndRandom(t *testing.T) {
	b := build()
	table, idx := b.in("table", ir.F32, dims(3, 2)...), b.in("idx", ir.I32, dims(2)...)
	b.out(dims(2, 2), func(at []*ir.Expr) *ir.Expr {
		row := ir.Cast(ir.Load(idx, at[:1], nil), ir.Index)
		return ir.Load(table, []*ir.Expr{row, at[1]}, ir.Num(ir.F32, -1))
	})
	have := run(t, b, Options{}, floats(ir.F32, []int{3, 2}, 0, 1, 2, 3, 4, 5), ints(ir.I32, []int{2}, 2, 7))
	same(t, floats(ir.F32, []int{2, 2}, 4, 5, -1, -1), have)

	b = build()
	b.out(dims(5), func(at []*ir.Expr) *ir.Expr { return ir.Random(ir.IntNum(ir.I64, 42), at[0]) })
	have = run(t, b, Options{})
	for i, v := range have.I {
		assert.Equal(t, int64(ir.RandomBits(42, uint64(i))), v)
	}
}

func TestMemoryLimit(t *testing.T) {
	b := build("N")
	x := b.in("x", ir.F32, ir.Sym("N"))
	b.out([]*ir.Expr{ir.Sym("N"), ir.Sym("N")}, func(at []*ir.Expr) *ir.Expr { return ir.Load(x, at[:1], nil) })
	_, err := Run(b.Graph, []*Tensor{vector(1, 2, 3, 4)}, Options{MaxBytes: 100})
	assert.ErrorContains(t, err, "value y: values need 128 bytes, the limit is 100")
}
