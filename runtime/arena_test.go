package runtime

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func requireDisjoint(t require.TestingT, list []resident, plan arenaPlan) {
	for i := range list {
		require.Zero(t, plan.offsets[i]%arenaAlign)
		require.LessOrEqual(t, plan.offsets[i]+list[i].bytes, plan.bytes)
		for j := range i {
			apart := plan.offsets[i] >= plan.offsets[j]+list[j].bytes || plan.offsets[j] >= plan.offsets[i]+list[i].bytes
			require.True(t, apart || !list[i].meets(&list[j]) || list[i].bytes == 0 || list[j].bytes == 0,
				"%+v and %+v overlap", list[i], list[j])
		}
	}
}

func TestArenaKeepsResidentsApart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) resident {
			first := rapid.IntRange(0, 20).Draw(t, "first")
			return resident{bytes: rapid.Int64Range(0, 5000).Draw(t, "bytes"), first: first,
				last: first + rapid.IntRange(0, 6).Draw(t, "life")}
		}), 0, 30).Draw(t, "residents")
		plan, ok := planArena(list)
		require.True(t, ok)
		requireDisjoint(t, list, plan)
		require.GreaterOrEqual(t, plan.bytes, peak(list))
	})
}

func TestArenaThatDoesNotFit(t *testing.T) {
	_, ok := planArena([]resident{{math.MaxInt64, 0, 1}})
	assert.False(t, ok)
	_, ok = planArena([]resident{{math.MaxInt64 / 2, 0, 1}, {math.MaxInt64 / 2, 1, 1}, {math.MaxInt64 / 2, 0, 3}})
	assert.False(t, ok)
	const most = math.MaxInt64 - arenaAlign + 1 // a whole number of places
	plan, ok := planArena([]resident{{most, 0, 1}})
	assert.True(t, ok)
	assert.EqualValues(t, most, plan.bytes)
	_, ok = planArena([]resident{{most + 1, 0, 1}})
	assert.False(t, ok)
	for extra, fits := range map[int64]bool{0: true, 1: false, arenaAlign: false} {
		plan, ok = planArena([]resident{{most - 4*arenaAlign, 0, 1}, {4*arenaAlign + extra, 1, 2}})
		assert.Equal(t, fits, ok, extra)
	}
	plan, ok = planArena(nil)
	assert.True(t, ok)
	assert.Zero(t, plan.bytes)
}

// chain is the activations of layers, each read by the next, of the given sizes.
func chain(sizes ...int64) []resident {
	var out []resident
	for i, n := range sizes {
		out = append(out, resident{n, i, i + 1})
	}
	return out
}

// TestArenaPeaks holds the arena to a tenth over the lower bound.
func TestArenaPeaks(t *testing.T) {
	mlp := make([]int64, 100)
	for i := range mlp {
		mlp[i] = int64(1+i%7) << 20
	}
	for name, list := range map[string][]resident{"MLP of 100 layers": chain(mlp...), "ResNet-50": resNet50()} {
		plan, ok := planArena(list)
		require.True(t, ok)
		requireDisjoint(t, list, plan)
		ratio := float64(plan.bytes) / float64(peak(list))
		t.Logf("%s: %d bytes, %.3f times the lower bound", name, plan.bytes, ratio)
		assert.LessOrEqual(t, ratio, 1.1, name)
	}
}

// resNet50 is the activations of ResNet-50 at one image in f32, a kernel for each
// convolution with what follows it: a block's input lives until its last kernel adds it.
func resNet50() []resident {
	var out []resident
	step := 0
	add := func(channels, side int64, life int) {
		out = append(out, resident{4 * channels * side * side, step, step + life})
		step++
	}
	add(64, 112, 1)
	add(64, 56, 4) // pooled; the first block's input
	side := int64(56)
	for stage, blocks := range []int{3, 4, 6, 3} {
		width := int64(64) << stage
		for block := range blocks {
			if block == 0 && stage > 0 {
				add(width, side, 1) // the 1x1 before the stride
				side /= 2
			} else {
				add(width, side, 1)
			}
			add(width, side, 1)
			if block == 0 {
				add(4*width, side, 1) // the projection of the shortcut
			}
			life := 3 // read by the next block's first kernel and its last
			if block == blocks-1 {
				life = 4 // a projection stands between
			}
			add(4*width, side, life)
		}
	}
	return out
}
