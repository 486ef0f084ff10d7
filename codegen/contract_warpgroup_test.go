package codegen

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// TestStagesStayALoop: the instructions that multiply one stage are there once, also where the compiler knows how many
// stages there are.
func TestStagesStayALoop(t *testing.T) {
	n := requireNVRTC(t)
	for _, c := range []struct {
		src    string
		copies int // of a stage
	}{
		{"graph g(a: bf16[4096, 256], b: bf16[256, 4096]) -> (y: bf16[4096, 4096]) { y = a @ b }", 1},
		{"graph g(a: f8e4m3[4096, 512], b: f8e4m3[4096, 512]) -> (y: bf16[4096, 4096]) { y = bf16(f32(a) @ transpose(f32(b), -1, -2)) }", 2},
	} {
		plan, p := generate(t, c.src)
		found := 0
		for i, v := range plan.Launched()[0].Variants {
			if v.Strategy != ir.ContractWarpgroup {
				continue
			}
			found++
			s := v.Schedule
			r, err := n.Compile(t.Context(), cuda.Request{Name: "unit.cu", Source: p.Text(p.Launches[0].Variants[i].Unit),
				Options: []string{"--gpu-architecture=compute_90a"}})
			require.NoError(t, err)
			blocks := s.TileM / 64
			if s.Turns <= 1 {
				blocks /= (s.Threads - 128) / 128
			}
			const instructions = 4 // each of 32 bytes of a line
			assert.Equal(t, c.copies*instructions*blocks, strings.Count(string(r.PTX), "wgmma.mma_async"), "%v", s)
		}
		assert.Positive(t, found, c.src)
	}
}
