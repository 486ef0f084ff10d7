package grad_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/grad"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// A program is a graph with the sizes it is tested at. Its float inputs are differentiated.
type program struct {
	name, text string
	sizes      []map[string]int64
	wholes     bool // inputs are small whole numbers: sums are exact in any order
	positive   bool // float inputs are above 0
}

// graph reads the only graph of a text.
func graph(t *testing.T, text string) *ir.Graph {
	f, err := parser.Parse("test.fuse", []byte(text), parser.Options{})
	require.NoError(t, err, text)
	g, err := f.Graph("")
	require.NoError(t, err)
	return g
}

// graphs reads the graphs of a text.
func graphs(t *testing.T, text string) map[string]*ir.Graph {
	f, err := parser.Parse("test.fuse", []byte(text), parser.Options{})
	require.NoError(t, err, text)
	out := map[string]*ir.Graph{}
	for _, g := range f.Graphs {
		out[g.Name] = g
	}
	return out
}

// differentiated is the gradient of a text by all of its float inputs.
func differentiated(t *testing.T, text string, delta bool) *ir.Graph {
	if !delta {
		g := graphs(t, text+"\ngraph gradient = grad(g)\n")["gradient"]
		require.NoError(t, ir.Verify(g), ir.Print(g))
		return g
	}
	g := graph(t, text)
	opts := grad.Options{Delta: true}
	for _, v := range g.Inputs {
		if v.Type.IsFloat() {
			opts.Wrt = append(opts.Wrt, v.Name)
		}
	}
	require.NoError(t, grad.Reverse(g, opts), text)
	require.NoError(t, ir.Verify(g), ir.Print(g))
	return g
}

// inputs draws the inputs of a graph, those of the same name alike for any graph.
func inputs(t *testing.T, g *ir.Graph, p program, sizes map[string]int64, seed uint64) []*interp.Tensor {
	var out []*interp.Tensor
	for _, v := range g.Inputs {
		rnd := rand.New(rand.NewPCG(seed, uint64(len(v.Name))<<8+uint64(v.Name[len(v.Name)-1])))
		var shape []int
		for _, e := range v.Shape() {
			n, ok := ir.EvalSize(e, sizes)
			require.True(t, ok)
			shape = append(shape, int(n))
		}
		x := interp.New(v.Type, shape...)
		for i := range x.F {
			x.F[i] = rnd.NormFloat64()
			if p.wholes {
				x.F[i] = float64(rnd.IntN(9) - 4)
			}
			if p.positive {
				x.F[i] = 0.2 + 0.7*rnd.Float64()
			}
		}
		for i := range x.I {
			x.I[i] = int64(rnd.IntN(8) - 1)
			if v.Type == ir.Bool {
				x.I[i] = int64(rnd.IntN(2))
			}
		}
		out = append(out, x)
	}
	return out
}

func run(t *testing.T, g *ir.Graph, in []*interp.Tensor) []*interp.Tensor {
	out, err := interp.Run(g, in, interp.Options{})
	require.NoError(t, err, ir.Print(g))
	return out
}

// checkDifferences compares gradients with central differences of the weighted sum of results.
func checkDifferences(t *testing.T, p program, sizes map[string]int64) {
	differences(t, graph(t, p.text), differentiated(t, p.text, false), p, sizes)
}

// checkSecond does so for the gradient of the gradient.
func checkSecond(t *testing.T, p program, sizes map[string]int64) {
	all := graphs(t, p.text+"\ngraph first = grad(g)\ngraph second = grad(first)\n")
	require.NoError(t, ir.Verify(all["second"]), ir.Print(all["second"]))
	differences(t, all["first"], all["second"], p, sizes)
}

func differences(t *testing.T, forward, backward *ir.Graph, p program, sizes map[string]int64) {
	in := inputs(t, backward, p, sizes, 7)
	weights := in[len(forward.Inputs):]
	total := func() float64 {
		sum, at := 0.0, 0
		for _, y := range run(t, forward, in[:len(forward.Inputs)]) {
			if y.F == nil {
				continue
			}
			for i, v := range y.F {
				w := 1.0
				if len(weights) > 0 {
					w = weights[at].F[i]
				}
				sum += v * w
			}
			at++
		}
		return sum
	}
	at := 0
	grads := run(t, backward, in)
	for i, v := range forward.Inputs {
		if !v.Type.IsFloat() {
			continue
		}
		got := make([]float64, in[i].Len()) // 0 for an input that has no gradient
		if at < len(grads) && backward.Outputs[at].Value.Origin == v.Origin {
			got = grads[at].F
			at++
		}
		for k := range in[i].F {
			old := in[i].F[k]
			h := 6e-6 * max(1, math.Abs(old))
			in[i].F[k] = old + h
			up := total()
			in[i].F[k] = old - h
			down := total()
			in[i].F[k] = old
			want := (up - down) / (2 * h)
			if !assert.InDelta(t, want, got[k], 2e-7*max(1, math.Abs(want)), "d_%s[%d] at %v\n%s", v.Name, k, sizes, ir.Print(backward)) {
				return
			}
		}
	}
	require.Equal(t, len(grads), at)
}

// checkDelta compares the solved form with the delta form, bit by bit.
func checkDelta(t *testing.T, p program, sizes map[string]int64) {
	solved, delta := differentiated(t, p.text, false), differentiated(t, p.text, true)
	in := inputs(t, solved, p, sizes, 11)
	a, b := run(t, solved, in), run(t, delta, in)
	for i := range a {
		for k := range a[i].F {
			if !assert.True(t, a[i].F[k] == b[i].F[k] || a[i].F[k] != a[i].F[k] && b[i].F[k] != b[i].F[k],
				"%s[%d] at %v: solved %v, delta %v\n%s\n%s", solved.Outputs[i].Name, k, sizes, a[i].F[k], b[i].F[k],
				ir.Print(solved), ir.Print(delta)) {
				return
			}
		}
	}
}

// sizesOf are the sizes that edges lie at: nothing, one, primes, and what groups do not divide.
func sizesOf(names string) []map[string]int64 {
	var out []map[string]int64
	for _, n := range []int64{0, 1, 2, 3, 5, 7, 12} {
		m := map[string]int64{}
		for i, name := range names {
			m[string(name)] = []int64{n, max(n-1, 0), n + 2}[i%3]
		}
		out = append(out, m)
	}
	return out
}

// rows are the rows of the table of adjoints of index functions.
var rows = []program{
	{name: "slice", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[i + 2]\n}", sizes: sizesOf("N")},
	{name: "pad", text: "graph g(x: f64[N]) -> (y: f64[N + 5]) {\n y[i] = x[i - 2]\n}", sizes: sizesOf("N")},
	{name: "stride", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[2 * i + 1]\n}", sizes: sizesOf("N")},
	{name: "flip", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[N - 1 - i]\n}", sizes: sizesOf("N")},
	{name: "roll", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[(i + 3) % N]\n}", sizes: sizesOf("N")},
	{name: "roll back", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[(1 - i) % N]\n}", sizes: sizesOf("N")},
	{name: "split index", text: "graph g(x: f64[N, 4]) -> (y: f64[4 * N]) {\n y[i] = x[i / 4, i % 4]\n}", sizes: sizesOf("N")},
	{name: "join index", text: "graph g(x: f64[4 * N]) -> (y: f64[N, 4]) {\n y[i, j] = x[i * 4 + j]\n}", sizes: sizesOf("N")},
	{name: "reshape", text: "graph g(x: f64[N, M, K]) -> (y: f64[M * K, N]) {\n y = reshape(x, M * K, N)\n}", sizes: sizesOf("NMK")},
	{name: "reshape many", text: "graph g(x: f64[N, M, 3]) -> (y: f64[3, N * M]) {\n y = transpose(reshape(x, N * M, 3))\n}", sizes: sizesOf("NM")},
	{name: "group", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[i / 3]\n}", sizes: sizesOf("N")},
	{name: "group of sizes", text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[N * M]) {\n y[i] = x[i / M] * z[i % M]\n}", sizes: sizesOf("NM")},
	{name: "residue", text: "graph g(x: f64[N]) -> (y: f64[N + 7]) {\n y[i] = x[i % 3]\n}", sizes: sizesOf("N")},
	{name: "residue with offset", text: "graph g(x: f64[N]) -> (y: f64[N + 7]) {\n y[i] = x[(i - 5) % 4]\n}", sizes: sizesOf("N")},
	{name: "constant place", text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[M]) {\n y[j] = x[2] * z[j]\n}", sizes: sizesOf("NM")},
	{name: "broadcast", text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[N, M]) {\n y[i, j] = x[i] * z[j]\n}", sizes: sizesOf("NM")},
	{name: "same terms", text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[N]) {\n y[i] = sum[j: M] x[i] + 0 * z[0]\n}", sizes: sizesOf("NM")},
	{name: "diagonal", text: "graph g(x: f64[N, N]) -> (y: f64[N]) {\n y[i] = x[i, i]\n}", sizes: sizesOf("N")},
	{name: "window", text: "graph g(x: f64[N], w: f64[3]) -> (y: f64[N]) {\n y[p] = sum[k: 3] w[k] * x[p + k - 1]\n}", sizes: sizesOf("N")},
	{name: "window with stride", text: "graph g(x: f64[N], w: f64[3]) -> (y: f64[N]) {\n y[p] = sum[k: 3] w[k] * x[2 * p + k - 1]\n}", sizes: sizesOf("N")},
	{name: "window with stride 3", text: "graph g(x: f64[N], w: f64[7]) -> (y: f64[N]) {\n y[p] = sum[k: 7] w[k] * x[3 * p + k - 2]\n}", sizes: sizesOf("N")},
	{name: "window with dilation", text: "graph g(x: f64[N], w: f64[3]) -> (y: f64[N]) {\n y[p] = sum[k: 3] w[k] * x[p + 2 * k - 1]\n}", sizes: sizesOf("N")},
	{name: "window with both", text: "graph g(x: f64[N], w: f64[3]) -> (y: f64[N]) {\n y[p] = sum[k: 3] w[k] * x[3 * p + 2 * k - 1]\n}", sizes: sizesOf("N")},
	{name: "window with a common factor", text: "graph g(x: f64[N], w: f64[3]) -> (y: f64[N]) {\n y[p] = sum[k: 3] w[k] * x[4 * p - 2 * k + 1]\n}", sizes: sizesOf("N")},
	{name: "edge pad", text: "graph g(x: f64[N]) -> (y: f64[N + 5]) {\n y = replicate_pad(x, 3, 2)\n}", sizes: sizesOf("N")[1:]},
	{name: "reflect pad", text: "graph g(x: f64[N + 3]) -> (y: f64[N + 8]) {\n y = reflect_pad(x, 3, 2)\n}", sizes: sizesOf("N")[1:]},
	{name: "circular pad", text: "graph g(x: f64[N]) -> (y: f64[N + 5]) {\n y = circular_pad(x, 3, 2)\n}", sizes: sizesOf("N")},
	{name: "choice of places", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[min(2 * i, N - i)] + x[max(i - 1, 3)]\n}", sizes: sizesOf("N")},
	{name: "product", text: "graph g(a: f64[N, K], b: f64[K, M]) -> (y: f64[N, M]) {\n y = a @ b\n}", sizes: sizesOf("NMK")},
	{name: "prefix sum", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y = cumsum(x)\n}", sizes: sizesOf("N")},
	{name: "gather", text: "graph g(x: f64[N, M], at: i32[K]) -> (y: f64[K, M]) {\n y = x[at]\n}", sizes: sizesOf("NMK")},
	{name: "scatter", text: "graph g(x: f64[N], at: i32[N]) -> (y: f64[5]) {\n y[v: 5] = sum[n: N where at[n] == v] x[n]\n}", sizes: sizesOf("N")},
	{name: "else", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[i] = x[i + 1] else 3\n}", sizes: sizesOf("N")},
	{name: "max of windows", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y[p] = max[k: 3] x[2 * p + k - 1] else -9\n}", sizes: sizesOf("N")},
	{name: "max of rows", text: "graph g(x: f64[N, M]) -> (y: f64[N]) {\n y = max(x, axis=-1)\n}", sizes: sizesOf("NM")},
	{name: "min of all", text: "graph g(x: f64[N, M]) -> (y: f64[]) {\n y = min(x)\n}", sizes: sizesOf("NM")},
	{name: "sort", text: "graph g(x: f64[N, M]) -> (y: f64[N, M]) {\n y = sort(x)\n}", sizes: sizesOf("NM")},
	{name: "channels in groups", text: "graph g(x: f64[N, 6, 5], w: f64[4, 3, 3]) -> (y: f64[N, 4, 5]) {\n y = conv1d(x, w, padding=1, groups=2)\n}", sizes: sizesOf("N")[:4]},
	{name: "concat", text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[N + M]) {\n y = concat(x, z)\n}", sizes: sizesOf("NM")},
	{name: "repeat and pad", text: "graph g(x: f64[N]) -> (y: f64[3 * N + 2]) {\n y = pad(repeat(x, 3), (1, 1), value=2)\n}", sizes: sizesOf("N")},
}

func TestRowsOfTheTable(t *testing.T) {
	for _, p := range rows {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, sizes := range p.sizes {
				whole := p
				whole.wholes = true
				checkDelta(t, whole, sizes)
				checkDifferences(t, p, sizes)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// values are programs of other derivatives than those of indices.
var values = []program{
	{name: "prod", text: "graph g(x: f64[N, M]) -> (y: f64[N]) {\n y = prod(x, axis=-1)\n}", sizes: sizesOf("NM")},
	{name: "cumprod", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y = cumprod(x)\n}", sizes: sizesOf("N")},
	{name: "prod of zeros", text: "graph g(x: f64[N, M]) -> (y: f64[N]) {\n y = prod(x * (x - 1), axis=-1)\n}", sizes: sizesOf("NM")[:5], wholes: true},
	{name: "cumprod of zeros", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y = cumprod(x) + cumprod(x, reverse=true, exclusive=true)\n}", sizes: sizesOf("N"), wholes: true},
	{name: "products of some", text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[N, M]) {\n y[i, j] = prod[k: N where (k + j) % 3 != i % 2] x[k] * x[0]\n}", sizes: sizesOf("NM")},
	{name: "products of windows", text: "graph g(x: f64[N], w: f64[3]) -> (y: f64[N]) {\n y[i] = prod[k: 3] w[k] * (x[2 * i + k - 1] else 2)\n}", sizes: sizesOf("N")},
	{name: "cummax", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y = cummax(x)\n}", sizes: sizesOf("N")},
	{name: "where", text: "graph g(x: f64[N], z: f64[N]) -> (y: f64[N]) {\n y = where(x > z, x * z, exp(z)) + x\n}", sizes: sizesOf("N")},
	{name: "guarded log", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y = where(x > 0, log(x) * x, 0) + where(x > 0, sqrt(x), x)\n}", sizes: sizesOf("N")},
	{name: "guarded value", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n z[i: N] = sum[k: 1] log(x[i + k])\n y = where(x > 0, z, 0)\n}", sizes: sizesOf("N")},
	{name: "shared", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n t = x * x\n y = t * t + t / (1 + t) + x\n}", sizes: sizesOf("N")},
	{name: "two results", text: "graph g(x: f64[N], z: f64[N]) -> (y: f64[N], s: f64[], n: i64[]) {\n y = x * z\n s = sum(y * y)\n n = argmax(x)\n}", sizes: sizesOf("N")},
	{name: "sum of squares about a mean", text: "graph g(x: f64[N, M]) -> (y: f64[N]) {\n y = var(x, axis=-1, correction=0)\n}", sizes: sizesOf("NM")[2:]},
	{name: "softmax", text: "graph g(x: f64[N, M]) -> (y: f64[N, M]) {\n y = softmax(x)\n}", sizes: sizesOf("NM")},
	{name: "layer norm", text: "graph g(x: f64[N, M], w: f64[M], b: f64[M]) -> (y: f64[N, M]) {\n y = layer_norm(x, w, b)\n}", sizes: sizesOf("NM")[2:]},
	{name: "attention", text: "graph g(q: f64[N, K], k: f64[M, K], v: f64[M, K]) -> (y: f64[N, K]) {\n y = attention(q, k, v, causal=true)\n}", sizes: sizesOf("NMK")[2:5]},
	{name: "topk", text: "graph g(x: f64[N, M + 2]) -> (y: f64[N, 2], at: i64[N, 2]) {\n y, at = topk(x, 2)\n}", sizes: sizesOf("NM")},
	{name: "dropout", text: "graph g(x: f64[N, M], seed: i64[]) -> (y: f64[N, M]) {\n y = dropout(x, 0.4, seed)\n}", sizes: sizesOf("NM")},
	{name: "convolution", text: "graph g(x: f64[N, 2, 7, 5], w: f64[3, 2, 3, 2]) -> (y: f64[N, 3, 4, 3]) {\n y = conv2d(x, w, stride=2, padding=1)\n}", sizes: sizesOf("N")[:3]},
	{name: "transposed convolution", text: "graph g(x: f64[N, 2, 5], w: f64[2, 3, 4]) -> (y: f64[N, 3, 12]) {\n y = conv_transpose1d(x, w, stride=2)\n}", sizes: sizesOf("N")[:3]},
	{name: "integer power", text: "graph g(x: f64[N]) -> (y: f64[N]) {\n y = x ** 2 + x ** 3 + 1 / x ** 2 + x ** 0\n}", sizes: sizesOf("N")},
}

func TestValues(t *testing.T) {
	for _, p := range values {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, sizes := range p.sizes {
				checkDifferences(t, p, sizes)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestOperations compares the table of derivatives with differences, an operation at a time.
func TestOperations(t *testing.T) {
	for _, op := range ir.Ops() {
		info := op.Info()
		if !info.On.Has(ir.KindFloat) || info.Result != ir.SameType || !grad.HasDerivative(op) {
			continue
		}
		for _, positive := range []bool{true, false} {
			p := program{positive: positive}
			switch {
			case info.Arity == 2:
				p.text = fmt.Sprintf("graph g(x: f64[N], z: f64[N]) -> (y: f64[N]) {\n y = %s(x, z)\n}", op)
			case op == ir.OpAcosh:
				p.text = "graph g(x: f64[N]) -> (y: f64[N]) {\n y = acosh(1.5 + abs(x))\n}"
			default:
				p.text = fmt.Sprintf("graph g(x: f64[N]) -> (y: f64[N]) {\n y = %s(x)\n}", op)
			}
			onlyPositive := []ir.Op{ir.OpLog, ir.OpLog2, ir.OpLog10, ir.OpLog1p, ir.OpSqrt, ir.OpRsqrt, ir.OpAsin, ir.OpAcos,
				ir.OpAtanh, ir.OpPow, ir.OpTan, ir.OpMod, ir.OpDiv, ir.OpRecip}
			if positive || !slices.Contains(onlyPositive, op) {
				checkDifferences(t, p, map[string]int64{"N": 17})
			}
		}
	}
}

func TestEveryOperationHasADerivative(t *testing.T) {
	for _, op := range ir.Ops() {
		if op.Info().On.Has(ir.KindFloat) && op != ir.OpSelect && op != ir.OpCast {
			assert.True(t, grad.HasRule(op), "%s has no derivative in the table", op)
		}
	}
	assert.Contains(t, fmt.Sprint(&grad.Blocked{Input: "x", Type: ir.I32}), "i32")
}
