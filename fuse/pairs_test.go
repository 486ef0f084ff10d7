package fuse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// symbolicForm draws a sum of products of three tensors or four, over ranges of which each has a few, and its gradient. It is planned for large
// sizes, at which pairs of factors are summed ahead of the others.
func symbolicForm(r *rand.Rand) string {
	letters, large := []string{"n", "e", "i", "j"}, map[string]int{"n": 4096, "e": 8, "i": 256, "j": 512}
	var factors, params []string
	used := map[string]bool{}
	for f := range 3 + r.IntN(2) {
		own := slices.Clone(letters)
		r.Shuffle(len(own), func(a, b int) { own[a], own[b] = own[b], own[a] })
		own = own[:1+r.IntN(3)]
		for _, l := range own {
			used[l] = true
		}
		params = append(params, fmt.Sprintf("a%d: bf16[%s]", f, strings.ToUpper(strings.Join(own, ", "))))
		factors = append(factors, fmt.Sprintf("a%d[%s]", f, strings.Join(own, ", ")))
	}
	var result, summed, bench []string
	for _, l := range letters {
		if !used[l] {
			continue
		}
		bench = append(bench, fmt.Sprintf("%s=%d", strings.ToUpper(l), large[l]))
		if len(result) == 0 || len(summed) > 0 && r.IntN(3) == 0 {
			result = append(result, l)
		} else {
			summed = append(summed, l+": "+strings.ToUpper(l))
		}
	}
	if len(summed) == 0 {
		return symbolicForm(r)
	}
	of := strings.ToUpper(strings.Join(result, ", "))
	return fmt.Sprintf("graph f(%s, r: bf16[%s]) -> (l: f32[]) {\n    y[%s] = sum[%s] %s\n    l = sum(f32(y) * f32(r))\n}\n@bench(%s) graph d = grad(f)\n",
		strings.Join(params, ", "), of, strings.Join(result, ", "), strings.Join(summed, ", "), strings.Join(factors, " * "), strings.Join(bench, ", "))
}

// TestPairsKeepSums: sums that are taken two factors at a time are the sums that the program has.
func TestPairsKeepSums(t *testing.T) {
	split := 0
	for seed := range uint64(40) {
		src := symbolicForm(rand.New(rand.NewPCG(seed, 7)))
		file, err := parser.Parse("g.fuse", []byte(src), parser.Options{})
		require.NoError(t, err, src)
		g, err := file.Graph("d")
		require.NoError(t, err, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		for _, b := range p.Buffers {
			if strings.Contains(b.Name, "_pair") {
				split++
			}
		}
		for _, n := range []int64{0, 1, 3} {
			sizes := sizesOf(g, n)
			inputs, err := drawInputs(g, sizes, seed)
			require.NoError(t, err, src)
			comparePlan(t, g, p, inputs, sizes, src)
		}
	}
	require.Greater(t, split, 10, "pairs that were taken out")
}

// summedProduct draws a sum over axes of a product of two tensors, of which a side may be summed ahead: scaled, with something added, and with
// sides that are computed.
func summedProduct(r *rand.Rand) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	product := pick("x @ w", "x @ w", "tanh(x) @ w", "x @ (w * 2)", "gelu(x @ w) @ transpose(w) @ w", "softmax(x @ w) @ transpose(w) @ w")
	if r.IntN(3) == 0 {
		product = "conv1d(transpose(x, 0, 1)[none], u, padding=1)[0]"
	}
	term := pick("(?)", "(? + b)", "(? * 0.5 - b)", "((? + b) * b)", "f32(?)", "(f32(?) - 1)", "relu(?)")
	if strings.Contains(product, "conv") {
		term = pick("(?)", "(? + 1)", "(? * 0.5)")
	}
	axis := pick("axis=1", "axis=0", "axis=(0, 1)")
	return fmt.Sprintf("@bench(N=4096, K=2048, M=4096) graph g(x: bf16[N, K], w: bf16[K, M], u: bf16[M, K, 3], b: bf16[M]) -> (y: f32[]) {\n    h = %s(%s, %s)\n    y = sum(f32(h) * %s)\n}\n",
		pick("sum", "sum", "mean"), strings.ReplaceAll(term, "?", product), axis, pick("1", "f32(h)", "2"))
}

// TestSumsOfProductsKeepSums: products of which only sums are read are summed along a side ahead, and the sums are those that the program has.
func TestSumsOfProductsKeepSums(t *testing.T) {
	split := 0
	for seed := range uint64(60) {
		src := summedProduct(rand.New(rand.NewPCG(seed, 8)))
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		if slices.ContainsFunc(p.Buffers, func(b *ir.Buffer) bool { return strings.Contains(b.Name, "_pair") }) {
			split++
		}
		for _, n := range []int64{0, 1, 3} {
			inputs, err := drawInputs(g, sizesOf(g, n), seed)
			require.NoError(t, err, src)
			comparePlan(t, g, p, inputs, sizesOf(g, n), src)
		}
	}
	require.Greater(t, split, 20, "sides that were summed ahead")
}
