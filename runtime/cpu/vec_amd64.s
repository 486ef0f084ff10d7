// Vector primitives of float32 tiles for AVX2 with FMA: eight lanes at a time,
// the rest under a mask. The pure Go forms are in vec.go and vecmath.go.

#include "textflag.h"

// CONST8 is a constant repeated in eight lanes.
#define CONST8(NAME, V) \
	DATA NAME<>+0(SB)/8, $V \
	DATA NAME<>+8(SB)/8, $V \
	DATA NAME<>+16(SB)/8, $V \
	DATA NAME<>+24(SB)/8, $V \
	GLOBL NAME<>(SB), RODATA|NOPTR, $32

// Polynomials: minimax (Remez) fits of (e**r-1-r)/r**2 on |r| < ln2/2 (e), of
// (tanh(x)/x-1)/x**2 in x**2 below 0.4 (t), of erf(x)/x in x**2 below 1 (s), and of
// log(erfc(x)) on 1 to 4 (l); of (sin(x)/x-1)/x**2 and (cos(x)-1+x**2/2)/x**4 in
// x**2 on |x| < pi/4.
CONST8(one, 0x3f8000003f800000) // 1
CONST8(two, 0x4000000040000000) // 2
CONST8(log2e, 0x3fb8aa3b3fb8aa3b) // 1.44269504
CONST8(ln2hi, 0x3f3180003f318000) // 0.693359375
CONST8(ln2lo, 0xb95e8083b95e8083) // -0.00021219444
CONST8(exphi, 0x42b1721742b17217) // 88.72283
CONST8(explo, 0xc2cff1b5c2cff1b5) // -103.97208
CONST8(e2, 0x3f0000003f000000) // 0.50000001
CONST8(e3, 0x3e2aaa433e2aaa43) // 0.166665129
CONST8(e4, 0x3d2aaa2a3d2aaa2a) // 0.0416661872
CONST8(e5, 0x3c0920a43c0920a4) // 0.0083695982
CONST8(e6, 0x3ab6de343ab6de34) // 0.001395172
CONST8(tanhmax, 0x4111999a4111999a) // 9.1
CONST8(tanhsplit, 0x3f2000003f200000) // 0.625
CONST8(t0, 0xbeaaaa98beaaaa98) // -0.333332783
CONST8(t1, 0x3e0883473e088347) // 0.13331329
CONST8(t2, 0xbd5c132ebd5c132e) // -0.0537292301
CONST8(t3, 0x3ca8c58b3ca8c58b) // 0.0206020079
CONST8(t4, 0xbbb97e24bbb97e24) // -0.00566078923
CONST8(erfmax, 0x4081999a4081999a) // 4.05
CONST8(s0, 0x3e0375d43e0375d4) // 0.128379166: less 1, added by the last step
CONST8(s1, 0xbec0939fbec0939f) // -0.376126271
CONST8(s2, 0x3de716903de71690) // 0.112836002
CONST8(s3, 0xbcdbfddabcdbfdda) // -0.0268544447
CONST8(s4, 0x3baa0cfb3baa0cfb) // 0.00518953546
CONST8(s5, 0xba5242f6ba5242f6) // -0.000802084237
CONST8(s6, 0x38a5726838a57268) // 7.88912318e-05
CONST8(l0, 0xb99d8461b99d8461) // -0.000300440022
CONST8(l1, 0xbf9049c6bf9049c6) // -1.12725141
CONST8(l2, 0xbf234c50bf234c50) // -0.63788317
CONST8(l3, 0xbdd39d40bdd39d40) // -0.103327273
CONST8(l4, 0x3cb3bc573cb3bc57) // 0.0219403927
CONST8(l5, 0xbb42cd23bb42cd23) // -0.00297243217
CONST8(l6, 0x3945feac3945feac) // 0.000188822572
CONST8(twoOverPi, 0x3f22f9833f22f983) // 0.636619772
CONST8(halfPi1, 0x3fc90fdb3fc90fdb) // 1.57079637
CONST8(halfPi2, 0xb33bbd2eb33bbd2e) // -4.37113883e-08
CONST8(halfPi3, 0xa6f72ceda6f72ced) // -1.71512451e-15
CONST8(half, 0x3f0000003f000000) // 0.5
CONST8(sin0, 0xbe2aaaabbe2aaaab) // -0.166666666
CONST8(sin1, 0x3c0888843c088884) // 0.00833332923
CONST8(sin2, 0xb95007acb95007ac) // -0.000198392836
CONST8(sin3, 0x363663cd363663cd) // 2.71782054e-06
CONST8(cos0, 0x3d2aaaa53d2aaaa5) // 0.0416666461
CONST8(cos1, 0xbab60623bab60623) // -0.00138873272
CONST8(cos2, 0x37ccf6f237ccf6f2) // 2.44336882e-05
// exp2 has the polynomial of exp. log: a minimax fit of (log(1+f)-f+f**2/2)/f**3 between the roots of 1/2 and 2.
CONST8(exp2hi, 0x4300000043000000) // 128
CONST8(exp2lo, 0xc3160000c3160000) // -150
CONST8(ln2, 0x3f3172183f317218) // 0.693147181
CONST8(log2eLess1, 0x3ee2a8ed3ee2a8ed) // 0.442695041: log2(e) - 1
CONST8(log0, 0x3eaaaaaa3eaaaaaa) // 0.333333312
CONST8(log1, 0xbe7ffffcbe7ffffc) // -0.24999994
CONST8(log2, 0x3e4cceac3e4cceac) // 0.200007148
CONST8(log3, 0xbe2aae50be2aae50) // -0.166680577
CONST8(log4, 0x3e11e9bf3e11e9bf) // 0.142493228
CONST8(log5, 0xbdfe5d4fbdfe5d4f) // -0.124201408
CONST8(log6, 0x3def251a3def251a) // 0.116769987
CONST8(log7, 0xbdebd1b8bdebd1b8) // -0.115146103
CONST8(log8, 0x3d9021bb3d9021bb) // 0.0703768363
CONST8(sqrtHalf, 0x3f3504f33f3504f3) // the bits of 0.707106769
CONST8(fraction, 0x007fffff007fffff) // the bits of a fraction
CONST8(minNormal, 0x0080000000800000) // 1.17549435e-38
CONST8(twoTo23, 0x4b0000004b000000) // 8388608
CONST8(twentyThree, 0x41b8000041b80000) // 23
CONST8(minusInf, 0xff800000ff800000) // -inf
CONST8(notANumber, 0x7fc000007fc00000) // NaN
CONST8(inf, 0x7f8000007f800000)
CONST8(absmask, 0x7fffffff7fffffff)
CONST8(signmask, 0x8000000080000000)
CONST8(bias, 0x0000007f0000007f)
CONST8(round16, 0x00007fff00007fff)
CONST8(lsb, 0x0000000100000001)
CONST8(quiet, 0x0000004000000040)
CONST8(twoInt, 0x0000000200000002)

// mask holds eight ones, then eight zeros: any number of ones can be read from it.
DATA mask<>+0(SB)/8, $-1
DATA mask<>+8(SB)/8, $-1
DATA mask<>+16(SB)/8, $-1
DATA mask<>+24(SB)/8, $-1
DATA mask<>+32(SB)/8, $0
DATA mask<>+40(SB)/8, $0
DATA mask<>+48(SB)/8, $0
DATA mask<>+56(SB)/8, $0
GLOBL mask<>(SB), RODATA|NOPTR, $64

// TAILMASK sets Y15 to ones in the first CX lanes, 0 < CX < 8.
#define TAILMASK \
	MOVQ $8, AX \
	SUBQ CX, AX \
	LEAQ mask<>(SB), BX \
	VMOVUPS (BX)(AX*4), Y15

// EXPOFREST8 is Y0 = e**Y1 * 2**Y2 for |Y1| < ln2/2 and integers Y2. Uses Y3.
#define EXPOFREST8 \
	VMOVUPS e6<>(SB), Y3 \
	VFMADD213PS e5<>(SB), Y1, Y3 \
	VFMADD213PS e4<>(SB), Y1, Y3 \
	VFMADD213PS e3<>(SB), Y1, Y3 \
	VFMADD213PS e2<>(SB), Y1, Y3 \
	VFMADD213PS one<>(SB), Y1, Y3 \
	VFMADD213PS one<>(SB), Y1, Y3 \
	VCVTPS2DQ Y2, Y2 \
	VPSRAD $1, Y2, Y1 \
	VPSUBD Y1, Y2, Y2 \
	VPADDD bias<>(SB), Y1, Y1 \
	VPSLLD $23, Y1, Y1 \
	VPADDD bias<>(SB), Y2, Y2 \
	VPSLLD $23, Y2, Y2 \
	VMULPS Y1, Y3, Y3 \
	VMULPS Y2, Y3, Y0

// EXP8 is Y0 = e**Y0: 2**n, in two factors, times a polynomial of what is left. Results below the
// smallest normal number are rounded once. NaN comes through. Uses Y1 to Y4.
#define EXP8 \
	VMOVAPS Y0, Y4 \
	VMOVUPS exphi<>(SB), Y1 \
	VMINPS Y0, Y1, Y1 \
	VMOVUPS explo<>(SB), Y2 \
	VMAXPS Y1, Y2, Y1 \
	VMULPS log2e<>(SB), Y1, Y2 \
	VROUNDPS $8, Y2, Y2 \
	VFNMADD231PS ln2hi<>(SB), Y2, Y1 \
	VFNMADD231PS ln2lo<>(SB), Y2, Y1 \
	EXPOFREST8 \
	VCMPPS $0x1e, exphi<>(SB), Y4, Y1 \
	VBLENDVPS Y1, inf<>(SB), Y0, Y0 \
	VCMPPS $0x11, explo<>(SB), Y4, Y1 \
	VANDNPS Y0, Y1, Y0

// EXP2OF8 is Y0 = 2**Y0. The ends of the range give infinity and 0 by themselves.
#define EXP2OF8 \
	VMOVUPS exp2hi<>(SB), Y1 \
	VMINPS Y0, Y1, Y1 \
	VMOVUPS exp2lo<>(SB), Y2 \
	VMAXPS Y1, Y2, Y1 \
	VROUNDPS $8, Y1, Y2 \
	VSUBPS Y2, Y1, Y1 \
	VMULPS ln2<>(SB), Y1, Y1 \
	EXPOFREST8

// LOGPARTS8 splits Y0 into 2**Y2 * (1 + Y1), between the roots of 1/2 and 2, and gives log(1 + Y1) - Y1 in Y3. What is
// below the smallest normal number is scaled first. Y4 is Y0. Uses Y5 and Y6.
#define LOGPARTS8 \
	VMOVAPS Y0, Y4 \
	VCMPPS $0x11, minNormal<>(SB), Y0, Y5 \
	VMULPS twoTo23<>(SB), Y0, Y6 \
	VBLENDVPS Y5, Y6, Y0, Y0 \
	VANDPS twentyThree<>(SB), Y5, Y5 \
	VPSUBD sqrtHalf<>(SB), Y0, Y1 \
	VPSRAD $23, Y1, Y2 \
	VCVTDQ2PS Y2, Y2 \
	VSUBPS Y5, Y2, Y2 \
	VPAND fraction<>(SB), Y1, Y1 \
	VPADDD sqrtHalf<>(SB), Y1, Y1 \
	VSUBPS one<>(SB), Y1, Y1 \
	VMULPS Y1, Y1, Y6 \
	VMOVUPS log8<>(SB), Y3 \
	VFMADD213PS log7<>(SB), Y1, Y3 \
	VFMADD213PS log6<>(SB), Y1, Y3 \
	VFMADD213PS log5<>(SB), Y1, Y3 \
	VFMADD213PS log4<>(SB), Y1, Y3 \
	VFMADD213PS log3<>(SB), Y1, Y3 \
	VFMADD213PS log2<>(SB), Y1, Y3 \
	VFMADD213PS log1<>(SB), Y1, Y3 \
	VFMADD213PS log0<>(SB), Y1, Y3 \
	VMULPS Y1, Y3, Y3 \
	VMULPS Y6, Y3, Y3 \
	VFNMADD231PS half<>(SB), Y6, Y3

// LOGSPECIAL8 is Y0 = Y3, but for arguments Y4 that are no positive number: of 0 it is -inf, of less NaN, of NaN and
// infinity these. Uses Y5 and Y6.
#define LOGSPECIAL8 \
	VXORPS Y5, Y5, Y5 \
	VCMPPS $0, Y5, Y4, Y6 \
	VBLENDVPS Y6, minusInf<>(SB), Y3, Y3 \
	VCMPPS $0x11, Y5, Y4, Y6 \
	VBLENDVPS Y6, notANumber<>(SB), Y3, Y3 \
	VCMPPS $0x15, inf<>(SB), Y4, Y6 \
	VBLENDVPS Y6, Y4, Y3, Y0

// LOG8 is the natural logarithm.
#define LOG8 \
	LOGPARTS8 \
	VFMADD231PS ln2lo<>(SB), Y2, Y3 \
	VADDPS Y1, Y3, Y3 \
	VFMADD231PS ln2hi<>(SB), Y2, Y3 \
	LOGSPECIAL8

// LOG2OF8 is the logarithm to base 2. That of the fraction is multiplied by log2(e) in two parts, the larger being 1.
#define LOG2OF8 \
	LOGPARTS8 \
	VMULPS log2eLess1<>(SB), Y3, Y7 \
	VFMADD231PS log2eLess1<>(SB), Y1, Y7 \
	VADDPS Y3, Y7, Y7 \
	VADDPS Y1, Y7, Y7 \
	VADDPS Y2, Y7, Y3 \
	LOGSPECIAL8

// TANH8 is 1 - 2/(e**2|x| + 1) with the sign of x, and a polynomial near 0.
#define TANH8 \
	VMOVAPS Y0, Y5 \
	VANDPS absmask<>(SB), Y0, Y6 \
	VMOVUPS tanhmax<>(SB), Y0 \
	VMINPS Y6, Y0, Y0 \
	VADDPS Y0, Y0, Y0 \
	EXP8 \
	VADDPS one<>(SB), Y0, Y0 \
	VMOVUPS two<>(SB), Y1 \
	VDIVPS Y0, Y1, Y1 \
	VMOVUPS one<>(SB), Y0 \
	VSUBPS Y1, Y0, Y0 \
	VMULPS Y5, Y5, Y2 \
	VMOVUPS t4<>(SB), Y3 \
	VFMADD213PS t3<>(SB), Y2, Y3 \
	VFMADD213PS t2<>(SB), Y2, Y3 \
	VFMADD213PS t1<>(SB), Y2, Y3 \
	VFMADD213PS t0<>(SB), Y2, Y3 \
	VMULPS Y2, Y3, Y3 \
	VFMADD213PS Y5, Y5, Y3 \
	VCMPPS $0x11, tanhsplit<>(SB), Y6, Y1 \
	VBLENDVPS Y1, Y3, Y0, Y0 \
	VANDPS signmask<>(SB), Y5, Y1 \
	VORPS Y1, Y0, Y0

// ERF8 is 1 - e**p(|x|) with the sign of x, and x times a polynomial below 1.
#define ERF8 \
	VMOVAPS Y0, Y5 \
	VANDPS absmask<>(SB), Y0, Y6 \
	VMOVUPS erfmax<>(SB), Y7 \
	VMINPS Y6, Y7, Y7 \
	VMOVUPS l6<>(SB), Y0 \
	VFMADD213PS l5<>(SB), Y7, Y0 \
	VFMADD213PS l4<>(SB), Y7, Y0 \
	VFMADD213PS l3<>(SB), Y7, Y0 \
	VFMADD213PS l2<>(SB), Y7, Y0 \
	VFMADD213PS l1<>(SB), Y7, Y0 \
	VFMADD213PS l0<>(SB), Y7, Y0 \
	EXP8 \
	VMOVUPS one<>(SB), Y1 \
	VSUBPS Y0, Y1, Y0 \
	VMULPS Y5, Y5, Y2 \
	VMOVUPS s6<>(SB), Y3 \
	VFMADD213PS s5<>(SB), Y2, Y3 \
	VFMADD213PS s4<>(SB), Y2, Y3 \
	VFMADD213PS s3<>(SB), Y2, Y3 \
	VFMADD213PS s2<>(SB), Y2, Y3 \
	VFMADD213PS s1<>(SB), Y2, Y3 \
	VFMADD213PS s0<>(SB), Y2, Y3 \
	VFMADD213PS Y5, Y5, Y3 \
	VCMPPS $0x11, one<>(SB), Y6, Y1 \
	VBLENDVPS Y1, Y3, Y0, Y0 \
	VANDPS signmask<>(SB), Y5, Y1 \
	VORPS Y1, Y0, Y0

// ANGLE8 starts a sine or cosine: Y2 = x*2/pi rounded, as integers in Y3; Y1 is
// what is left of x, within pi/4; Y4 its square, Y5 its sine, Y6 its cosine.
#define ANGLE8 \
	VMULPS twoOverPi<>(SB), Y0, Y2 \
	VROUNDPS $8, Y2, Y2 \
	VCVTPS2DQ Y2, Y3 \
	VMOVAPS Y0, Y1 \
	VFNMADD231PS halfPi1<>(SB), Y2, Y1 \
	VFNMADD231PS halfPi2<>(SB), Y2, Y1 \
	VFNMADD231PS halfPi3<>(SB), Y2, Y1 \
	VMULPS Y1, Y1, Y4 \
	VMOVUPS sin3<>(SB), Y5 \
	VFMADD213PS sin2<>(SB), Y4, Y5 \
	VFMADD213PS sin1<>(SB), Y4, Y5 \
	VFMADD213PS sin0<>(SB), Y4, Y5 \
	VMULPS Y4, Y5, Y5 \
	VFMADD213PS Y1, Y1, Y5 \
	VMOVUPS cos2<>(SB), Y6 \
	VFMADD213PS cos1<>(SB), Y4, Y6 \
	VFMADD213PS cos0<>(SB), Y4, Y6 \
	VMULPS Y4, Y6, Y6 \
	VMULPS Y4, Y6, Y6 \
	VFNMADD231PS half<>(SB), Y4, Y6 \
	VADDPS one<>(SB), Y6, Y6

// QUADRANT8 picks Y5, or Y6 where Y3 is odd, and flips its sign where bit 1 of Y3
// is set.
#define QUADRANT8 \
	VPSLLD $31, Y3, Y2 \
	VBLENDVPS Y2, Y6, Y5, Y0 \
	VPAND twoInt<>(SB), Y3, Y2 \
	VPSLLD $30, Y2, Y2 \
	VXORPS Y2, Y0, Y0

// The sine of a zero is that zero, with its sign.
#define SIN8 \
	VMOVAPS Y0, Y7 \
	ANGLE8 \
	QUADRANT8 \
	VXORPS Y8, Y8, Y8 \
	VCMPPS $0, Y8, Y7, Y8 \
	VBLENDVPS Y8, Y7, Y0, Y0

// A cosine is the sine of one quadrant further.
#define COS8 \
	ANGLE8 \
	VPADDD lsb<>(SB), Y3, Y3 \
	QUADRANT8

#define SQRT8 VSQRTPS Y0, Y0

#define RSQRT8 \
	VSQRTPS Y0, Y0 \
	VMOVUPS one<>(SB), Y1 \
	VDIVPS Y0, Y1, Y0

#define RECIP8 \
	VMOVUPS one<>(SB), Y1 \
	VDIVPS Y0, Y1, Y0

#define NEG8 VXORPS signmask<>(SB), Y0, Y0

#define ABS8 VANDPS absmask<>(SB), Y0, Y0

// UNARY is func(dst, a *float32, n int): Y0 in, Y0 out.
#define UNARY(NAME, BODY) \
TEXT NAME(SB), NOSPLIT, $0-24 \
	MOVQ dst+0(FP), DI \
	MOVQ a+8(FP), SI \
	MOVQ n+16(FP), CX \
loop: \
	CMPQ CX, $8 \
	JLT tail \
	VMOVUPS (SI), Y0 \
	BODY \
	VMOVUPS Y0, (DI) \
	ADDQ $32, SI \
	ADDQ $32, DI \
	SUBQ $8, CX \
	JMP loop \
tail: \
	TESTQ CX, CX \
	JZ done \
	TAILMASK \
	VMASKMOVPS (SI), Y15, Y0 \
	BODY \
	VMASKMOVPS Y0, Y15, (DI) \
done: \
	VZEROUPPER \
	RET

UNARY(·expAVX, EXP8)
UNARY(·exp2AVX, EXP2OF8)
UNARY(·logAVX, LOG8)
UNARY(·log2AVX, LOG2OF8)
UNARY(·tanhAVX, TANH8)
UNARY(·erfAVX, ERF8)
UNARY(·sinAVX, SIN8)
UNARY(·cosAVX, COS8)
UNARY(·sqrtAVX, SQRT8)
UNARY(·rsqrtAVX, RSQRT8)
UNARY(·recipAVX, RECIP8)
UNARY(·negAVX, NEG8)
UNARY(·absAVX, ABS8)

// The operations below are Y0 = Y0 op Y1.
#define ADD8 VADDPS Y1, Y0, Y0
#define SUB8 VSUBPS Y1, Y0, Y0
#define MUL8 VMULPS Y1, Y0, Y0
#define DIV8 VDIVPS Y1, Y0, Y0

// MAX8 and MIN8 give NaN where either is: the instruction gives its second
// source, Y1, so only NaN in Y0 has to be put back.
#define MAX8 \
	VCMPPS $3, Y0, Y0, Y2 \
	VMAXPS Y1, Y0, Y3 \
	VBLENDVPS Y2, Y0, Y3, Y0

#define MIN8 \
	VCMPPS $3, Y0, Y0, Y2 \
	VMINPS Y1, Y0, Y3 \
	VBLENDVPS Y2, Y0, Y3, Y0

// BINARY is func(dst, a, b *float32, n int).
#define BINARY(NAME, BODY) \
TEXT NAME(SB), NOSPLIT, $0-32 \
	MOVQ dst+0(FP), DI \
	MOVQ a+8(FP), SI \
	MOVQ b+16(FP), DX \
	MOVQ n+24(FP), CX \
loop: \
	CMPQ CX, $8 \
	JLT tail \
	VMOVUPS (SI), Y0 \
	VMOVUPS (DX), Y1 \
	BODY \
	VMOVUPS Y0, (DI) \
	ADDQ $32, SI \
	ADDQ $32, DX \
	ADDQ $32, DI \
	SUBQ $8, CX \
	JMP loop \
tail: \
	TESTQ CX, CX \
	JZ done \
	TAILMASK \
	VMASKMOVPS (SI), Y15, Y0 \
	VMASKMOVPS (DX), Y15, Y1 \
	BODY \
	VMASKMOVPS Y0, Y15, (DI) \
done: \
	VZEROUPPER \
	RET

BINARY(·addAVX, ADD8)
BINARY(·subAVX, SUB8)
BINARY(·mulAVX, MUL8)
BINARY(·divAVX, DIV8)
BINARY(·maxAVX, MAX8)
BINARY(·minAVX, MIN8)

// SCALED is func(dst, a *float32, b float32, n int): Y1 is b in all lanes.
#define SCALED(NAME, BODY) \
TEXT NAME(SB), NOSPLIT, $0-32 \
	MOVQ dst+0(FP), DI \
	MOVQ a+8(FP), SI \
	VBROADCASTSS b+16(FP), Y1 \
	MOVQ n+24(FP), CX \
loop: \
	CMPQ CX, $8 \
	JLT tail \
	VMOVUPS (SI), Y0 \
	BODY \
	VMOVUPS Y0, (DI) \
	ADDQ $32, SI \
	ADDQ $32, DI \
	SUBQ $8, CX \
	JMP loop \
tail: \
	TESTQ CX, CX \
	JZ done \
	TAILMASK \
	VMASKMOVPS (SI), Y15, Y0 \
	BODY \
	VMASKMOVPS Y0, Y15, (DI) \
done: \
	VZEROUPPER \
	RET

SCALED(·addScalarAVX, ADD8)
SCALED(·subScalarAVX, SUB8)
SCALED(·mulScalarAVX, MUL8)
SCALED(·divScalarAVX, DIV8)
SCALED(·maxScalarAVX, MAX8)
SCALED(·minScalarAVX, MIN8)

// func axpyAVX(dst, x *float32, a float32, n int)
TEXT ·axpyAVX(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ x+8(FP), SI
	VBROADCASTSS a+16(FP), Y1
	MOVQ n+24(FP), CX
loop32:
	CMPQ CX, $32
	JLT loop
	VMOVUPS (DI), Y2
	VMOVUPS 32(DI), Y3
	VMOVUPS 64(DI), Y4
	VMOVUPS 96(DI), Y5
	VFMADD231PS (SI), Y1, Y2
	VFMADD231PS 32(SI), Y1, Y3
	VFMADD231PS 64(SI), Y1, Y4
	VFMADD231PS 96(SI), Y1, Y5
	VMOVUPS Y2, (DI)
	VMOVUPS Y3, 32(DI)
	VMOVUPS Y4, 64(DI)
	VMOVUPS Y5, 96(DI)
	ADDQ $128, SI
	ADDQ $128, DI
	SUBQ $32, CX
	JMP loop32
loop:
	CMPQ CX, $8
	JLT tail
	VMOVUPS (DI), Y2
	VFMADD231PS (SI), Y1, Y2
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP loop
tail:
	TESTQ CX, CX
	JZ done
	TAILMASK
	VMASKMOVPS (SI), Y15, Y0
	VMASKMOVPS (DI), Y15, Y2
	VFMADD231PS Y0, Y1, Y2
	VMASKMOVPS Y2, Y15, (DI)
done:
	VZEROUPPER
	RET

// func mulAddAVX(dst, a, b *float32, n int)
TEXT ·mulAddAVX(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ a+8(FP), SI
	MOVQ b+16(FP), DX
	MOVQ n+24(FP), CX
loop:
	CMPQ CX, $8
	JLT tail
	VMOVUPS (DI), Y2
	VMOVUPS (SI), Y0
	VFMADD231PS (DX), Y0, Y2
	VMOVUPS Y2, (DI)
	ADDQ $32, SI
	ADDQ $32, DX
	ADDQ $32, DI
	SUBQ $8, CX
	JMP loop
tail:
	TESTQ CX, CX
	JZ done
	TAILMASK
	VMASKMOVPS (SI), Y15, Y0
	VMASKMOVPS (DX), Y15, Y1
	VMASKMOVPS (DI), Y15, Y2
	VFMADD231PS Y1, Y0, Y2
	VMASKMOVPS Y2, Y15, (DI)
done:
	VZEROUPPER
	RET

// ADDLANES is X0 = the sum of the lanes of Y0, in a fixed tree. Uses Y1.
#define ADDLANES \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS X1, X0, X0 \
	VPERMILPS $0x4e, X0, X1 \
	VADDPS X1, X0, X0 \
	VPERMILPS $0xb1, X0, X1 \
	VADDPS X1, X0, X0

// func sumAVX(a *float32, n int) float32
TEXT ·sumAVX(SB), NOSPLIT, $0-20
	MOVQ a+0(FP), SI
	MOVQ n+8(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
loop32:
	CMPQ CX, $32
	JLT loop
	VADDPS (SI), Y0, Y0
	VADDPS 32(SI), Y2, Y2
	VADDPS 64(SI), Y3, Y3
	VADDPS 96(SI), Y4, Y4
	ADDQ $128, SI
	SUBQ $32, CX
	JMP loop32
loop:
	CMPQ CX, $8
	JLT tail
	VADDPS (SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $8, CX
	JMP loop
tail:
	TESTQ CX, CX
	JZ done
	TAILMASK
	VMASKMOVPS (SI), Y15, Y1
	VADDPS Y1, Y2, Y2
done:
	VADDPS Y2, Y0, Y0
	VADDPS Y4, Y3, Y3
	VADDPS Y3, Y0, Y0
	ADDLANES
	VMOVSS X0, ret+16(FP)
	VZEROUPPER
	RET

// func dotAVX(a, b *float32, n int) float32
TEXT ·dotAVX(SB), NOSPLIT, $0-28
	MOVQ a+0(FP), SI
	MOVQ b+8(FP), DX
	MOVQ n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3
	VXORPS Y4, Y4, Y4
loop32:
	CMPQ CX, $32
	JLT loop
	VMOVUPS (SI), Y5
	VMOVUPS 32(SI), Y6
	VMOVUPS 64(SI), Y7
	VMOVUPS 96(SI), Y8
	VFMADD231PS (DX), Y5, Y0
	VFMADD231PS 32(DX), Y6, Y2
	VFMADD231PS 64(DX), Y7, Y3
	VFMADD231PS 96(DX), Y8, Y4
	ADDQ $128, SI
	ADDQ $128, DX
	SUBQ $32, CX
	JMP loop32
loop:
	CMPQ CX, $8
	JLT tail
	VMOVUPS (SI), Y5
	VFMADD231PS (DX), Y5, Y0
	ADDQ $32, SI
	ADDQ $32, DX
	SUBQ $8, CX
	JMP loop
tail:
	TESTQ CX, CX
	JZ done
	TAILMASK
	VMASKMOVPS (SI), Y15, Y5
	VMASKMOVPS (DX), Y15, Y6
	VFMADD231PS Y6, Y5, Y2
done:
	VADDPS Y2, Y0, Y0
	VADDPS Y4, Y3, Y3
	VADDPS Y3, Y0, Y0
	ADDLANES
	VMOVSS X0, ret+24(FP)
	VZEROUPPER
	RET

// EXTREME is func(a *float32, n int, identity float32) float32 by INS. Y2 gathers
// where NaN was met; lanes beyond the end hold the identity.
#define EXTREME(NAME, INS) \
TEXT NAME(SB), NOSPLIT, $0-28 \
	MOVQ a+0(FP), SI \
	MOVQ n+8(FP), CX \
	VBROADCASTSS identity+16(FP), Y0 \
	VMOVAPS Y0, Y3 \
	VMOVAPS Y0, Y4 \
	VXORPS Y2, Y2, Y2 \
loop16: \
	CMPQ CX, $16 \
	JLT loop \
	VMOVUPS (SI), Y1 \
	VMOVUPS 32(SI), Y5 \
	VCMPPS $3, Y5, Y1, Y6 \
	VORPS Y6, Y2, Y2 \
	INS Y1, Y0, Y0 \
	INS Y5, Y3, Y3 \
	ADDQ $64, SI \
	SUBQ $16, CX \
	JMP loop16 \
loop: \
	CMPQ CX, $8 \
	JLT tail \
	VMOVUPS (SI), Y1 \
	VCMPPS $3, Y1, Y1, Y6 \
	VORPS Y6, Y2, Y2 \
	INS Y1, Y0, Y0 \
	ADDQ $32, SI \
	SUBQ $8, CX \
	JMP loop \
tail: \
	TESTQ CX, CX \
	JZ done \
	TAILMASK \
	VMASKMOVPS (SI), Y15, Y1 \
	VBLENDVPS Y15, Y1, Y4, Y1 \
	VCMPPS $3, Y1, Y1, Y6 \
	VORPS Y6, Y2, Y2 \
	INS Y1, Y0, Y0 \
done: \
	INS Y3, Y0, Y0 \
	VEXTRACTF128 $1, Y0, X1 \
	INS X1, X0, X0 \
	VPERMILPS $0x4e, X0, X1 \
	INS X1, X0, X0 \
	VPERMILPS $0xb1, X0, X1 \
	INS X1, X0, X0 \
	VMOVMSKPS Y2, AX \
	TESTL AX, AX \
	JZ out \
	VCMPPS $0xf, X0, X0, X0 \
out: \
	VMOVSS X0, ret+24(FP) \
	VZEROUPPER \
	RET

EXTREME(·largestAVX, VMAXPS)
EXTREME(·smallestAVX, VMINPS)

// func widenBF16AVX(dst *float32, src *byte, n int), n a multiple of 8
TEXT ·widenBF16AVX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	CMPQ CX, $8
	JLT done
	VPMOVZXWD (SI), Y0
	VPSLLD $16, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP loop
done:
	VZEROUPPER
	RET

// func narrowBF16AVX(dst *byte, src *float32, n int), n a multiple of 8: round to
// nearest even; NaN keeps its upper bits and becomes quiet.
TEXT ·narrowBF16AVX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	CMPQ CX, $8
	JLT done
	VMOVUPS (SI), Y0
	VPSRLD $16, Y0, Y1
	VPAND lsb<>(SB), Y1, Y2
	VPADDD round16<>(SB), Y2, Y2
	VPADDD Y0, Y2, Y2
	VPSRLD $16, Y2, Y2
	VPOR quiet<>(SB), Y1, Y1
	VCMPPS $3, Y0, Y0, Y3
	VBLENDVPS Y3, Y1, Y2, Y2
	VEXTRACTF128 $1, Y2, X3
	VPACKUSDW X3, X2, X2
	VMOVDQU X2, (DI)
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JMP loop
done:
	VZEROUPPER
	RET

// func widenF16AVX(dst *float32, src *byte, n int), n a multiple of 8
TEXT ·widenF16AVX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	CMPQ CX, $8
	JLT done
	VCVTPH2PS (SI), Y0
	VMOVUPS Y0, (DI)
	ADDQ $16, SI
	ADDQ $32, DI
	SUBQ $8, CX
	JMP loop
done:
	VZEROUPPER
	RET

// func narrowF16AVX(dst *byte, src *float32, n int), n a multiple of 8
TEXT ·narrowF16AVX(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX
loop:
	CMPQ CX, $8
	JLT done
	VMOVUPS (SI), Y0
	VCVTPS2PH $0, Y0, X0
	VMOVDQU X0, (DI)
	ADDQ $32, SI
	ADDQ $16, DI
	SUBQ $8, CX
	JMP loop
done:
	VZEROUPPER
	RET
