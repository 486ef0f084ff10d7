package codegen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// warpgroupPTX calls check with the PTX of each variant of the first kernel that multiplies through warpgroups.
func warpgroupPTX(t *testing.T, src string, check func(v *ir.Variant, ptx string)) {
	t.Helper()
	n := requireNVRTC(t)
	plan, p := generate(t, src)
	found := false
	for i, v := range plan.Launched()[0].Variants {
		if v.Strategy != ir.ContractWarpgroup {
			continue
		}
		found = true
		r, err := n.Compile(t.Context(), cuda.Request{Name: "unit.cu", Source: p.Text(p.Launches[0].Variants[i].Unit),
			Options: []string{"--gpu-architecture=compute_90a"}})
		require.NoError(t, err)
		check(v, string(r.PTX))
	}
	assert.True(t, found, src)
}

// TestStagesStayALoop: the instructions that multiply one stage are there once, also where the compiler knows how many
// stages there are.
func TestStagesStayALoop(t *testing.T) {
	for _, c := range []struct {
		src    string
		copies int // of a stage
	}{
		{"graph g(a: bf16[4096, 256], b: bf16[256, 4096]) -> (y: bf16[4096, 4096]) { y = a @ b }", 1},
		{"graph g(a: f8e4m3[4096, 512], b: f8e4m3[4096, 512]) -> (y: bf16[4096, 4096]) { y = bf16(f32(a) @ transpose(f32(b), -1, -2)) }", 4},
	} {
		warpgroupPTX(t, c.src, func(v *ir.Variant, ptx string) {
			s := v.Schedule
			blocks := s.TileM / 64
			if s.Turns <= 1 {
				blocks /= (s.Threads - 128) / 128
			}
			const instructions = 4 // each of 32 bytes of a line
			assert.Equal(t, c.copies*instructions*blocks, strings.Count(ptx, "wgmma.mma_async"), "%v", s)
		})
	}
}

// TestEpilogueIsThereOnce: the code that computes and stores results is there once for all parts of a tile that a warp
// stages, which are 64 columns, and once for each of the vectors that a thread has of them.
func TestEpilogueIsThereOnce(t *testing.T) {
	src := "graph g(a: bf16[4096, 4096], b: bf16[4096, 4096], c: bf16[4096]) -> (y: bf16[4096, 4096]) { y = gelu(a @ b + c) }"
	warpgroupPTX(t, src, func(v *ir.Variant, ptx string) {
		if !manySums(v) {
			assert.Equal(t, 64/v.Schedule.Vector/2, strings.Count(ptx, "st.global"), "%v", v.Schedule)
		}
	})
}
