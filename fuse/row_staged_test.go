package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestShortRowsPassThroughSharedMemory says which reads and stores of short rows do: those in the order
// of memory, of single elements, and of one thread's vectors where it stores some.
func TestShortRowsPassThroughSharedMemory(t *testing.T) {
	soft := `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`
	norm := `graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = rms_norm(x, w) }`
	sums := `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) }`
	gathered := `graph g(at: i64[N], x: f32[V, M]) -> (y: f32[N, M]) { y = softmax(embedding(at, x)) }`
	wide := `graph g(x: f64[N, M], z: f64[N, M]) -> (y: f64[N, M], s: f64[N, M]) {
		s = x + z
		y = s / sum(s * s, axis=1, keep=true) }`
	many := `graph g(a: f32[N, M], b: f32[N, M], c: f32[N, M], d: f32[N, M], e: f32[N, M], f: f32[N, M], g: f32[N, M], h: f32[N, M], i: f32[N, M]) -> (y: f32[N, M]) {
		s = a + b + c + d + e + f + g + h + i
		y = s / sum(s * s, axis=1, keep=true) }`
	part := `graph g(x: f32[N, M + 1]) -> (y: f32[N, M]) { y = softmax(x[:, 1:]) }`
	for _, c := range []struct {
		src           string
		m             int64
		reads, stores int
	}{
		{soft, 10, 1, 1}, {soft, 100, 1, 1}, {soft, 33, 1, 1}, {soft, 3, 0, 0}, {soft, 129, 0, 0}, // a row of few, a warp
		{soft, 32, 1, 1}, {soft, 8, 0, 0}, {soft, 64, 0, 0}, // vectors: of one thread, one alone, of eight
		{norm, 10, 1, 1}, {norm, 101, 1, 1}, // not what all rows share
		{sums, 10, 0, 0}, {sums, 100, 0, 0}, {sums, 101, 1, 0},
		{gathered, 10, 0, 1}, {part, 10, 0, 1}, // rows apart
		{wide, 7, 2, 2}, {many, 10, 9, 1},
	} {
		p := planOf(t, c.src)
		require.Len(t, p.Kernels, 1)
		sizes := map[string]int64{"N": 100000, "M": c.m, "V": 1000}
		v := p.Kernels[0].Variants[chosen(t, p.Kernels[0], sizes)]
		stores := 0
		for _, sec := range v.Sections {
			for _, st := range sec.Stores {
				if st.Staged {
					stores++
				}
			}
		}
		assert.Equal(t, []int{c.reads, c.stores}, []int{len(v.Staged), stores}, "%s, %d columns", c.src, c.m)
	}
}

// TestLeast: what a row of single elements has at least is what the variants before it do not take.
func TestLeast(t *testing.T) {
	for _, src := range []string{
		`graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`,
		`graph g(x: f32[N, M]) -> (y: f32[N]) { y = logsumexp(x, axis=1) }`,
	} {
		k := planOf(t, src).Kernels[0]
		for m, least := range map[int64]int{100: 0, 129: 128, 513: 512, 1025: 1024, 4095: 2048} {
			sizes := map[string]int64{"N": 100000, "M": m}
			v := k.Variants[chosen(t, k, sizes)]
			assert.Equal(t, least, v.Least, "%s, %d columns", src, m)
			assert.True(t, holdsAt(v.When, sizes))
			sizes["M"] = int64(least)
			assert.False(t, least > 0 && holdsAt(v.When, sizes), "%s", v.When)
		}
		for _, v := range k.Variants {
			assert.True(t, v.Least == 0 || v.Schedule.Vector == 1 && ir.Has(v.When, ir.OpLt), "%v", v.Schedule)
		}
	}
}
