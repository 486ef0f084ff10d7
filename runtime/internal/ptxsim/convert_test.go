package ptxsim

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestConversions(t *testing.T) {
	check(t, `
cvt.u32.u16 b32 ffff1234 = 1234
cvt.u64.u32 b64 ffffffff = ffffffff
cvt.s64.s32 b64 ffffffff = ffffffffffffffff
cvt.s32.s8 b32 80 = ffffff80
cvt.s16.s8 b16 80 = ff80
cvt.s8.s32 b32 12380 = ffffff80
cvt.s8.s32 b16 12380 = ff80
cvt.u8.u32 b32 12380 = 80
cvt.u32.s8 b32 80 = ffffff80
cvt.u16.u32 b16 12345678 = 5678
cvt.u32.u64 b32 123456789abcdef0 = 9abcdef0
cvt.s64.u32 b64 80000000 = 80000000
cvt.sat.s8.s32 b32 80 = 7f
cvt.sat.s8.s32 b32 ffffff00 = ffffff80
cvt.sat.u8.s32 b32 ffffff00 = 0
cvt.sat.u16.u32 b32 12345 = ffff
cvt.sat.s32.u32 b32 80000000 = 7fffffff
cvt.sat.u32.s64 b32 1ffffffff = ffffffff
cvt.rn.f32.s32 f32 ffffffff = bf800000
cvt.rn.f32.u32 f32 ffffffff = 4f800000
cvt.rz.f32.u32 f32 ffffffff = 4f7fffff
cvt.rn.f32.u8 f32 1ff = 437f0000
cvt.rn.f16.s16 b16 ffff = bc00
cvt.rn.f16.u32 b16 ffffffff = 7c00
cvt.rn.bf16.s32 b16 3 = 4040
cvt.rn.f64.s32 f64 ffffffff = bff0000000000000
cvt.rn.f64.u64 f64 ffffffffffffffff = 43f0000000000000
cvt.rz.f64.u64 f64 ffffffffffffffff = 43efffffffffffff
cvt.rzi.s32.f32 b32 c0200000 = fffffffe
cvt.rmi.s32.f32 b32 c0200000 = fffffffd
cvt.rpi.s32.f32 b32 40200000 = 3
cvt.rni.s32.f32 b32 40200000 = 2
cvt.rzi.s32.f32 b32 7f800000 = 7fffffff
cvt.rzi.s32.f32 b32 ff800000 = 80000000
cvt.rzi.u32.f32 b32 bf800000 = 0
cvt.rzi.u32.f32 b32 4f800000 = ffffffff
cvt.rzi.u32.f32 b32 7fffffff = 0
cvt.rzi.s64.f32 b64 7fffffff = 8000000000000000
cvt.rzi.s64.f64 b64 7ff8000000000000 = 8000000000000000
cvt.rzi.s32.f64 b32 7ff8000000000000 = 80000000
cvt.rzi.u64.f64 b64 43efffffffffffff = fffffffffffff800
cvt.rzi.s8.f32 b32 43000000 = 7f
cvt.rzi.s16.f16 b16 f7ff = 8010
cvt.rzi.ftz.u32.f32 b32 1 = 0
cvt.rpi.u32.f32 b32 1 = 1
cvt.rpi.ftz.u32.f32 b32 1 = 0
cvt.rni.f32.f32 f32 3fc00000 = 40000000
cvt.rni.f32.f32 f32 bf000000 = 80000000
cvt.rmi.f32.f32 f32 bf000000 = bf800000
cvt.rni.f64.f64 f64 4004000000000000 = 4000000000000000
cvt.rzi.f16.f16 b16 3e00 = 3c00
cvt.sat.f32.f32 f32 40000000 = 3f800000
cvt.sat.f32.f32 f32 7fffffff = 0
cvt.sat.f32.f32 f32 80000000 = 0
cvt.ftz.f32.f32 f32 80000001 = 80000000
cvt.f64.f32 f64 3f800000 = 3ff0000000000000
cvt.rn.f32.f64 f32 3ff0000010000000 = 3f800000
cvt.rn.f32.f64 f32 3ff0000010000001 = 3f800001
cvt.rp.f32.f64 f32 3ff0000000000001 = 3f800001
cvt.rn.f32.f64 f32 47f0000000000000 = 7f800000
cvt.f32.f16 f32 fc00 = ff800000
cvt.f32.f16 f32 7e01 = 7fffffff
cvt.f32.f16 f32 8001 = b3800000
cvt.f32.bf16 f32 3f80 = 3f800000
cvt.f64.f16 f64 3c00 = 3ff0000000000000
cvt.rn.bf16.f32 b16 3f808000 = 3f80
cvt.rn.bf16.f32 b16 3f818000 = 3f82
cvt.rn.bf16.f32 b16 7f800001 = 7fff
cvt.rn.bf16.f32 b16 7f7fffff = 7f80
cvt.rz.bf16.f32 b16 7f7fffff = 7f7f
cvt.rn.relu.bf16.f32 b16 bf800000 = 0
cvt.rn.f16.f32 b16 477fefff = 7bff
cvt.rn.f16.f32 b16 477ff000 = 7c00
cvt.rn.satfinite.f16.f32 b16 7f800000 = 7bff
cvt.rz.f16.f32 b16 477fffff = 7bff
cvt.rn.f16.f64 b16 3ff0020000000001 = 3c01
cvt.rna.tf32.f32 b32 3f801000 = 3f802000
cvt.rna.tf32.f32 b32 3f800fff = 3f800000
cvt.rn.tf32.f32 b32 3f801000 = 3f800000
cvt.rz.tf32.f32 b32 3f801fff = 3f800000
cvt.rna.tf32.f32 b32 7fc00000 = 7fffffff
cvt.rna.satfinite.tf32.f32 b32 7f7fffff = 7f7fe000
cvt.rn.f16x2.f32 b32 3f800000 40000000 = 3c004000
cvt.rn.bf16x2.f32 b32 3f800000 40000000 = 3f804000
cvt.rz.bf16x2.f32 b32 3f80ffff 40000000 = 3f804000
cvt.rn.relu.bf16x2.f32 b32 bf800000 40000000 = 4000
cvt.rn.satfinite.e4m3x2.f32 b16 3f800000 43f00000 = 387e
cvt.rn.satfinite.e4m3x2.f32 b16 7f800000 7fffffff = 7e7f
cvt.rn.satfinite.e5m2x2.f32 b16 ff800000 3f800000 = fb3c
cvt.rn.satfinite.relu.e4m3x2.f32 b16 bf800000 3f800000 = 38
cvt.rn.satfinite.e4m3x2.f16x2 b16 3c004000 = 3840
cvt.rn.f16x2.e4m3x2 b32 387f = 3c007fff
cvt.rn.f16x2.e5m2x2 b32 7cbc = 7c00bc00
cvt.pack.sat.s16.s32 b32 8000 ffff0000 = 7fff8000
cvt.pack.sat.u16.s32 b32 ffffffff 12345 = ffff
cvt.pack.sat.u8.s32.b32 b32 1ff 7 aabb1122 = 1122ff07
cvt.pack.sat.s8.s32.b32 b32 ffffff00 ff 3 = 3807f
cvt.pack.sat.s4.s32.b32 b32 ffffff00 ff 3 = 387
`)
}

// TestNarrowFormats compares conversions with rounding by search among all values.
func TestNarrowFormats(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	tests := []struct {
		text string
		to   *format
		mode rounding
		from *format
	}{
		{"cvt.rn.f16.f32", f16, toNearest, f32}, {"cvt.rz.f16.f32", f16, toZero, f32},
		{"cvt.rm.f16.f32", f16, toMinus, f32}, {"cvt.rp.f16.f32", f16, toPlus, f32},
		{"cvt.rn.bf16.f32", bf16, toNearest, f32}, {"cvt.rp.bf16.f32", bf16, toPlus, f32},
		{"cvt.rn.f16.f64", f16, toNearest, f64}, {"cvt.rna.tf32.f32", tf32, toAway, f32},
		{"cvt.rn.tf32.f32", tf32, toNearest, f32},
	}
	for _, test := range tests {
		s := newScale(test.to)
		b := newBench(t, "b32", test.text+" %d, %x0;")
		for range 1000 {
			source := randomBits(random, test.from)
			x := test.from.decode(source)
			if test.from == f64 {
				x = math.Ldexp(random.Float64()-0.5, random.IntN(50)-30)
				source = math.Float64bits(x)
			}
			if !finite(x) || x == 0 {
				continue
			}
			v := exactly(x)
			want := s.bits(v, test.mode)
			if test.to == tf32 {
				want = s.bits(v, test.mode)<<13&0x7fffffff | source&0x80000000
			}
			require.Equal(t, want, b.call(t, source), "%s %x", test.text, source)
		}
	}
}

// TestEightBits goes through both formats: all values there and back.
func TestEightBits(t *testing.T) {
	for name, f := range map[string]*format{"e4m3": e4m3, "e5m2": e5m2} {
		s := newScale(f)
		there := newBench(t, "b32", "cvt.rn.f16x2."+name+"x2 %d, %x0;")
		back := newBench(t, "b16", "cvt.rn.satfinite."+name+"x2.f16x2 %d, %x0;")
		narrow := newBench(t, "b16", "cvt.rn.satfinite."+name+"x2.f32 %d, %x0, %x1;")
		for code := uint64(0); code <= f.top; code++ {
			wide := there.call(t, code|(code|0x80)<<8)
			assert.Equal(t, s.values[code], f16.decode(wide))
			assert.Equal(t, -s.values[code], f16.decode(wide>>16))
			assert.Equal(t, code|(code|0x80)<<8, back.call(t, wide))
		}
		random := rand.New(rand.NewPCG(9, 10))
		for range 1000 {
			x := float32(math.Ldexp(random.Float64()-0.5, random.IntN(40)-22))
			want := min(s.bits(exactly(math.Abs(float64(x))), toNearest), f.top)
			if math.Signbit(float64(x)) {
				want |= 0x80
			}
			require.Equal(t, want<<8, narrow.call(t, bitsOf(x), 0), x)
		}
	}
}

// TestIntegersToFloats compares with package big in all modes.
func TestIntegersToFloats(t *testing.T) {
	random := rand.New(rand.NewPCG(11, 12))
	for typ, round := range references() {
		for _, mod := range []string{"rn", "rz", "rm", "rp"} {
			for _, from := range []string{"u64", "s64", "u32", "s32"} {
				b := newBench(t, "b64", fmt.Sprintf("cvt.%s.%s.%s %%d, %%x0;", mod, typ, from))
				for range 200 {
					v := random.Uint64() >> random.IntN(40)
					value := new(big.Float).SetPrec(64)
					switch from {
					case "u64":
						value.SetUint64(v)
					case "s64":
						value.SetInt64(int64(v))
					case "u32":
						value.SetUint64(uint64(uint32(v)))
					case "s32":
						value.SetInt64(int64(int32(v)))
					}
					if value.Sign() != 0 {
						require.Equal(t, round(value, roundings[mod]), b.call(t, v), "%s.%s.%s %x", mod, typ, from, v)
					}
				}
			}
		}
	}
}
