// The micro-kernels of matrix products for AVX2 with FMA: 6 rows by 2 vectors of a block of the result stay in registers.

#include "textflag.h"

// ROW adds a broadcast element of the left panel times one row of the right panel, Y0 and Y1, to two accumulators.
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

// func microF32AVX(c *float32, stride int, a, b *float32, k int)
TEXT ·microF32AVX(SB), NOSPLIT, $0-40
	MOVQ c+0(FP), DI
	MOVQ stride+8(FP), R8
	MOVQ a+16(FP), SI
	MOVQ b+24(FP), DX
	MOVQ k+32(FP), CX
	SHLQ $2, R8
	MOVQ DI, R9
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
	FETCH
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
