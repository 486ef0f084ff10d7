// The power of positive float32 numbers for AVX2 with FMA: four lanes at a time, in float64.

#include "textflag.h"

// CONST4 is a constant repeated in four lanes.
#define CONST4(NAME, V) \
	DATA NAME<>+0(SB)/8, $V \
	DATA NAME<>+8(SB)/8, $V \
	DATA NAME<>+16(SB)/8, $V \
	DATA NAME<>+24(SB)/8, $V \
	GLOBL NAME<>(SB), RODATA|NOPTR, $32

CONST4(oneD, 0x3ff0000000000000) // 1
CONST4(ln2D, 0x3fe62e42fefa39ef) // 0.69314718055994529
CONST4(log2eD, 0x3ff71547652b82fe) // 1.4426950408889634
CONST4(sqrtHalfD, 0x3fe6a09e00000000) // close to the root of 1/2
CONST4(fractionD, 0x000fffffffffffff) // the bits of a fraction
CONST4(powmax, 0x4085e00000000000) // 700
CONST4(powmin, 0xc085e00000000000) // -700
CONST4(biasD, 0x00000000000003ff) // 1023
CONST4(pl0, 0x4000000000000000) // 2
CONST4(pl1, 0x3fe5555555555555) // 0.66666666666666663
CONST4(pl2, 0x3fd999999999999a) // 0.40000000000000002
CONST4(pl3, 0x3fd2492492492492) // 0.2857142857142857
CONST4(pl4, 0x3fcc71c71c71c71c) // 0.22222222222222221
CONST4(pl5, 0x3fc745d1745d1746) // 0.18181818181818182
CONST4(pe2, 0x3fe0000000000000) // 1/2!
CONST4(pe3, 0x3fc5555555555555) // 1/3!
CONST4(pe4, 0x3fa5555555555555) // 1/4!
CONST4(pe5, 0x3f81111111111111) // 1/5!
CONST4(pe6, 0x3f56c16c16c16c17) // 1/6!
CONST4(pe7, 0x3f2a01a01a01a01a) // 1/7!

// mask holds four ones, then four zeros: any number of ones can be read from it.
DATA powmask<>+0(SB)/8, $-1
DATA powmask<>+8(SB)/8, $-1
DATA powmask<>+16(SB)/8, $0
DATA powmask<>+24(SB)/8, $0
GLOBL powmask<>(SB), RODATA|NOPTR, $32

// POW4 is X0 = X0**X1, as e**(X1 * log(X0)). The logarithm is that of log1: by atanh, of a fraction m between the roots of 1/2
// and 2. Beyond what float32 holds the product is bounded.
#define POW4 \
	VCVTPS2PD X0, Y0 \
	VCVTPS2PD X1, Y1 \
	VPSUBQ sqrtHalfD<>(SB), Y0, Y2 \
	VPSRAD $20, Y2, Y3 \
	VEXTRACTI128 $1, Y3, X4 \
	VSHUFPS $0xdd, X4, X3, X3 \
	VCVTDQ2PD X3, Y3 \
	VPAND fractionD<>(SB), Y2, Y2 \
	VPADDQ sqrtHalfD<>(SB), Y2, Y2 \
	VSUBPD oneD<>(SB), Y2, Y4 \
	VADDPD oneD<>(SB), Y2, Y5 \
	VDIVPD Y5, Y4, Y4 \
	VMULPD Y4, Y4, Y5 \
	VMOVUPD pl5<>(SB), Y2 \
	VFMADD213PD pl4<>(SB), Y5, Y2 \
	VFMADD213PD pl3<>(SB), Y5, Y2 \
	VFMADD213PD pl2<>(SB), Y5, Y2 \
	VFMADD213PD pl1<>(SB), Y5, Y2 \
	VFMADD213PD pl0<>(SB), Y5, Y2 \
	VMULPD Y4, Y2, Y2 \
	VFMADD231PD ln2D<>(SB), Y3, Y2 \
	VMULPD Y1, Y2, Y2 \
	VMINPD powmax<>(SB), Y2, Y2 \
	VMAXPD powmin<>(SB), Y2, Y2 \
	VMULPD log2eD<>(SB), Y2, Y3 \
	VROUNDPD $8, Y3, Y3 \
	VFNMADD231PD ln2D<>(SB), Y3, Y2 \
	VMOVUPD pe7<>(SB), Y4 \
	VFMADD213PD pe6<>(SB), Y2, Y4 \
	VFMADD213PD pe5<>(SB), Y2, Y4 \
	VFMADD213PD pe4<>(SB), Y2, Y4 \
	VFMADD213PD pe3<>(SB), Y2, Y4 \
	VFMADD213PD pe2<>(SB), Y2, Y4 \
	VFMADD213PD oneD<>(SB), Y2, Y4 \
	VFMADD213PD oneD<>(SB), Y2, Y4 \
	VCVTPD2DQY Y3, X3 \
	VPMOVSXDQ X3, Y3 \
	VPADDQ biasD<>(SB), Y3, Y3 \
	VPSLLQ $52, Y3, Y3 \
	VMULPD Y3, Y4, Y4 \
	VCVTPD2PSY Y4, X0

// func powAVX(dst, a, b *float32, n int)
TEXT ·powAVX(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX

loop:
	CMPQ CX, $4
	JLT  tail
	VMOVUPS (SI), X0
	VMOVUPS (DX), X1
	POW4
	VMOVUPS X0, (DI)
	ADDQ $16, SI
	ADDQ $16, DX
	ADDQ $16, DI
	SUBQ $4, CX
	JMP  loop

tail:
	TESTQ CX, CX
	JZ    done
	MOVQ  $4, AX
	SUBQ  CX, AX
	LEAQ  powmask<>(SB), BX
	VMOVUPS (BX)(AX*4), X15
	VMASKMOVPS (SI), X15, X0
	VMASKMOVPS (DX), X15, X1
	POW4
	VMASKMOVPS X0, X15, (DI)

done:
	VZEROUPPER
	RET
