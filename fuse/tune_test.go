package fuse

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

const tunable = `graph softmax(x: f32[N, M]) -> (y: f32[N, M], z: f32[N, M]) {
    e = exp(x - max(x, axis=-1, keep=true))
    y = e / sum(e, axis=-1, keep=true)
    z = x * 2
}`

// chosenAt is the position of the variant that sizes take.
func chosenAt(k *ir.Kernel, sizes map[string]int64) int {
	for i, v := range k.Variants {
		if holdsAt(v.When, sizes) {
			return i
		}
	}
	return -1
}

func planWith(t *testing.T, src string, choices ...Choice) *ir.Plan {
	t.Helper()
	p, err := Plan(parse(t, src), Options{Choices: choices})
	require.NoError(t, err)
	return p
}

// Each candidate, chosen, is what its sizes then take; sizes of other classes take
// what they took before, and the plan is right for all of them.
func TestChoicesReachTheirClassAndNoOther(t *testing.T) {
	sizes := []map[string]int64{{"N": 3, "M": 1024}, {"N": 5, "M": 67}, {"N": 2, "M": 100_000}, {"N": 3, "M": 8}}
	base := planWith(t, tunable)
	for _, at := range sizes[:3] {
		for number, k := range base.Kernels {
			candidates := Candidates(base, k, at)
			require.Greater(t, len(candidates), 1, "%s at %v", k.Name, at)
			byRules := chosenAt(k, at)
			assert.Equal(t, Choice{KernelID(base, k), byRules, byRules, k.Variants[byRules].Schedule}, candidates[0])
			for _, c := range candidates {
				tuned := planWith(t, tunable, c)
				got := tuned.Kernels[number]
				assert.Equal(t, c.Schedule, got.Variants[chosenAt(got, at)].Schedule)
				assert.Equal(t, ir.PrintPlan(planWith(t, tunable, c)), ir.PrintPlan(tuned), "a function of its inputs")
				for _, other := range sizes {
					was := chosenAt(k, other)
					if now := got.Variants[chosenAt(got, other)]; was != byRules {
						assert.Equal(t, k.Variants[was].Schedule, now.Schedule, "%v, tuned at %v", other, at)
					}
				}
			}
		}
	}
}

// Tuned plans compute what the graph says, under every candidate.
func TestTunedPlansAreRight(t *testing.T) {
	g := parse(t, tunable)
	base := planWith(t, tunable)
	at := map[string]int64{"N": 3, "M": 67}
	inputs, err := drawInputs(g, at, 1)
	require.NoError(t, err)
	for _, k := range base.Kernels {
		for _, c := range Candidates(base, k, at) {
			assert.Positive(t, comparePlan(t, g, planWith(t, tunable, c), inputs, at, k.Name))
		}
	}
}

// A choice for another kernel, another class or a schedule that nobody offers is as
// none.
func TestStaleChoicesChangeNothing(t *testing.T) {
	base := planWith(t, tunable)
	want := ir.PrintPlan(base)
	good := Candidates(base, base.Kernels[0], map[string]int64{"N": 3, "M": 1024})[1]
	require.NotEqual(t, want, ir.PrintPlan(planWith(t, tunable, good)))
	for _, change := range []func(*Choice){
		func(c *Choice) { c.Kernel = "another" },
		func(c *Choice) { c.Class = 10_000 },
		func(c *Choice) { c.Variant = -1 },
		func(c *Choice) { c.Variant = 10_000 },
		func(c *Choice) { c.Schedule.Threads = 96 },
	} {
		stale := good
		change(&stale)
		assert.Equal(t, want, ir.PrintPlan(planWith(t, tunable, stale)))
	}
	assert.Equal(t, KernelID(base, base.Kernels[0]), KernelID(planWith(t, tunable), planWith(t, tunable).Kernels[0]))
}

// The graph of a kernel that only one class of sizes can be: its choice replaces it.
func TestChoiceOfAKernelWithoutClasses(t *testing.T) {
	const src = "graph one(x: f32[1024]) -> (y: f32[1024]) { y = x * 2 }"
	base := planWith(t, src)
	c := Candidates(base, base.Kernels[0], nil)[1]
	tuned := planWith(t, src, c)
	require.Len(t, tuned.Kernels[0].Variants, 1)
	assert.Equal(t, c.Schedule, tuned.Kernels[0].Variants[0].Schedule)
	assert.Nil(t, tuned.Kernels[0].Variants[0].When)
}

// Large products of f32 that threads multiply may take any of the tiles that a table lists; what a measurement
// chooses among them, their sizes take.
func TestTilesOfProductsAreCandidates(t *testing.T) {
	const src = "@onekernel graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }"
	sizes := map[string]int64{"M": 4096, "N": 4096, "K": 4096}
	base := planWith(t, src)
	seen := map[ir.Schedule]bool{}
	for _, c := range Candidates(base, base.Kernels[0], sizes) {
		if c.Variant != c.Class {
			continue
		}
		seen[c.Schedule] = true
		assert.Equal(t, c.Schedule, variantAt(t, planWith(t, src, c), sizes).Schedule)
		assert.Equal(t, c.Schedule.Threads, c.Schedule.TileM*c.Schedule.TileN/(c.Schedule.PartM*c.Schedule.PartN))
	}
	assert.Len(t, seen, len(largeFMA))
	for _, c := range Candidates(base, base.Kernels[0], map[string]int64{"M": 64, "N": 64, "K": 64}) {
		assert.True(t, c.Variant != c.Class || c.Schedule == base.Kernels[0].Variants[c.Class].Schedule, "small tiles have no others")
	}
}

// severalKernels has temporaries that share memory and kernels that share a body, and is planned for odd rows too.
const severalKernels = `graph g(a: bf16[M, K], b: bf16[K, N], c: bf16[N, N]) -> (y: bf16[M, N], z: bf16[M, N]) {
    y = softmax(a @ b, axis=0)
    z = cumsum(softmax(y @ c, axis=0), axis=1)
}`

// A choice for a kernel reaches it wherever it is in a plan: behind others, with memory that others share, and among
// those that some sizes leave out.
func TestChoicesReachEveryKernel(t *testing.T) {
	base := planWith(t, severalKernels)
	conditions := map[bool]bool{}
	for _, sizes := range []map[string]int64{{"M": 4096, "N": 4096, "K": 4096}, {"M": 4095, "N": 4095, "K": 4095}} {
		chosen := map[string]Choice{}
		for _, k := range base.At(sizes).Kernels {
			if candidates := Candidates(base, k, sizes); len(candidates) > 1 {
				chosen[k.Name], conditions[k.When != nil] = candidates[len(candidates)-1], true
			}
		}
		assert.Greater(t, len(chosen), 2)
		for _, k := range planWith(t, severalKernels, slices.Collect(maps.Values(chosen))...).Kernels {
			if c, ok := chosen[k.Name]; ok {
				assert.Equal(t, c.Schedule, k.Variants[chosenAt(k, sizes)].Schedule, "%s at %v", k.Name, sizes)
			}
		}
	}
	assert.True(t, conditions[true])
}

// TestSchedulesTried: of each mapping that has any, the schedules that are tried are all that its body takes, the
// planner's own first, and none twice.
func TestSchedulesTried(t *testing.T) {
	row := ir.Schedule{Mapping: ir.RowMapping, Threads: 256, RowThreads: 256, Vector: 4, Unroll: 2}
	var looped []ir.Schedule
	for _, threads := range []int{128, 256, 512, 1024} {
		for _, unroll := range []int{1, 2, 4, 8} {
			other := row
			other.Threads, other.RowThreads, other.Unroll = threads, threads, unroll
			looped = append(looped, other)
		}
	}
	changed := func(s ir.Schedule, change func(*ir.Schedule)) ir.Schedule { change(&s); return s }
	set := func(s ir.Schedule, to func(*ir.Schedule, int), numbers ...int) (out []ir.Schedule) {
		for _, n := range numbers {
			out = append(out, changed(s, func(o *ir.Schedule) { to(o, n) }))
		}
		return out
	}
	threads := func(o *ir.Schedule, n int) { o.Threads = n }
	narrow := changed(row, func(o *ir.Schedule) { o.RowThreads = 32 })
	ring := changed(row, func(o *ir.Schedule) { o.Stages, o.Unroll = 4, 0 })
	for _, c := range []struct {
		name string
		of   ir.Schedule
		want []ir.Schedule
	}{
		{"points", ir.Schedule{Threads: 256, Vector: 4}, set(ir.Schedule{Vector: 4}, threads, 64, 128, 256, 512, 1024)},
		{"shared columns", ir.Schedule{Threads: 256, ColThreads: 128}, set(ir.Schedule{ColThreads: 128}, threads, 128, 256, 512, 1024)},
		{"columns that look back", ir.Schedule{Threads: 256, ColThreads: 8, Chain: 4}, nil},
		{"rows in pieces", row, looped},
		{"rows in pieces, of a cluster", changed(row, func(o *ir.Schedule) { o.Cluster = 2 }), nil},
		{"rows that are kept", changed(row, func(o *ir.Schedule) { o.Items = 4 }), nil},
		{"several rows a block", narrow, set(narrow, threads, 32, 64, 128, 256)},
		{"rows ahead", ring, set(ring, func(o *ir.Schedule, n int) { o.Stages = n }, 1, 2, 3, 4)},
		{"chunks of rows", changed(ring, func(o *ir.Schedule) { o.Unroll = 2 }), nil},
		{"rows with room for blocks", changed(row, func(o *ir.Schedule) { o.Items, o.MinBlocks = 4, 2 }),
			set(changed(row, func(o *ir.Schedule) { o.Items = 4 }), func(o *ir.Schedule, n int) { o.MinBlocks = n }, 0, 2)},
	} {
		got := alternatives(c.of)
		assert.Equal(t, c.of, got[0], c.name)
		if c.want == nil {
			c.want = []ir.Schedule{c.of}
		}
		assert.ElementsMatch(t, c.want, got, c.name)
	}
}
