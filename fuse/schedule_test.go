package fuse

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// wideReads returns, by argument, whether the first variant reads it in vectors.
func wideReads(p *ir.Plan) map[string]bool {
	out := map[string]bool{}
	for _, l := range p.Kernels[0].Variants[0].Locals {
		if r := algebra.ReadIn(l.Def); r != nil {
			out[r.Arg.Name] = out[r.Arg.Name] || l.Wide
		}
	}
	return out
}

func TestOnlyContiguousReadsAreVectors(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      map[string]bool
	}{
		{"pointwise", `graph g(x: f32[N, 64], b: f32[64], s: f32[N, 1]) -> (y: f32[N, 64]) { y = x + b + s }`,
			map[string]bool{"x": true, "b": true, "s": false}},
		{"rows chosen by an index: each row is contiguous",
			`graph g(x: f32[K, 64], at: i64[N]) -> (y: f32[N, 64]) { y[i, j] = x[at[i], j] + 1 }`,
			map[string]bool{"x": true, "at": false}},
		{"an index that differs from lane to lane",
			`graph g(x: f32[K, 64], at: i64[N, 64]) -> (y: f32[N, 64]) { y[i, j] = x[at[i, j], j] }`,
			map[string]bool{"x": false, "at": true}},
		{"a guard that differs from lane to lane",
			`graph g(x: f32[K, 64], at: i64[64]) -> (y: f32[64, 64]) { y[i, j] = x[i + at[j], j] else 1 }`,
			map[string]bool{"x": false, "at": true}},
		{"a transposed read is contiguous along its own range, and goes through a tile",
			`graph g(x: f32[64, 4 * N]) -> (y: f32[4 * N, 64]) { y[i, j] = x[j, i] }`, map[string]bool{"x": true}},
		{"a shifted read starts at no multiple", `graph g(x: f32[N, 64]) -> (y: f32[N, 64]) { y[i, j] = x[i, j + 1] }`,
			map[string]bool{"x": false}},
		{"the row above is as aligned as this one",
			`graph g(x: f32[N, 64]) -> (y: f32[N, 64]) { y[i, j] = x[i + 1, j] + x[i, j] }`, map[string]bool{"x": true}},
		{"a reduction in each lane chooses the element", `graph g(x: f32[8, 64], t: f32[M, 64]) -> (y: f32[64]) {
			k = argmax(x, axis=0)
			y[j] = t[k[j], j]
		}`, map[string]bool{"x": true, "t": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			require.Len(t, p.Kernels, 1)
			assert.Equal(t, c.want, wideReads(p))
			compareAtSizes(t, c.src)
		})
	}
}

// chosen returns the position of the variant that runs for the sizes.
func chosen(t *testing.T, k *ir.Kernel, sizes map[string]int64) int {
	t.Helper()
	for n, v := range k.Variants {
		if v.When == nil {
			return n
		}
		if yes, ok := ir.EvalSize(v.When, sizes); ok && yes != 0 {
			return n
		}
	}
	require.Fail(t, "no variant takes the sizes")
	return -1
}

// TestVariants checks, for every kernel of the examples and of the kernel table,
// what holds for all size classes: they are few, what one promises about the
// symbols follows from its condition, the last takes everything, and each is
// there for some size.
func TestVariants(t *testing.T) {
	sources := examplePrograms(t)
	for _, c := range kernelTable {
		sources[c.name] = c.src
	}
	for name, src := range sources {
		t.Run(name, func(t *testing.T) {
			p := planOf(t, src)
			for _, k := range p.Kernels {
				require.NotEmpty(t, k.Variants)
				assert.LessOrEqual(t, len(k.Variants), 60, "size classes of %s", k.Name)
				assert.Nil(t, k.Variants[len(k.Variants)-1].When, "the last of %s takes everything", k.Name)
				for n, v := range k.Variants {
					checkSchedule(t, k, v)
					for symbol, by := range v.Facts.Divisible {
						if by <= 1 {
							continue
						}
						multiple := ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, ir.Sym(symbol), ir.IntConst(by)), ir.IntConst(0))
						implied := v.When != nil && ir.Implies(v.When, multiple, p.Graph.Facts()) ||
							ir.Decide(multiple, p.Graph.Facts()) == ir.True
						assert.True(t, implied, "%s, variant %d: %s %% %d == 0 does not follow from %s", k.Name, n, symbol, by, v.When)
					}
					for _, m := range v.Facts.Multiples {
						multiple := ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, m.Size, ir.IntConst(m.By)), ir.IntConst(0))
						assert.True(t, v.When != nil && ir.Implies(v.When, multiple, p.Graph.Facts()),
							"%s, variant %d: %s %% %d == 0 does not follow from %s", k.Name, n, m.Size, m.By, v.When)
					}
				}
			}
		})
	}
}

// checkSchedule checks what a GPU and the code generator require of a schedule.
func checkSchedule(t *testing.T, k *ir.Kernel, v *ir.Variant) {
	t.Helper()
	s := v.Schedule
	assert.True(t, s.Threads > 0 && s.Threads <= 1024 && s.Threads%32 == 0, "%s: %+v", k.Name, s)
	assert.Contains(t, []int{1, 2, 4, 8, 16}, s.Vector, "%s: %+v", k.Name, s)
	if s.Mapping == ir.RowMapping {
		assert.NotEmpty(t, k.Cols)
		assert.True(t, s.RowThreads > 0 && s.Threads%s.RowThreads == 0, "%s: %+v", k.Name, s)
		assert.True(t, (s.Items > 0) != (s.Unroll > 0), "a row is persistent or looped over: %s: %+v", k.Name, s)
		assert.True(t, s.Items > 0 || s.Stages > 0 || len(v.Keep) == 0, "what is streamed is not kept: %s: %+v", k.Name, s)
		if s.Unroll > 0 && s.Stages > 0 {
			assert.Equal(t, s.Threads, s.RowThreads, "rows in chunks take a block: %s: %+v", k.Name, s)
			assert.Equal(t, v.Keep, v.Staged, "and hold what is fetched: %s: %+v", k.Name, s)
		}
	}
}

// TestEverySizeClassIsUsed finds, for each variant of a softmax and of a row sum,
// sizes for which it runs.
func TestEverySizeClassIsUsed(t *testing.T) {
	for _, src := range []string{
		`graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`,
		`graph g(x: f32[N, M], w: f32[M], b: f32[M]) -> (y: f32[N, M]) { y = layer_norm(x, w, b) }`,
		`graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) }`,
		`graph g(x: f32[N, M], y: f32[N, M]) -> (z: f32[N, M]) { z = x * y }`,
	} {
		k := planOf(t, src).Kernels[0]
		used := map[int]bool{}
		for m := int64(1); m < 1<<33; m += max(1, m/8) {
			for _, n := range []int64{1, 1 << 10, 1 << 16} {
				for _, odd := range []int64{0, 1} {
					used[chosen(t, k, map[string]int64{"N": n, "M": max(m/8*8, min(m, 4)) + odd})] = true
				}
			}
		}
		for n, v := range k.Variants {
			assert.True(t, used[n], "%s: variant %d, %s when %s, never runs", src, n, v.Schedule.Mapping, v.When)
		}
	}
}

func TestCandidateFollowsSize(t *testing.T) {
	k := planOf(t, `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`).Kernels[0]
	at := func(n, m int64) ir.Schedule {
		return k.Variants[chosen(t, k, map[string]int64{"N": n, "M": m})].Schedule
	}
	assert.Equal(t, 1, at(1024, 32).RowThreads, "a row of few vectors takes a thread")
	assert.Equal(t, 8, at(1024, 64).RowThreads, "short rows share a warp")
	assert.Equal(t, 8, at(1024, 100).RowThreads, "so do those of single elements")
	assert.Equal(t, 32, at(1024, 512).RowThreads, "longer ones take one")
	assert.Equal(t, 8, at(1024, 4096).Vector, "16 bytes an access where rows are aligned")
	assert.Equal(t, 1, at(1024, 4095).Vector, "and single elements where not")
	assert.Positive(t, at(1024, 16384).Items, "a row of 16384 is persistent")
	assert.Zero(t, at(16, 1<<21).Items, "one of two million is streamed")
	assert.False(t, at(1024, 4096).Index64)
	assert.True(t, at(1<<20, 1<<12).Index64, "2^32 elements need 64-bit offsets")
	last := 0
	for m := int64(8); m <= 1<<16; m *= 2 {
		s := at(64, m)
		columns := s.RowThreads * max(1, s.Cluster) * s.Items * s.Vector
		assert.GreaterOrEqual(t, int64(columns), m, "the candidate takes the row")
		assert.GreaterOrEqual(t, columns, last, "longer rows take no smaller candidates")
		last = columns
	}
}

// TestAlignedRowsTakeVectors: rows of single elements are for lengths that are no whole number of
// vectors, whichever candidate their blocks are of. Odd rows have threads for their length.
func TestAlignedRowsTakeVectors(t *testing.T) {
	for _, body := range []string{"{ y = softmax(x) }", "{ y = x / sum(abs(x), axis=1, keep=true) }", "{ y = x - sum(x * w, axis=1, keep=true) * max(w) }"} {
		for typ, vector := range map[string]int64{"f64": 2, "f32": 4, "bf16": 8} {
			src := fmt.Sprintf("graph g(x: %[1]s[N, M], w: %[1]s[M]) -> (y: %[1]s[N, M]) %[2]s", typ, body)
			checkRowVectors(t, src, vector)
		}
	}
	for typ, vector := range map[string]int64{"f64": 2, "f32": 4, "bf16": 8} {
		checkRowVectors(t, fmt.Sprintf("graph g(x: %[1]s[N, M], w: %[1]s[M]) -> (y: %[1]s[N]) { y = sum(x * w, axis=1) }", typ), vector)
	}
}

func checkRowVectors(t *testing.T, src string, vector int64) {
	kernels := planOf(t, src).Kernels
	k := kernels[len(kernels)-1]
	for m := vector; m <= 20000; m += vector * (1 + m/512) {
		for _, n := range []int64{8, 100000} {
			s := k.Variants[chosen(t, k, map[string]int64{"N": n, "M": m})].Schedule
			require.Greater(t, s.Vector, 1, "%s, %d x %d", src, n, m)
		}
	}
	for m := int64(131); m <= 8191; m += 60 { // odd ones
		s := k.Variants[chosen(t, k, map[string]int64{"N": 100000, "M": m})].Schedule
		if s.Items > 0 {
			require.LessOrEqual(t, int64(s.RowThreads*s.Items*s.Vector), max(4*m, 512), "%s, %d columns", src, m)
		}
	}
}

func TestSpecialize(t *testing.T) {
	const src = `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x) }`
	p, err := Plan(parse(t, src), Options{Specialize: map[string]int64{"M": 4096}})
	require.NoError(t, err)
	for _, v := range p.Kernels[0].Variants {
		assert.NotZero(t, v.Schedule.Items, "4096 columns are never streamed")
		assert.NotEqual(t, 1, v.Schedule.Vector, "and always aligned")
	}
	assert.NotContains(t, ir.PrintPlan(p), " M", "no trace of the symbol")
	whole := planOf(t, src)
	assert.Less(t, len(p.Kernels[0].Variants), len(whole.Kernels[0].Variants))

	small, err := Plan(parse(t, src), Options{Specialize: map[string]int64{"M": 8}})
	require.NoError(t, err)
	g := parse(t, src)
	sizes := map[string]int64{"N": 5, "M": 8}
	inputs, err := drawInputs(g, sizes, 1)
	require.NoError(t, err)
	comparePlan(t, g, small, inputs, sizes, src)
}

// TestManySizesFewKernels is the promise about sizes bound at run time: what a program
// compiles for many batch sizes and row lengths is a handful, which explain lists.
func TestManySizesFewKernels(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, src := range []string{
		`graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`,
		`graph g(x: f32[N, M], w: f32[M], b: f32[M]) -> (y: f32[N, M]) { y = layer_norm(x, w, b) }`,
		`graph g(x: bf16[N, M], w: bf16[M]) -> (y: bf16[N]) { y = sum(x * w, axis=1) }`,
		`graph g(x: f32[N, M], y: f32[N, M]) -> (z: f32[N, M]) { z = gelu(x) * y }`,
	} {
		p := planOf(t, src)
		require.Len(t, p.Kernels, 1)
		k := p.Kernels[0]
		used := map[int]bool{}
		for range 20 {
			m := 8 * (1 + rng.Int64N(1024)) // as widths of models are
			for range 100 {
				used[chosen(t, k, map[string]int64{"N": 1 + rng.Int64N(100000), "M": m})] = true
			}
		}
		assert.LessOrEqual(t, len(used), 6, src)
		for range 20 {
			used[chosen(t, k, map[string]int64{"N": 100, "M": 1 + rng.Int64N(8192)})] = true
		}
		assert.LessOrEqual(t, len(used), 10, "with lengths of any kind: %s", src)
	}
}

// TestFewPointsTakeSmallTiles: of transpositions too small for a tile of the usual side on each
// multiprocessor; whole tiles are a class of their own. Gathers of few points have one vector a thread.
func TestFewPointsTakeSmallTiles(t *testing.T) {
	turned := planOf(t, `graph g(x: bf16[N, M]) -> (y: bf16[M, N]) { y = transpose(x, 0, 1) }`)
	gathered := planOf(t, `graph g(at: i64[N], x: bf16[V, M]) -> (y: bf16[N, M]) { y = embedding(at, x) }`)
	for _, c := range []struct {
		p      *ir.Plan
		n, m   int64
		tile   int
		unroll int
		whole  bool
	}{
		{turned, 256, 256, 32, 0, true}, {turned, 260, 256, 32, 0, false}, {turned, 1024, 512, 32, 0, true},
		{turned, 1024, 1024, 64, 0, false}, {turned, 255, 256, 64, 0, false}, {turned, 8192, 8192, 128, 0, false},
		{gathered, 1024, 256, 0, 0, false}, {gathered, 1 << 17, 1024, 0, gatherUnroll, false},
	} {
		sizes := map[string]int64{"N": c.n, "M": c.m, "V": 1000}
		v := c.p.Kernels[0].Variants[chosen(t, c.p.Kernels[0], sizes)]
		assert.Equal(t, c.tile, v.Schedule.TileM, "%v", c)
		assert.Equal(t, c.unroll, v.Schedule.Unroll, "%v", c)
		if c.tile > 0 {
			assert.Equal(t, c.whole, ir.Multiple(ir.Sym("N"), int64(c.tile), v.Facts), "%v", c)
		}
	}
}
