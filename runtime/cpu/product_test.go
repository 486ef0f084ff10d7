package cpu_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime/cpu"
)

// drawnProduct is a program with one or two sums of products.
type drawnProduct struct {
	t       *rapid.T
	dtype   string
	inputs  []string
	symbols map[string]int64
}

func (p *drawnProduct) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(p.t, what)
}

// factor declares an input that is read at the places named, in any order and with any stride, and returns what is read.
func (p *drawnProduct) factor(name string, places ...string) string {
	var shape, at []string
	for _, i := range rapid.Permutation(places).Draw(p.t, name+" order") {
		extent := map[string]string{"p": "P", "i": "M", "j": "N", "k": "K", "l": "3"}[i]
		switch p.pick(name+" "+i, "plain", "plain", "plain", "strided", "shifted") {
		case "strided":
			shape, at = append(shape, "2 * "+extent), append(at, "2 * "+i)
		case "shifted":
			shape, at = append(shape, extent+" + 1"), append(at, i+" + 1")
		default:
			shape, at = append(shape, extent), append(at, i)
		}
	}
	p.inputs = append(p.inputs, fmt.Sprintf("%s: %s[%s]", name, p.dtype, strings.Join(shape, ", ")))
	read := fmt.Sprintf("%s[%s]", name, strings.Join(at, ", "))
	if p.pick(name+" type", "own", "f32") == "f32" && p.dtype != "f64" {
		read = fmt.Sprintf("f32(%s)", read)
	}
	return fmt.Sprintf(p.pick(name+" expression", "%s", "%s", "max(%s, 0)", "(%s * 3 - 1)", "where(i0 > 2, %s, 0.5)"), read)
}

func drawProduct(t *rapid.T) (string, map[string]int64) {
	p := &drawnProduct{t: t, dtype: rapid.SampledFrom([]string{"f32", "f32", "f32", "bf16", "f16", "f64"}).Draw(t, "dtype")}
	size := func(name string, from ...int64) int64 { return rapid.SampledFrom(from).Draw(t, name) }
	p.symbols = map[string]int64{
		"M": size("M", 1, 2, 5, 6, 7, 13, 64, 130, 0), "N": size("N", 1, 3, 15, 16, 17, 33, 128, 531, 0),
		"K": size("K", 1, 2, 5, 8, 33, 256, 257, 300, 0), "P": size("P", 1, 2, 3),
	}
	if p.symbols["M"]*p.symbols["N"]*p.symbols["K"] > 1<<22 {
		p.symbols["P"] = 1
	}
	result := "f32"
	if p.dtype == "f64" {
		result = "f64"
	}
	batch := map[string][]string{"none": {}, "both": {"p"}, "left": {"p"}, "right": {}}
	sums, which := []string{}, p.pick("batch", "none", "none", "both", "left")
	terms := p.pick("sums", "one", "one", "two")
	for n := range map[string]int{"one": 1, "two": 2}[terms] {
		over, ks := "k: K", []string{"k"}
		if p.pick("sum", "k", "k", "k and l") == "k and l" {
			over, ks = "k: K, l: 3", []string{"k", "l"}
		}
		over += p.pick("where", "", "", "", " where k > 2", " where k % 3 < 2")
		left := append(append([]string{}, batch[which]...), "i")
		right := []string{"j"}
		if which == "both" {
			right = append(right, "p")
		}
		a := p.factor(fmt.Sprintf("a%d", n), append(left, ks...)...)
		b := p.factor(fmt.Sprintf("b%d", n), append(right, ks...)...)
		a, b = strings.ReplaceAll(a, "i0", "i"), strings.ReplaceAll(b, "i0", "j")
		if p.pick("sides", "ab", "ba") == "ba" {
			a, b = b, a
		}
		sums = append(sums, fmt.Sprintf("%s(sum[%s] %s * %s)", result, over, a, b))
	}
	body := strings.Join(sums, p.pick("join", " + ", " - "))
	if p.pick("behind", "nothing", "bias") == "bias" {
		p.inputs = append(p.inputs, "c: "+result+"[N]")
		body = fmt.Sprintf("max(%s + c[j], -1)", body)
	}
	out, at := []string{"M", "N"}, []string{"i: M", "j: N"}
	if which != "none" {
		out, at = append([]string{"P"}, out...), append([]string{"p: P"}, at...)
	}
	if p.pick("result", "plain", "transposed") == "transposed" {
		last := len(out) - 1
		out[last], out[last-1], at[last], at[last-1] = out[last-1], out[last], at[last-1], at[last]
	}
	return fmt.Sprintf("graph g(%s) -> (y: %s[%s]) {\n  y[%s] = %s\n}", strings.Join(p.inputs, ", "), result, strings.Join(out, ", "),
		strings.Join(at, ", "), body), p.symbols
}

// Sums of products that are computed by panels are those that are computed term by term: bit for bit, where both add in one order.
func TestProducts(t *testing.T) {
	all, found, exact := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		src, symbols := drawProduct(t)
		g := parseGraph(t, src)
		plan := planForCPU(t, g)
		in := waves(t, g, symbols)
		symbols = bind(t, g, in)
		var want, one, two []*interp.Tensor
		products, same := 0, 0
		cpu.WithProducts(math.MaxInt64, func() { want = execute(t, plan, symbols, in, 1) })
		cpu.WithProducts(0, func() {
			one, two = execute(t, plan, symbols, in, 1), execute(t, plan, symbols, in, 2)
			products, same = cpu.CountProducts(plan, symbols)
		})
		all, found, exact = all+1, found+min(products, 1), exact+same
		assert.Equal(t, one[0].Bytes(), two[0].Bytes(), "the number of cores must not matter")
		if products > 0 && same == len(plan.Kernels) && !strings.Contains(src, "f64") {
			assert.Equal(t, want[0].Bytes(), one[0].Bytes(), src)
		}
		compare(t, src, g, want, one)
	})
	t.Logf("%d programs: %d with products, %d of them in one order", all, found, exact)
}

// Products beyond one block, and sums that are split.
func TestProductsBeyondOneBlock(t *testing.T) {
	for _, sizes := range [][3]int64{{1000, 17, 300}, {7, 1100, 513}, {130, 1030, 9}, {970, 530, 260}, {1100, 5, 40}, {7, 20, 40_000}} {
		g := parseGraph(t, "graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) { y = max(a @ b + c, 0) }")
		symbols := map[string]int64{"M": sizes[0], "N": sizes[1], "K": sizes[2]}
		plan, in := planForCPU(t, g), waves(t, g, symbols)
		products, same := cpu.CountProducts(plan, symbols)
		require.Equal(t, 1, products, "%v", sizes)
		var want []*interp.Tensor
		cpu.WithProducts(math.MaxInt64, func() { want = execute(t, plan, symbols, in, 1) })
		for _, threads := range []int{1, 2, 5} {
			have := execute(t, plan, symbols, in, threads)
			if same == 1 {
				assert.Equal(t, want[0].Bytes(), have[0].Bytes(), "%v", sizes)
			}
			compare(t, "product", g, want, have)
		}
	}
}

// What is found as a product, whatever it is called, and what is not.
func TestWhatIsAProduct(t *testing.T) {
	symbols := map[string]int64{"K": 40, "M": 24, "N": 36, "B": 2, "H": 3, "D": 16}
	for name, c := range map[string]struct {
		products int
		src      string
	}{
		"convolution": {1, `graph g(x: f32[B, 8, 9, 11], w: f32[12, 8, 3, 3]) -> (y: f32[B, 12, 9, 11]) {
			y[b, o, i, j] = sum[c: 8, u: 3, v: 3] (x[b, c, i + u - 1, j + v - 1] else 0) * w[o, c, u, v] }`},
		"weights of i8": {1, `graph g(x: f32[M, K], w: i8[K, N], s: f32[N]) -> (y: f32[M, N]) {
			y[i, j] = s[j] * (sum[k: K] x[i, k] * f32(w[k, j])) }`},
		"two sums": {1, `graph g(x: f32[M, K], v: f32[K, N], w: f32[K, N]) -> (y: f32[M, N]) { y = silu(x @ v) * (x @ w) }`},
		"attention": {2, `graph g(q: f32[H, M, D], k: f32[H, N, D], v: f32[H, N, D]) -> (y: f32[H, M, D]) {
			p = softmax(einsum("hid,hjd->hij", q, k))
			y = p @ v }`},
		"gradient":       {1, `graph g(x: f32[M, K], dy: f32[M, N]) -> (w: f32[K, N]) { w = transpose(x) @ dy }`},
		"steps left out": {1, `graph g(x: f32[M, K], w: f32[K, N], on: bool[K]) -> (y: f32[M, N]) { y[i, j] = sum[k: K where on[k]] x[i, k] * w[k, j] }`},
		"gathered rows": {1, `graph g(x: f32[N, K], at: i64[M], w: f32[K, N]) -> (y: f32[M, N]) {
			y[i, j] = sum[k: K] (x[at[i], k] else 0) * w[k, j] }`},
		"a mask of both":  {0, `graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k: K where k <= i] x[i, k] * w[k, j] }`},
		"integers":        {0, `graph g(x: i64[M, K], w: i64[K, N]) -> (y: i64[M, N]) { y = x @ w }`},
		"strict":          {0, `@strict graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k: K] x[i, k] * w[k, j] }`},
		"vector":          {0, `graph g(x: f32[K], w: f32[K, N]) -> (y: f32[N]) { y[j] = sum[k: K] x[k] * w[k, j] }`},
		"largest product": {0, `graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y[i, j] = max[k: K] x[i, k] * w[k, j] }`},
	} {
		t.Run(name, func(t *testing.T) {
			g := parseGraph(t, c.src)
			products, _ := cpu.CountProducts(planForCPU(t, g), symbols)
			assert.Equal(t, c.products, products)
			check(t, g, waves(t, g, symbols))
		})
	}
}

// Terms are NaN where the program's are: padding of panels reaches no result.
func TestProductsOfInfinity(t *testing.T) {
	g := parseGraph(t, `graph g(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y = x @ w }`)
	in := waves(t, g, map[string]int64{"M": 7, "K": 9, "N": 19})
	in[0].F[9*6+3], in[1].F[19*8+18], in[1].F[19*3+2] = math.Inf(1), math.Inf(-1), 0
	in[0] = interp.FromBytes(ir.F32, in[0].Shape, in[0].Bytes())
	in[1] = interp.FromBytes(ir.F32, in[1].Shape, in[1].Bytes())
	check(t, g, in)
}
