package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// chainProgram is the gradient of causal attention as one would write it down.
const chainProgram = `@bench(B=64, S=4096)
graph g(q: bf16[B, S, 16], k: bf16[B, S, 16], v: bf16[B, S, 16], dy: bf16[B, S, 16]) -> (dq: bf16[B, S, 16], dk: bf16[B, S, 16], dv: bf16[B, S, 16]) {
	s = where(iota(S) <= iota(S)[:, none], f32(q @ transpose(k, -1, -2)) * 0.25, -inf)
	p = softmax(s)
	dp = f32(dy @ transpose(v, -1, -2))
	ds = bf16(p * (dp - sum(p * dp, axis=-1, keep=true)) * 0.25)
	dq = ds @ k
	dk = transpose(ds, -1, -2) @ q
	dv = transpose(bf16(p), -1, -2) @ dy
}`

// chainPrograms are sums that weigh by functions of products, with how many chains they are, and how many kernels have
// two of them.
var chainPrograms = []struct {
	name, src     string
	chains, pairs int
}{
	{"gradient of causal attention", chainProgram, 3, 1},
	{"gradient of the mean over queries of causal attention", strings.NewReplacer("dy: bf16[B, S, 16]", "my: bf16[B, 16]",
		"s = where", "dy[b: B, i: S, e: 16] = my[b, e]\n\ts = where").Replace(chainProgram), 3, 0},
	{"gradient of causal attention, which heads share", strings.NewReplacer("dy: bf16[B, S, 16]", "my: f32[S, 16]",
		"s = where", "dy[b: B, i: S, e: 16] = bf16(0.1 * my[i, e])\n\ts = where").Replace(chainProgram), 3, 1},
	{"a sum of weights alone", `@bench(L=4096, S=4096) graph g(a: bf16[L, 32], b: bf16[S, 32], v: bf16[S, 8]) -> (y: bf16[L, 8], z: bf16[S]) {
		w = bf16(tanh(f32(a @ transpose(b))))
		y = w @ v
		z = bf16(sum(f32(w), axis=0)) }`, 2, 0},
	{"two sums of the keys, by different weights", twoSums("bf16(relu(s)) @ b", "bf16(tanh(s)) @ b"), 2, 1},
	{"two sums under one mask", twoSums("bf16(where(keep, relu(s), 0.0)) @ b", "bf16(where(keep, tanh(s), 0.0)) @ b"), 2, 1},
	{"two sums under different masks", twoSums("bf16(where(keep, s, 0.0)) @ b", "bf16(where(keep, 0.0, s)) @ b"), 2, 0},
	{"two sums, one of other values", twoSums("bf16(relu(s)) @ b", "bf16(tanh(s)) @ v"), 2, 0},
	{"two sums over different axes", twoSums("bf16(relu(s)) @ b", "transpose(bf16(tanh(s))) @ a"), 2, 0},
	{"scores without exponentials", `@bench(B=64, S=4096) graph g(q: bf16[B, S, 16], k: bf16[B, S, 16], v: bf16[B, S, 16]) -> (y: bf16[B, S, 16]) {
		y = relu(q @ transpose(k, -1, -2)) @ v }`, 1, 0},
	{"two products", `@bench(L=4096, S=4096) graph g(a: f16[L, 32], b: f16[S, 32], c: f16[L, 16], d: f16[S, 16], v: f16[S, 8]) -> (y: f32[L, 8]) {
		w = f16(f32(a @ transpose(b)) * silu(f32(c @ transpose(d))))
		y = sum(f32(w)[:, :, none] * f32(v), axis=1) }`, 1, 0},
	{"statistics of rows and of columns", `@bench(L=4096, S=4096) graph g(a: bf16[L, 32], b: bf16[S, 32], m: f32[L], n: f32[S], v: bf16[S, 8]) -> (y: bf16[L, 8]) {
		y = bf16(exp(f32(a @ transpose(b)) * 0.1 - m[:, none] - n)) @ v }`, 1, 0},
	{"transposed", `@bench(L=4096, S=4096) graph g(a: bf16[L, 32], b: bf16[S, 32], v: bf16[L, 8]) -> (y: bf16[S, 8]) {
		y = transpose(bf16(tanh(f32(a @ transpose(b))))) @ v }`, 1, 0},
}

// twoSums is a program of two sums that weigh by functions of the same scores s.
func twoSums(y, z string) string {
	return fmt.Sprintf(`@bench(S=4096) graph g(a: bf16[S, 16], b: bf16[S, 16], v: bf16[S, 16]) -> (y: bf16[S, 16], z: bf16[S, 16]) {
		s = f32(a @ transpose(b))
		keep = iota(S) <= iota(S)[:, none]
		y = %s
		z = %s }`, y, z)
}

func chainsIn(p *ir.Plan) int {
	n := 0
	for _, k := range p.Kernels {
		if a := k.Variants[0].Attend; a != nil && a.Max == nil {
			n++
			if a.Also != nil {
				n++
			}
		}
	}
	return n
}

func pairsIn(p *ir.Plan) int {
	n := 0
	for _, k := range p.Kernels {
		if a := k.Variants[0].Attend; a != nil && a.Also != nil {
			n++
		}
	}
	return n
}

func TestChains(t *testing.T) {
	for _, c := range chainPrograms {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			require.Equal(t, c.chains, chainsIn(p), ir.PrintPlan(p))
			require.Equal(t, c.pairs, pairsIn(p), ir.PrintPlan(p))
			for _, k := range p.Kernels {
				assert.NotEqual(t, ir.ContractTemplate, k.Template, "%s is written", k.Name)
			}
			g := parse(t, c.src)
			for _, n := range []int64{0, 1, 3, 9} {
				sizes := sizesOf(g, n)
				if _, ok := sizes["B"]; ok {
					sizes["B"] = min(n, 2)
				}
				inputs, err := drawInputs(g, sizes, uint64(n))
				require.NoError(t, err)
				require.Positive(t, comparePlan(t, g, p, inputs, sizes, c.src))
			}
		})
	}
}

// TestNoChains are products that are written: because something else needs them, they are long, or they are small.
func TestNoChains(t *testing.T) {
	const inputs = `@bench(L=4096, S=4096) graph g(a: bf16[L, %[1]d], b: bf16[S, %[1]d], v: bf16[S, 8]) -> `
	for _, c := range []struct{ name, src string }{
		{"a result", fmt.Sprintf(inputs, 32) + `(y: bf16[L, 8], s: bf16[L, S]) { s = a @ transpose(b)
			y = relu(s) @ v }`},
		{"a long sum", fmt.Sprintf(inputs, 1024) + `(y: bf16[L, 8]) { y = relu(a @ transpose(b)) @ v }`},
		{"a maximum of it", fmt.Sprintf(inputs, 32) + `(y: bf16[L, 8], m: bf16[S]) { s = a @ transpose(b)
			y = relu(s) @ v
			m = max(abs(s), axis=0) }`},
		{"small", `graph g(a: bf16[32, 16], b: bf16[64, 16], v: bf16[64, 8]) -> (y: bf16[32, 8]) { y = relu(a @ transpose(b)) @ v }`},
		{"weights of more than 16 bits", `@bench(L=4096, S=4096) graph g(a: f16[L, 32], b: f16[S, 32], v: f16[S, 8]) -> (y: f32[L, 8]) {
			y = sum(tanh(f32(a @ transpose(b)))[:, :, none] * f32(v), axis=1) }`},
		{"f32", `@bench(L=4096, S=4096) graph g(a: f32[L, 16], b: f32[S, 16], v: f32[S, 8]) -> (y: f32[L, 8]) { y = relu(a @ transpose(b)) @ v }`},
		{"strict", `@bench(L=4096, S=4096) @strict graph g(a: bf16[L, 16], b: bf16[S, 16], v: bf16[S, 8]) -> (y: bf16[L, 8]) { y = relu(a @ transpose(b)) @ v }`},
		{"heads of one projection", `@bench(N=4096) graph g(x: bf16[N, 49, 96], w: bf16[288, 96], b: bf16[288]) -> (y: bf16[N, 3, 49, 32]) {
			h = permute(reshape(linear(x, w, b), N, 49, 3, 3, 32), (2, 0, 3, 1, 4))
			y = attention(h[0], h[1], h[2]) }`},
	} {
		t.Run(c.name, func(t *testing.T) { assert.Zero(t, chainsIn(planOf(t, c.src))) })
	}
}

// TestChainTiles says which tiles of a chain a mask leaves out: those of the keys behind a query, or ahead of it. The
// tiles with the most left start first.
func TestChainTiles(t *testing.T) {
	for _, k := range planOf(t, chainProgram).Kernels {
		if a := k.Variants[0].Attend; a != nil && a.Max == nil {
			assert.NotNil(t, a.Skip.Any, k.Name)
			assert.NotNil(t, a.Skip.All, k.Name)
			assert.Equal(t, !strings.Contains(k.Name, "dq"), a.Skip.FirstMost, k.Name)
		}
	}
}
