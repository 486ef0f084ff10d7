package cpu

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp/plantest"
)

// productPlan is y = a @ b of [M, K] and [K, N]; each factor may be read transposed.
func productPlan(t ir.DType, left, right bool) *ir.Plan {
	g := ir.NewGraph("product")
	g.Symbols = []ir.Symbol{{Name: "M"}, {Name: "N"}, {Name: "K"}}
	m, n, k := ir.Sym("M"), ir.Sym("N"), ir.Sym("K")
	axes, r := g.NewAxes([]*ir.Expr{m, n}), g.NewRange("k", k)
	operand := func(name string, shape []*ir.Expr, at []*ir.Expr, transposed bool) *ir.Expr {
		if transposed {
			shape, at = []*ir.Expr{shape[1], shape[0]}, []*ir.Expr{at[1], at[0]}
		}
		return ir.Cast(ir.Load(g.Input(name, t, shape, diag.Span{}), at, nil), t.Info().Compute)
	}
	product := ir.Apply(ir.OpMul, operand("a", []*ir.Expr{m, k}, []*ir.Expr{axes[0].At(), r.At()}, left),
		operand("b", []*ir.Expr{k, n}, []*ir.Expr{r.At(), axes[1].At()}, right))
	sum := ir.Reduce(&ir.Reduction{Op: ir.Sum, Ranges: []*ir.Range{r}}, product)
	g.Output("y", g.Define("y", axes, ir.Cast(sum, t), ir.Origin{}), diag.Span{})
	return plantest.Unfused(g)
}

func benchProduct(b *testing.B, p *ir.Plan, m, n, k int64, threads int) {
	symbols := map[string]int64{"M": m, "N": n, "K": k}
	buffers := benchBuffers(p, symbols)
	run := New(p, Options{Threads: threads})
	best := time.Duration(math.MaxInt64)
	for b.Loop() {
		begun := time.Now()
		require.NoError(b, run.Run(context.Background(), symbols, buffers))
		best = min(best, time.Since(begun))
	}
	operations := 2 * float64(m*n*k)
	b.ReportMetric(operations*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GF/s")
	b.ReportMetric(operations/float64(best.Nanoseconds()), "best-GF/s") // what counts where other work is done as well
}

// BenchmarkProduct times matrix products of several sizes, layouts and types.
func BenchmarkProduct(b *testing.B) {
	for _, threads := range []int{1, 2} {
		for _, c := range []struct {
			name        string
			t           ir.DType
			left, right bool
			m, n, k     int64
		}{
			{"f32", ir.F32, false, false, 32, 32, 32},
			{"f32", ir.F32, false, false, 64, 64, 64},
			{"f32", ir.F32, false, false, 128, 128, 128},
			{"f32", ir.F32, false, false, 256, 256, 256},
			{"f32", ir.F32, false, false, 512, 512, 512},
			{"f32", ir.F32, false, false, 1024, 1024, 1024},
			{"f32", ir.F32, false, false, 2048, 2048, 2048},
			{"f32", ir.F32, false, false, 1023, 1025, 1021},
			{"f32 left transposed", ir.F32, true, false, 1024, 1024, 1024},
			{"f32 right transposed", ir.F32, false, true, 1024, 1024, 1024},
			{"bf16", ir.BF16, false, false, 1024, 1024, 1024},
			{"f16", ir.F16, false, false, 1024, 1024, 1024},
			{"f64", ir.F64, false, false, 1024, 1024, 1024},
		} {
			b.Run(fmt.Sprintf("%s %dx%dx%d on %d", c.name, c.m, c.n, c.k, threads), func(b *testing.B) {
				benchProduct(b, productPlan(c.t, c.left, c.right), c.m, c.n, c.k, threads)
			})
		}
	}
}
