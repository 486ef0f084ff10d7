package ptxsim

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// mapped is global memory of a tensor map at 0x10000 and a tensor of consecutive elements.
func mapped(t *testing.T, m TensorMap, size int) *testMemory {
	t.Helper()
	for i := range m.Rank {
		if m.Steps[i] == 0 {
			m.Steps[i] = 1
		}
	}
	m.Address, m.Strides[0] = 0x10100, uint64(m.Type.Size())
	bytes, err := m.Encode()
	require.NoError(t, err)
	memory := &testMemory{0x10000, make([]byte, 0x100+size)}
	copy(memory.data, bytes[:])
	for i := 0; i < size; i += m.Type.Size() {
		write(memory.data[0x100+i:], m.Type.Size(), uint64(i/m.Type.Size()+1))
	}
	return memory
}

const (
	typeU8, typeU16, typeS32 = 0, 1, 3
	typeF16, typeF32, typeTF = 6, 7, 11
)

// loadOf is a kernel of one thread that loads a box to %a0, at the barrier at 1024.
func loadOf(dims int, extra string) string {
	coords := "%r1, %r2, %r3, %r4, %r5"[:5*dims-2]
	if dims == 0 {
		coords = ""
	}
	return fmt.Sprintf(`
		mov.b32 %%r1, %%a2;
		mov.b32 %%r2, %%a3;
		mov.b32 %%r3, %%a4;
		mov.b32 %%r4, %%a5;
		mov.b32 %%r5, %%a6;
		mbarrier.init.shared.b64 [1024], 1;
		mbarrier.arrive.expect_tx.shared.b64 _, [1024], %%a7;
		cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::complete_tx::bytes%s
			[%%a0], [%%a1, {%s}], [1024]%s;
	again:
		mbarrier.try_wait.parity.shared.b64 %%p0, [1024], 0;
		@!%%p0 bra again;`, dims, extra, coords, map[string]string{".L2::cache_hint": ", %a6"}[extra])
}

// Boxes of random tensors, compared with an element by element definition.
func TestLoadBox(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rank := rapid.IntRange(1, 5).Draw(rt, "rank")
		m := TensorMap{Type: typeU16, Rank: rank}
		m.Swizzle = rapid.SampledFrom([]int{0, 32, 64, 128}).Draw(rt, "swizzle")
		stride, total := uint64(2), 2
		var first [5]int
		for i := range rank {
			m.Dims[i] = uint64(rapid.IntRange(1, 9).Draw(rt, "dim"))
			m.Box[i] = uint32(rapid.IntRange(1, 3).Draw(rt, "box"))
			m.Steps[i] = uint32(rapid.IntRange(1, 3).Draw(rt, "step"))
			first[i] = rapid.IntRange(-4, 9).Draw(rt, "at")
			if i == 0 {
				m.Dims[0] = uint64(rapid.IntRange(1, 80).Draw(rt, "dim 0"))
				m.Box[0], m.Steps[0] = 8*m.Box[0], 1
				if m.Swizzle > 0 {
					m.Box[0] = uint32(m.Swizzle / 2)
				}
			}
			m.Strides[i] = stride
			stride = (stride*m.Dims[i] + 15) / 16 * 16
			total *= int((m.Box[i] + m.Steps[i] - 1) / m.Steps[i])
		}
		base := uint64(1152 + 128*rapid.IntRange(0, 7).Draw(rt, "base"))
		x := &machine{threads: 1, shared: int(base) + total, memory: mapped(t, m, int(stride)),
			body: loadOf(rank, "")}
		x.set = func(_, _ int) []uint64 {
			values := []uint64{base, 0x10000}
			for _, c := range first {
				values = append(values, uint64(uint32(c)))
			}
			return append(values, uint64(total))
		}
		require.NoError(rt, x.run(t))
		// The place of element i of the box: 16-byte pieces of a span of 128 bytes by
		// exclusive or with the number of the 128 bytes, in spans that repeat less for less.
		check := func(index int, want uint64) {
			at := int(base) + 2*index
			line, piece := at/128, at/16%8
			piece ^= line & (m.Swizzle/16 - min(m.Swizzle/16, 1))
			at = line*128 + piece*16 + at%16
			got := uint64(binary.LittleEndian.Uint16(x.cluster.ctas[0].shared[at-sharedStart:]))
			require.Equal(rt, want, got, "element %d of %+v at %v", index, m, first)
		}
		var at [5]int
		for index := range total / 2 {
			offset, inside := 0, true
			for i := range rank {
				c := first[i] + at[i]*int(m.Steps[i])
				inside = inside && c >= 0 && c < int(m.Dims[i])
				offset += c * int(m.Strides[i])
			}
			check(index, choose(inside, uint64(uint16(offset/2+1)), 0))
			for i := range rank {
				if at[i]++; at[i] < int((m.Box[i]+m.Steps[i]-1)/m.Steps[i]) {
					break
				}
				at[i] = 0
			}
		}
	})
}

func TestBoxFillAndRounding(t *testing.T) {
	m := TensorMap{Type: typeF32, Rank: 1, Dims: [5]uint64{3}, Box: [5]uint32{4}, NaNFill: true}
	x := &machine{threads: 1, shared: 512, memory: mapped(t, m, 16), body: loadOf(1, ".L2::cache_hint"),
		set: func(_, _ int) []uint64 { return []uint64{1152, 0x10000, 1, 0, 0, 0, 0, 16} }}
	x.must(t)
	got := x.cluster.ctas[0].shared[128:]
	assert.EqualValues(t, 2, read(got, 4))
	assert.True(t, math.IsNaN(float64(math.Float32frombits(uint32(read(got[8:], 4))))))
	m = TensorMap{Type: typeTF, Rank: 1, Dims: [5]uint64{4}, Box: [5]uint32{4}}
	x.memory = mapped(t, m, 16)
	for i, v := range []float32{1 + 0x1p-11, 1 + 0x1.8p-11, -1 - 0x3p-11, 1 + 0x1p-12} {
		write(x.memory.data[0x100+4*i:], 4, f32Code(v))
	}
	x.set = func(_, _ int) []uint64 { return []uint64{1152, 0x10000, 0, 0, 0, 0, 0, 16} }
	x.must(t)
	for i, want := range []float32{1, 1 + 0x1p-10, -1 - 0x2p-10, 1} {
		assert.Equal(t, f32Code(want), read(x.cluster.ctas[0].shared[128+4*i:], 4))
	}
}

func TestMulticast(t *testing.T) {
	m := TensorMap{Type: typeU8, Rank: 2, Dims: [5]uint64{32, 4}, Strides: [5]uint64{1, 32},
		Box: [5]uint32{32, 2}}
	each(t, func() *machine {
		return &machine{blocks: 4, threads: 1, shared: 512, memory: mapped(t, m, 128), body: `
		mbarrier.init.shared.b64 [1024], 1;
		mbarrier.arrive.expect_tx.shared.b64 _, [1024], %a2;
		barrier.cluster.arrive;
		barrier.cluster.wait;
		mov.b32 %p0, %a3;
		mov.b16 %h0, 0xA;
		@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster
			[%a0], [%a1, {0, 1}], [1024], %h0;
		@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
			[%a0+128], [%a1+256], 16, [1024], 3;
	again:
		mbarrier.try_wait.parity.shared.b64 %p1, [1024], 0;
		@!%p1 bra again;
		ld.shared.u8 %r0, [%a0+1];
		ld.shared.u8 %r1, [%a0+128];
		barrier.cluster.arrive;
		barrier.cluster.wait;`, set: func(block, _ int) []uint64 {
			return []uint64{1152, 0x10000, []uint64{16, 64 + 16, 0, 64}[block], truth(block == 2)}
		}}
	}, func(t *testing.T, x *machine) {
		for block := range 4 {
			assert.EqualValues(t, choose(block%2 == 1, 34, 0xFF), x.reg(block, 0, rReg))
			assert.EqualValues(t, choose(block < 2, 1, 0xFF), x.reg(block, 0, rReg+1))
		}
	})
}

// A box goes through shared memory, with a swizzle, to a tensor of the same size: what is
// outside stays.
func TestStoreBox(t *testing.T) {
	for _, c := range []struct {
		op   string
		want func(old, x uint64) uint64
	}{
		{"cp.async", func(_, x uint64) uint64 { return x }},
		{"cp.reduce.async", func(old, x uint64) uint64 { return old + x }},
	} {
		each(t, func() *machine {
			m := TensorMap{Type: typeS32, Rank: 2, Dims: [5]uint64{20, 6}, Strides: [5]uint64{4, 80},
				Box: [5]uint32{32, 4}, Swizzle: 128}
			mods, op := "", c.op
			if op != "cp.async" {
				mods = ".add"
			}
			return &machine{threads: 1, shared: 1024 + 2048, memory: mapped(t, m, 480),
				body: loadOf(2, "") + fmt.Sprintf(`
			%s.bulk.tensor.2d.global.shared::cta%s.tile.bulk_group [%%a1, {%%r3, -1}], [%%a0];
			cp.async.bulk.commit_group;
			cp.async.bulk.wait_group.read 0;
			st.shared.u32 [%%a0], 99;
			cp.async.bulk.wait_group 0;`, op, mods),
				set: func(_, _ int) []uint64 { return []uint64{2048, 0x10000, 2, 1, 5, 0, 0, 512} }}
		}, func(t *testing.T, x *machine) {
			for row := range 6 {
				for column := range 20 {
					// Row r of the box is row 1+r of the tensor from column 2, written from
					// column 5 to row r-1.
					old := uint64(row*20 + column + 1)
					want := old
					if from, at := row+2, column-5+2; column >= 5 && row < 3 && from < 6 {
						want = c.want(old, choose(at < 20, uint64(from*20+at+1), 0))
					}
					got := read(x.memory.data[0x100+4*(row*20+column):], 4)
					require.Equal(t, want, got, "%s, row %d, column %d", c.op, row, column)
				}
			}
		})
	}
}

func TestBulk(t *testing.T) {
	for _, early := range []bool{false, true} {
		memory := source(64)
		x := (&machine{threads: 1, shared: 512, memory: memory, early: early, body: `
		mbarrier.init.shared.b64 [1024], 1;
		mbarrier.arrive.expect_tx.shared.b64 _, [1024], 32;
		cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint
			[%a0], [%a1], 32, [1024], %a7;
		ld.shared.u32 %r0, [%a0];
	again:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra again;
		ld.shared.u32 %r1, [%a0+28];
		cp.async.bulk.global.shared::cta.bulk_group [%a1+64], [%a0], 16;
		cp.async.bulk.commit_group;
		cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%a1+128], [%a0], 32;
		cp.async.bulk.commit_group;
		ld.global.u32 %r2, [%a1+64];
		cp.async.bulk.wait_group.read 0;
		ld.global.u32 %r3, [%a1+64];
		cp.async.bulk.wait_group 1;
		ld.global.u32 %r4, [%a1+64];
		ld.global.u32 %r5, [%a1+128];
		cp.async.bulk.prefetch.L2.global [%a1], 16;`,
			set: func(_, _ int) []uint64 { return []uint64{1040, 0x10000} }}).must(t)
		want := []uint64{stale, 8, 17, 17, 1, 33}
		if early {
			want = []uint64{1, 8, 1, 1, 1, 34}
		}
		for i, v := range want {
			assert.Equal(t, v, x.reg(0, 0, rReg+i), "load %d", i)
		}
		assert.EqualValues(t, 34, read(memory.data[128:], 4), "at the end")
	}
}

// Blocks hand a row of theirs to the next, and add it there.
func TestBulkBetweenBlocks(t *testing.T) {
	each(t, func() *machine {
		return &machine{blocks: 2, threads: 1, shared: 512, body: `
		mbarrier.init.shared.b64 [1024], 1;
		mbarrier.arrive.expect_tx.shared.b64 _, [1024], 32;
		st.shared.v4.u32 [%a0], {%a1, %a1, %a1, %a1};
		st.shared.v4.u32 [%a0+32], {7, 7, 7, 7};
		barrier.cluster.arrive;
		barrier.cluster.wait;
		mapa.shared::cluster.u32 %r0, 1024, %a2;
		cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r0+32], [%a0], 16, [%r0];
		cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.max.u32
			[%r0+48], [%a0], 16, [%r0];
	again:
		mbarrier.try_wait.parity.shared.b64 %p0, [1024], 0;
		@!%p0 bra again;
		ld.shared.u32 %r1, [%a0+16];
		ld.shared.u32 %r2, [%a0+32];
		barrier.cluster.arrive;
		barrier.cluster.wait;`,
			set: func(block, _ int) []uint64 { return []uint64{1040, uint64(5 + 5*block), uint64(1 - block)} }}
	}, func(t *testing.T, x *machine) {
		for block := range 2 {
			assert.EqualValues(t, 10-5*block, x.reg(block, 0, rReg+1))
			assert.EqualValues(t, 10-3*block, x.reg(block, 0, rReg+2))
		}
	})
}

func TestBulkErrors(t *testing.T) {
	m := TensorMap{Type: typeF16, Rank: 1, Dims: [5]uint64{64}, Box: [5]uint32{16}}
	narrow := TensorMap{Type: typeF16, Rank: 1, Dims: [5]uint64{64}, Box: [5]uint32{16}, Swizzle: 64}
	const load = "mbarrier.init.shared.b64 [1024], 1;\n" +
		"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
	const box = "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
	for _, c := range []struct {
		m          TensorMap
		body, want string
	}{
		{m, load + "[%a0], [%a1], 24, [1024];", "a bulk operation on 24 bytes, which are no multiple of 16"},
		{m, load + "[%a0+8], [%a1], 16, [1024];", "0x488 is not a multiple of 16"},
		{m, load + "[%a0], [%a1+8], 16, [1024];", "0x10008 is not a multiple of 16"},
		{m, load + "[%a0], [%a1], 16, [1024];", "its mbarrier at 0x400 lacks -16 bytes"},
		{m, load + "[%a0], [%a1], 16, [1032];", "no mbarrier has been initialised at 0x8"},
		{m, box + "[%a0+16], [%a1, {0}], [1024];", "0x490 is not a multiple of 128"},
		{m, box + "[%a0], [%a2, {0}], [1024];", "there is no tensor map where one was expected"},
		{m, "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%a1, {0, 0}];",
			"2 coordinates of a tensor of 1 dimensions"},
		{m, "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%a1, {0}], [%a0];",
			"the simulator does not know"},
		{m, "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes " +
			"[%a0], [%a1, {0, 0, 0}], [1024], {0};",
			"the simulator does not know"},
		{m, "cp.reduce.async.bulk.tensor.1d.global.shared::cta.xor.tile.bulk_group [%a1, {0}], [%a0];",
			"there is no xor of f16"},
		{m, "cp.async.bulk.global.shared::cta.bulk_group [%a1], [%a0], 16;", "expected a wait_group.read"},
		{narrow, box + "[%a0], [%a1, {0}], [1024];",
			"does not know boxes of 32 bytes in dimension 0 with a swizzle of 64"},
	} {
		x := &machine{threads: 1, shared: 1024, memory: mapped(t, c.m, 128), body: c.body,
			set: func(_, _ int) []uint64 { return []uint64{1152, 0x10000, 0x10040} }}
		assert.ErrorContains(t, x.run(t), c.want, c.body)
	}
}
