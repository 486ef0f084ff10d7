package cpu

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/ir/interp/plantest"
	"github.com/fusec/fusec/ir/num"
)

// pointwise is the plan of y[i, j] = f(x[i, j]).
func pointwise(t ir.DType, f func(x *ir.Expr) *ir.Expr) *ir.Plan {
	g := ir.NewGraph("pointwise")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	x := g.Input("x", t, []*ir.Expr{ir.Sym("N"), ir.Sym("M")}, diag.Span{})
	axes := g.NewAxes(x.Shape())
	body := ir.Cast(f(ir.Cast(ir.Load(x, ir.Indices(axes), nil), t.Info().Compute)), t)
	g.Output("y", g.Define("y", axes, body, ir.Origin{}), diag.Span{})
	return plantest.Unfused(g)
}

// gelu is 0.5 x (1 + erf(x / sqrt 2)) + x.
func gelu(x *ir.Expr) *ir.Expr {
	n := func(v float64) *ir.Expr { return ir.Num(x.Type, v) }
	erf := ir.Apply(ir.OpErf, ir.Apply(ir.OpMul, x, n(math.Sqrt2/2)))
	half := ir.Apply(ir.OpMul, ir.Apply(ir.OpMul, x, n(0.5)), ir.Apply(ir.OpAdd, erf, n(1)))
	return ir.Apply(ir.OpAdd, half, x)
}

func swiglu(x *ir.Expr) *ir.Expr {
	one := ir.Num(x.Type, 1)
	return ir.Apply(ir.OpMul, x, ir.Apply(ir.OpTanh, ir.Apply(ir.OpDiv, x, ir.Apply(ir.OpAdd, one,
		ir.Apply(ir.OpExp, ir.Apply(ir.OpNeg, x))))))
}

func matmul() *ir.Plan {
	g := ir.NewGraph("matmul")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	n, m := ir.Sym("N"), ir.Sym("M")
	a := g.Input("a", ir.F32, []*ir.Expr{n, m}, diag.Span{})
	b := g.Input("b", ir.F32, []*ir.Expr{m, m}, diag.Span{})
	axes, r := g.NewAxes([]*ir.Expr{n, m}), g.NewRange("k", m)
	product := ir.Apply(ir.OpMul, ir.Load(a, []*ir.Expr{axes[0].At(), r.At()}, nil),
		ir.Load(b, []*ir.Expr{r.At(), axes[1].At()}, nil))
	sum := ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{r}}, product)
	g.Output("y", g.Define("y", axes, sum, ir.Origin{}), diag.Span{})
	return plantest.Unfused(g)
}

// benchBuffers are a plan's inputs, waves, and its results.
func benchBuffers(p *ir.Plan, symbols map[string]int64) (out [][]byte) {
	for i, buf := range p.Buffers {
		if buf.Kind == ir.TempBuffer {
			continue
		}
		shape := make([]int, len(buf.Shape))
		for d, e := range buf.Shape {
			v, _ := ir.EvalSize(e, symbols)
			shape[d] = int(v)
		}
		x := interp.New(buf.Type, shape...)
		if i < len(p.Graph.Inputs) {
			x = fillWith(x, wave)
		}
		out = append(out, x.Bytes())
	}
	return out
}

func bench(b *testing.B, p *ir.Plan, n, m int, threads int) {
	symbols := map[string]int64{"N": int64(n), "M": int64(m)}
	buffers := benchBuffers(p, symbols)
	run := New(p, Options{Threads: threads})
	for b.Loop() {
		require.NoError(b, run.Run(context.Background(), symbols, buffers))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*m), "ns/elem")
}

// loop times a plain Go function over the same sizes.
func loop(b *testing.B, n, m int, f func(y, x []float32)) {
	x, y := make([]float32, n*m), make([]float32, n*m)
	for i := range x {
		x[i] = float32(wave(i))
	}
	for b.Loop() {
		f(y, x)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n*m), "ns/elem")
}

const benchSize = 4096

func BenchmarkGelu(b *testing.B) {
	b.Run("engine", func(b *testing.B) { bench(b, pointwise(ir.F32, gelu), benchSize, benchSize, 1) })
	b.Run("engine-all", func(b *testing.B) { bench(b, pointwise(ir.F32, gelu), benchSize, benchSize, 0) })
	b.Run("engine-bf16", func(b *testing.B) { bench(b, pointwise(ir.BF16, gelu), benchSize, benchSize, 1) })
	b.Run("loops", func(b *testing.B) {
		t := make([]float32, benchSize*benchSize)
		loop(b, benchSize, benchSize, func(y, x []float32) {
			for i := range x {
				t[i] = x[i] * (math.Sqrt2 / 2)
			}
			for i := range x {
				t[i] = float32(math.Erf(float64(t[i])))
			}
			for i := range x {
				t[i] += 1
			}
			for i := range x {
				y[i] = 0.5 * x[i]
			}
			for i := range x {
				y[i] *= t[i]
			}
			for i := range x {
				y[i] += x[i]
			}
		})
	})
}

func BenchmarkAffine(b *testing.B) {
	f := func(x *ir.Expr) *ir.Expr {
		n := func(v float64) *ir.Expr { return ir.Num(x.Type, v) }
		return ir.Apply(ir.OpMax, ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, x, n(3)), n(1)), n(0))
	}
	b.Run("engine", func(b *testing.B) { bench(b, pointwise(ir.F32, f), benchSize, benchSize, 1) })
	b.Run("loops", func(b *testing.B) {
		loop(b, benchSize, benchSize, func(y, x []float32) {
			for i := range x {
				y[i] = x[i] * 3
			}
			for i := range y {
				y[i] += 1
			}
			for i := range y {
				y[i] = max(y[i], 0)
			}
		})
	})
}

func BenchmarkSoftmax(b *testing.B) {
	b.Run("engine", func(b *testing.B) { bench(b, plantest.Softmax(ir.F32), benchSize, benchSize, 1) })
	b.Run("engine-all", func(b *testing.B) { bench(b, plantest.Softmax(ir.F32), benchSize, benchSize, 0) })
	b.Run("loops", func(b *testing.B) {
		loop(b, benchSize, benchSize, func(y, x []float32) {
			for r := 0; r < len(x); r += benchSize {
				x, y := x[r:r+benchSize], y[r:r+benchSize]
				top, sum := float32(math.Inf(-1)), float32(0)
				for _, v := range x {
					top = max(top, v)
				}
				for i, v := range x {
					y[i] = float32(math.Exp(float64(v - top)))
				}
				for _, v := range y {
					sum += v
				}
				for i := range y {
					y[i] /= sum
				}
			}
		})
	})
}

func BenchmarkNormBF16(b *testing.B) {
	b.Run("engine", func(b *testing.B) { bench(b, plantest.Norm(ir.BF16), benchSize, benchSize, 1) })
	b.Run("engine-all", func(b *testing.B) { bench(b, plantest.Norm(ir.BF16), benchSize, benchSize, 0) })
	b.Run("loops", func(b *testing.B) {
		loop(b, benchSize, benchSize, func(y, x []float32) {
			in, out, d := make([]byte, 2*benchSize), make([]byte, 2*benchSize), make([]float32, benchSize)
			for r := 0; r < len(x); r += benchSize {
				num.ToFloat32s(d, ir.BF16, in)
				mean, squares := float32(0), float32(0)
				for _, v := range d {
					mean += v
				}
				mean /= benchSize
				for i := range d {
					d[i] -= mean
				}
				for _, v := range d {
					squares += v * v
				}
				scale := float32(1 / math.Sqrt(float64(squares/benchSize+1e-5)))
				for i := range d {
					d[i] *= scale
				}
				num.FromFloat32s(out, ir.BF16, d)
			}
		})
	})
}

func BenchmarkTranspose(b *testing.B) {
	const n = 1024
	g := ir.NewGraph("transpose")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	shape := []*ir.Expr{ir.Sym("N"), ir.Sym("M")}
	x := g.Input("x", ir.F32, shape, diag.Span{})
	axes := g.NewAxes(shape)
	body := ir.Load(x, []*ir.Expr{axes[1].At(), axes[0].At()}, nil)
	g.Output("y", g.Define("y", axes, body, ir.Origin{}), diag.Span{})
	b.Run("engine", func(b *testing.B) { bench(b, plantest.Unfused(g), n, n, 1) })
	b.Run("loops", func(b *testing.B) {
		loop(b, n, n, func(y, x []float32) {
			for i := range n {
				for j := range n {
					y[i*n+j] = x[j*n+i]
				}
			}
		})
	})
}

// A run that is nearly all overhead.
func BenchmarkSmall(b *testing.B) {
	b.Run("engine", func(b *testing.B) { bench(b, plantest.Softmax(ir.F32), 4, 64, 0) })
}

func BenchmarkMatmul(b *testing.B) {
	const n, m = 128, 512
	b.Run("engine", func(b *testing.B) { bench(b, matmul(), n, m, 1) })
	b.Run("loops", func(b *testing.B) {
		w := make([]float32, m*m)
		loop(b, n, m, func(y, x []float32) {
			for i := range n {
				out := y[i*m : (i+1)*m]
				clear(out)
				for k := range m {
					a, row := x[i*m+k], w[k*m:(k+1)*m]
					for j := range out {
						out[j] += a * row[j]
					}
				}
			}
		})
	})
}

func BenchmarkSwiglu(b *testing.B) {
	b.Run("engine", func(b *testing.B) { bench(b, pointwise(ir.F32, swiglu), benchSize, benchSize, 1) })
	b.Run("interp", func(b *testing.B) {
		p := pointwise(ir.F32, swiglu)
		x := fillWith(interp.New(ir.F32, 64, 64), wave)
		for b.Loop() {
			_, err := interp.Run(p.Graph, []*interp.Tensor{x}, interp.Options{})
			require.NoError(b, err)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(64*64), "ns/elem")
	})
}
