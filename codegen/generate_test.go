package codegen

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/cuda"
)

func generate(t *testing.T, src string) (*ir.Plan, *ir.Program) {
	t.Helper()
	f, err := parser.Parse("test.fuse", []byte(src), parser.Options{})
	require.NoError(t, err, src)
	plan, err := fuse.Plan(f.Graphs[0], fuse.Options{})
	require.NoError(t, err)
	p := Generate(plan)
	return plan, p
}

// compileAll compiles every unit of a program, or the first and the last.
func compileAll(t *testing.T, n *cuda.NVRTC, p *ir.Program) {
	t.Helper()
	for i := range p.Units {
		if i > 0 && i < len(p.Units)-1 {
			continue
		}
		_, err := n.Compile(t.Context(), cuda.Request{Name: "unit.cu", Source: p.Text(i),
			Options: []string{"--gpu-architecture=sm_90a"}})
		require.NoError(t, err, "%s", p.Units[i].Defines)
	}
}

// TestNamesCompile gives tensors, sizes and loops the names that kernels use
// themselves.
func TestNamesCompile(t *testing.T) {
	n := requireNVRTC(t)
	for _, src := range []string{
		`graph double(threadIdx: f32[c, v], blockIdx: f32[c, v], N_size: f32[v]) -> (t: f32[c, v]) {
			max_ = max(threadIdx, axis=1, keep=true)
			expf = exp(threadIdx - max_)
			load = sum(expf, axis=1, keep=true)
			t = expf / load + blockIdx * N_size
		}`,
		`graph g(x: f32[vectors, outer], first: f32[outer, vectors]) -> (store: f32[outer, vectors]) {
			store[c, row] = x[row, c] + first[c, row]
		}`,
		`graph g(x: f32[B, N, first], y: f32[N]) -> (lane: f32[B, first]) {
			lane[n, c] = sum[t: N where t <= n] x[n, t, c] * y[t]
		}`,
		`graph g(x: f32[N, M]) -> (y: f32[N], y_2: f32[N], x_old: f32[N]) {
			m_part = max(x, axis=1)
			y = m_part
			y_2 = sum(exp(x - m_part[:, none]), axis=1)
			x_old = y_2 * 2
		}`,
		`graph g(x: f32[N, ROWS]) -> (y: f32[N]) {
			from = max(x, axis=1)
			y = log(sum(exp(x - from[:, none]), axis=1)) + from
		}`,
		`@bench(B=4, H=16, S=4096) graph g(rescale: bf16[B, H, S, 64], pack_weights: bf16[B, H, S, 64], kept: i32[B, S],
				settled: f32[H], table: f32[H]) -> (y: bf16[B, H, S, 64]) {
			s = f32(rescale @ transpose(pack_weights, -1, -2)) * settled[:, none, none] + table[:, none, none]
			keep = kept[:, none, :, none] == kept[:, none, none, :] && iota(S) <= iota(S)[:, none]
			y = bf16(softmax(where(keep, s, -inf))) @ rescale
		}`,
		`graph g(multiply: bf16[policy, COLUMNS], policy_2: bf16[COLUMNS, both]) -> (copies_wait: bf16[policy, both]) {
			copies_wait = multiply @ policy_2
		}`,
		`graph g(x: f32[x_size, M]) -> (y: f32[x_size, M]) { y[i, i_outer] = x[i, i_outer] + f32(i) * f32(i_outer) }`,
	} {
		_, p := generate(t, src)
		compileAll(t, n, p)
	}
}

// TestSamePlanSameBytes generates programs repeatedly, from one plan and from
// plans made anew.
func TestSamePlanSameBytes(t *testing.T) {
	for _, src := range []string{
		`graph g(x: bf16[N, M], w: bf16[M]) -> (y: bf16[N, M], z: f32[M]) {
			y = softmax(layer_norm(x) * w)
			z = sum(f32(x), axis=0)
		}`,
		`@bench(N=128, M=4096) graph g(x: f32[N, M], t: i64[N], w: f32[N, M], v: bf16[N, M]) -> (y: f32[], z: f32[], a: bf16[]) {
			y = cross_entropy(x, t)
			z = max(sum(w, axis=1))
			a = sum(v * v)
		}`, // each is two kernels in one launch
	} {
		plan, first := generate(t, src)
		for range 5 {
			again := Generate(plan)
			require.Equal(t, first, again)
			_, anew := generate(t, src)
			require.Equal(t, first, anew)
		}
	}
}

// TestProgramsAreComplete checks what a runtime relies on without looking.
func TestProgramsAreComplete(t *testing.T) {
	plan, p := generate(t, `graph g(x: f32[N, M], z: f32[N, K]) -> (y: f32[N, 1], s: f32[M]) {
		y = max(x, axis=1, keep=true) + sum(z, axis=1, keep=true)
		s = sum(x, axis=0)
	}`)
	require.Len(t, p.Launches, len(plan.Launched()))
	assert.Equal(t, []string{"N", "M", "K"}, p.Symbols)
	require.Len(t, p.Params, 4)
	for i, want := range []struct {
		name   string
		output bool
	}{{"x", false}, {"z", false}, {"y", true}, {"s", true}} {
		assert.Equal(t, want.name, p.Params[i].Name)
		assert.Equal(t, want.output, p.Params[i].Output)
	}
	for _, l := range p.Launches {
		require.NotEmpty(t, l.Variants)
		assert.Empty(t, l.Variants[len(l.Variants)-1].When, "%s: the last variant takes every size", l.Kernel)
		for _, v := range l.Variants {
			u := p.Units[v.Unit]
			assert.Contains(t, p.Sources[u.Source], " "+u.Entry+"(", "the entry point is in the source")
			_, body, _ := strings.Cut(p.Sources[u.Source], " "+u.Entry+"(")
			_, body, _ = strings.Cut(body, "{\n")
			assert.Equal(t, u.Waits, strings.HasPrefix(body, "    wait_for_prerequisites();\n"), "first of all")
			written := 0
			for _, a := range v.Args {
				if a.Write {
					written++
				}
			}
			assert.Positive(t, written, "%s writes something", l.Kernel)
			for _, size := range [][]int64{{0, 0, 0}, {1, 1, 1}, {7, 33, 5}, {1 << 20, 1 << 12, 1}} {
				blocks, ok := v.Grid[0].Eval(size)
				assert.True(t, ok && blocks >= 0 && blocks <= 1<<31, "%s: %d blocks at %v", l.Kernel, blocks, size)
			}
			for _, a := range v.Args {
				limit := map[ir.ArgKind]int{ir.ArgParam: len(p.Params), ir.ArgTemp: len(p.Temps),
					ir.ArgSize: len(p.Symbols), ir.ArgCounters: len(p.Counters)}[a.Kind]
				assert.Less(t, a.Index, limit)
			}
		}
	}
}

// hotLoop is the text of the first loop over whole pieces of a kernel.
func hotLoop(t *testing.T, text string) string {
	t.Helper()
	_, text, found := strings.Cut(text, "whole")
	require.True(t, found, text)
	_, text, _ = strings.Cut(text, "for (; ")
	loop, _, found := strings.Cut(text, "for (; ")
	require.True(t, found, text)
	return loop
}

// wholeRow is the text for whole rows of a kernel that has a row at once.
func wholeRow(t *testing.T, text string) string {
	t.Helper()
	_, text, found := strings.Cut(text, "if ((INDEX)ITEMS * (CLUSTER * ROW_THREADS) * VECTOR <= min(")
	require.True(t, found, text)
	row, rest, found := strings.Cut(text, "    else {\n")
	require.True(t, found, text)
	assert.Contains(t, rest, " ? ", "others are checked")
	return row
}

// TestWholePiecesAreUnchecked looks at rows and pieces of rows: while one is whole, neither
// its reads nor its terms ask whether they are inside.
func TestWholePiecesAreUnchecked(t *testing.T) {
	n := requireNVRTC(t)
	for name, c := range map[string]struct {
		src     string
		variant int
		hot     func(*testing.T, string) string
	}{
		"rows":    {`@bench(N=64, M=65536) graph g(x: bf16[N, M]) -> (y: f32[N]) { y = sum(f32(x), axis=1) }`, 1, hotLoop},
		"chunks":  {`@bench(N=8192, M=8192) graph g(x: bf16[N, M]) -> (y: f32[]) { y = sum(f32(x) * f32(x)) }`, 0, wholeRow},
		"columns": {`@bench(N=65536, M=32768) graph g(x: bf16[N, M]) -> (y: f32[M]) { y = sum(f32(x), axis=0) }`, 0, hotLoop},
	} {
		t.Run(name, func(t *testing.T) {
			_, p := generate(t, c.src)
			lv := p.Launches[0].Variants[c.variant]
			loop := c.hot(t, p.Sources[p.Units[lv.Unit].Source][len(skeleton.Text("prelude")):])
			assert.Regexp(t, `load(_under)?<VECTOR>`, loop)
			assert.NotContains(t, loop, "if (")
			assert.NotContains(t, loop, " ? ")
			compileAll(t, n, p)
		})
	}
}

// TestGathersInFlight looks at reads whose places are read: all places first.
func TestGathersInFlight(t *testing.T) {
	n := requireNVRTC(t)
	_, p := generate(t, `graph g(place: i64[N], table: bf16[V, D], w: bf16[D]) -> (y: bf16[N, D]) { y = embedding(place, table) * w }`)
	one, text := p.Sources[p.Units[0].Source], p.Sources[p.Units[2].Source]
	assert.Contains(t, one, "load_where(table_2, ", "few points: a vector of each thread")
	places, reads := strings.Index(text, "place_2[u] ="), strings.Index(text, "load_where(table_2[u], ")
	require.Positive(t, places, text)
	require.Positive(t, reads, "bf16 that may be outside is chosen in words: %s", text)
	assert.Greater(t, reads, places)
	assert.Contains(t, text[places:reads], "for (int u = 0; u < ITEMS; ++u)", "a loop of its own")
	compileAll(t, n, p)

	_, p = generate(t, `graph g(place: i64[N], table: f32[V, D], w: f32[D]) -> (y: f32[N, D]) { y = embedding(place, table) * w }`)
	assert.NotContains(t, p.Sources[p.Units[0].Source], "load_where(table_2", "elements are words")
}

// TestLookUpsBeforeExchanges: what is looked up for a row is under way while its threads exchange what
// they folded, unless its place follows from that. A row that threads have at once has no earlier
// maximum to rescale sums from.
func TestLookUpsBeforeExchanges(t *testing.T) {
	n := requireNVRTC(t)
	_, p := generate(t, `graph g(x: f32[N, V], t: i64[N]) -> (y: f32[N]) { y = cross_entropy(x, t, reduction="none") }`)
	var once, streams int
	for _, u := range p.Units {
		_, text, _ := strings.Cut(p.Sources[u.Source], "void __launch_bounds__")
		look, exchange := strings.Index(text, " ? x[(i * V) + t"), strings.Index(text, "= row_partial<")
		require.Positive(t, look, text)
		require.Positive(t, exchange, text)
		assert.Less(t, look, exchange, text)
		if strings.Contains(text, "_part_old") {
			streams++
		} else if strings.Contains(text, "_rescale") {
			once++
		}
	}
	assert.Positive(t, streams)
	assert.Positive(t, once)
	compileAll(t, n, p)

	_, p = generate(t, `graph g(x: f32[N, V], w: f32[V]) -> (y: f32[N]) {
		at = argmax(x, axis=1)
		y[i: N] = w[at[i]] }`)
	for _, u := range p.Units {
		_, text, _ := strings.Cut(p.Sources[u.Source], "void __launch_bounds__")
		require.Contains(t, text, " ? w[")
		assert.Greater(t, strings.Index(text, " ? w["), strings.Index(text, "row_total<"), text)
	}
}

// TestShortRowsInVectors: short rows of single elements go through shared memory, and no thread goes to
// memory for its own. Longer ones have elements without conditions.
func TestShortRowsInVectors(t *testing.T) {
	n := requireNVRTC(t)
	_, p := generate(t, `graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`)
	staged, sure := 0, 0
	for _, u := range p.Units {
		text := p.Sources[u.Source][len(skeleton.Text("prelude")):]
		if strings.Contains(text, "rows_in(x_rows, x + ") {
			staged++
			assert.Equal(t, 2, strings.Count(text, "__syncthreads();"), text)
			assert.Contains(t, text, "rows_out(y + ")
			assert.NotContains(t, text, "x + ((i * M)")
			assert.NotContains(t, text, "y + ((i * M)")
		}
		sure += strings.Count(text, "u < 8 || c < cols")
	}
	assert.Equal(t, 5, staged, "four of single elements, one of vectors")
	assert.Positive(t, sure)
	compileAll(t, n, p)
}

// TestVectorsInsideApart looks at pointwise kernels of which the last vector may be a part:
// vectors that are inside are read without a question between the reads.
func TestVectorsInsideApart(t *testing.T) {
	n := requireNVRTC(t)
	_, p := generate(t, `graph g(x: bf16[N], y: bf16[N]) -> (z: bf16[N]) { z = x * y + x }`)
	text := p.Sources[p.Units[0].Source]
	_, whole, found := strings.Cut(text, "constexpr int n = VECTOR;")
	require.True(t, found, text)
	assert.NotContains(t, whole, "v >= n")
	assert.Contains(t, text, "const int n = (int)(N - first);", "the last one has text of its own")
	compileAll(t, n, p)

	_, p = generate(t, `graph g(x: bf16[8 * N], y: bf16[8 * N]) -> (z: bf16[8 * N]) { z = x * y + x }`)
	assert.NotContains(t, p.Sources[p.Units[0].Source], " - first", "no vector is a part")
}

// TestScansThatReadNothing: a scan along the columns fetches what it reads ahead. Where it reads nothing that goes along the columns,
// there is nothing to fetch.
func TestScansThatReadNothing(t *testing.T) {
	for _, c := range []struct {
		src     string
		fetches bool
	}{
		{`graph g(x: u8[300, 200001]) -> (y: f32[300, 200001]) { y = cumsum(f32(x), axis=0) }`, true},
		{`graph g(x: u8[300, 200001]) -> (y: f32[300, 200001]) {
			m = max(x, axis=0)
			y[i: 300, j: 200001] = sum[k: 300 where k <= i] sin(f32(k) * f32(m[j])) }`, false},
	} {
		plan, p := generate(t, c.src)
		require.Contains(t, ir.PrintPlan(plan), "column loop")
		for i := range p.Units {
			_, text, _ := strings.Cut(p.Text(i), "void __launch_bounds__")
			assert.Equal(t, c.fetches, strings.Contains(text, "auto fetch = "), text)
			assert.Equal(t, c.fetches, strings.Contains(text, "fetch(0);"), text)
			assert.Equal(t, c.fetches, strings.Contains(text, "fetch(base + ITEMS);"), text)
		}
	}
}

func requireNVRTC(t *testing.T) *cuda.NVRTC {
	t.Helper()
	n, err := cuda.FindNVRTC(cuda.FindOptions{})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if err != nil {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	}
	return n
}

// TestFollowedGathersAreShort: a place that is read stands once in the text, where it gets a name, so that gathers which take
// their places from each other are as long as the sum of them.
func TestFollowedGathersAreShort(t *testing.T) {
	for _, step := range []string{
		"last = back[:, 44][last]",
		"last = gather(back, last[:, none], axis=1)[:, 0]",
		"last = (gather(back, last[:, none], axis=1)[:, 0] * 2 + last) % 45",
		"g = gather(back, last[:, none], axis=1)[:, 0]\nlast = where(g > 3, g, last)",
		"last = where(back[:, 0][last] < back[:, 1][last], back[:, 2][last], back[:, 3][last])",
	} {
		of := func(steps int) int {
			_, p := generate(t, "graph g(back: i64[N, 45], first: i64[N]) -> (tags: i64[N]) {\nlast = first\n"+
				fmt.Sprintf("for u in 1..%d {\n%s\n}\ntags = last\n}", steps, step))
			_, kernel, _ := strings.Cut(p.Sources[p.Units[0].Source], "void __launch_bounds__")
			return len(kernel)
		}
		four, eight, sixteen := of(4), of(8), of(16)
		assert.Less(t, sixteen-eight, 3*(eight-four), step)
	}
}

// TestRepeatedStepsAreShort: after each step what is written out as a tree is twice as large, or more. Plans and texts grow with the
// steps all the same, because what several expressions share is looked at once.
func TestRepeatedStepsAreShort(t *testing.T) {
	for _, step := range []string{"x = x * x", "x = x + x * 0.5", "x = x - x * x", "x = where(x > 0.5, x, x * x)", "x = x * max(x, 1.0 - x)", "x = f32(bf16(x * x)) + x"} {
		for _, last := range []string{"y = x", "y = sum(x, axis=1)", "y = x @ w", "y = cumsum(x, axis=1)"} {
			shape := map[string]string{"y = sum(x, axis=1)": "N", "y = x @ w": "N, 8"}[last]
			if shape == "" {
				shape = "N, M"
			}
			of := func(steps int) (size int) {
				_, p := generate(t, fmt.Sprintf("graph g(a: f32[N, M], w: f32[M, 8]) -> (y: f32[%s]) {\nx = a\nfor u in 0..%d {\n%s\n}\n%s\n}", shape, steps, step, last))
				for _, u := range p.Units {
					size = max(size, len(p.Sources[u.Source]))
				}
				return size
			}
			eight, sixteen, thirty := of(8), of(16), of(32)
			assert.Less(t, thirty-sixteen, 4*(sixteen-eight)+4000, "%s; %s", step, last)
		}
	}
}
