package ptxsim

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBarRed(t *testing.T) {
	each(t, func() *machine {
		return &machine{threads: 96, body: `
		mov.b32 %p0, %a0;
		bar.red.popc.u32 %r0, 1, %p0;
		barrier.cta.red.and.pred %p1, 1, !%p0;
		bar.red.or.pred %p2, 2, 96, %p0;
		bar.red.and.pred %p3, 2, 96, %p0;`,
			set: func(_, thread int) []uint64 { return []uint64{truth(thread%3 == 0)} }}
	}, func(t *testing.T, m *machine) {
		for thread := range 96 {
			assert.EqualValues(t, 32, m.reg(0, thread, rReg))
			assert.EqualValues(t, 0, m.reg(0, thread, pReg+1))
			assert.EqualValues(t, 1, m.reg(0, thread, pReg+2))
			assert.EqualValues(t, 0, m.reg(0, thread, pReg+3))
		}
	})
}

func TestBarrierErrors(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"bar.sync 0, 33;", "a barrier of 33 threads, which is no multiple of a warp"},
		{"bar.sync 16;", "there is no barrier 16"},
		{"bar.arrive 1, 32;\nbar.sync 1, 64;\nbar.sync 1, 32;",
			"a barrier of 32 threads, and of 64 for those there"},
		{"barrier.cluster.wait.aligned;", "waits at the cluster's barrier, and has not arrived"},
		{"barrier.cluster.arrive.relaxed;\nbarrier.cluster.arrive;", "has arrived at the cluster's barrier before"},
		{"bar.sync 1, 96;",
			"deadlock: no lane can go on\n  block [0 0 0], warp 0, lanes ffffffff: before ptx line"},
		{"bar.warp.sync 1;", "is not in its member mask 0x1"},
	} {
		assert.ErrorContains(t, (&machine{body: c.body, threads: 64}).run(t), c.want, c.body)
	}
}

// Producers that arrive again before those of the first phase have looked must count for
// the second.
func TestArriveAhead(t *testing.T) {
	each(t, func() *machine {
		return &machine{threads: 64, body: `
		mov.b32 %p0, %a0;
		@%p0 bra consumer;
		bar.arrive 1, 64;
		bar.arrive 2, 64;
		bar.sync 3, 64;
		bra done;
	consumer:
		bar.sync 1, 64;
		bar.sync 2, 64;
		bar.sync 3, 64;
	done:`, set: func(_, thread int) []uint64 { return []uint64{uint64(thread / 32)} }}
	}, func(*testing.T, *machine) {})
}

func TestCluster(t *testing.T) {
	const blocks = 4
	each(t, func() *machine {
		return &machine{blocks: blocks, threads: 64, shared: 512, body: `
		st.shared.u32 [%a0], %a1;
		barrier.cluster.arrive.release.aligned;
		barrier.cluster.wait.acquire.aligned;
		mov.b32 %r0, %cluster_ctarank;
		mapa.shared::cluster.u32 %r1, %a0, %a2;
		ld.shared::cluster.u32 %r2, [%r1];
		cvta.shared.u64 %a3, %a0;
		mapa.u64 %a3, %a3, %a2;
		ld.u32 %r3, [%a3];
		getctarank.shared::cluster.u32 %r4, %r1;
		getctarank.u64 %r5, %a3;
		isspacep.shared::cluster %p0, %a3;
		isspacep.shared::cta %p1, %a3;
		isspacep.global %p2, %a3;
		isspacep.local %p3, %a3;
		cvta.to.shared::cluster.u64 %a4, %a3;
		atom.shared::cluster.add.u32 %r6, [%a4+256], %a6;
		barrier.cluster.arrive.relaxed;
		barrier.cluster.wait;
		ld.shared.u32 %r7, [%a0+256];`,
			set: func(block, thread int) []uint64 {
				return []uint64{uint64(1024 + 4*thread), uint64(100*block + thread),
					uint64((block + 1) % blocks), 0, 0, 0, 1}
			}}
	}, func(t *testing.T, m *machine) {
		for block := range blocks {
			for thread := range 64 {
				next := (block + 1) % blocks
				assert.EqualValues(t, block, m.reg(block, thread, rReg))
				assert.EqualValues(t, 100*next+thread, m.reg(block, thread, rReg+2))
				assert.EqualValues(t, 100*next+thread, m.reg(block, thread, rReg+3))
				assert.EqualValues(t, next, m.reg(block, thread, rReg+4))
				assert.EqualValues(t, next, m.reg(block, thread, rReg+5))
				for i, want := range []uint64{1, 0, 0, 0} {
					assert.Equal(t, want, m.reg(block, thread, pReg+i))
				}
				assert.EqualValues(t, 0, uint32(m.reg(block, thread, rReg+7)), "0xFFFFFFFF, and one")
			}
		}
	})
}

func TestClusterErrors(t *testing.T) {
	gone := &machine{blocks: 2, shared: 64, body: `
		mov.b32 %p0, %cluster_ctarank;
		@!%p0 exit;
		mapa.shared::cluster.u32 %r1, %a0, 0;
		barrier.cluster.arrive;
		barrier.cluster.wait;
		ld.shared::cluster.u32 %r2, [%r1];`, set: func(_, _ int) []uint64 { return []uint64{1024} }}
	assert.ErrorContains(t, gone.run(t), "shared memory of block [0 0 0], which has ended")
	none := &machine{blocks: 2, shared: 64, body: `
		mapa.shared::cluster.u32 %r1, %a0, 2;
		ld.shared::cluster.u32 %r2, [%r1];`, set: func(_, _ int) []uint64 { return []uint64{1024} }}
	assert.ErrorContains(t, none.run(t), "is an address of no block of the cluster")
}
