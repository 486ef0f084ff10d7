package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestPipelineCandidates: which blocks hold long rows, by what a row takes and by the work of a point.
func TestPipelineCandidates(t *testing.T) {
	const (
		softmax  = `y = softmax(x)`
		gradient = `p = softmax(f32(x))
			y = %s(where(at[:, none] == iota(M), p - 1, p) / N)`
	)
	type rowCandidate struct{ threads, items, cluster, blocks, persistent int }
	for _, c := range []struct {
		name, dtype, body string
		columns           int64
		want              rowCandidate
	}{
		{"two blocks on a multiprocessor", "bf16", softmax, 28672, rowCandidate{512, 7, 0, 2, 0}},
		{"a block alone", "bf16", softmax, 28680, rowCandidate{1024, 8, 0, 1, 0}},
		{"a block alone, in chunks", "bf16", softmax, 114688, rowCandidate{512, 0, 0, 1, 2}},
		{"clusters of two", "bf16", softmax, 131072, rowCandidate{512, 0, 2, 1, 2}},
		{"clusters of two", "f32", softmax, 114688, rowCandidate{512, 0, 2, 1, 2}},
		{"clusters of four", "f32", softmax, 131072, rowCandidate{512, 0, 4, 1, 2}},
		{"more work, two blocks", "bf16", gradient, 28672, rowCandidate{512, 7, 0, 2, 0}},
		{"more work, a block alone", "bf16", gradient, 57344, rowCandidate{1024, 7, 0, 1, 0}},
		{"more work, in chunks", "bf16", gradient, 128256, rowCandidate{512, 0, 2, 1, 2}},
		{"in f32, whose exponentials are less work", "f32", gradient, 128256, rowCandidate{512, 0, 4, 1, 2}},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := strings.ReplaceAll(c.body, "%s", c.dtype)
			p := planOf(t, fmt.Sprintf(`@bench(N=4096, M=128256) graph g(x: %[1]s[N, M], at: i64[N]) -> (y: %[1]s[N, M]) {
			%[2]s }`, c.dtype, body))
			require.Len(t, p.Kernels, 1)
			for _, v := range p.Kernels[0].Variants {
				if s := v.Schedule; holdsAt(v.When, map[string]int64{"N": 4096, "M": c.columns}) {
					require.Equal(t, ir.RowMapping, s.Mapping)
					assert.Equal(t, c.want, rowCandidate{s.Threads, s.Items, s.Cluster, s.MinBlocks, s.RegisterChunks})
					assert.Positive(t, s.Stages)
					break
				}
			}
		})
	}
}

// TestRowsByDynamicScheduler: clusters that share multiprocessors are given their rows by a dynamic scheduler where these
// are several turns for all of them, and are blocks of fewer threads then.
func TestRowsByDynamicScheduler(t *testing.T) {
	p := planOf(t, `graph g(x: bf16[N, C, L], w: bf16[C], b: bf16[C]) -> (y: bf16[N, C, L]) { y, m, v = batch_norm_train(x, w, b) }`)
	for _, c := range []struct {
		name            string
		rows, length    int64
		threads, blocks int
		dynamic         bool
	}{
		{"four turns of clusters of four", 264, 100352, 384, 4, true},
		{"fewer", 263, 100352, 512, 4, false},
		{"four turns of clusters of eight", 132, 200704, 384, 8, true},
		{"fewer", 131, 200704, 512, 8, false},
		{"longer rows than such blocks hold", 264, 114688, 512, 4, false},
		{"a block for each row", 4096, 50176, 1024, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, v := range p.Kernels[0].Variants {
				if s := v.Schedule; holdsAt(v.When, map[string]int64{"N": 1, "C": c.rows, "L": c.length}) {
					assert.Equal(t, c.threads, s.Threads)
					assert.Equal(t, c.blocks, s.Cluster)
					assert.Equal(t, c.dynamic, s.Dynamic)
					break
				}
			}
		})
	}
}

// TestFewRowsReadEarly: few rows whose later passes read more have little a thread, and read it
// with the first; more rows and what reads nothing later do not. What is read of the row itself is
// read early too, and few short rows that are read once are read at once.
func TestFewRowsReadEarly(t *testing.T) {
	norm := `graph g(x: bf16[N, M], w: bf16[M], b: bf16[M]) -> (y: bf16[N, M]) { y = layer_norm(x, w, b) }`
	wide := `graph g(x: f32[N, M], w: f32[M], b: f32[M]) -> (y: f32[N, M]) { y = layer_norm(x, w, b) }`
	row := `graph g(x: bf16[N, M], w: bf16[N]) -> (y: bf16[N, M]) { y = rms_norm(x) * w[:, none] }`
	soft := `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`
	once := `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) }`
	log := `graph g(x: f32[N, M]) -> (y: f32[N]) { y = logsumexp(x, axis=1) }`
	for _, c := range []struct {
		src                  string
		n, m                 int64
		threads, items, have int // of a row, of a thread, and early reads
	}{
		{norm, 1, 4096, 512, 1, 2}, {norm, 264, 4096, 512, 1, 2}, {norm, 265, 4096, 256, 2, 0}, {norm, 132, 8192, 1024, 1, 2},
		{norm, 133, 8192, 512, 2, 0}, {norm, 8, 256, 32, 1, 2}, {norm, 265, 256, 8, 4, 0}, {norm, 8, 264, 64, 1, 2}, {norm, 8, 257, 32, 16, 0},
		{wide, 8, 256, 32, 2, 2}, {wide, 8, 512, 64, 2, 2}, {wide, 8, 516, 256, 1, 2}, {row, 8, 256, 32, 1, 1}, {soft, 1, 4096, 256, 2, 0},
		{once, 264, 512, 128, 2, 0}, {once, 264, 64, 8, 4, 0}, {once, 264, 16, 1, 4, 0}, {once, 264, 1024, 128, 2, 0}, {once, 265, 1024, 32, 0, 0}, {once, 8, 1028, 256, 2, 0},
		{once, 8, 2052, 512, 2, 0}, {once, 8, 4100, 512, 0, 0},
		{log, 264, 1000, 128, 2, 0}, {log, 265, 1000, 32, 0, 0}, {log, 8, 1001, 64, 16, 0},
	} {
		p := planOf(t, c.src)
		require.Len(t, p.Kernels, 1)
		v := p.Kernels[0].Variants[chosen(t, p.Kernels[0], map[string]int64{"N": c.n, "M": c.m})]
		assert.Equal(t, c.threads, v.Schedule.RowThreads, "%v", c)
		assert.Equal(t, c.items, v.Schedule.Items, "%v", c)
		assert.Len(t, v.Early, c.have, "%v", c)
	}
}
