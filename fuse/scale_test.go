package fuse

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// largeGraph returns a graph of n values; next makes each of those before it.
func largeGraph(n int, next func(g *ir.Graph, i int, values []*ir.Value) *ir.Value) *ir.Graph {
	g := ir.NewGraph("large")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	values := []*ir.Value{g.Input("x", ir.F32, []*ir.Expr{ir.Sym("N"), ir.Sym("M")}, diag.Span{})}
	for i := range n {
		values = append(values, next(g, i, values))
	}
	g.Output("y", values[len(values)-1], diag.Span{})
	return g
}

// pointwise defines a value over [N, M] from two others.
func pointwise(g *ir.Graph, o ir.Op, a, b *ir.Value) *ir.Value {
	axes := g.NewAxes(a.Shape())
	at := ir.Indices(axes)
	return g.Define("p", axes, ir.Apply(o, ir.Load(a, at, nil), ir.Load(b, at, nil)), ir.Origin{})
}

// normed defines a less the reduction of each of its rows.
func normed(g *ir.Graph, o ir.Monoid, a *ir.Value) *ir.Value {
	axes := g.NewAxes(a.Shape())
	r := g.NewRange("r", ir.Sym("M"))
	sum := ir.Reduce(&ir.Reduction{Op: o, Ranges: []*ir.Range{r}}, ir.Load(a, []*ir.Expr{axes[0].At(), r.At()}, nil))
	return g.Define("n", axes, ir.Apply(ir.OpSub, ir.Load(a, ir.Indices(axes), nil), sum), ir.Origin{})
}

var largeGraphs = []struct {
	name   string
	values int
	next   func(g *ir.Graph, i int, values []*ir.Value) *ir.Value
}{
	{"a chain of additions", 10_000, func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		return pointwise(g, ir.OpAdd, v[i], v[0])
	}},
	{"a ladder", 10_000, func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		return pointwise(g, ir.OpMul, v[i], v[max(0, i-1)])
	}},
	{"layers of sums and pointwise values", 2_000, func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		if i%10 == 9 {
			return normed(g, ir.Sum, v[i])
		}
		return pointwise(g, ir.OpMax, v[i], v[i/10*10])
	}},
	{"transposed every few steps", 2_000, func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		if i%7 == 6 {
			axes := g.NewAxes(v[i].Shape())
			at := []*ir.Expr{axes[1].At(), axes[0].At()}
			return g.Define("t", axes, ir.Apply(ir.OpTanh, ir.Load(v[i], at, ir.Num(ir.F32, 0))), ir.Origin{})
		}
		return pointwise(g, ir.OpAdd, v[i], v[i/7*7])
	}},
}

// TestLargeGraphsPlanInTime notices work that grows with the square of a graph:
// each of these plans in a few seconds at most, where such work takes minutes.
func TestLargeGraphsPlanInTime(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	for _, c := range largeGraphs {
		t.Run(c.name, func(t *testing.T) {
			g := largeGraph(c.values, c.next)
			start := time.Now()
			p, err := Plan(g, Options{})
			require.NoError(t, err)
			took := time.Since(start)
			t.Logf("%d kernels in %v", len(p.Kernels), took)
			assert.Less(t, took, 15*time.Second)
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range largeGraphs {
		for _, n := range []int{100, 1000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				g := largeGraph(n, c.next)
				for b.Loop() {
					_, err := Plan(g, Options{})
					require.NoError(b, err)
				}
			})
		}
	}
}
