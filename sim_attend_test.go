package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// keyless are attention of few queries, whose keys the warps of a block share: without a mask,
// and under one that leaves no key.
var keyless = map[string]string{
	"all keys": "graph g(q: bf16[B, 4, 64], k: bf16[B, S, 64], v: bf16[B, S, 64]) -> (y: bf16[B, 4, 64]) {\n" +
		"    y = bf16(softmax(f32(q @ transpose(k, -1, -2)) * 0.125)) @ v\n}",
	"no key": "graph g(q: bf16[B, 4, 64], k: bf16[B, S, 64], v: bf16[B, S, 64], n: i32[B]) -> (y: bf16[B, 4, 64], " +
		"lse: f32[B, 4]) {\n" +
		"    s = where(iota(S) < 0 - n[:, none, none] * n[:, none, none], f32(q @ transpose(k, -1, -2)) * 0.125, -inf)\n" +
		"    y = bf16(softmax(s)) @ v\n    lse = logsumexp(s, axis=-1)\n}",
}

// TestAttentionToNoKeysSimulated: blocks that pass no keys still have their queries' copies under
// way when the warps' states go to where those land.
func TestAttentionToNoKeysSimulated(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		for _, order := range []simtest.Order{{Races: true}, {Backwards: true}} {
			_, dev := openSimulated(t, simtest.Config{Arch: arch, Order: order})
			for name, src := range keyless {
				p, f := loaded(t, dev, src)
				assert.Equal(t, ir.AttendTemplate, p.Plan().Launched()[len(p.Plan().Launched())-1].Template)
				for _, set := range [][]int64{{1, 0}, {2, 1}, {1, 130}} {
					sizes, fit := sizesOf(p.Graph(), set)
					require.True(t, fit)
					t.Run(fmt.Sprint(arch, order, name, set), func(t *testing.T) {
						compareWithInterpreter(t, p.Graph(), f, sizes)
					})
				}
			}
		}
	}
}
