package ptxsim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestMbarrierBits(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := mbarrier{pending: rapid.IntRange(0, maxArrivals).Draw(rt, "pending"),
			expected: rapid.IntRange(0, maxArrivals).Draw(rt, "expected"),
			bytes:    rapid.IntRange(-maxBytes, maxBytes).Draw(rt, "bytes"),
			phase:    rapid.IntRange(0, 1).Draw(rt, "phase")}
		require.Equal(t, b, decodeMbarrier(b.encode()))
	})
}

func onBarrier(body string) *machine {
	return &machine{body: body, shared: 64, threads: 1,
		set: func(_, _ int) []uint64 { return []uint64{1024, sharedWindow + 1024} }}
}

func TestMbarrierPhases(t *testing.T) {
	m := onBarrier(`
		mbarrier.init.shared.b64 [%a0], 3;
		mbarrier.test_wait.parity.shared::cta.b64 %p0, [%a0], 1;
		mbarrier.test_wait.parity.b64 %p1, [%a1], 0;
		mbarrier.arrive.release.cta.shared::cta.b64 %a2, [%a0];
		mbarrier.arrive.noComplete.release.cta.shared.b64 %a3, [%a0], 1;
		mbarrier.pending_count.b64 %r0, %a2;
		mbarrier.pending_count.b64 %r1, %a3;
		mbarrier.try_wait.shared.b64 %p2, [%a0], %a3;
		mbarrier.arrive_drop.b64 %a4, [%a1];
		mbarrier.try_wait.acquire.cta.shared.b64 %p3, [%a0], %a4, 1000;
		mbarrier.try_wait.parity.shared.b64 %p4, [%a0], 0;
		mbarrier.arrive.shared::cta.b64 _, [%a0], 2;
		mbarrier.test_wait.parity.shared::cta.b64 %p5, [%a0], 1;
		mbarrier.arrive.expect_tx.relaxed.cluster.shared::cluster.b64 _, [%a0], 96;
		mbarrier.expect_tx.relaxed.cta.shared.b64 [%a0], 32;
		mbarrier.arrive.b64 _, [%a1];
		mbarrier.test_wait.parity.shared::cta.b64 %p6, [%a0], 0;
		mbarrier.complete_tx.relaxed.cluster.shared.b64 [%a0], 128;
		mbarrier.test_wait.parity.shared::cta.b64 %p7, [%a0], 0;
		mbarrier.inval.shared.b64 [%a0];
		mbarrier.init.shared.b64 [%a0], 1;`).must(t)
	for i, want := range []uint64{1, 0, 0, 1, 1, 1, 0, 1} {
		assert.Equal(t, want, m.reg(0, 0, pReg+i), "predicate %d", i)
	}
	assert.EqualValues(t, 3, m.reg(0, 0, rReg))
	assert.EqualValues(t, 2, m.reg(0, 0, rReg+1))
}

func TestMbarrierErrors(t *testing.T) {
	const start = "mbarrier.init.shared.b64 [%a0], 2;\n"
	for _, c := range []struct{ body, want string }{
		{"mbarrier.arrive.shared.b64 _, [%a0];", "no mbarrier has been initialised at 0x0"},
		{start + "st.shared.u32 [%a0], 7;\nmbarrier.arrive.shared.b64 _, [%a0];", "is overwritten"},
		{start + start, "is initialised again"},
		{start + "mbarrier.inval.shared.b64 [%a0];\nmbarrier.arrive.shared.b64 _, [%a0];", "no mbarrier has been"},
		{"mbarrier.init.shared.b64 [%a0], 0;", "an mbarrier of 0 arrivals"},
		{"mbarrier.init.shared.b64 [%a0+4], 1;", "0x404 is not a multiple of 8"},
		{"mbarrier.init.b64 [%a0], 1;", "0x400 is not an address of shared memory"},
		{start + "mbarrier.arrive.shared.b64 _, [%a0], 3;", "3 arrivals at an mbarrier that expects 2 more"},
		{start + "mbarrier.arrive.noComplete.shared.b64 _, [%a0], 2;", "noComplete, and the last 2"},
		{start + "mbarrier.expect_tx.shared.b64 [%a0], 0x100000;", "expects 1048576 bytes"},
		{start + "mbarrier.expect_tx.shared.b64 [%a0], 12;",
			"block [0 0 0] has ended, and its mbarrier at 0x400 lacks 12 bytes"},
		{start + "again:\nmbarrier.try_wait.parity.shared.b64 %p0, [%a0], 0;\n@!%p0 bra again;",
			"mbarrier at 0x400: phase 0 lacks 2 of 2 arrivals and 0 bytes"},
	} {
		assert.ErrorContains(t, onBarrier(c.body).run(t), c.want, c.body)
	}
}

// A lane that finds nothing and does something else is no deadlock.
func TestTryWaitGivesUp(t *testing.T) {
	m := onBarrier(`
		mbarrier.init.shared.b64 [%a0], 1;
		mbarrier.try_wait.parity.shared.b64 %p0, [%a0], 0;
		mbarrier.try_wait.parity.shared.b64 %p0, [%a0], 0;
		mbarrier.try_wait.parity.shared.b64 %p0, [%a0], 0;
		mov.b32 %r0, 5;`).must(t)
	assert.EqualValues(t, 5, m.reg(0, 0, rReg))
}

// Each block sends a word to the next and waits for that of the one before.
func TestSend(t *testing.T) {
	const blocks = 3
	each(t, func() *machine {
		return &machine{blocks: blocks, shared: 544, body: `
		mov.b32 %p0, %a3;
		@%p0 mbarrier.init.shared::cta.b64 [%a0], 1;
		@%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%a0], 640;
		st.shared.u32 [%a1+384], 1000;
		barrier.cluster.arrive;
		barrier.cluster.wait;
		mapa.shared::cluster.u32 %r0, %a1, %a2;
		mapa.shared::cluster.u32 %r1, %a0, %a2;
		st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %a4, [%r1];
		st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%a6], {%a4, %a5}, [%r1];
		red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r0+384], %a4, [%r1];
		red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.max.s32 [%r0+384], 5, [%r1];
		mov.b32 %a4, 77;
	again:
		mbarrier.try_wait.parity.shared::cta.b64 %p1, [%a0], 0;
		@!%p1 bra again;
		ld.shared.u32 %r2, [%a1];
		ld.shared.v2.u32 {%r3, %r4}, [%a7];
		ld.shared.u32 %r5, [%a1+384];
		barrier.cluster.arrive;
		barrier.cluster.wait;`, set: func(block, thread int) []uint64 {
			next := uint64((block + 1) % blocks)
			return []uint64{1024, uint64(1032 + 4*thread), next, truth(thread == 0),
				uint64(100*block + thread), uint64(thread),
				inBlock(uint64(1024+136+8*thread), uint32(next)), uint64(1024 + 136 + 8*thread)}
		}}
	}, func(t *testing.T, m *machine) {
		for block := range blocks {
			before := (block + blocks - 1) % blocks
			for lane := range warpSize {
				sent := uint64(100*before + lane)
				assert.Equal(t, sent, m.reg(block, lane, rReg+2))
				assert.Equal(t, sent, m.reg(block, lane, rReg+3))
				assert.EqualValues(t, lane, m.reg(block, lane, rReg+4))
				assert.Equal(t, 1000+sent, m.reg(block, lane, rReg+5))
			}
		}
	})
	elsewhere := &machine{blocks: 2, shared: 64, threads: 1, body: `
		mapa.shared::cluster.u32 %r0, %a0, 1;
		st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r0], %a0, [%a0];`,
		set: func(_, _ int) []uint64 { return []uint64{1024} }}
	assert.ErrorContains(t, elsewhere.run(t),
		"data for block [1 0 0] is counted at an mbarrier of block [0 0 0]")
}
