package ptxsim

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Loads of each type into each width of register, by lanes at random places: next to each
// other, all at one, or anywhere; some lanes idle.
func TestLoad(t *testing.T) {
	memory := &testMemory{0x10000, make([]byte, 1024)}
	for i := range memory.data {
		memory.data[i] = byte(i*37 + i>>8)
	}
	rapid.Check(t, func(rt *rapid.T) {
		typ := rapid.SampledFrom([]string{"b8", "u8", "s8", "b16", "u16", "s16",
			"b32", "u32", "s32", "f32", "b64", "s64", "f64"}).Draw(rt, "type")
		n := elementTypes[typ]
		width, class := 64, rapid.SampledFrom([]string{"%a6", "%r0"}).Draw(rt, "register")
		if class == "%r0" && n < 8 {
			width = 32
		} else {
			class = "%a6"
		}
		mask := rapid.Uint32().Draw(rt, "mask")
		place := make([]int, warpSize)
		how := rapid.IntRange(0, 2).Draw(rt, "how")
		for lane := range place {
			switch how {
			case 0:
				place[lane] = lane
			case 1:
				place[lane] = 5
			default:
				place[lane] = rapid.IntRange(0, 100).Draw(rt, "place")
			}
		}
		m := &machine{memory: memory, body: fmt.Sprintf("mov.b32 %%p0, %%a1;\n"+
			"@%%p0 ld.relaxed.gpu.global.L1::no_allocate.L2::128B.%s %s, [%%a0+%d];",
			typ, class, n), set: func(_, lane int) []uint64 {
			return []uint64{uint64(0x10000 + n*place[lane]), uint64(mask >> lane & 1)}
		}}
		require.NoError(rt, m.run(t))
		reg := rReg
		if class == "%a6" {
			reg = aReg + 6
		}
		for lane := range warpSize {
			want := uint64(0)
			if mask>>lane&1 != 0 {
				var bytes [8]byte
				copy(bytes[:], memory.data[n+n*place[lane]:][:n])
				want = binary.LittleEndian.Uint64(bytes[:])
				if sign := want >> (8*n - 1) & 1; typ[0] == 's' && sign != 0 && n < 8 {
					want |= ^uint64(0) << (8 * n)
				}
				if width == 32 {
					want = uint64(uint32(want))
				}
			}
			require.Equal(rt, want, m.reg(0, lane, reg), "%s to %s, lane %d", typ, class, lane)
		}
	})
}

func TestStoreVector(t *testing.T) {
	memory := &testMemory{0x10000, make([]byte, 1024)}
	m := (&machine{memory: memory, body: `
		mov.b32 %r0, %a1;
		st.global.v4.b32 [%a0], {%r0, 5, %r0, -1};
		st.volatile.global.cs.v2.u8 [%a2], {%r0, 9};
		ld.global.nc.L2::cache_hint.v4.f32 {%r1, _, %r2, %r3}, [%a0], %a7;
		ldu.global.v2.b64 {%a3, %a4}, [%a0];
		ld.global.v2.u8 {%r4, %r5}, [%a2];`,
		set: func(_, lane int) []uint64 {
			return []uint64{uint64(0x10000 + 16*lane), uint64(1000 + lane), uint64(0x10000 + 512 + 2*lane)}
		}}).must(t)
	for lane := range warpSize {
		v := uint64(1000 + lane)
		for i, want := range []uint64{v, v, 0xFFFFFFFF, v & 0xFF, 9} {
			assert.Equal(t, want, m.reg(0, lane, rReg+1+i))
		}
		assert.Equal(t, v|5<<32, m.reg(0, lane, aReg+3))
		assert.Equal(t, v|0xFFFFFFFF<<32, m.reg(0, lane, aReg+4))
	}
}

func TestAccessErrors(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"ld.shared.u32 %r0, [%a0+4];", "thread 31: 4 bytes at 0x480 of shared memory, which has 128"},
		{"ld.shared.v2.u32 {%r0, %r1}, [%a0];", "thread 1: 0x404 is not a multiple of 8"},
		{"st.shared.u32 [%a0-4], 0;", "thread 0: 4 bytes at 0x3fc of shared memory"},
		{"ld.global.u32 %r0, [%a1];", "thread 2: 4 bytes at 0x10008 of global memory are not allocated"},
		{"cvta.shared.u64 %a2, %a0;\nld.global.u32 %r0, [%a2];", "4 bytes at 0x1000000000000400 of global memory"},
		{"ld.local.u32 %r0, [%a0];", "4 bytes at 0x400 of local memory, which are not there"},
		{"ld.param.u32 %r0, [%a0];", "4 bytes at 0x400 of parameters, which are not there"},
		{"ld.global.nc.b128 %r0, [%a1];", "the simulator does not know"},
		{"ld.global.fresh.u32 %r0, [%a1];", "the simulator does not know"},
		{"st.global.u32 [%a1], _;", "the simulator does not know"},
		{"ld.global.v2.u32 %r0, [%a1];", "ld.global.v2.u32 with 1 registers"},
	} {
		m := &machine{shared: 128, memory: &testMemory{0x10000, make([]byte, 8)}, body: c.body,
			set: func(_, lane int) []uint64 { return []uint64{uint64(1024 + 4*lane), uint64(0x10000 + 4*lane)} }}
		assert.ErrorContains(t, m.run(t), c.want, c.body)
	}
}

// Each lane has local memory of its own, by its own addresses and by generic ones.
func TestLocal(t *testing.T) {
	m := (&machine{body: `
		.local .align 8 .b8 depot[16];
		mov.u64 %a1, depot;
		cvta.local.u64 %a2, %a1;
		st.local.u32 [%a1+4], %a0;
		st.u32 [%a2+8], %a0;
		ld.u32 %r0, [%a2+4];
		ld.local.u32 %r1, [%a1+8];`,
		set: func(_, lane int) []uint64 { return []uint64{uint64(lane + 1)} }}).must(t)
	for lane := range warpSize {
		assert.EqualValues(t, lane+1, m.reg(0, lane, rReg))
		assert.EqualValues(t, lane+1, m.reg(0, lane, rReg+1))
	}
}
