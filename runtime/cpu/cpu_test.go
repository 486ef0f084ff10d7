package cpu

import (
	"context"
	"fmt"
	"math"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/ir/interp/plantest"
)

// run executes a plan and decodes its outputs.
func run(t require.TestingT, p *ir.Plan, in []*interp.Tensor, threads int) []*interp.Tensor {
	shapes := make([][]int, len(in))
	var buffers [][]byte
	for i, x := range in {
		shapes[i] = x.Shape
		buffers = append(buffers, x.Bytes())
	}
	symbols, err := ir.BindGraph(p.Graph, shapes)
	require.NoError(t, err)
	var out []*interp.Tensor
	for _, b := range p.Buffers {
		if b.Kind == ir.OutputBuffer {
			shape := []int{}
			for _, e := range b.Shape {
				n, _ := ir.EvalSize(e, symbols)
				shape = append(shape, int(n))
			}
			o := interp.New(b.Type, shape...)
			out, buffers = append(out, o), append(buffers, make([]byte, o.Len()*b.Type.Size()))
		}
	}
	require.NoError(t, New(p, Options{Threads: threads}).Run(context.Background(), symbols, buffers))
	for i, o := range out {
		out[i] = interp.FromBytes(o.Type, o.Shape, buffers[len(in)+i])
	}
	return out
}

// near asserts that have is want up to a few roundings of its type, or of f32
// for wider ones, relative to scale.
func near(t require.TestingT, want, have *interp.Tensor, scale float64, msg string) {
	require.Equal(t, want.Shape, have.Shape)
	require.Len(t, have.I, len(want.I))
	for i, w := range want.I {
		require.Equal(t, w, have.I[i], "%s: element %d", msg, i)
	}
	eps := want.Type.Info().Epsilon
	if want.Type == ir.F64 {
		eps *= 64 // sums in another order
	} else {
		eps += 8 * ir.F32.Info().Epsilon
	}
	for i, w := range want.F {
		h := have.F[i]
		ok := w == h || w != w && h != h || math.Abs(w-h) <= 2*eps*(math.Abs(w)+scale)
		require.True(t, ok, "%s: element %d: want %v, have %v", msg, i, w, h)
	}
}

func fillWith(x *interp.Tensor, f func(i int) float64) *interp.Tensor {
	for i := range x.F {
		x.F[i] = f(i)
	}
	for i := range x.I {
		x.I[i] = int64(f(i))
	}
	return interp.FromBytes(x.Type, x.Shape, x.Bytes())
}

func wave(i int) float64 { return 3 * math.Sin(float64(i)*0.7) * math.Cos(float64(i)*0.013) }

// Rows shorter and longer than a tile, with each variant and any number of cores.
func TestRowKernels(t *testing.T) {
	plans := map[string]func(ir.DType) *ir.Plan{"softmax": plantest.Softmax, "norm": plantest.Norm}
	shapes := [][]int{{3, 1}, {2, 7}, {70, 33}, {5, 1023}, {4, 1025}, {3, 3000}, {0, 4}, {4, 0}, {1, 200_000}}
	dtypes := []ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16, ir.F8E4M3}
	if testing.Short() {
		dtypes = dtypes[:2] // a register of each class
	}
	for name, plan := range plans {
		for _, dtype := range dtypes {
			for _, shape := range shapes {
				p := plan(dtype)
				x := fillWith(interp.New(dtype, shape...), wave)
				want, err := interp.RunPlan(p, []*interp.Tensor{x}, interp.PlanOptions{})
				require.NoError(t, err)
				variants := p.Kernels[0].Variants
				for n := range variants {
					only := *variants[n]
					only.When = nil
					p.Kernels[0].Variants = []*ir.Variant{&only}
					have := run(t, p, []*interp.Tensor{x}, 1)
					near(t, want[0], have[0], 1, fmt.Sprint(name, dtype, shape, n))
					assert.Equal(t, have, run(t, p, []*interp.Tensor{x}, 5), "the number of cores must not matter")
				}
			}
		}
	}
}

// A streamed sum sees rows that begin with, and are, nothing but -inf.
func TestStreamedInfinities(t *testing.T) {
	inf := math.Inf(1)
	x := fillWith(interp.New(ir.F32, 3, 2500), func(i int) float64 {
		if i < 2000 || i >= 5000 {
			return -inf
		}
		return wave(i)
	})
	p := plantest.Softmax(ir.F32)
	want, err := interp.RunPlan(p, []*interp.Tensor{x}, interp.PlanOptions{Force: map[string]int{"softmax": 2}})
	require.NoError(t, err)
	p.Kernels[0].Variants = p.Kernels[0].Variants[2:]
	near(t, want[0], run(t, p, []*interp.Tensor{x}, 2)[0], 0.1, "")
}

// each op row, over every dtype it takes, against the interpreter.
func TestEveryOp(t *testing.T) {
	for _, op := range ir.Ops() {
		for _, dtype := range ir.DTypes() {
			info := op.Info()
			if !info.On.Has(dtype.Info().Kind) || op == ir.OpCast || op == ir.OpSelect {
				continue
			}
			g := ir.NewGraph("op")
			const n = 1100
			x := g.Input("x", dtype, []*ir.Expr{ir.IntConst(n)}, diag.Span{})
			z := g.Input("z", dtype, []*ir.Expr{ir.IntConst(n)}, diag.Span{})
			axes := g.NewAxes(x.Shape())
			args := []*ir.Expr{ir.Load(x, ir.Indices(axes), nil), ir.Load(z, ir.Indices(axes), nil)}[:info.Arity]
			g.Output("y", g.Define("y", axes, ir.Apply(op, args...), ir.Origin{}), diag.Span{})
			special := []float64{0, 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, -2.25, 100, 7}
			in := []*interp.Tensor{
				fillWith(interp.New(dtype, n), func(i int) float64 {
					if i < 100 {
						return special[i%10]
					}
					return wave(i)
				}),
				fillWith(interp.New(dtype, n), func(i int) float64 {
					if i < 100 {
						return special[i/10]
					}
					return wave(i + 77)
				}),
			}[:2]
			want, err := interp.Run(g, in, interp.Options{})
			require.NoError(t, err)
			scale := 1e-6
			if op == ir.OpMod {
				scale = 1
			}
			near(t, want[0], run(t, plantest.Unfused(g), in, 2)[0], scale, fmt.Sprint(op, dtype))
		}
	}
}

func TestCasts(t *testing.T) {
	const n = 64
	for _, from := range ir.DTypes() {
		for _, to := range ir.DTypes() {
			g := ir.NewGraph("cast")
			x := g.Input("x", from, []*ir.Expr{ir.IntConst(n)}, diag.Span{})
			axes := g.NewAxes(x.Shape())
			body := ir.Cast(ir.Load(x, ir.Indices(axes), nil), to)
			g.Output("y", g.Define("y", axes, body, ir.Origin{}), diag.Span{})
			in := []*interp.Tensor{fillWith(interp.New(from, n), func(i int) float64 { return float64(i-32) * 12.75 })}
			want, err := interp.Run(g, in, interp.Options{})
			require.NoError(t, err)
			near(t, want[0], run(t, plantest.Unfused(g), in, 1)[0], 0, fmt.Sprint(from, to))
		}
	}
}

// Reductions over one or two axes of a cube, rows and columns in any order.
func TestReductions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]ir.DType{ir.F32, ir.F64, ir.I32, ir.Bool, ir.BF16}).Draw(t, "dtype")
		op := rapid.SampledFrom(ir.Monoids()).Draw(t, "op")
		if !op.Info().On.Has(dtype.Info().Kind) {
			t.Skipf("no %s of %s", op, dtype)
		}
		g := ir.NewGraph("reduce")
		shape := make([]int, 3)
		dims := make([]*ir.Expr, 3)
		for d := range shape {
			shape[d] = rapid.SampledFrom([]int{0, 1, 2, 5, 33, 130}).Draw(t, "dim")
			dims[d] = ir.IntConst(int64(shape[d]))
		}
		x := g.Input("x", dtype, dims, diag.Span{})
		all := g.NewAxes(dims)
		var rows, cols []*ir.Range
		for _, r := range all {
			if rapid.Bool().Draw(t, "reduced") {
				cols = append(cols, r)
			} else {
				rows = append(rows, r)
			}
		}
		reduce := &ir.Reduction{Op: op, Ranges: cols}
		switch where := rapid.IntRange(0, 2).Draw(t, "where"); {
		case where == 1:
			reduce.Where = ir.Apply(ir.OpLe, all[0].At(), all[2].At())
		case where == 2:
			odd := ir.Apply(ir.OpMod, ir.Apply(ir.OpAdd, all[1].At(), all[2].At()), ir.IntConst(2))
			reduce.Where = ir.Apply(ir.OpEq, odd, ir.IntConst(1))
		}
		body := ir.Reduce(reduce, ir.Load(x, ir.Indices(all), nil))
		g.Output("y", g.Define("y", rows, body, ir.Origin{}), diag.Span{})
		seed := rapid.IntRange(0, 1000).Draw(t, "seed")
		in := []*interp.Tensor{fillWith(interp.New(dtype, shape...), func(i int) float64 {
			if op == ir.Prod {
				return 1 + 0.01*wave(i+seed)
			}
			return math.Round(wave(i+seed)*4) / 4
		})}
		want, err := interp.Run(g, in, interp.Options{})
		require.NoError(t, err)
		p := plantest.Unfused(g)
		have := run(t, p, in, 1)
		near(t, want[0], have[0], 100, op.String())
		assert.Equal(t, have, run(t, p, in, 3))
	})
}

// Random unfused plans, fast and strict.
func TestRandomGraphs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.RandomGraph(t)
		p := plantest.Unfused(g)
		opts := interp.PlanOptions{}
		if rapid.Bool().Draw(t, "strict") {
			opts.Mode = interp.Strict
			for _, k := range p.Kernels {
				k.Numerics = ir.Strict
			}
		}
		size := rapid.SampledFrom([]int{1, 2, 5, 40})
		n, m := rapid.SampledFrom([]int{0, 1, 3, 50}).Draw(t, "n"), size.Draw(t, "m")
		seed := rapid.IntRange(0, 1000).Draw(t, "seed")
		var in []*interp.Tensor
		for i, v := range g.Inputs {
			in = append(in, fillWith(interp.New(v.Type, n, m), func(k int) float64 { return wave(k + seed + 100*i) }))
		}
		want, err := interp.RunPlan(p, in, opts)
		require.NoError(t, err)
		top := 1.0
		for _, o := range want {
			for _, v := range o.F {
				top = max(top, math.Abs(v))
			}
		}
		for i, have := range run(t, p, in, 2) {
			near(t, want[i], have, 4*top, g.Outputs[i].Name)
		}
	})
}

// Long sums keep the accuracy of f32, whichever way the lanes run.
func TestLongSums(t *testing.T) {
	const n, m = 100_000, 7
	for _, axis := range []int{0, 1} {
		g := ir.NewGraph("sum")
		shape := []int{n, m}
		if axis == 1 {
			shape = []int{m, n}
		}
		dims := []*ir.Expr{ir.IntConst(int64(shape[0])), ir.IntConst(int64(shape[1]))}
		x := g.Input("x", ir.F32, dims, diag.Span{})
		all := g.NewAxes(x.Shape())
		sum := ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: all[axis : axis+1]}, ir.Load(x, ir.Indices(all), nil))
		g.Output("y", g.Define("y", all[1-axis:2-axis], sum, ir.Origin{}), diag.Span{})
		in := fillWith(interp.New(ir.F32, shape...), func(i int) float64 { return 1 + wave(i)/8 })
		want, err := interp.Run(g, []*interp.Tensor{in}, interp.Options{})
		require.NoError(t, err)
		for i, have := range run(t, plantest.Unfused(g), []*interp.Tensor{in}, 2)[0].F {
			assert.InEpsilon(t, want[0].F[i], have, 1e-6, "axis %d", axis)
		}
	}
}

// A run ends soon after its context does, leaves no goroutine and says why.
func TestCancel(t *testing.T) {
	p := matmul()
	const n = 2048
	symbols := map[string]int64{"N": n, "M": n}
	buffers := [][]byte{make([]byte, 4*n*n), make([]byte, 4*n*n), make([]byte, 4*n*n)}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	before := goruntime.NumGoroutine()
	start := time.Now()
	assert.ErrorIs(t, New(p, Options{}).Run(ctx, symbols, buffers), context.DeadlineExceeded)
	assert.Less(t, time.Since(start), time.Second)
	assert.LessOrEqual(t, goruntime.NumGoroutine(), before+1, "the timer's goroutine may be ending")
}

// One program runs from many goroutines, at different sizes.
func TestConcurrentRuns(t *testing.T) {
	program := New(plantest.Softmax(ir.F32), Options{})
	var wg sync.WaitGroup
	for k := range 8 {
		wg.Go(func() {
			n, m := 3+k, 100*(k+1)
			x := fillWith(interp.New(ir.F32, n, m), wave)
			out := make([]byte, 4*n*m)
			symbols := map[string]int64{"N": int64(n), "M": int64(m)}
			assert.NoError(t, program.Run(context.Background(), symbols, [][]byte{x.Bytes(), out}))
			total := 0.0
			for _, v := range interp.FromBytes(ir.F32, []int{n, m}, out).F {
				total += v
			}
			assert.InDelta(t, float64(n), total, 1e-3)
		})
	}
	wg.Wait()
}

func TestBufferErrors(t *testing.T) {
	program := New(plantest.Softmax(ir.F32), Options{})
	symbols := map[string]int64{"N": 2, "M": 3}
	for want, buffers := range map[string][][]byte{
		"tensor x needs 24 bytes, found 23":                         {make([]byte, 23), make([]byte, 24)},
		"expected memory for y and those after it, found 1 buffers": {make([]byte, 24)},
		"expected 2 buffers, found 3":                               {make([]byte, 24), make([]byte, 24), nil},
	} {
		assert.EqualError(t, program.Run(context.Background(), symbols, buffers), want)
	}
	huge := map[string]int64{"N": 1 << 40, "M": 1 << 40}
	assert.ErrorContains(t, program.Run(context.Background(), huge, nil), "tensor x does not fit in memory")
}

// TestBuffersOfIdleKernels: what only kernels use that do not run takes no memory, and may be too large for any.
func TestBuffersOfIdleKernels(t *testing.T) {
	plan := plantest.Softmax(ir.F32)
	large := &ir.Buffer{Name: "large", Kind: ir.TempBuffer, Type: ir.F32, Shape: []*ir.Expr{ir.Sym("N"), ir.IntConst(1 << 61)}}
	other := *plan.Kernels[0]
	other.When = ir.Apply(ir.OpLt, ir.IntConst(2), ir.Sym("N"))
	other.Args = []*ir.Arg{{Buffer: large, Write: true}}
	plan.Buffers, plan.Kernels = append(plan.Buffers, large), append(plan.Kernels, &other)
	b, err := New(plan, Options{}).bind(map[string]int64{"N": 2, "M": 3})
	require.NoError(t, err)
	assert.Zero(t, b.memory)
	_, err = New(plan, Options{}).bind(map[string]int64{"N": 3, "M": 3})
	assert.ErrorContains(t, err, "tensor large does not fit in memory")
}
