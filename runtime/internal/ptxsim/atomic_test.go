package ptxsim

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/num"
)

func f32Code(v float32) uint64 { return uint64(math.Float32bits(v)) }
func f16Code(v float32) uint64 { return uint64(num.F16Bits(v)) }
func bf16Code(v float32) uint64 {
	return uint64(num.BF16Bits(v))
}

// atomicCases are the result of one operation, computed by hand.
var atomicCases = []struct {
	op           string
	old, x, want uint64
}{
	{"add.u32", 0xFFFFFFFF, 2, 1},
	{"add.s32", 5, 0xFFFFFFFA, 0xFFFFFFFF},
	{"add.u64", 1<<63 + 5, 1 << 63, 5},
	{"min.u32", 3, 0xFFFFFFFF, 3},
	{"min.s32", 3, 0xFFFFFFFF, 0xFFFFFFFF},
	{"max.u32", 3, 0xFFFFFFFF, 0xFFFFFFFF},
	{"max.s32", 3, 0xFFFFFFFF, 3},
	{"min.s64", 3, math.MaxUint64, math.MaxUint64},
	{"max.u64", 3, math.MaxUint64, math.MaxUint64},
	{"and.b32", 0xFF00FF00, 0x0FF00FF0, 0x0F000F00},
	{"or.b64", 1 << 40, 1, 1<<40 | 1},
	{"xor.b32", 0xFFFFFFFF, 0xF, 0xFFFFFFF0},
	{"inc.u32", 4, 5, 5},
	{"inc.u32", 5, 5, 0},
	{"inc.u32", 9, 5, 0},
	{"dec.u32", 4, 5, 3},
	{"dec.u32", 0, 5, 5},
	{"dec.u32", 9, 5, 5},
	{"add.f32", f32Code(1), f32Code(0x1p-24), f32Code(1)},
	{"add.f32", f32Code(1), f32Code(0x1.8p-24), f32Code(1 + 0x1p-23)},
	{"add.f32", 0x7F800000, 0xFF800000, nan32},
	{"add.f64", math.Float64bits(0.1), math.Float64bits(0.2), math.Float64bits(0.30000000000000004)},
	{"add.noftz.f16", f16Code(2048), f16Code(1), f16Code(2048)},
	{"add.noftz.f16", f16Code(65504), f16Code(65504), 0x7C00},
	{"add.noftz.f16", 1, 2, 3}, // subnormals
	{"add.noftz.bf16", bf16Code(256), bf16Code(3), bf16Code(260)},
	{"add.noftz.bf16", bf16Code(1), 0x7FC1, nan16},
	{"add.noftz.f16x2", f16Code(1) | f16Code(2)<<16,
		f16Code(10) | f16Code(20)<<16, f16Code(11) | f16Code(22)<<16},
	{"add.noftz.bf16x2", bf16Code(1) | bf16Code(2)<<16,
		bf16Code(10) | bf16Code(20)<<16, bf16Code(11) | bf16Code(22)<<16},
}

func TestAtomic(t *testing.T) {
	size := func(op string) int {
		for n := range elementTypes {
			if len(op) > len(n) && op[len(op)-len(n)-1:] == "."+n {
				return elementTypes[n]
			}
		}
		return 0
	}
	for _, c := range atomicCases {
		n := size(c.op)
		for _, space := range []string{".shared", ".shared::cluster", ".global", "", ".relaxed.gpu.global"} {
			memory := &testMemory{0x10000, make([]byte, 64)}
			write(memory.data[16:], n, c.old)
			m := &machine{memory: memory, shared: 64, body: fmt.Sprintf(
				"@%%p0 bra over;\nst.shared.b64 [%%a2], %%a3;\n"+
					"atom%s.%s %%a4, [%%a0], %%a1;\nover:", space, c.op), threads: 1,
				set: func(_, thread int) []uint64 { return []uint64{0x10010, c.x, 1024, c.old} }}
			if len(space) > 2 && space[1] == 's' {
				m.set = func(_, _ int) []uint64 { return []uint64{1024, c.x, 1024, c.old} }
			}
			m.must(t)
			assert.Equal(t, c.old, m.reg(0, 0, aReg+4), "%s%s gives what was there", c.op, space)
			got := memory.data[16:]
			if len(space) > 2 && space[1] == 's' {
				got = m.cluster.ctas[0].shared
			}
			assert.Equal(t, c.want, read(got, n), "%s%s", c.op, space)
		}
	}
}

func TestAtomicSubnormals(t *testing.T) {
	// 1e-40 + 1e-40: flushed in global memory, kept in shared memory.
	tiny := f32Code(1e-40)
	for _, c := range []struct {
		space string
		addr  uint64
		want  uint64
	}{
		{".global", 0x10000, 0}, {"", 0x10000, 0},
		{".shared", 1024, 2 * tiny}, {"", sharedWindow + 1024, 2 * tiny},
	} {
		memory := &testMemory{0x10000, make([]byte, 4)}
		m := (&machine{memory: memory, shared: 4, threads: 1, body: fmt.Sprintf(
			"st%s.u32 [%%a0], %%a1;\nred%s.add.f32 [%%a0], %%a1;\nld%s.u32 %%r0, [%%a0];", c.space, c.space, c.space),
			set: func(_, _ int) []uint64 { return []uint64{c.addr, tiny} }}).must(t)
		assert.Equal(t, c.want, m.reg(0, 0, rReg), "%q at %#x", c.space, c.addr)
	}
}

func TestAtomicVectors(t *testing.T) {
	memory := &testMemory{0x10000, make([]byte, 16)}
	m := (&machine{memory: memory, threads: 3, body: `
		mov.b32 %r0, %a1;
		mov.b16 %h0, %a2;
		red.global.add.v2.f32 [%a0], {%r0, %a3};
		red.global.v2.f16x2.add.noftz [%a0+8], {%a2, %a2};
		atom.global.max.noftz.v4.bf16 {%h0, %h1, _, %h2}, [%a0+8], {%a4, %a4, %a4, %a4};`,
		set: func(_, thread int) []uint64 {
			return []uint64{0x10000, f32Code(float32(thread)), f16Code(1) | f16Code(2)<<16, f32Code(1), 0}
		}}).must(t)
	assert.Equal(t, f32Code(0+1+2), read(memory.data, 4))
	assert.Equal(t, f32Code(3), read(memory.data[4:], 4))
	assert.Equal(t, f16Code(3)|f16Code(6)<<16, read(memory.data[8:], 4))
	assert.Equal(t, f16Code(3), m.reg(0, 0, hReg))
	assert.Equal(t, f16Code(6), m.reg(0, 0, hReg+1))
	assert.Equal(t, f16Code(6), m.reg(0, 0, hReg+2))
	err := (&machine{memory: memory, body: "red.global.add.v4.f32 [%a0], {%r0, %r0, %r0, %r0};",
		set: func(_, _ int) []uint64 { return []uint64{0x10008} }}).run(t)
	assert.ErrorContains(t, err, "0x10008 is not a multiple of 16")
}

func TestAtomicOrder(t *testing.T) {
	// Lanes take turns from the lowest: each finds the sum of those below.
	memory := &testMemory{0x10000, make([]byte, 16)}
	m := (&machine{memory: memory, body: `
		mov.b32 %p0, %a2;
		@%p0 atom.global.add.u32 %r0, [%a0], %a1;
		@!%p0 atom.global.cas.b32 %r1, [%a0+4], %a3, %a1;
		@!%p0 atom.global.exch.b32 %r2, [%a0+8], %a1;`,
		set: func(_, thread int) []uint64 {
			return []uint64{0x10000, uint64(thread + 1), uint64(thread % 2), uint64(thread) / 4 * 4}
		}}).must(t)
	sum, swapped, last := 0, 0, uint64(0)
	for lane := range warpSize {
		if lane%2 == 1 {
			assert.EqualValues(t, sum, m.reg(0, lane, rReg))
			sum += lane + 1
			continue
		}
		assert.EqualValues(t, swapped, m.reg(0, lane, rReg+1), "lane %d", lane)
		if swapped == lane/4*4 {
			swapped = lane + 1
		}
		assert.Equal(t, last, m.reg(0, lane, rReg+2))
		last = uint64(lane + 1)
	}
	require.EqualValues(t, sum, read(memory.data, 4))
	for _, body := range []string{
		"atom.global.add.f16 %h0, [%a0], %h0, %h1, %h2;", "red.global.exch.b32 [%a0], %r0;",
		"atom.global.mul.u32 %r0, [%a0], %r0;", "atom.global.add.b128 %r0, [%a0], %r0;",
		"atom.global.inc.u16 %h0, [%a0], %h0;",
	} {
		assert.ErrorContains(t, (&machine{body: body}).run(t), "the simulator does not know")
	}
}
