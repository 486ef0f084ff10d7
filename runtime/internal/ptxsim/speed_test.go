package ptxsim

import "testing"

// BenchmarkInstructions times the instructions that kernels are made of, on all lanes of a
// warp: a launch executes 10^7 and more.
func BenchmarkInstructions(b *testing.B) {
	for _, text := range []string{
		"add.s32 %d, %x0, %x1;", "shl.b32 %d, %x0, 3;", "mad.lo.s32 %d, %x0, %x1, %x2;",
		"mul.wide.s32 %d, %x0, 4;", "add.f32 %d, %x0, %x1;", "fma.rn.f32 %d, %x0, %x1, %x2;",
		"max.f32 %d, %x0, %x1;", "setp.lt.s32 %p, %x0, %x1;", "setp.lt.f32 %p, %x0, %x1;",
		"selp.b32 %d, %x0, %x1, %p;", "cvt.u32.u16 %d, %x0;", "cvt.f32.f16 %d, %x0;",
		"cvt.rn.f16.f32 %d, %x0;", "cvt.rn.bf16x2.f32 %d, %x0, %x1;", "fma.rn.bf16x2 %d, %x0, %x1, %x2;",
		"ex2.approx.ftz.f32 %d, %x0;", "div.full.ftz.f32 %d, %x0, %x1;", "fma.rn.f64 %d, %x0, %x1, %x2;",
	} {
		b.Run(text[:len(text)-1], func(b *testing.B) {
			code := newBench(b, "b32", text)
			for i := range 3 {
				for lane := range warpSize {
					v := bitsOf(float32(lane-16) / 3)
					code.w.regs[benchX+i][lane] = v<<32 | v // of an f64 too
				}
			}
			for b.Loop() {
				code.run(allLanes)
			}
		})
	}
}
