package ptxsim

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// shuffled is what __shfl_*_sync of CUDA gives: the lane that the value comes from, and
// whether that is in the segment of so many lanes.
func shuffled(mode string, lane, by, width int) (from int, ok bool) {
	first := lane / width * width
	switch mode {
	case "up":
		from = lane - by
	case "down":
		from = lane + by
	case "bfly":
		if from = lane ^ by; from < first {
			return from, true // earlier segments can be read
		}
	case "idx":
		return first + by%width, true
	}
	if from < first || from >= first+width {
		return lane, false
	}
	return from, true
}

func TestShuffle(t *testing.T) {
	for _, mode := range []string{"up", "down", "bfly", "idx"} {
		rapid.Check(t, func(rt *rapid.T) {
			width := 1 << rapid.IntRange(0, 5).Draw(rt, "log width")
			by := make([]int, warpSize)
			for i := range by {
				by[i] = rapid.IntRange(0, 31).Draw(rt, "by")
			}
			c := (32 - width) << 8
			if mode != "up" {
				c |= 31
			}
			m := &machine{body: fmt.Sprintf("shfl.sync.%s.b32 %%r0|%%p0, %%a0, %%a1, %#x, -1;", mode, c),
				set: func(_, thread int) []uint64 { return []uint64{uint64(1000 + thread), uint64(by[thread])} }}
			m.must(t)
			for lane := range warpSize {
				from, ok := shuffled(mode, lane, by[lane], width)
				require.Equal(t, truth(ok), m.reg(0, lane, pReg), "%s by %d of %d, lane %d", mode, by[lane], width, lane)
				require.EqualValues(t, 1000+from, m.reg(0, lane, rReg),
					"%s by %d of %d, lane %d", mode, by[lane], width, lane)
			}
		})
	}
}

func TestShuffleOfSomeLanes(t *testing.T) {
	m := (&machine{body: "mov.b32 %p0, %a1;\n@%p0 shfl.sync.bfly.b32 %a0, %a0, 3, 31, 0xAAAAAAAA;",
		set: func(_, thread int) []uint64 { return []uint64{uint64(thread), uint64(thread % 2)} }}).must(t)
	for lane := range warpSize {
		want := uint64(lane)
		if lane%2 == 1 {
			want = unwritten // what odd lanes read from even ones
		}
		assert.Equal(t, want, m.reg(0, lane, aReg))
	}
	err := (&machine{body: "shfl.sync.idx.b32 %r0, %a0, 0, 31, 0xFF;"}).run(t)
	assert.ErrorContains(t, err, "lane 8 is not in its member mask 0xff")
	m = (&machine{body: "shfl.sync.down.b32 %r0, %a0, 1, 31, -1;", threads: 20,
		set: func(_, thread int) []uint64 { return []uint64{uint64(thread)} }}).must(t)
	assert.EqualValues(t, 19, m.reg(0, 18, rReg))
	assert.EqualValues(t, unwritten, m.reg(0, 19, rReg), "lane 20 is not there")
}

// Lanes 0 to 7 and the others are teams of their own.
func teamOf(lane int) (mask uint32) {
	if lane < 8 {
		return 0xFF
	}
	return 0xFFFFFF00
}

func TestVote(t *testing.T) {
	yes := uint32(0x0F0F00FF)
	m := (&machine{body: `
		mov.b32 %p7, %a1;
		vote.sync.all.pred %p0, %p7, %a0;
		vote.sync.any.pred %p1, !%p7, %a0;
		vote.sync.uni.pred %p2, %p7, %a0;
		vote.sync.ballot.b32 %r0, %p7, %a0;
		vote.sync.ballot.b32 %r1, !%p7, %a0;
		activemask.b32 %r2;
		elect.sync %r3|%p3, %a0;
		elect.sync _|%p4, %a0;`,
		set: func(_, thread int) []uint64 {
			return []uint64{uint64(teamOf(thread)), uint64(yes >> thread & 1)}
		}}).must(t)
	for lane := range warpSize {
		team := teamOf(lane)
		assert.Equal(t, truth(lane < 8), m.reg(0, lane, pReg))
		assert.Equal(t, truth(lane >= 8), m.reg(0, lane, pReg+1))
		assert.Equal(t, truth(lane < 8), m.reg(0, lane, pReg+2))
		assert.EqualValues(t, yes&team, m.reg(0, lane, rReg))
		assert.EqualValues(t, ^yes&team, m.reg(0, lane, rReg+1))
		assert.EqualValues(t, 0xFFFFFFFF, m.reg(0, lane, rReg+2))
		assert.EqualValues(t, bits.TrailingZeros32(team), m.reg(0, lane, rReg+3))
		assert.Equal(t, truth(lane == 0 || lane == 8), m.reg(0, lane, pReg+3))
		assert.Equal(t, truth(lane == 0 || lane == 8), m.reg(0, lane, pReg+4))
	}
}

func TestMatch(t *testing.T) {
	value := func(lane int) uint64 {
		if lane < 8 {
			return 5 << 40
		}
		return uint64(lane%3)<<40 | 7
	}
	m := (&machine{body: `
		match.any.sync.b64 %r0, %a1, %a0;
		match.all.sync.b64 %r1|%p0, %a1, %a0;
		match.any.sync.b32 %r2, %a1, %a0;`,
		set: func(_, thread int) []uint64 { return []uint64{uint64(teamOf(thread)), value(thread)} }}).must(t)
	for lane := range warpSize {
		want := uint32(0)
		for other := range warpSize {
			if teamOf(other) == teamOf(lane) && value(other) == value(lane) {
				want |= 1 << other
			}
		}
		all := lane < 8
		assert.EqualValues(t, want, m.reg(0, lane, rReg))
		assert.Equal(t, truth(all), m.reg(0, lane, pReg))
		assert.EqualValues(t, choose(all, 0xFF, 0), m.reg(0, lane, rReg+1))
		assert.EqualValues(t, teamOf(lane), m.reg(0, lane, rReg+2), "the low halves are the same")
	}
}

func TestRedux(t *testing.T) {
	value := func(lane int) int32 { return int32(lane-12) * 1_000_003 * int32(1-lane%2*2) }
	m := (&machine{body: `
		redux.sync.add.s32 %r0, %a1, %a0;
		redux.sync.min.s32 %r1, %a1, %a0;
		redux.sync.max.u32 %r2, %a1, %a0;
		redux.sync.xor.b32 %r3, %a1, %a0;`,
		set: func(_, thread int) []uint64 {
			return []uint64{uint64(teamOf(thread)), uint64(uint32(value(thread)))}
		}}).must(t)
	for lane := range warpSize {
		sum, least, most, odd := int32(0), int32(1<<31-1), uint32(0), int32(0)
		for other := range warpSize {
			if v := value(other); teamOf(other) == teamOf(lane) {
				sum, least, most, odd = sum+v, min(least, v), max(most, uint32(v)), odd^v
			}
		}
		assert.EqualValues(t, uint32(sum), m.reg(0, lane, rReg))
		assert.EqualValues(t, uint32(least), m.reg(0, lane, rReg+1))
		assert.EqualValues(t, most, m.reg(0, lane, rReg+2))
		assert.EqualValues(t, uint32(odd), m.reg(0, lane, rReg+3))
	}
	for _, body := range []string{"redux.sync.add.f32 %r0, %r0, -1;", "redux.sync.add.u64 %a0, %a0, -1;",
		"shfl.sync.left.b32 %r0, %r0, 0, 31, -1;", "vote.sync.most.pred %p0, %p0, -1;", "elect.sync %r0, -1;"} {
		assert.ErrorContains(t, (&machine{body: body}).run(t), "the simulator does not know")
	}
}
