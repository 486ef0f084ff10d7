package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// lastBlocksOf lists the kernels that last blocks of others run, and how many are launched.
func lastBlocksOf(p *ir.Plan) (ran []string, launched int) {
	for _, k := range p.Kernels {
		if k.LastBlock != nil {
			ran = append(ran, k.LastBlock.Kernel.Name)
		}
	}
	return ran, len(p.Launched())
}

// TestLastBlocks says which folds are run by the last blocks of the kernel ahead.
func TestLastBlocks(t *testing.T) {
	for _, c := range []struct {
		name, src string
		ran       []string
		launched  int
	}{
		{"all of a tensor", `@bench(N=1024, M=1024) graph g(x: bf16[N, M]) -> (y: bf16[]) { y = sum(x * x) }`, []string{"g_y"}, 1},
		{"all of a tensor of many blocks", `@bench(N=8192, M=8192) graph g(x: bf16[N, M]) -> (y: bf16[]) { y = sum(x * x) }`, nil, 2},
		{"a middle axis", `@bench(B=2, N=4096, M=512) graph g(x: bf16[B, N, M]) -> (y: bf16[B, M]) { y = sum(x, axis=1) }`,
			[]string{"g_y"}, 1},
		{"a middle axis of as many results as blocks need", `@bench(B=64, N=1024, M=1024) graph g(x: f32[B, N, M]) -> (y: f32[B, M]) {
			y = sum(x, axis=1) }`, nil, 1},
		{"the same, read by all", `@bench(B=64, N=1024, M=1024) graph g(x: f32[B, N, M]) -> (y: f32[B, N, M]) {
			y = x / sqrt(sum(x * x, axis=1, keep=true)) }`, nil, 1},
		{"the outer axis in a chain of blocks", `@bench(N=8192, M=2048) graph g(x: bf16[N, M]) -> (y: bf16[M]) {
			y = sum(x, axis=0) }`, nil, 1},
		{"the outer axis of much work in as many blocks as run at once, which read once", `@bench(N=8192, M=2048) graph g(x: bf16[N, M]) -> (y: bf16[M]) {
			y = sum(gelu(x), axis=0) }`, nil, 2},
		{"results in another order", `@bench(B=2, N=4096, M=512) graph g(x: bf16[B, N, M]) -> (y: bf16[M, B]) {
			y[m, b] = sum[n: N] x[b, n, m] }`, []string{"g_y"}, 1},
		{"the outer axis", `@bench(N=4096, M=512) graph g(x: f32[N, M]) -> (y: f32[M]) { y = sum(x, axis=0) }`, []string{"g_y"}, 1},
		{"moments of channels", `@bench(N=32, C=24, L=1024) graph g(x: bf16[N, C, L]) -> (m: f32[1, C, 1], v: f32[1, C, 1]) { m, v = moments(x, axis=(0, 2)) }`,
			[]string{"g_v"}, 1},
		{"moments of channels in many blocks", `@bench(N=64, C=256, L=3137) graph g(x: bf16[N, C, L]) -> (y: bf16[N, C, L]) {
			y, m, v = batch_norm_train(x) }`, nil, 3},
		{"the mean of what many rows give", `@bench(N=4096, V=128256) graph g(x: f32[N, V], t: i64[N]) -> (y: f32[]) {
			y = cross_entropy(x, t) }`, nil, 2},
		{"the mean of few rows", `@bench(N=512, V=128256) graph g(x: f32[N, V], t: i64[N]) -> (y: f32[]) {
			y = cross_entropy(x, t) }`, []string{"g_y"}, 1},
		{"a quotient of long sums", `@bench(N=131072) graph g(x: f32[N], i: i64[N], w: bf16[N]) -> (y: f32[]) {
			y = sum(x) / (sum(f32(i)) + sum(f32(w))) }`, []string{"g_y"}, 1},
		{"the mean of what very many rows give", `@bench(N=32768, V=4096) graph g(x: f32[N, V], t: i64[N]) -> (y: f32[]) {
			y = cross_entropy(x, t) }`, []string{"g_y"}, 2},
		{"the largest of row sums", `@bench(N=128, M=4096) graph g(x: f32[N, M]) -> (y: f32[], at: i64[]) {
			s = sum(x, axis=1)
			y = max(s)
			at = argmax(s) }`, []string{"g_at"}, 1},
		{"a softmax of row sums", `@bench(N=128, M=4096) graph g(x: f32[N, M]) -> (y: f32[N]) { y = softmax(sum(x, axis=1)) }`,
			[]string{"g_y"}, 1},
		{"one kernel asked for", `@onekernel @bench(N=1024, M=4096) graph g(x: f32[N, M]) -> (y: f32[]) { y = max(sum(x, axis=1)) }`,
			[]string{"g_y"}, 1},
		{"too much for one block", `@bench(N=30000, M=64) graph g(x: f32[N, M]) -> (y: f32[N]) { y = softmax(sum(x, axis=1)) }`, nil, 2},
		{"sums of all rows, accumulated in chunks", `@bench(N=8192, M=8192) graph g(x: f32[N, M]) -> (y: f32[N, M], s: f32[M]) {
			y = softmax(x)
			s = sum(x, axis=0) }`, nil, 2},
		{"rows read elsewhere", `@bench(N=256, M=4096) graph g(x: f32[N, M]) -> (y: f32[N]) {
			s = sum(x, axis=1)
			y[i] = sum[k: N] s[k] * s[(k + i) % N] }`, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			ran, launched := lastBlocksOf(p)
			assert.Equal(t, c.ran, ran, ir.PrintPlan(p))
			assert.Equal(t, c.launched, launched)
			checkLastBlocks(t, p)
			compareAtSizes(t, c.src)
		})
	}
}

// TestApartAsAlone: kernels that might have had one launch, and have two, are scheduled as any other:
// short rows share warps, and what few losses add up to is read at once.
func TestApartAsAlone(t *testing.T) {
	p := planOf(t, `@bench(N=4096, V=128256) graph g(x: f32[N, V], t: i64[N]) -> (y: f32[]) { y = cross_entropy(x, t) }`)
	require.Len(t, p.Kernels, 2)
	rows, mean := p.Kernels[0], p.Kernels[1]
	require.Nil(t, rows.LastBlock)
	for n, threads := range map[int64]int{256: 32, 1000: 128, 2048: 512} {
		s := mean.Variants[chosen(t, mean, map[string]int64{"N": n, "V": 1000})].Schedule
		assert.Equal(t, threads, s.RowThreads, n)
		assert.GreaterOrEqual(t, int64(atOnce(s)), n)
	}
	s := rows.Variants[chosen(t, rows, map[string]int64{"N": 4096, "V": 100})].Schedule
	assert.Equal(t, 8, s.RowThreads)
}

// checkLastBlocks checks what codegen takes for granted.
func checkLastBlocks(t *testing.T, p *ir.Plan) {
	for i, k := range p.Kernels {
		if k.LastBlock == nil {
			continue
		}
		require.Same(t, k.LastBlock.Kernel, p.Kernels[i+1], "it stands behind")
		rest := k.LastBlock.Rest(k.Rows)
		assert.True(t, ir.SameSize(algebra.Product(rest), algebra.Product(k.LastBlock.Kernel.Rows)))
		assert.True(t, ir.SameSize(algebra.Product(k.LastBlock.Parts), algebra.Product(k.LastBlock.Kernel.Cols)))
		for _, v := range k.Variants {
			own, s := v.Schedule, v.LastBlock.Schedule
			assert.Equal(t, own.Threads, s.Threads)
			assert.Equal(t, own.Index64, s.Index64)
			assert.Equal(t, own.Mapping, s.Mapping)
			assert.Equal(t, rowsOfFirst(k, k.LastBlock, v), rowsOfBlock(s), "%+v", s)
		}
	}
}

// rowsOfBlock is the number of rows that a block of a loop kernel with columns works on.
func rowsOfBlock(s ir.Schedule) int {
	if s.Mapping == ir.RowMapping {
		return s.Threads / s.RowThreads
	}
	return s.Threads / s.ColThreads * s.Vector
}

// TestLastBlocksFollowChoices: a choice of another number of threads changes those of the
// last blocks too, and does not cost the kernel its name.
func TestLastBlocksFollowChoices(t *testing.T) {
	src := `@bench(N=1024, M=1024) graph g(x: bf16[N, M]) -> (y: bf16[]) { y = sum(x * x) }`
	g, base := parse(t, src), planOf(t, src)
	sizes := map[string]int64{"N": 1024, "M": 1024}
	choices := Candidates(base, base.Kernels[0], sizes)
	require.Greater(t, len(choices), 1)
	for _, c := range choices[1:] {
		p, err := Plan(g, Options{Choices: []Choice{c}})
		require.NoError(t, err)
		require.NotNil(t, p.Kernels[0].LastBlock)
		assert.Equal(t, c.Schedule, p.Kernels[0].Variants[c.Class].Schedule)
		checkLastBlocks(t, p)
	}
}
