// The micro-kernels of matrix products for AVX2 with FMA: 6 rows by 2 vectors of a block of the result stay in registers.

#include "textflag.h"

// ROWF32 adds a broadcast element of the left panel times one row of the right panel, Y0 and Y1, to two accumulators.
#define ROWF32(OFFSET, SCALE, LOW, HIGH) \
	VBROADCASTSS OFFSET(SI), SCALE \
	VFMADD231PS Y0, SCALE, LOW \
	VFMADD231PS Y1, SCALE, HIGH

#define STEPF32(LEFT, RIGHT) \
	VMOVUPS RIGHT+0(DX), Y0 \
	VMOVUPS RIGHT+32(DX), Y1 \
	ROWF32(LEFT+0, Y2, Y4, Y5) \
	ROWF32(LEFT+4, Y3, Y6, Y7) \
	ROWF32(LEFT+8, Y2, Y8, Y9) \
	ROWF32(LEFT+12, Y3, Y10, Y11) \
	ROWF32(LEFT+16, Y2, Y12, Y13) \
	ROWF32(LEFT+20, Y3, Y14, Y15)

// ADDF32 adds two accumulators to a row of the block and goes on to the next row.
#define ADDF32(LOW, HIGH) \
	VADDPS (DI), LOW, LOW \
	VADDPS 32(DI), HIGH, HIGH \
	VMOVUPS LOW, (DI) \
	VMOVUPS HIGH, 32(DI) \
	ADDQ R8, DI

// The same for float64.
#define ROWF64(OFFSET, SCALE, LOW, HIGH) \
	VBROADCASTSD OFFSET(SI), SCALE \
	VFMADD231PD Y0, SCALE, LOW \
	VFMADD231PD Y1, SCALE, HIGH

#define STEPF64(LEFT, RIGHT) \
	VMOVUPD RIGHT+0(DX), Y0 \
	VMOVUPD RIGHT+32(DX), Y1 \
	ROWF64(LEFT+0, Y2, Y4, Y5) \
	ROWF64(LEFT+8, Y3, Y6, Y7) \
	ROWF64(LEFT+16, Y2, Y8, Y9) \
	ROWF64(LEFT+24, Y3, Y10, Y11) \
	ROWF64(LEFT+32, Y2, Y12, Y13) \
	ROWF64(LEFT+40, Y3, Y14, Y15)

#define ADDF64(LOW, HIGH) \
	VADDPD (DI), LOW, LOW \
	VADDPD 32(DI), HIGH, HIGH \
	VMOVUPD LOW, (DI) \
	VMOVUPD HIGH, 32(DI) \
	ADDQ R8, DI

#define CLEAR \
	VXORPS Y4, Y4, Y4 \
	VXORPS Y5, Y5, Y5 \
	VXORPS Y6, Y6, Y6 \
	VXORPS Y7, Y7, Y7 \
	VXORPS Y8, Y8, Y8 \
	VXORPS Y9, Y9, Y9 \
	VXORPS Y10, Y10, Y10 \
	VXORPS Y11, Y11, Y11 \
	VXORPS Y12, Y12, Y12 \
	VXORPS Y13, Y13, Y13 \
	VXORPS Y14, Y14, Y14 \
	VXORPS Y15, Y15, Y15

// FETCH asks for a row of the block, which is needed at the end.
#define FETCH \
	PREFETCHT0 (R9) \
	PREFETCHT0 63(R9) \
	ADDQ R8, R9

// FETCHBLOCK asks for all rows of the block.
#define FETCHBLOCK \
	MOVQ DI, R9 \
	FETCH \
	FETCH \
	FETCH \
	FETCH \
	FETCH \
	FETCH

// func microF32AVX(c *float32, stride int, a, b *float32, k int)
TEXT ·microF32AVX(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DX
	MOVQ k+32(FP), CX
	SHLQ $2, R8
	FETCHBLOCK
	CLEAR
loop4:
	CMPQ CX, $4
	JLT  loop
	STEPF32(0, 0)
	STEPF32(24, 64)
	STEPF32(48, 128)
	STEPF32(72, 192)
	ADDQ $96, SI
	ADDQ $256, DX
	SUBQ $4, CX
	JMP  loop4
loop:
	TESTQ CX, CX
	JZ    add
	STEPF32(0, 0)
	ADDQ $24, SI
	ADDQ $64, DX
	DECQ CX
	JMP  loop
add:
	ADDF32(Y4, Y5)
	ADDF32(Y6, Y7)
	ADDF32(Y8, Y9)
	ADDF32(Y10, Y11)
	ADDF32(Y12, Y13)
	ADDF32(Y14, Y15)
	VZEROUPPER
	RET

// func microF64AVX(c *float64, stride int, a, b *float64, k int)
TEXT ·microF64AVX(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DX
	MOVQ k+32(FP), CX
	SHLQ $3, R8
	FETCHBLOCK
	CLEAR
loop4:
	CMPQ CX, $4
	JLT  loop
	STEPF64(0, 0)
	STEPF64(48, 64)
	STEPF64(96, 128)
	STEPF64(144, 192)
	ADDQ $192, SI
	ADDQ $256, DX
	SUBQ $4, CX
	JMP  loop4
loop:
	TESTQ CX, CX
	JZ    add
	STEPF64(0, 0)
	ADDQ $48, SI
	ADDQ $64, DX
	DECQ CX
	JMP  loop
add:
	ADDF64(Y4, Y5)
	ADDF64(Y6, Y7)
	ADDF64(Y8, Y9)
	ADDF64(Y10, Y11)
	ADDF64(Y12, Y13)
	ADDF64(Y14, Y15)
	VZEROUPPER
	RET

// func spreadAVX(dst unsafe.Pointer, stride int, line unsafe.Pointer, n int)
// dst is the place of a line's first 64 bytes, the next 64 lie stride bytes further, and so on n times.
TEXT ·spreadAVX(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ line+16(FP), SI
	MOVQ n+24(FP), CX
spread:
	TESTQ CX, CX
	JZ    spreadEnd
	VMOVUPS (SI), Y0
	VMOVUPS 32(SI), Y1
	VMOVUPS Y0, (DI)
	VMOVUPS Y1, 32(DI)
	ADDQ $64, SI
	ADDQ R8, DI
	DECQ CX
	JMP  spread
spreadEnd:
	VZEROUPPER
	RET

// func interleave4F32AVX(dst *float32, stride int, a, b, c, d *float32, n int)
// The elements of four lines lie side by side, those of the next step stride elements further; n is a multiple of 4.
TEXT ·interleave4F32AVX(SB), NOSPLIT, $0-56
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DX
	MOVQ c+32(FP), R9
	MOVQ d+40(FP), R10
	MOVQ n+48(FP), CX
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R11
four:
	CMPQ CX, $4
	JLT  fourEnd
	PREFETCHT0 256(SI)
	PREFETCHT0 256(DX)
	PREFETCHT0 256(R9)
	PREFETCHT0 256(R10)
	VMOVUPS (SI), X0
	VMOVUPS (DX), X1
	VMOVUPS (R9), X2
	VMOVUPS (R10), X3
	VUNPCKLPS X1, X0, X4
	VUNPCKHPS X1, X0, X5
	VUNPCKLPS X3, X2, X6
	VUNPCKHPS X3, X2, X7
	VMOVLHPS X6, X4, X8
	VMOVHLPS X4, X6, X9
	VMOVLHPS X7, X5, X10
	VMOVHLPS X5, X7, X11
	VMOVUPS X8, (DI)
	VMOVUPS X9, (DI)(R8*1)
	VMOVUPS X10, (DI)(R8*2)
	VMOVUPS X11, (DI)(R11*1)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $16, R9
	ADDQ $16, R10
	LEAQ (DI)(R8*4), DI
	SUBQ $4, CX
	JMP  four
fourEnd:
	RET

// func interleave2F32AVX(dst *float32, stride int, a, b *float32, n int)
// The same for two lines.
TEXT ·interleave2F32AVX(SB), NOSPLIT, $0-40
	MOVQ dst+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DX
	MOVQ n+32(FP), CX
	SHLQ $2, R8
	LEAQ (R8)(R8*2), R11
two:
	CMPQ CX, $4
	JLT  twoEnd
	PREFETCHT0 256(SI)
	PREFETCHT0 256(DX)
	VMOVUPS (SI), X0
	VMOVUPS (DX), X1
	VUNPCKLPS X1, X0, X4
	VUNPCKHPS X1, X0, X5
	VMOVLPS X4, (DI)
	VMOVHPS X4, (DI)(R8*1)
	VMOVLPS X5, (DI)(R8*2)
	VMOVHPS X5, (DI)(R11*1)
	ADDQ $16, SI
	ADDQ $16, DX
	LEAQ (DI)(R8*4), DI
	SUBQ $4, CX
	JMP  two
twoEnd:
	RET
