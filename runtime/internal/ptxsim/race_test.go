package ptxsim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// raceCases are kernels of two warps: %a0 is the address of the thread's word, %a1 that of
// the same lane's in the other warp, %a2 the thread, %a3 to %a5 whether the warp is the
// second, whether the thread is the warp's first, and the block's first. An mbarrier is at
// 1024. What should be found is in want.
var raceCases = []struct{ name, body, want string }{
	{"a barrier orders", "st.shared.u32 [%a0], %a2;\nbar.sync 0;\nld.shared.u32 %r0, [%a1];", ""},
	{"nothing orders", "st.shared.u32 [%a0], %a2;\nbar.warp.sync -1;\nld.shared.u32 %r0, [%a1];", "a race"},
	{"read, then written", "ld.shared.u32 %r0, [%a1];\nst.shared.u32 [%a0], %a2;", "a race"},
	{"the barrier is of another phase", `
		@%p1 bra second;
		st.shared.u32 [%a0], %a2;
		bar.sync 1, 64;
		st.shared.u32 [%a0], 7;
		bra done;
	second:
		bar.sync 1, 64;
		ld.shared.u32 %r0, [%a1];
	done:`, "and nothing orders the two"},
	{"an arrival orders", `
		@%p1 bra second;
		st.shared.u32 [%a0], %a2;
		bar.arrive 1, 64;
		bra done;
	second:
		bar.sync 1, 64;
		ld.shared.u32 %r0, [%a1];
	done:`, ""},
	{"who only arrives waits for nothing", `
		@%p1 bra second;
		bar.arrive 1, 64;
		ld.shared.u32 %r0, [%a1];
		bra done;
	second:
		st.shared.u32 [%a0], %a2;
		bar.sync 1, 64;
	done:`, "shared memory of block [0 0 0] that thread"},
	{"a copy that nothing waits for",
		"cp.async.ca.shared.global [%a0], [65540], 4;\nbar.sync 0;\nst.shared.u32 [%a1], %a2;", "a race"},
	{"a copy that is waited for",
		"cp.async.ca.shared.global [%a0], [65540], 4;\ncp.async.wait_all;\nbar.sync 0;\nst.shared.u32 [%a1], %a2;", ""},
	{"all write the same", "st.shared.u32 [1040], 5;\nld.shared.u32 %r0, [1040];", ""},
	{"lanes write what differs", "st.shared.u32 [1040], %a2;",
		"writes shared memory of block [0 0 0] that thread"},
	{"bytes of a word", "st.shared.u8 [%a6], %a2;\nld.shared.u8 %r0, [%a6];", ""},
	{"lanes without a barrier of the warp", "@%p2 st.shared.u32 [%a0], 5;\nld.shared.u32 %r0, [%a7];",
		"reads shared memory"},
	{"lanes with one", "@%p2 st.shared.u32 [%a0], 5;\nbar.warp.sync -1;\nld.shared.u32 %r0, [%a7];", ""},
	{"atomics", "red.shared.add.u32 [1040], 1;\natom.shared.add.u32 %r0, [1040], 1;", ""},
	{"an atomic and a load", "red.shared.add.u32 [1040], 1;\nld.shared.u32 %r0, [1040];", "reads shared memory"},
	{"volatile accesses", "st.volatile.shared.u32 [1040], %a2;\nld.volatile.shared.u32 %r0, [1040];", ""},
	{"a value that is sent comes after what its thread has read", `
		@%p3 mbarrier.init.shared.b64 [1024], 1;
		@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [1024], 128;
		bar.sync 0;
		@%p1 bra second;
		ld.shared.u32 %r0, [%a1];
		st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%a0], %r0, [1024];
		bra done;
	second:
		mbarrier.try_wait.parity.shared.b64 %p5, [1024], 0;
		@!%p5 bra second;
		st.shared.u32 [%a0], 7;
	done:`, ""},
	{"what the thread reads behind it may come later", `
		@%p3 mbarrier.init.shared.b64 [1024], 1;
		@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [1024], 128;
		bar.sync 0;
		@%p1 bra second;
		st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%a0], %a2, [1024];
		ld.shared.u32 %r0, [%a1];
		bra done;
	second:
		mbarrier.try_wait.parity.shared.b64 %p5, [1024], 0;
		@!%p5 bra second;
		st.shared.u32 [%a0], 7;
	done:`, "and nothing orders the two"},
	{"an mbarrier orders", `
		@%p3 mbarrier.init.shared.b64 [1024], 32;
		bar.sync 0;
		@%p1 bra second;
		st.shared.u32 [%a0], %a2;
		mbarrier.arrive.shared.b64 _, [1024];
		bra done;
	second:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra second;
		ld.shared.u32 %r0, [%a1];
	done:`, ""},
	{"one lane arrives for all", `
		@%p3 mbarrier.init.shared.b64 [1024], 1;
		bar.sync 0;
		@%p1 bra second;
		st.shared.u32 [%a0], %a2;
		@%p2 mbarrier.arrive.shared.b64 _, [1024];
		bra done;
	second:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra second;
		ld.shared.u32 %r0, [%a1];
	done:`, "reads shared memory of block [0 0 0] that thread 1 of block [0 0 0]"},
	{"one lane arrives for all after a barrier of the warp", `
		@%p3 mbarrier.init.shared.b64 [1024], 1;
		bar.sync 0;
		@%p1 bra second;
		st.shared.u32 [%a0], %a2;
		bar.warp.sync -1;
		@%p2 mbarrier.arrive.shared.b64 _, [1024];
		bra done;
	second:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra second;
		ld.shared.u32 %r0, [%a1];
	done:`, ""},
	{"copies, a wait and a barrier",
		"cp.async.ca.shared.global [%a0], [0x10000], 4;\ncp.async.wait_all;\n" +
			"bar.sync 0;\nld.shared.u32 %r0, [%a1];",
		""},
	{"copies and a wait",
		"cp.async.ca.shared.global [%a0], [0x10000], 4;\ncp.async.wait_all;\nld.shared.u32 %r0, [%a1];",
		"a race"},
	{"a copy to what is still read", `
		bar.sync 0;
		ld.shared.u32 %r0, [%a1];
		cp.async.ca.shared.global [%a0], [0x10000], 4;
		bar.sync 0;
		cp.async.wait_all;`, "writes shared memory"},
	{"a bulk copy", `
		@%p3 mbarrier.init.shared.b64 [1024], 1;
		bar.sync 0;
		@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [1024], 16;
		@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1040], [0x10000], 16, [1024];
	again:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra again;
		ld.shared.u32 %r0, [1040];`, ""},
	{"a bulk copy that one thread waits for", `
		@!%p3 bra done;
		mbarrier.init.shared.b64 [1024], 1;
		mbarrier.arrive.expect_tx.shared.b64 _, [1024], 16;
		cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1040], [0x10000], 16, [1024];
	again:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra again;
	done:
		ld.shared.u32 %r0, [1040];`, "a race"},
	{"a bulk copy over what is read", `
		@%p3 mbarrier.init.shared.b64 [1024], 1;
		bar.sync 0;
		@%p3 mbarrier.arrive.expect_tx.shared.b64 _, [1024], 16;
		ld.shared.u32 %r0, [1040];
		@%p3 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [1040], [0x10000], 16, [1024];
	again:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra again;`, "writes shared memory of block [0 0 0] that thread"},
	{"a bulk store, overwritten early", `
		st.shared.u32 [%a0], %a2;
		bar.sync 0;
		@%p3 cp.async.bulk.global.shared::cta.bulk_group [0x10000], [1040], 16;
		@%p3 cp.async.bulk.commit_group;
		@%p3 cp.async.bulk.wait_group 0;
		st.shared.u32 [%a0], 99;`, "a race"},
	{"a bulk store, overwritten when it was waited for", `
		st.shared.u32 [%a0], %a2;
		bar.sync 0;
		@%p3 cp.async.bulk.global.shared::cta.bulk_group [0x10000], [1040], 16;
		@%p3 cp.async.bulk.commit_group;
		@%p3 cp.async.bulk.wait_group.read 0;
		bar.sync 0;
		st.shared.u32 [%a0], 99;`, ""},
	{"matrices", "st.shared.u32 [%a0], %a2;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [1040];", "a race"},
	{"matrices after a barrier",
		"st.shared.u32 [%a0], %a2;\nbar.sync 0;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r0}, [1040];",
		""},
}

func TestRaces(t *testing.T) {
	for _, c := range raceCases {
		for _, back := range []bool{false, true} {
			m := &machine{threads: 64, shared: 1024, memory: source(64), races: true, back: back,
				body: "mov.b32 %p1, %a3;\nmov.b32 %p2, %a4;\nmov.b32 %p3, %a5;\n" + c.body,
				set: func(_, thread int) []uint64 {
					word := func(i int) uint64 { return uint64(1040 + 4*i) }
					return []uint64{word(thread), word(thread ^ 32), uint64(thread), uint64(thread / 32),
						truth(thread%32 == 0), truth(thread == 0), uint64(1040 + thread), word(thread &^ 31)}
				}}
			err := m.run(t)
			if c.want == "" {
				require.NoError(t, err, c.name)
			} else {
				assert.ErrorContains(t, err, c.want, c.name)
			}
			m.races = false
			require.NoError(t, m.run(t), "%s: not looked for", c.name)
		}
	}
}

func TestRacesOfClusters(t *testing.T) {
	for _, c := range []struct{ arrive, want string }{{"", ""}, {".release", ""}, {".relaxed", "a race"}} {
		m := &machine{blocks: 2, shared: 256, races: true, body: `
			st.shared.u32 [%a0], %a2;
			barrier.cluster.arrive` + c.arrive + `;
			barrier.cluster.wait;
			mapa.shared::cluster.u32 %r0, %a0, %a1;
			ld.shared::cluster.u32 %r1, [%r0];
			barrier.cluster.arrive;
			barrier.cluster.wait;`, set: func(block, thread int) []uint64 {
			return []uint64{uint64(1024 + 4*thread), uint64(1 - block), uint64(thread)}
		}}
		if err := m.run(t); c.want == "" {
			require.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, c.want)
		}
	}
}

// Products are those of a warpgroup: a warp that waits for them waits for the other warps
// to issue them. That orders nothing else.
func TestProductsAreOfWarpgroups(t *testing.T) {
	each(t, func() *machine {
		return &machine{threads: 128, shared: 256, body: `
			mov.b32 %p1, %a0;
			@%p1 st.shared.u32 [1040], 5;
			wgmma.commit_group.sync.aligned;
			wgmma.wait_group.sync.aligned 0;
			ld.shared.u32 %r0, [1040];`, set: func(_, thread int) []uint64 { return []uint64{truth(thread == 96)} }}
	}, func(t *testing.T, m *machine) {
		for thread := range 128 {
			assert.EqualValues(t, 5, m.reg(0, thread, rReg))
		}
		m.races = true
		assert.ErrorContains(t, m.run(t), "a race: it reads shared memory of block [0 0 0] that thread 96")
	})
}
