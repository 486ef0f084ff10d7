package conformance

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// slicedSizes are slices, M, N and K at which warpgroups cut the columns of a product in
// so many, with tiles and slices that end inside: of many rows, then of few.
var slicedSizes = [][4]int64{
	{8, 72, 136, 2056}, {2, 17, 1096, 2048}, {2, 2, 4360, 4104},
}

// slicesAt is in how many slices the first variant that fits cuts the columns.
func slicesAt(plan *ir.Plan, sizes map[string]int64) int {
	for _, v := range plan.Kernels[0].Variants {
		if v.When == nil {
			return v.Schedule.SplitK
		}
		if holds, ok := ir.EvalSize(v.When, sizes); ok && holds != 0 {
			return v.Schedule.SplitK
		}
	}
	return 0
}

// TestSlicedColumnsOnGPU multiplies small integers, whose sums are exact in any order.
func TestSlicedColumnsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	for i, name := range []string{"plain", "b transposed", "batched", "two results", "a transposed", "both transposed", "result transposed"} {
		p, f := loaded(t, dev, strings.ReplaceAll(productBodies[name], "T[", []string{"bf16[", "f16["}[i%2]))
		for _, s := range slicedSizes {
			slices, sizes := int(s[0]), map[string]int64{"M": s[1], "N": s[2], "K": s[3]}
			switch {
			case name == "batched" && s[0] > 4: // three of them
				sizes["M"], sizes["N"] = 17, (s[2]/3+7)/8*8
			case name != "plain" && name != "b transposed" && s[0] <= 4:
				continue // single rows of what lies along M cannot be copied, and the rest takes long
			}
			t.Run(fmt.Sprint(name, s), func(t *testing.T) {
				assert.Equal(t, slices, slicesAt(p.Plan(), sizes))
				compareProduct(t, p.Graph(), f, sizes, -2, 3)
			})
		}
	}
}

// TestLargeTilesOnGPU runs large products in f32 under every tile that tuning may choose.
func TestLargeTilesOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	const src = `graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) { y = a @ b + c }`
	sizes := map[string]int64{"M": 1284, "N": 1288, "K": 20}
	g := planned(t, row{name: "g", src: src}, dev.Arch()).Graph()
	base, err := fuse.Plan(g, fuse.Options{Device: dev.Figures()})
	require.NoError(t, err)
	for _, choice := range fuse.Candidates(base, base.Kernels[0], sizes) {
		if choice.Variant != choice.Class {
			continue
		}
		t.Run(fmt.Sprintf("%+v", choice.Schedule), func(t *testing.T) {
			t.Parallel()
			plan, err := fuse.Plan(g, fuse.Options{Device: dev.Figures(), Choices: []fuse.Choice{choice}})
			require.NoError(t, err)
			program := codegen.Generate(plan)
			f, err := dev.Device.Load(context.Background(), program)
			require.NoError(t, err)
			compareProduct(t, g, f, sizes, -8, 8)
		})
	}
}

// TestLargeReductionEpiloguesOnGPU compares the log-sum-exp of rows with that of the product as
// another kernel writes it, at sizes for which the largest tiles are used, and whose
// last tile is half empty.
func TestLargeReductionEpiloguesOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	const header = "@bench(M=1024, N=2176, K=4096) graph g(x: bf16[M, K], w: bf16[K, N]) -> "
	args := runtime.Args{}
	for i, shape := range map[string][]int{"x": {1024, 4096}, "w": {4096, 2176}} {
		x, err := tensor.Random(ir.BF16, uint64(len(i)+shape[0]), shape...)
		require.NoError(t, err)
		args[i] = x
	}
	run := func(text string) []float32 {
		_, f := loaded(t, dev, header+text)
		out, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		values, ok := tensor.View[float32](out["y"])
		require.True(t, ok)
		return values
	}
	logits := run("(y: f32[M, N]) { y = f32(x) @ f32(w) }")
	for row, got := range run("(y: f32[M]) { y = logsumexp(f32(x) @ f32(w) / 64, axis=-1) }") {
		sum := 0.0
		for _, l := range logits[row*2176 : (row+1)*2176] {
			sum += math.Exp(float64(l) / 64)
		}
		require.InDelta(t, math.Log(sum), got, 1e-4, "row %d", row)
	}
}

// TestWideTilesInTurns runs tiles of 128x192 in turns, whose right operand two blocks share,
// on a device with one cluster, which takes one tile after another.
func TestWideTilesInTurns(t *testing.T) {
	t.Parallel()
	sizes := map[string]int64{"M": 506, "N": 376, "K": 200}
	for name, text := range map[string]string{
		"columns": `graph g(x: bf16[M, K], w: bf16[K, N], b: bf16[N], c: bf16[N], r: bf16[M, N]) -> (y: bf16[M, N]) {
			y = gelu(x @ w * c + b) + r }`,
		"rows": `graph g(x: bf16[M, K], w: bf16[N, K], r: f32[M, N]) -> (y: bf16[M, N], z: f32[M, N]) {
			h = f32(einsum("mk,nk->mn", x, w))
			y = bf16(mish(h))
			z = gelu(h) * r }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 2, Order: simtest.Order{Races: name == "columns"}})
			figures := dev.Figures()
			figures.SMs = 2
			g := planned(t, row{name: "g", src: text}, "sm_90a").Graph()
			plan, err := fuse.Plan(g, fuse.Options{Device: figures})
			require.NoError(t, err)
			plan = plan.At(nil)
			require.Len(t, plan.Kernels, 1)
			k := plan.Kernels[0]
			k.When = nil
			at := slices.IndexFunc(k.Variants, func(v *ir.Variant) bool { return v.Schedule.TileN == 192 && v.Schedule.Turns == 2 })
			require.GreaterOrEqual(t, at, 0)
			wide := *k.Variants[at]
			wide.When = nil // at sizes that would take others
			k.Variants = []*ir.Variant{&wide}
			program := codegen.Generate(plan)
			f, err := dev.Device.Load(context.Background(), program)
			require.NoError(t, err)
			compareWithInterpreter(t, g, f, sizes)
		})
	}
}
