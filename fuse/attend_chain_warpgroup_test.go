package fuse

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// weighted is a program of two sums that weigh by functions of two products, as the gradients of keys and of values do.
// Keys are shared by some heads, over which the sums are too.
func weighted(heads, depth int, weight string) string {
	return fmt.Sprintf(`@bench(L=4096, S=2048)
graph g(a: bf16[%[1]d, L, %[2]d], b: bf16[S, %[2]d], c: bf16[%[1]d, L, %[2]d], d: bf16[S, %[2]d], m: f32[%[1]d, L]) -> (y: bf16[S, %[2]d], z: bf16[S, %[2]d]) {
	s[h: %[1]d, i, j] = sum[x: %[2]d] f32(a[h, i, x]) * f32(b[j, x])
	t[h: %[1]d, i, j] = sum[x: %[2]d] f32(c[h, i, x]) * f32(d[j, x])
	p[h: %[1]d, i, j] = %[3]s
	y[j, x: %[2]d] = bf16(sum[h: %[1]d, i: L] f32(bf16(p[h, i, j])) * f32(c[h, i, x]))
	z[j, x: %[2]d] = bf16(sum[h: %[1]d, i: L] f32(bf16(p[h, i, j] * t[h, i, j])) * f32(a[h, i, x]))
}`, heads, depth, weight)
}

// TestChainWarpgroups: chains through wgmma hold queries in registers where these suffice, read the numbers of a key as
// they come with its tile, and go through all keys for each of the heads that share a key.
func TestChainWarpgroups(t *testing.T) {
	const plain, capped = "exp(0.1 * s[h, i, j] - m[h, i])", "exp(tanh(0.1 * s[h, i, j]) - m[h, i])"
	for _, c := range []struct {
		name                       string
		heads, depth               int
		weight                     string
		outer, held, numbers, keys int
	}{
		{"heads of 64", 1, 64, plain, 0, 2, 1, 1},
		{"heads of 64 that share keys", 3, 64, plain, 1, 2, 1, 1},
		{"more special functions", 1, 64, capped, 0, 0, 1, 1},
		{"heads of 128", 3, 128, plain, 1, 0, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, weighted(c.heads, c.depth, c.weight))
			require.Equal(t, 1, pairsIn(p), ir.PrintPlan(p))
			for _, k := range p.Kernels {
				v := k.Variants[0]
				if v.Attend == nil {
					continue
				}
				a := v.Attend
				require.Equal(t, ir.ChainWarpgroupMapping, v.Schedule.Mapping)
				assert.Len(t, a.Outer, c.outer)
				assert.Len(t, a.Keys(k), c.keys)
				assert.Equal(t, c.held, a.Held)
				assert.Equal(t, a.Also == nil, v.Schedule.Blocks > 0, "all tiles have as much to do")
				assert.Len(t, a.Numbers(), c.numbers)
			}
		})
	}
}

// TestStagesOfChains: a chain has the third stage of keys wherever shared memory holds it to the last byte, and only there.
func TestStagesOfChains(t *testing.T) {
	src := weighted(3, 128, "exp(0.1 * s[h, i, j] - m[h, i])")
	chainOn := func(shared int) *ir.Variant {
		d := ir.Devices()[0]
		d.SharedBlock = shared
		p, err := Plan(parse(t, src), Options{Device: d})
		require.NoError(t, err)
		for _, k := range p.Kernels {
			if v := k.Variants[0]; v.Schedule.Mapping == ir.ChainWarpgroupMapping {
				return v
			}
		}
		require.Fail(t, "no chain")
		return nil
	}
	v := chainOn(1 << 20)
	require.Equal(t, attendStages+1, v.Schedule.Stages)
	least := ir.ChainWarpgroupBytes(v.Schedule, v.Attend) + tableBytes
	assert.Equal(t, attendStages+1, chainOn(least).Schedule.Stages)
	assert.Equal(t, attendStages, chainOn(least-1).Schedule.Stages)
}

// TestChainsOfOpenHeads: where a program leaves the size of heads open, chains take each size that tiles of a chain have
// room for, with no more padding than to the next of the sizes that there are tiles for.
func TestChainsOfOpenHeads(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		d, err := ir.DeviceNamed(arch)
		require.NoError(t, err)
		p, err := Plan(parse(t, `@bench(L=4096, S=4096, D=64)
			graph g(q: bf16[20, L, D], k: bf16[20, S, D], v: bf16[20, S, D]) -> (y: bf16[20, L, D]) { y = relu(q @ transpose(k, -1, -2)) @ v }`), Options{Device: d})
		require.NoError(t, err)
		require.Len(t, p.Kernels, 1)
		k := p.Kernels[0]
		for head := int64(1); head <= form.LargestChain+8; head++ {
			v := k.Variants[chosen(t, k, map[string]int64{"L": 4096, "S": 4096, "D": head})]
			if head > form.LargestChain {
				assert.Nil(t, v.Attend, "heads of %d", head)
				continue
			}
			require.NotNil(t, v.Attend, "heads of %d", head)
			padded := heads[slices.IndexFunc(heads, func(n int64) bool { return head <= n })]
			assert.Equal(t, int(padded), v.Schedule.TileK, "heads of %d", head)
		}
	}
}
