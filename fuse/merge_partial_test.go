package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// accumulations describes the kernels of a plan that accumulate over rows: how many results of each are
// accumulated over rows.
func accumulations(p *ir.Plan) []int {
	var out []int
	for _, k := range p.Kernels {
		n := 0
		for _, s := range k.Variants[0].Sections {
			n += len(s.Partials)
		}
		if len(k.Accumulated) > 0 || n > 0 {
			out = append(out, n)
		}
	}
	return out
}

// TestRowAccumulation says where sums over rows are taken beside what is made of each row.
func TestRowAccumulation(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      []int
	}{
		{"gradients of a norm", `graph g(dy: f32[N, M], x: f32[N, M], w: f32[M]) -> (dx: f32[N, M], dw: f32[M], db: f32[M]) {
			g = dy * w
			dx = g - x * mean(g * x, axis=1, keep=true)
			dw = sum(dy * x, axis=0)
			db = sum(dy, axis=0) }`, []int{2}},
		{"three axes", `graph g(dy: f32[B, N, M], x: f32[B, N, M]) -> (dx: f32[B, N, M], dw: f32[M]) {
			dx = dy - x * mean(dy * x, axis=2, keep=true)
			dw = sum(dy * x, axis=(0, 1)) }`, []int{1}},
		{"gradients of a norm over sequences", `graph g(dy: f32[B, N, M], x: f32[B, N, M], w: f32[M]) -> (dx: f32[B, N, M], dw: f32[M], db: f32[M]) {
			g = dy * w
			dx = g - x * mean(g * x, axis=2, keep=true)
			dw = sum(dy * x, axis=(0, 1))
			db = sum(dy, axis=(0, 1)) }`, []int{2}},
		{"few sequences, each shorter than the chunks are many", `@bench(B=32, N=256, M=1024) graph g(x: f32[B, N, M]) -> (y: f32[B, N, M], s: f32[M]) {
			y = softmax(x)
			s = sum(y, axis=(0, 1)) }`, []int{1}},
		{"planes of a batch", `graph g(x: f32[B, H, W, 64], z: f32[B, H, W, 64]) -> (y: f32[B, H, W, 64], s: f32[64]) {
			y = softmax(x) * z
			s = sum(y * x, axis=(0, 1, 2)) }`, []int{1}},
		{"beside a pointwise result", `graph g(x: f32[N, M]) -> (y: f32[N, M], s: f32[M]) { y = tanh(x)
			s = sum(x, axis=0) }`, []int{1}},
		{"of a row's own result", `graph g(x: f32[N, M]) -> (y: f32[N, M], s: f32[M]) { y = softmax(x)
			s = max(y, axis=0) }`, []int{1}},
		{"narrow", `graph g(x: bf16[N, M]) -> (y: bf16[N, M], s: bf16[M]) { y = softmax(x)
			s = sum(x, axis=0) }`, []int{1}},
		{"stored across the rows", `@bench(N=65536, M=128) graph g(x: f32[N, M]) -> (y: f32[M, N], s: f32[M]) { y = transpose(softmax(x))
			s = sum(x, axis=0) }`, nil},
		{"along few long rows, which are stored along the sum", `@bench(N=60, M=100000) graph g(x: f32[N, M]) -> (y: f32[N, M], s: f32[N]) { y = tanh(x)
			s = sum(x, axis=1) }`, nil},
		{"nothing beside", `graph g(x: f32[N, M]) -> (s: f32[M]) { s = sum(x, axis=0) }`, nil},
		{"rows of another tensor", `graph g(x: f32[N, M], z: f32[N, M]) -> (y: f32[N, M], s: f32[M]) { y = tanh(z)
			s = sum(x, axis=0) }`, nil},
		{"a few rows", `@bench(N=64) graph g(x: f32[N, M]) -> (y: f32[N, M], s: f32[M]) { y = tanh(x)
			s = sum(x, axis=0) }`, nil},
		{"rows too long to hold beside their sums", `@bench(M=16384) graph g(x: f32[N, M]) -> (y: f32[N, M], s: f32[M]) { y = softmax(x)
			s = sum(x, axis=0) }`, nil},
		{"the result feeds the rows", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x) - sum(x, axis=0) }`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			assert.Equal(t, c.want, accumulations(p), ir.PrintPlan(p))
			compareAtSizes(t, c.src)
		})
	}
}

// TestPlanIsGraphForRowAccumulation compares plans with graphs on programs that return values
// of rows and folds over rows of the same tensors, with no row, with fewer rows
// than chunks, and with chunks of several rows. Rows are one axis, or two, either of which may be empty.
func TestPlanIsGraphForRowAccumulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		terms := []string{"x", "dy", "dy * x", "dy * h", "x * w", "max(x, dy)"}
		rows, over, row := "N", "0", "r[:, none]"
		if rapid.Bool().Draw(t, "two axes") {
			rows, over, row = "B, N", "(0, 1)", "r[:, :, none]"
		}
		lines := []string{rapid.SampledFrom([]string{
			"h = x * rsqrt(mean(x * x, axis=-1, keep=true) + 1)", "h = softmax(x)", "h = x * " + row, "h = tanh(x - w)",
		}).Draw(t, "h")}
		lines = append(lines, "dx = "+rapid.SampledFrom([]string{"h - x", "dy * w - h * mean(dy * h, axis=-1, keep=true)", "dy * x"}).Draw(t, "dx"))
		outputs := ""
		for n := range rapid.IntRange(1, 3).Draw(t, "folds") {
			op := rapid.SampledFrom([]string{"sum", "max", "min"}).Draw(t, "op")
			lines = append(lines, fmt.Sprintf("s%d = %s(%s, axis=%s)", n, op, rapid.SampledFrom(terms).Draw(t, "term"), over))
			outputs += fmt.Sprintf(", s%d: f64[M]", n)
		}
		src := fmt.Sprintf("graph g(x: f64[%[1]s, M], dy: f64[%[1]s, M], w: f64[M], r: f64[%[1]s]) -> (dx: f64[%[1]s, M]%[2]s) {\n%[3]s\n}",
			rows, outputs, strings.Join(lines, "\n"))
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		sizes := map[string]int64{
			"N": rapid.SampledFrom([]int64{0, 1, 5, 264, 265, 600}).Draw(t, "N"),
			"M": rapid.SampledFrom([]int64{1, 2, 5}).Draw(t, "M"),
		}
		if rows != "N" {
			sizes["B"] = rapid.SampledFrom([]int64{0, 1, 2, 7}).Draw(t, "B")
		}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}

// TestAccumulatedRowsArePrefetched: while one row of a chunk is worked on, the reads that depend on it
// are on their way to shared memory, where the device can fetch rows and they are whole
// vectors. What all rows share is not fetched with each.
func TestAccumulatedRowsArePrefetched(t *testing.T) {
	g := parse(t, `@bench(N=8192, M=8192) graph g(dy: bf16[N, M], x: bf16[N, M], w: bf16[M]) -> (dx: bf16[N, M], dw: f32[M]) {
		g = wide(dy) * w
		dx = bf16(g - x * mean(g * x, axis=1, keep=true))
		dw = sum(wide(dy) * x, axis=0) }`)
	for _, arch := range []string{"sm_90a", "sm_80"} {
		d, err := ir.DeviceNamed(arch)
		require.NoError(t, err)
		p, err := Plan(g, Options{Device: d})
		require.NoError(t, err)
		require.NotEmpty(t, p.Kernels[0].Accumulated)
		ahead := 0
		for _, v := range p.Kernels[0].Variants {
			s := v.Schedule
			if s.Stages == 0 {
				assert.Empty(t, v.Staged)
				continue
			}
			ahead++
			var names []string
			for _, l := range v.Staged {
				names = append(names, algebra.ReadIn(l.Def).Arg.Name)
			}
			assert.ElementsMatch(t, []string{"dy", "x"}, names)
			assert.Equal(t, s.Threads, s.RowThreads)
			assert.Equal(t, 8, s.Vector)
			assert.LessOrEqual(t, s.Stages*len(names)*s.Threads*s.Items*s.Vector*2, d.SharedBlock-accumulateShared)
			assert.GreaterOrEqual(t, s.Stages, 2)
		}
		assert.Equal(t, arch == "sm_90a", ahead > 0, ir.PrintPlan(p))
	}
}
