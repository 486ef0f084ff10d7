package ptxsim

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
)

// stale is what shared memory holds before a copy has landed.
const stale = 0xFFFFFFFF

// source is global memory of words 1, 2, 3, ...
func source(words int) *testMemory {
	m := &testMemory{0x10000, make([]byte, 4*words)}
	for i := range words {
		write(m.data[4*i:], 4, uint64(i+1))
	}
	return m
}

func TestCopiesLandWhenWaitedFor(t *testing.T) {
	m := &machine{threads: 1, shared: 64, memory: source(64), body: `
		cp.async.ca.shared.global [%a0], [%a1], 4;
		cp.async.commit_group;
		cp.async.ca.shared::cta.global.L2::128B [%a0+4], [%a1+4], 4;
		cp.async.commit_group;
		cp.async.commit_group;
		cp.async.ca.shared.global.L2::cache_hint [%a0+8], [%a1+8], 8, %a7;
		ld.shared.u32 %r0, [%a0];
		cp.async.wait_group 2;
		ld.shared.u32 %r1, [%a0];
		ld.shared.u32 %r2, [%a0+4];
		cp.async.wait_group 0;
		ld.shared.u32 %r3, [%a0+4];
		ld.shared.u32 %r4, [%a0+8];
		cp.async.wait_all;
		ld.shared.u32 %r5, [%a0+8];
		ld.shared.u32 %r6, [%a0+12];`, set: func(_, _ int) []uint64 { return []uint64{1024, 0x10000} }}
	m.must(t)
	for i, want := range []uint64{stale, 1, stale, 2, stale, 3, 4} {
		assert.Equal(t, want, m.reg(0, 0, rReg+i), "late, load %d", i)
	}
	m.early = true
	m.must(t)
	for i, want := range []uint64{1, 1, 2, 2, 3, 3, 4} {
		assert.Equal(t, want, m.reg(0, 0, rReg+i), "early, load %d", i)
	}
}

func TestCopiesOfLess(t *testing.T) {
	each(t, func() *machine {
		return &machine{shared: 1024, memory: source(128), body: `
		mov.b32 %p0, %a3;
		cp.async.cg.shared.global.L2::128B [%a0], [%a1], 16, %a2;
		cp.async.ca.shared.global [%a0+512], [%a1], 16, %p0;
		cp.async.wait_all;
		ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%a0];
		ld.shared.v4.u32 {%r4, %r5, %r6, %r7}, [%a0+512];`,
			set: func(_, thread int) []uint64 {
				return []uint64{uint64(1024 + 16*thread), uint64(0x10000 + 16*thread), uint64(thread % 17),
					uint64(thread % 2)}
			}}
	}, func(t *testing.T, m *machine) {
		for lane := range warpSize {
			for i := range 4 {
				word := uint64(4*lane + i + 1)
				want := uint64(0)
				if kept := lane%17 - 4*i; kept > 0 {
					want = word & (1<<min(8*kept, 32) - 1)
				}
				assert.Equal(t, want, m.reg(0, lane, rReg+i))
				assert.Equal(t, choose(lane%2 == 1, 0, word), m.reg(0, lane, rReg+4+i))
			}
		}
	})
}

func TestCopyErrors(t *testing.T) {
	for _, c := range []struct {
		body     string
		to, from uint64
		want     string
	}{
		{"cp.async.ca.shared.global [%a0], [%a1], 8;", 1028, 0x10000, "0x404 is not a multiple of 8"},
		{"cp.async.ca.shared.global [%a0], [%a1], 8;", 1024, 0x10004, "0x10004 is not a multiple of 8"},
		{"cp.async.ca.shared.global [%a0], [%a1], 8, 9;", 1024, 0x10000, "a copy of 8 bytes with 9 of the source"},
		{"cp.async.ca.shared.global [%a0], [%a1], 8;", 1024, 0x20000,
			"8 bytes at 0x20000 of global memory are not allocated"},
		{"cp.async.cg.shared.global [%a0], [%a1], 8;", 1024, 0x10000, "the simulator does not know"},
		{"cp.async.ca.shared.global [%a0], [%a1], 5;", 1024, 0x10000, "the simulator does not know"},
	} {
		m := &machine{threads: 1, shared: 16, memory: source(4), body: c.body,
			set: func(_, _ int) []uint64 { return []uint64{c.to, c.from} }}
		assert.ErrorContains(t, m.run(t), c.want, c.body)
	}
}

// Copies that arrive at an mbarrier, waited for by the other warp.
func TestCopiesArrive(t *testing.T) {
	for _, form := range []struct {
		mods  string
		count int // arrivals that the barrier is made for
	}{{".noinc.shared::cta", 33}, {".shared", 1}, {"", 1}} {
		each(t, func() *machine {
			return &machine{threads: 64, shared: 1024, memory: source(128), body: fmt.Sprintf(`
			mov.b32 %%p0, %%a2;
			mov.b32 %%p1, %%a3;
			@%%p0 mbarrier.init.shared::cta.b64 [%%a4], %d;
			bar.sync 0;
			@%%p1 bra consumer;
			cp.async.cg.shared.global [%%a0], [%%a1], 16;
			cp.async.mbarrier.arrive%s.b64 [%%a5];
			@%%p0 mbarrier.arrive.shared.b64 %%a6, [%%a4];
			bra done;
		consumer:
			mbarrier.try_wait.parity.shared::cta.b64 %%p2, [%%a4], 0;
			@!%%p2 bra consumer;
			ld.shared.u32 %%r0, [%%a0];
		done:`, form.count, form.mods), set: func(_, thread int) []uint64 {
				generic := uint64(1024 + 512)
				if form.mods == "" {
					generic += sharedWindow
				}
				return []uint64{uint64(1024 + 16*(thread%32)), uint64(0x10000 + 16*(thread%32)), truth(thread == 0),
					uint64(thread / 32), 1024 + 512, generic}
			}}
		}, func(t *testing.T, m *machine) {
			for lane := range warpSize {
				assert.EqualValues(t, 4*lane+1, m.reg(0, 32+lane, rReg))
			}
		})
	}
}
