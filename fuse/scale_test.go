package fuse

import (
	"fmt"
	goruntime "runtime"
	"strings"
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

// textGraph returns the graph of a program that repeats its line, and what of its
// parameters and results names {i}, for each i below n; {next} is i+1.
func textGraph(t testing.TB, n int, params, results, first, line, last string) *ir.Graph {
	t.Helper()
	return parse(t, textProgram(n, params, results, first, line, last))
}

// textProgram is the text that textGraph parses.
func textProgram(n int, params, results, first, line, last string) string {
	return fmt.Sprintf("graph large(%s) -> (%s) {\n%s%s\n%s}\n",
		repeatText(n, params, ", "), repeatText(n, results, ", "), first, repeatText(n, line, "\n"), last)
}

// repeatText is a format that names {i} once for each i below n; one that does not is left alone.
func repeatText(n int, format, between string) string {
	if !strings.Contains(format, "{i}") {
		return format
	}
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.NewReplacer("{i}", fmt.Sprint(i), "{next}", fmt.Sprint(i+1)).Replace(format)
	}
	return strings.Join(parts, between)
}

// built makes a graph of n values by next, each of those before it.
func built(next func(g *ir.Graph, i int, values []*ir.Value) *ir.Value) func(testing.TB, int) *ir.Graph {
	return func(_ testing.TB, n int) *ir.Graph { return largeGraph(n, next) }
}

// largeGraphs make graphs of about n values.
var largeGraphs = []struct {
	name string
	make func(t testing.TB, n int) *ir.Graph
}{
	{"a chain of additions", built(func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		return pointwise(g, ir.OpAdd, v[i], v[0])
	})},
	{"a ladder", built(func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		return pointwise(g, ir.OpMul, v[i], v[max(0, i-1)])
	})},
	{"sums and pointwise values", built(func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		if i%10 == 9 {
			return normed(g, ir.Sum, v[i])
		}
		return pointwise(g, ir.OpMax, v[i], v[i/10*10])
	})},
	{"transposed every few steps", built(func(g *ir.Graph, i int, v []*ir.Value) *ir.Value {
		if i%7 == 6 {
			axes := g.NewAxes(v[i].Shape())
			at := []*ir.Expr{axes[1].At(), axes[0].At()}
			return g.Define("t", axes, ir.Apply(ir.OpTanh, ir.Load(v[i], at, ir.Num(ir.F32, 0))), ir.Origin{})
		}
		return pointwise(g, ir.OpAdd, v[i], v[i/7*7])
	})},
	{"reductions over one axis", func(_ testing.TB, n int) *ir.Graph {
		return largeGraph(n/2, func(g *ir.Graph, i int, v []*ir.Value) *ir.Value { return normed(g, ir.Max, v[i]) })
	}},
	{"layers of a network", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/12, "w{i}: bf16[256, 256], b{i}: bf16[256], s{i}: bf16[256], x{i}: bf16[N, 256]", "y: bf16[N, 256]",
			"    v0 = x0\n", "    v{next} = x{i} + rms_norm(gelu(v{i} @ w{i} + b{i}), s{i})",
			fmt.Sprintf("    y = v%d\n", n/12))
	}},
	{"row programs with common weights", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/13, "x: f32[N, M], g: f32[M], b: f32[M]", "y: f32[N, M]",
			"    v0 = x\n", "    v{next} = softmax(layer_norm(v{i}, g, b))", fmt.Sprintf("    y = v%d\n", n/13))
	}},
	{"many small ones", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/4, "p{i}: f32[1024], d{i}: f32[1024]", "q{i}: f32[1024]",
			"", "    m{i} = d{i} * 0.9 + p{i}\n    q{i} = exp(m{i}) - p{i}", "")
	}},
	{"many means, each in two steps", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/4, "x{i}: f32[N, M]", "y{i}: f32[]", "", "    y{i} = mean(exp(x{i}))", "")
	}},
	{"means over either axis", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/6, "x: f32[N, M]", "y: f32[N, M]", "    v0 = x\n",
			"    a{i} = v{i} - mean(v{i}, axis=0)\n    v{next} = a{i} - mean(a{i}, axis=1, keep=true)", fmt.Sprintf("    y = v%d\n", n/6))
	}},
	{"many sizes", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/2, "x{i}: f32[N{i}]", "y{i}: f32[N{i}]", "", "    y{i} = x{i} * 2", "")
	}},
	{"many readers of one value", func(t testing.TB, n int) *ir.Graph {
		return textGraph(t, n/2, "x: f32[64, 1024]", "y{i}: f32[64]",
			"    e = exp(x)\n", "    y{i} = sum(e * {i}, axis=1)", "")
	}},
	{"gradients of a deep network", func(t testing.TB, n int) *ir.Graph {
		const valuesOfLayer = 100 // about, forward and backward
		layers := max(2, n/valuesOfLayer)
		weights := repeatText(layers, "up{i}: bf16[512, 1024], down{i}: bf16[1024, 512]", ", ")
		loss := textProgram(layers, "x0: bf16[N, 512], "+weights, "loss: f32[]", "",
			"    x{next} = x{i} + gelu(rms_norm(x{i}) @ up{i}) @ down{i}", fmt.Sprintf("    loss = mean(f32(x%d))\n", layers))
		gradient := "graph gradient = grad(large, wrt=[" + repeatText(layers, "up{i}, down{i}", ", ") + "])\n"
		return parseGraph(t, loss+gradient, "gradient")
	}},
}

// TestPlanningIsLinear notices work that grows with the square of a graph: four times as
// many values may take eight times as long, as they do not fit into caches, where such work takes sixteen. A run that other
// processes disturb is made again, and where the system tells, what counts is this thread's time.
func TestPlanningIsLinear(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	values := 300
	if inFull() {
		values = 2_500
	}
	for _, c := range largeGraphs {
		t.Run(c.name, func(t *testing.T) {
			small, large := c.make(t, values), c.make(t, 4*values)
			took := func(g *ir.Graph) time.Duration {
				goruntime.GC()
				goruntime.LockOSThread()
				defer goruntime.UnlockOSThread()
				start := processorTime(t)
				_, err := Plan(g, Options{})
				require.NoError(t, err)
				return processorTime(t) - start
			}
			took(small) // first use of tables
			var s, l time.Duration
			for range 4 {
				s, l = took(small), took(large)
				if l < 8*s {
					break
				}
			}
			t.Logf("%d values in %v, %d in %v", len(small.Values), s, len(large.Values), l)
			assert.Less(t, l, 8*s)
			assert.Less(t, l, 15*time.Second)
		})
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, c := range largeGraphs {
		for _, n := range []int{100, 2_500, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", c.name, n), func(b *testing.B) {
				g := c.make(b, n)
				for b.Loop() {
					_, err := Plan(g, Options{})
					require.NoError(b, err)
				}
			})
		}
	}
}
