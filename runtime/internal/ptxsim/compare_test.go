package ptxsim

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestComparisonsOfFloats goes through all comparisons of all types and pairs of values.
func TestComparisonsOfFloats(t *testing.T) {
	values := []float64{math.Inf(-1), -1, math.Copysign(0, -1), 0, 1, 2, math.Inf(1), math.NaN()}
	ordered := map[string]func(x, y float64) bool{
		"eq": func(x, y float64) bool { return x == y }, "ne": func(x, y float64) bool { return x < y || x > y },
		"lt": func(x, y float64) bool { return x < y }, "le": func(x, y float64) bool { return x <= y },
		"gt": func(x, y float64) bool { return x > y }, "ge": func(x, y float64) bool { return x >= y },
		"num": func(x, y float64) bool { return true },
	}
	for typ, mods := range map[string][]string{"f32": {"", ".ftz"}, "f64": {""}, "f16": {""}, "bf16": {""}} {
		for _, mod := range mods {
			for op, holds := range ordered {
				names := map[string]bool{op: false, op + "u": true}
				if op == "num" {
					names = map[string]bool{"num": false, "nan": true}
				}
				for name, orNaN := range names {
					b := newBench(t, "b32", fmt.Sprintf("setp.%s%s.%s %%p|%%q, %%x0, %%x1;\n", name, mod, typ)+
						"selp.b32 %d, 7, 9, %p;")
					for _, x := range values {
						for _, y := range values {
							nan := x != x || y != y
							want := !nan && holds(x, y) || nan && orNaN
							if name == "nan" {
								want = nan
							}
							got := b.call(t, encoded(typ, x), encoded(typ, y))
							require.Equal(t, map[bool]uint64{true: 7, false: 9}[want], got, "%s.%s %v %v", name, typ, x, y)
							require.Equal(t, truth(!want), b.w.regs[benchQ][3])
						}
					}
				}
			}
		}
	}
}

func encoded(typ string, x float64) uint64 {
	if typ == "f64" {
		return math.Float64bits(x)
	}
	return formats[typ].encode(x, toNearest)
}

func TestComparisons(t *testing.T) {
	tests := []struct {
		text string
		x, y uint64
		want bool
	}{
		{"setp.lt.s32", 0xffffffff, 0, true}, {"setp.lt.u32", 0xffffffff, 0, false},
		{"setp.lo.u32", 0, 1, true}, {"setp.hs.u32", 1, 1, true}, {"setp.hi.u64", 1 << 40, 1, true},
		{"setp.ls.u16", 2, 1, false}, {"setp.ge.s16", 0x8000, 0, false}, {"setp.gt.s64", 1 << 63, 0, false},
		{"setp.eq.b32", 1<<32 | 5, 5, true}, {"setp.ne.b64", 1<<32 | 5, 5, true}, {"setp.eq.b16", 0x10005, 5, true},
		{"setp.le.s32", 5, 5, true},
	}
	for _, test := range tests {
		b := newBench(t, "b32", test.text+" %p, %x0, %x1;\nselp.u32 %d, 1, 0, %p;")
		assert.Equal(t, truth(test.want), b.call(t, test.x, test.y), test.text)
	}
	b := newBench(t, "b32", "setp.eq.ftz.f32 %p, %x0, %x1;\nselp.u32 %d, 1, 0, %p;")
	assert.Equal(t, uint64(1), b.call(t, 1, 0x80000002), "subnormals are zeros")
}

func TestBooleanOfComparison(t *testing.T) {
	for join, f := range map[string]func(x, y uint64) uint64{
		"and": func(x, y uint64) uint64 { return x & y },
		"or":  func(x, y uint64) uint64 { return x | y },
		"xor": func(x, y uint64) uint64 { return x ^ y },
	} {
		for _, not := range []string{"", "!"} {
			b := newBench(t, "b32", "setp.lt."+join+".s32 %p|%q, %x0, %x1, "+not+"%c;\nselp.b32 %d, 1, 0, %q;")
			for bits := range uint64(4) {
				less, c := bits&1, bits>>1
				for lane := range warpSize {
					b.w.regs[benchC][lane] = c
				}
				got := b.call(t, 1-less, 1)
				flipped := c
				if not != "" {
					flipped ^= 1
				}
				assert.Equal(t, f(less, flipped), b.w.regs[benchP][0])
				assert.Equal(t, f(1-less, flipped), got)
			}
		}
	}
}

func TestChoices(t *testing.T) {
	check(t, `
set.lt.u32.s32 b32 ffffffff 0 = ffffffff
set.lt.f32.f32 f32 bf800000 0 = 3f800000
set.gt.f32.f32 f32 bf800000 0 = 0
set.eq.f16.f16 b16 3c00 3c00 = 3c00
set.le.f16x2.f16x2 b32 3c004000 3c003c00 = 3c000000
set.leu.bf16x2.bf16x2 b32 7fc04000 3f803f80 = 3f800000
set.eq.u32.f16x2 b32 3c004000 3c003c00 = ffff0000
set.lt.s16.f16 b16 3c00 4000 = ffff
slct.u32.s32 b32 5 6 0 = 5
slct.u32.s32 b32 5 6 ffffffff = 6
slct.b64.f32 b64 500000000 6 80000000 = 500000000
slct.b32.f32 b32 5 6 80000001 = 6
slct.ftz.b32.f32 b32 5 6 80000001 = 5
slct.f32.f32 f32 5 6 7fffffff = 6
testp.finite.f32 pred 7f800000 = 0
testp.infinite.f32 pred ff800000 = 1
testp.number.f64 pred 7ff8000000000000 = 0
testp.notanumber.f32 pred 7fffffff = 1
testp.normal.f32 pred 00800000 = 1
testp.normal.f32 pred 007fffff = 0
testp.subnormal.f32 pred 807fffff = 1
testp.subnormal.f32 pred 0 = 0
`)
	packed := newBench(t, "b32", "setp.gt.f16x2 %p|%q, %x0, %x1;\nselp.b32 %d, 1, 0, %p;")
	assert.Equal(t, uint64(0), packed.call(t, 0x40003c00, 0x3c003c00))
	assert.Equal(t, uint64(1), packed.w.regs[benchQ][0], "the upper half")
	sink := newBench(t, "b32", "setp.gt.s32 _|%q, %x0, %x1;\nselp.b32 %d, 1, 0, %q;")
	assert.Equal(t, uint64(1), sink.call(t, 1, 2))
	logic := newBench(t, "pred", "not.pred %d, %x0;\nxor.pred %d, %d, 1;")
	assert.Equal(t, uint64(1), logic.call(t, 1))
}

func TestEffects(t *testing.T) {
	b := newBench(t, "b32", `
membar.gl;
fence.acq_rel.gpu;
fence.proxy.async.shared::cta;
fence.mbarrier_init.release.cluster;
griddepcontrol.launch_dependents;
griddepcontrol.wait;
prefetch.global.L2 [%x0];
setmaxnreg.inc.sync.aligned.u32 232;
nanosleep.u32 20;
createpolicy.fractional.L2::evict_first.b64 %x1, 1.0;
activemask.b32 %d;`)
	b.run(0xff00)
	assert.Equal(t, uint64(0xff00), b.w.regs[benchD][8])
	space := newBench(t, "pred", "isspacep.shared %d, %x0;")
	assert.Equal(t, uint64(1), space.call(t, sharedWindow+1024))
	assert.Equal(t, uint64(0), space.call(t, 1024))
	_, err := Parse(".visible .entry e()\n{\nfence.proxy.nonsense;\n}")
	assert.ErrorContains(t, err, "does not know fence.proxy.nonsense")
	m, err := Parse(".visible .entry e()\n{\ntrap;\n}")
	require.NoError(t, err)
	l := Launch{Entry: m.Entries["e"], Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}}
	assert.ErrorContains(t, l.Run(), "line 3, block [0 0 0], thread 0: trap")
}

// TestUnknownForms are refused when they are read.
func TestUnknownForms(t *testing.T) {
	for _, text := range []string{
		"add.f32 %d, %x0;", "add.foo.f32 %d, %x0, %x1;", "add.s33 %d, %x0, %x1;", "fma.rn.s32 %d, %x0, %x1, %x2;",
		"setp.lt.b32 %p, %x0, %x1;", "setp.lt.nand.s32 %p, %x0, %x1, %q;", "cvt.rn.f32.x9 %d, %x0;",
		"cvt.f32.s32 %d, %x0;", "cvt.rzi.e4m3x2.f32 %d, %x0, %x1;", "mul.s32 %d, %x0, %x1;",
		"lop3.b32 %d, %x0, %x1, %x2, %x3;", "shf.l.b32 %d, %x0, %x1, %x2;", "testp.even.f32 %p, %x0;",
		"add.f32 5, %x0, %x1;", "add.s32 %d, !%x0, %x1;", "selp.b32 %d, %x0, %x1, %x2;", "trap.now;",
	} {
		_, err := Parse(".visible .entry e()\n{\n.reg .b32 %d;\n.reg .b64 %x<4>;\n.reg .pred %p, %q;\n" + text + "\n}")
		assert.ErrorContains(t, err, "does not know", text)
	}
}
