package spell

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// WGMMA writes the device function that multiplies a 64xK tile of A by a
// KxN tile of B into N/2 accumulators of each thread (wgmma.mma_async.m64nNkK), K being
// 32 bytes of elements:
//
//	wgmma<TRANS_A, TRANS_B>(d, a, b, accumulate, T{}) // both operands in shared memory
//	wgmma<TRANS_B>(d, {a0, a1, a2, a3}, b, accumulate, T{}) // A in registers
//
// a and b are descriptors; TRANS is 1 for an operand in MN-major order, which 16-bit
// elements alone may have. n is a multiple of 8 from 8 to 256, of 16 from 32 on for i8; t
// is bf16, f16, f8e4m3, f8e5m2, i8, or f32 for tf32: the hardware reads f32 words and
// ignores their last 13 bits. Sums are f32, of i8 i32. Instructions of this length are
// spelled for the widths a kernel uses, which keeps its text short.
func WGMMA(n int, t ir.DType, aInRegisters bool) string {
	return wgmma(n, t, aInRegisters, fmt.Sprintf("(&d)[%d]", n/2), func(i int) string { return fmt.Sprintf("d[%d]", i) })
}

// WGMMASpread writes the function that multiplies n of so many columns, with both operands in shared memory:
//
//	wgmma<TRANS_A, TRANS_B>(d, first, a, b, accumulate, T{})
//
// Of the groups of eight columns it has every so-manieth; first is the first accumulator of the first of them.
func WGMMASpread(n, columns, every int, t ir.DType) string {
	const group = 4 // accumulators of eight columns
	return wgmma(n, t, false, fmt.Sprintf("(&d)[%d], int first", columns/2), func(i int) string {
		return fmt.Sprintf("d[first + %d]", i/group*every*group+i%group)
	})
}

func wgmma(n int, t ir.DType, aInRegisters bool, accumulators string, accumulator func(i int) string) string {
	sums := n / 2
	var b strings.Builder
	list := func(from, count int, format string) {
		for i := range count {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, format, from+i)
		}
	}
	element := map[ir.DType]string{ir.BF16: "bf16", ir.F16: "f16", ir.F32: "tf32", ir.F8E4M3: "e4m3",
		ir.F8E5M2: "e5m2", ir.I8: "s8"}[t]
	orders := t.Size() == 2 // the instruction has arguments for the order of its operands
	sum, total, constraint, scales := "float", "f32", "f", ", 1, 1"
	if !t.IsFloat() {
		sum, total, constraint, scales = "int", "s32", "r", ""
	}
	a, next := "unsigned long long a", sums+1
	trans := "template <int TRANS_A, int TRANS_B>"
	if aInRegisters {
		a, next, trans = "const unsigned (&a)[4]", sums+4, "template <int TRANS_B>"
	}
	fmt.Fprintf(&b, "%s DEVICE void wgmma(%s %s, %s, unsigned long long b, bool accumulate, %s) {\n",
		trans, sum, accumulators, a, StorageType(t))
	fmt.Fprintf(&b, "    asm volatile(\"{\\n.reg .pred p;\\nsetp.ne.b32 p, %%%d, 0;\\n\"\n", next+1)
	fmt.Fprintf(&b, "        \"wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s {", n, 32/t.Size(), total, element, element)
	list(0, sums, "%%%d")
	b.WriteString("}, ")
	if aInRegisters {
		b.WriteString("{")
		list(sums, 4, "%%%d")
		fmt.Fprintf(&b, "}, %%%d, p%s", next, scales)
		if orders {
			fmt.Fprintf(&b, ", %%%d", next+2)
		}
	} else {
		fmt.Fprintf(&b, "%%%d, %%%d, p%s", sums, next, scales)
		if orders {
			fmt.Fprintf(&b, ", %%%d, %%%d", next+2, next+3)
		}
	}
	b.WriteString(";\\n}\"\n")
	b.WriteString("        : ")
	for i := range sums {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "\"+%s\"(%s)", constraint, accumulator(i))
	}
	b.WriteString("\n        : ")
	if aInRegisters {
		list(0, 4, "\"r\"(a[%d])")
		b.WriteString(", \"l\"(b), \"r\"((int)accumulate)")
	} else {
		b.WriteString("\"l\"(a), \"l\"(b), \"r\"((int)accumulate)")
		if orders {
			b.WriteString(", \"n\"(TRANS_A)")
		}
	}
	if orders {
		b.WriteString(", \"n\"(TRANS_B)")
	}
	b.WriteString(");\n}\n")
	return b.String()
}
