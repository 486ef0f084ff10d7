package fusec

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// TestWideTilesInTurns runs tiles of 128x192 in turns, whose right operand two blocks share,
// on a device with one cluster, which takes one tile after another.
func TestWideTilesInTurns(t *testing.T) {
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
			_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Multiprocessors: 2, Order: simtest.Order{Races: name == "columns"}})
			figures := dev.Figures()
			figures.SMs = 2
			g, err := parse(Source{Name: "g.fuse", Text: []byte(text)}, Options{})
			require.NoError(t, err)
			plan, err := fuse.Plan(g, fuse.Options{Device: figures})
			require.NoError(t, err)
			require.Len(t, plan.Kernels, 1)
			k := plan.Kernels[0]
			at := slices.IndexFunc(k.Variants, func(v *ir.Variant) bool { return v.Schedule.TileN == 192 && v.Schedule.Turns == 2 })
			require.GreaterOrEqual(t, at, 0)
			wide := *k.Variants[at]
			wide.When = nil // at sizes that would take others
			k.Variants = []*ir.Variant{&wide}
			program, err := codegen.Generate(plan)
			require.NoError(t, err)
			f, err := dev.Load(context.Background(), program)
			require.NoError(t, err)
			compareWithInterpreter(t, g, f, sizes)
		})
	}
}
