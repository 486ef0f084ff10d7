package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// programsNamed returns the programs of testdata whose file names start as given.
func programsNamed(t *testing.T, prefix string) map[string]string {
	t.Helper()
	return textsOf(t, "../testdata/programs/"+prefix+"*.fuse")
}

func TestScanPlans(t *testing.T) {
	for name, src := range programsNamed(t, "scan_") {
		t.Run(name, func(t *testing.T) { compareAtSizes(t, src) })
	}
}

// TestScanIsOnePass: what a scan is made of and what is made of it share its kernel,
// and no loop over earlier elements is left.
func TestScanIsOnePass(t *testing.T) {
	for name, src := range programsNamed(t, "scan_") {
		p := planOf(t, src)
		want := 1
		if name == "scan_both_ends.fuse" {
			want = 2
		}
		require.Len(t, p.Kernels, want, name)
		for _, k := range p.Kernels {
			assert.Equal(t, ir.ScanTemplate, k.Template, name)
			assert.Len(t, k.Cols, 1, name)
		}
	}
}

// TestNoScan: predicates that are not a prefix, and terms that depend on where the
// prefix ends, stay reductions.
func TestNoScan(t *testing.T) {
	for _, src := range []string{
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = sum[k: M where k <= j + 2] x[i, k] }`,
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = sum[k: M where k <= 2 * j] x[i, k] }`,
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = sum[k: M where k != j] x[i, k] }`,
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = sum[k: M where k <= j] x[i, k] % x[i, j] }`,
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = sum[k: M where k <= j && x[i, k] < x[i, j]] x[i, k] }`,
		`graph g(x: f32[N, M], z: f32[N, L]) -> (y: f32[N, M]) { y[i, j] = sum[k: L where k <= j] z[i, k] * x[i, j] }`,
	} {
		for _, k := range planOf(t, src).Kernels {
			assert.Equal(t, ir.LoopTemplate, k.Template, src)
		}
		compareAtSizes(t, src)
	}
}

// TestScansShareRowsAmongThreads: a scan along columns that are not the neighbours in
// memory, of rows too few to keep it busy, gives each of them to a group of threads. Many
// rows stay with single threads.
func TestScansShareRowsAmongThreads(t *testing.T) {
	p := planOf(t, `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = cumsum(x, axis=0) }`)
	require.Len(t, p.Kernels, 1)
	for _, c := range []struct {
		n, m   int64
		shared bool
	}{{32768, 4096, true}, {32768, 4097, true}, {256, 4096, true}, {64, 4096, true}, {64, 16384, false}, {4096, 1 << 18, false}} {
		sizes := map[string]int64{"N": c.n, "M": c.m}
		v := p.Kernels[0].Variants[chosen(t, p.Kernels[0], sizes)]
		assert.Equal(t, ir.FlatMapping, v.Schedule.Mapping)
		assert.Equal(t, c.shared, v.Schedule.ColThreads > 0, "%v", c)
		if c.shared {
			assert.Zero(t, v.Schedule.Threads/v.Schedule.ColThreads&(v.Schedule.Threads/v.Schedule.ColThreads-1), "lanes are a power of two")
		}
	}
}

// TestMuchScannedWorkHasFewWarps: where issuing what is scanned takes longer than memory does, or
// elements are narrow, a thread has 32 columns of a row at once; without, more warps have fewer.
func TestMuchScannedWorkHasFewWarps(t *testing.T) {
	for src, items := range map[string]int{
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = exp(-cumsum(softplus(x), axis=-1)) }`:   8,
		`graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = exp(-cumsum(softplus(x), axis=-1)) }`: 4,
		`graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = cumsum(x, axis=-1) }`:                 4,
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(x, axis=-1) }`:                   0,
	} {
		p := planOf(t, src)
		require.Len(t, p.Kernels, 1)
		for columns, threads := range map[int64]int{2048: 64, 4096: 128, 4088: 128, 8192: 256} {
			s := p.Kernels[0].Variants[chosen(t, p.Kernels[0], map[string]int64{"N": 1000, "M": columns})].Schedule
			assert.Equal(t, items, s.Items, "%s, %d columns", src, columns)
			if items > 0 {
				assert.Equal(t, threads, s.Threads, "%s, %d columns", src, columns)
			}
		}
	}
}
