package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

const qkv = `q: bf16[B, H, L, 8], k: bf16[B, H, S, 8], v: bf16[B, H, S, 16]`

// streamPrograms are ways to write attention, each one kernel of the attend template,
// behind those that bound what its mask reads.
var streamPrograms = []struct{ name, src string }{
	{"library function", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16]) { y = attention(q, k, v) }`},
	{"causal", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16]) { y = attention(q, k, v, causal=true) }`},
	{"mask", `graph g(` + qkv + `, m: bool[L, S]) -> (y: bf16[B, H, L, 16]) { y = attention(q, k, v, mask=m) }`},
	{"bias", `graph g(` + qkv + `, r: f32[H, L, S]) -> (y: bf16[B, H, L, 16]) { y = attention(q, k, v, bias=r) }`},
	{"by hand, in 16 bits", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16]) { y = softmax(q @ transpose(k, -1, -2) * 0.3) @ v }`},
	{"f16", `graph g(q: f16[L, 8], k: f16[S, 8], v: f16[S, 8]) -> (y: f16[L, 8]) { y = softmax(q @ transpose(k, -1, -2)) @ v }`},
	{"softmax by hand", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16]) {
		s = f32(q @ transpose(k, -1, -2)) / sqrt(8.0)
		e = exp(s - max(s, axis=-1, keep=true))
		y = bf16(e / sum(e, axis=-1, keep=true)) @ v }`},
	{"soft cap", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16]) {
		s = f32(q @ transpose(k, -1, -2)) * 0.3
		y = bf16(softmax(5.0 * tanh(s / 5.0))) @ v }`},
	{"window, offset and documents, with the logarithm of the sum",
		`graph g(` + qkv + `, dq: i32[B, L], dk: i32[B, S]) -> (y: bf16[B, H, L, 16], lse: f32[B, H, L]) {
		s = f32(q @ transpose(k, -1, -2)) * 0.3
		i = iota(L)[:, none] + S - L
		keep = (dq[:, none, :, none] == dk[:, none, none, :]) && iota(S) <= i && i - iota(S) < 5
		t = where(keep, s, -inf)
		y = bf16(softmax(t)) @ v
		lse = logsumexp(t, axis=-1) }`},
	{"grouped heads, index notation", `graph g(q: bf16[B, 4, L, 8], k: bf16[B, 2, S, 8], v: bf16[B, 2, S, 8]) -> (y: bf16[B, 4, L, 8]) {
		s[b, h, i, j] = sum[d: 8] f32(q[b, h, i, d]) * f32(k[b, h / 2, j, d])
		p = softmax(s * 0.3)
		o[b, h, i, d: 8] = sum[j: S] p[b, h, i, j] * f32(v[b, h / 2, j, d])
		y = bf16(o) }`},
	{"lengths", `graph g(` + qkv + `, n: i32[B]) -> (y: bf16[B, H, L, 16]) {
		y = attention(q, k, v, mask=iota(S) < n[:, none, none, none]) }`},
	{"alibi", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16]) {
		slope = exp2(-8.0 * (f32(iota(H)) + 1.0) / f32(H))
		y = attention(q, k, v, bias=-slope[:, none, none] * f32(abs(iota(S) - iota(L)[:, none]))) }`},
	{"dropout", `graph g(` + qkv + `, seed: i64[]) -> (y: bf16[B, H, L, 16]) {
		p = softmax(f32(q @ transpose(k, -1, -2)) * 0.3)
		y = bf16(dropout(p, 0.25, seed)) @ v }`},
	{"one projection, heads joined again", `graph g(x: bf16[B, S, 48]) -> (y: bf16[B, S, 16]) {
		q[b, h: 2, i, d: 8] = x[b, i, h * 8 + d]
		k[b, h: 2, i, d: 8] = x[b, i, 16 + h * 8 + d]
		v[b, h: 2, i, d: 8] = x[b, i, 32 + h * 8 + d]
		y = reshape(transpose(attention(q, k, v, causal=true), 1, 2), B, S, 16) }`},
	{"heads of any size", `@bench(D=64, E=64) graph g(q: bf16[H, L, D], k: bf16[H, S, D], v: bf16[H, S, E]) -> (y: bf16[H, L, E]) {
		y = attention(q, k, v, causal=true) }`},
	{"gate and residual behind", `graph g(` + qkv + `, a: bf16[B, H, L, 16], r: bf16[B, H, L, 16]) -> (y: bf16[B, H, L, 16]) {
		y = attention(q, k, v) * sigmoid(a) + r }`},
}

// TestChunksOfKeys are streams with few queries: chunks of the keys, then their merge.
func TestChunksOfKeys(t *testing.T) {
	for _, src := range []string{
		`@bench(B=1, S=2048) graph g(q: bf16[B, 4, 8], k: bf16[B, 2, S, 8], v: bf16[B, 2, S, 16], n: i32[B]) -> (y: bf16[B, 4, 16], lse: f32[B, 4]) {
			s[b, h, j] = (sum[d: 8] f32(q[b, h, d]) * f32(k[b, h / 2, j, d])) * 0.3
			t = where(iota(S) < n[:, none, none] + 280, s, -inf)
			p = softmax(t)
			o[b, h, d: 16] = sum[j: S] p[b, h, j] * f32(v[b, h / 2, j, d])
			y = bf16(o)
			lse = logsumexp(t, axis=-1) }`,
		`@bench(S=2048) graph g(q: f16[2, 8], k: f16[S, 8], v: f16[S, 8], m: bool[S]) -> (y: f16[2, 8]) { y = attention(q, k, v, mask=m) }`,
	} {
		p := planOf(t, src)
		require.Equal(t, ir.AttendTemplate, p.Kernels[0].Template)
		require.Greater(t, len(p.Kernels), 1)
		k := p.Kernels[0]
		assert.Equal(t, forecast.Fragment, k.Variants[0].Schedule.TileM)
		g := parse(t, src)
		for _, n := range []int64{0, 1, 300, 520} {
			sizes := sizesOf(g, n)
			if _, ok := sizes["B"]; ok {
				sizes["B"] = 1
			}
			inputs, err := drawInputs(g, sizes, uint64(n))
			require.NoError(t, err)
			require.Positive(t, comparePlan(t, g, p, inputs, sizes, src))
		}
	}
	src := `graph g(q: bf16[B, 8, 8], k: bf16[B, 2, S, 8], v: bf16[B, 2, S, 8]) -> (y: bf16[B, 8, 8]) {
		s[b, h, j] = sum[d: 8] f32(q[b, h, d]) * f32(k[b, h / 4, j, d])
		p = softmax(s * 0.088)
		o[b, h, d: 8] = sum[j: S] p[b, h, j] * f32(v[b, h / 4, j, d])
		y = bf16(o) }`
	p := planOf(t, src)
	packed := p.Kernels[0].Variants[0].Attend
	require.Len(t, packed.M, 1)
	assert.True(t, packed.M[0].Extent.IsConst(4), "the four heads of a group are rows of one tile")
	g := parse(t, src)
	for _, n := range []int64{0, 1, 9} {
		sizes := map[string]int64{"B": 1, "S": n}
		inputs, err := drawInputs(g, sizes, uint64(n))
		require.NoError(t, err)
		require.Positive(t, comparePlan(t, g, p, inputs, sizes, src))
	}
}

// TestChunksOfTiles are streams of so few tiles of queries that blocks share their keys too, by sizes that
// the program knows and by such that it does not, and with what hangs on a query's place. Where queries
// fill the device, where keys are few, and where sizes are only guesses, streams stay whole.
func TestChunksOfTiles(t *testing.T) {
	const whole = int64(0)
	for _, c := range []struct {
		src   string
		chunk int64
		sizes map[string]int64
	}{
		{`graph g(q: f16[17, 2], k: f16[6144, 2], v: f16[6144, 2]) -> (y: f16[17, 2]) { y = attention(q, k, v) }`, 2048, nil},
		{`@bench(L=600, S=20000) graph g(q: f16[L, 8], k: f16[S, 8], v: f16[S, 8], m: bool[S]) -> (y: f16[L, 8]) {
			y = attention(q, k, v, mask=m) }`, 2304, map[string]int64{"L": 3, "S": 2400}},
		{`@bench(L=600, S=20000) graph g(q: bf16[2, L, 8], k: bf16[2, S, 8], v: bf16[2, S, 8]) -> (y: bf16[2, L, 8], lse: f32[2, L]) {
			t = where(iota(S) <= 1190 * iota(L)[:, none], f32(q @ transpose(k, -1, -2)) * 0.3, -inf)
			y = bf16(softmax(t)) @ v
			lse = logsumexp(t, axis=-1) }`, 2304, map[string]int64{"L": 3, "S": 2400}},
		{`@bench(L=600, S=4000) graph g(q: f16[L, 8], k: f16[S, 8], v: f16[S, 8]) -> (y: f16[L, 8]) { y = attention(q, k, v) }`, whole, nil},
		{`@bench(L=20000, S=20000) graph g(q: f16[L, 8], k: f16[S, 8], v: f16[S, 8]) -> (y: f16[L, 8]) { y = attention(q, k, v) }`, whole, nil},
		{`@bench(S=20000) graph g(q: f16[L, 8], k: f16[S, 8], v: f16[S, 8]) -> (y: f16[L, 8]) { y = attention(q, k, v) }`, whole, nil},
	} {
		p := planOf(t, c.src)
		k := p.Kernels[0]
		require.Equal(t, ir.AttendTemplate, k.Template)
		if c.chunk == whole {
			require.Len(t, p.Kernels, 1, c.src)
			continue
		}
		require.Greater(t, len(p.Kernels), 1, c.src)
		require.True(t, k.Cols[0].Extent.IsConst(float64(c.chunk)), "%s: chunks of %s", c.src, k.Cols[0].Extent)
		g := parse(t, c.src)
		inputs, err := drawInputs(g, c.sizes, 1)
		require.NoError(t, err)
		require.Positive(t, comparePlan(t, g, p, inputs, c.sizes, c.src))
	}
}

func TestStreams(t *testing.T) {
	for _, c := range streamPrograms {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			last := p.Kernels[len(p.Kernels)-1]
			require.Equal(t, ir.AttendTemplate, last.Template, ir.PrintPlan(p))
			assert.Equal(t, strings.Contains(c.name, "documents"), len(p.Kernels) > 1)
			for _, k := range p.Kernels[:len(p.Kernels)-1] {
				assert.Equal(t, ir.LoopTemplate, k.Template)
			}
			g := parse(t, c.src)
			for _, n := range []int64{0, 1, 3, 9} {
				sizes := sizesOf(g, n)
				for _, s := range []string{"B", "H"} {
					if _, ok := sizes[s]; ok {
						sizes[s] = min(n, 2)
					}
				}
				if _, ok := sizes["L"]; ok && n > 0 {
					sizes["L"] = max(n-2, 2)
				} else if ok {
					sizes["B"], sizes["H"], sizes["L"] = 1, 1, 2
				}
				inputs, err := drawInputs(g, sizes, uint64(n))
				require.NoError(t, err)
				require.Positive(t, comparePlan(t, g, p, inputs, sizes, c.src))
			}
		})
	}
}

// TestNoStreams are near misses, with what is said about them.
func TestNoStreams(t *testing.T) {
	for _, c := range []struct{ name, src, detail string }{
		{"scores are a result", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16], s: f32[B, H, L, S]) {
			s = f32(q @ transpose(k, -1, -2))
			y = bf16(softmax(s)) @ v }`, "s reads matmul too, so it is written in any case"},
		{"weights are a result", `graph g(` + qkv + `) -> (y: bf16[B, H, L, 16], p: bf16[B, H, L, S]) {
			p = softmax(q @ transpose(k, -1, -2))
			y = p @ v }`, "p reads matmul too, so it is written in any case"},
		{"a maximum over something else", `graph g(q: bf16[90, 8], k: bf16[110, 8], v: bf16[110, 16], m: f32[90]) -> (y: bf16[90, 16]) {
			s = f32(q @ transpose(k, -1, -2))
			y = bf16(exp(s - m[:, none])) @ v }`, "to be one kernel of attention, the exponent has to be the scores minus their maximum over the keys, [110]"},
		{"f32 values", `graph g(q: bf16[L, 8], k: bf16[S, 8], v: f32[S, 8]) -> (y: f32[L, 8]) {
			y = softmax(f32(q @ transpose(k, -1, -2))) @ v }`, "queries, keys and values are not all of one type, bf16, f16 or f32"},
		{"a long head", `graph g(q: bf16[L, 320], k: bf16[S, 320], v: bf16[S, 8]) -> (y: bf16[L, 8]) {
			y = softmax(q @ transpose(k, -1, -2)) @ v }`, "a head of 320 elements does not fit on chip: expected up to 256"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			var details []string
			for _, r := range p.Refused {
				if r.Template == ir.AttendTemplate {
					details = append(details, r.Detail)
				}
			}
			assert.Equal(t, []string{c.detail}, details)
			for _, k := range p.Kernels {
				assert.NotEqual(t, ir.AttendTemplate, k.Template)
			}
		})
	}
	p, err := Plan(parse(t, streamPrograms[0].src), Options{Device: ir.Device{Name: "none"}})
	require.NoError(t, err)
	assert.Greater(t, len(p.Kernels), 1, "without tensor cores there is no stream")
}

// TestTileMasks evaluates what is said of tiles and compares it with the mask, point
// by point.
func TestTileMasks(t *testing.T) {
	for _, mask := range []string{
		"iota(S) <= iota(L)[:, none]", "iota(S) < iota(L)[:, none] - 3", "iota(L)[:, none] - iota(S) < 70 && iota(S) <= iota(L)[:, none]",
		"iota(S) / 48 == iota(L)[:, none] / 48", "iota(S) <= iota(L)[:, none] || iota(S) < 16", "!(iota(S) > iota(L)[:, none] + 2)",
		"iota(S) != iota(L)[:, none]", "iota(S) % 2 == 0 && iota(L)[:, none] >= 0",
	} {
		t.Run(mask, func(t *testing.T) {
			src := fmt.Sprintf(`graph g(q: bf16[L, 8], k: bf16[S, 8], v: bf16[S, 8]) -> (y: bf16[L, 8]) {
				y = bf16(softmax(where(%s, f32(q @ transpose(k, -1, -2)), -inf))) @ v }`, mask)
			k := planOf(t, src).Kernels[0]
			require.Equal(t, ir.AttendTemplate, k.Template)
			checkTiles(t, mask, k.Variants[0])
		})
	}
}

func checkTiles(t *testing.T, mask string, v *ir.Variant) {
	const l, s = 300, 280
	g := parse(t, fmt.Sprintf("graph m(a: f32[L], b: f32[S]) -> (y: bool[L, S]) { y = %s }", mask))
	out, err := interp.Run(g, []*interp.Tensor{interp.New(ir.F32, l), interp.New(ir.F32, s)}, interp.Options{})
	require.NoError(t, err)
	skip := v.Attend.Skip
	skipped, empty := 0, 0
	for q := 0; q < l; q += v.Schedule.TileM {
		for k := 0; k < s; k += v.Schedule.TileN {
			kept, points := 0, 0
			for i := q; i < min(l, q+v.Schedule.TileM); i++ {
				for j := k; j < min(s, k+v.Schedule.TileN); j++ {
					points++
					kept += int(out[0].I[i*s+j])
				}
			}
			at := map[string]int64{"L": l, "S": s, skip.Query: int64(q), skip.Key: int64(k)}
			if kept == 0 {
				empty++
			}
			holds := func(e *ir.Expr, otherwise int64) bool {
				if e == nil {
					return otherwise != 0
				}
				n, ok := ir.EvalSize(e, at)
				require.True(t, ok)
				return n != 0
			}
			if !holds(skip.Any, 1) {
				skipped++
				assert.Zero(t, kept, "tile %d, %d", q, k)
			}
			if holds(skip.All, 0) {
				assert.Equal(t, points, kept, "tile %d, %d", q, k)
			}
		}
	}
	if !strings.Contains(mask, "/") { // bounds of sums are exact, those of quotients need not be
		assert.Equal(t, empty, skipped)
	}
}

// TestStoresOfOpenHeads: where the variant's condition makes rows of the result whole vectors, they are stored as such.
func TestStoresOfOpenHeads(t *testing.T) {
	p := planOf(t, "@bench(B=64, L=1024, S=1024, D=64)\ngraph g(q: bf16[B, L, D], k: bf16[B, S, D], v: bf16[B, S, D]) -> (y: bf16[B, L, D]) { y = attention(q, k, v) }")
	wide := 0
	for _, v := range p.Kernels[0].Variants {
		if v.Attend == nil {
			continue
		}
		whole := ir.Multiple(v.Attend.N[0].Extent, operandVector, v.Facts)
		for _, s := range v.Sections {
			for _, st := range s.Stores {
				assert.Equal(t, whole, st.Wide, "%v", v.When)
				if st.Wide {
					wide++
				}
			}
		}
	}
	assert.Positive(t, wide)
}
