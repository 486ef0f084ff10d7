package ptxsim

import (
	"fmt"
	"math"
	"slices"
)

// matrixFamilies multiply matrices that a warp holds, and bring them to its registers.
var matrixFamilies = map[string]family{
	"mma":       mmaFamily,
	"ldmatrix":  loadMatrixFamily,
	"stmatrix":  storeMatrixFamily,
	"movmatrix": moveMatrixFamily,
	"wgmma":     wgmmaFamily,
}

// An mmaForm is types that mma takes for A and B, in which shapes, and for C and D.
type mmaForm struct{ operands, shapes, totals []string }

// mmaForms are those of sm_80 to sm_90 with one product a warp (PTX ISA, "Multiply-and-
// Accumulate Instruction: mma"), without those of single bits.
var mmaForms = []mmaForm{
	{[]string{"f16"}, []string{"m16n8k8", "m16n8k16"}, []string{"f16", "f32"}},
	{[]string{"bf16"}, []string{"m16n8k8", "m16n8k16"}, []string{"f32"}},
	{[]string{"tf32"}, []string{"m16n8k4", "m16n8k8"}, []string{"f32"}},
	{[]string{"f64"}, []string{"m8n8k4", "m16n8k4", "m16n8k8", "m16n8k16"}, []string{"f64"}},
	{[]string{"e4m3", "e5m2"}, []string{"m16n8k16", "m16n8k32"}, []string{"f16", "f32"}},
	{[]string{"s8", "u8"}, []string{"m8n8k16", "m16n8k16", "m16n8k32"}, []string{"s32"}},
	{[]string{"s4", "u4"}, []string{"m8n8k32", "m16n8k32", "m16n8k64"}, []string{"s32"}},
}

// mmaFamily: mma.sync.aligned.shape.row.col{.satfinite}.dtype.atype.btype.ctype{.rn} d, a,
// b, c: D = A*B + C.
func mmaFamily(b *builder, s *statement) exec {
	if len(s.Mods) < 9 || len(s.Args) != 4 || s.Mods[0] != "sync" || s.Mods[1] != "aligned" {
		return nil
	}
	shape, layout, types := s.Mods[2], s.Mods[3:5], s.Mods[5:]
	saturated := types[0] == "satfinite"
	if saturated {
		types = types[1:]
	}
	if last := len(types) - 1; types[last] == "rn" && types[0] == "f64" {
		types = types[:last] // what f64 does without it
	}
	if len(types) != 4 || !slices.Contains([]string{"f16", "f32", "f64", "s32"}, types[0]) {
		return nil
	}
	if shape == "m8n8k4" && types[1] == "f16" {
		return quartersFamily(b, s, layout, types)
	}
	if !slices.Equal(layout, []string{"row", "col"}) || !knownMMA(shape, types) ||
		saturated && types[0] != "s32" {
		return nil
	}
	var m, n, k int
	if _, err := fmt.Sscanf(shape, "m%dn%dk%d", &m, &n, &k); err != nil {
		return nil
	}
	total := elements[types[0]]
	if saturated {
		total.encode = encodeSaturated
	}
	p := product{m: m, n: n, k: k, fused: types[0] == "f64",
		d: fragmentD(total, m, n).in(b, s, s.Args[0]),
		a: fragmentA(elements[types[1]], m, k).in(b, s, s.Args[1]),
		b: fragmentB(elements[types[2]], k).in(b, s, s.Args[2]),
		c: fragmentD(total, m, n).in(b, s, s.Args[3])}
	return p.run
}

func knownMMA(shape string, types []string) bool {
	for _, f := range mmaForms {
		if slices.Contains(f.operands, types[1]) {
			return slices.Contains(f.operands, types[2]) && slices.Contains(f.shapes, shape) &&
				slices.Contains(f.totals, types[0]) && types[0] == types[3]
		}
	}
	return false
}

// A product is an mma instruction.
type product struct {
	m, n, k    int
	fused      bool // each sum is a chain of fused multiply-adds
	d, a, b, c fragment
}

func (p *product) run(w *warp, mask uint32) {
	w.whole(mask)
	t := w.matrices()
	p.a.gather(w, t.a[:])
	p.b.gather(w, t.b[:])
	p.c.gather(w, t.d[:])
	if p.fused {
		multiplyFused(t.d[:], t.a[:], t.b[:], p.m, p.n, p.k)
	} else {
		multiply(t.d[:], t.a[:], t.b[:], p.m, p.n, p.k, 1)
	}
	p.d.scatter(w, t.d[:])
}

// multiplyFused is multiply as the f64 units do it: "identical to that of .f64 precision
// fused multiply-add" (PTX ISA, mma).
func multiplyFused(d, a, b []float64, m, n, k int) {
	for i := range m {
		for j := range n {
			sum := d[i*n+j]
			for l := range k {
				sum = math.FMA(a[i*k+l], b[j*k+l], sum)
			}
			d[i*n+j] = sum
		}
	}
}

// whole is a fault where lanes are missing: what an instruction of the whole warp does
// without them is undefined.
func (w *warp) whole(mask uint32) {
	if mask != 1<<warpSize-1 {
		panic(w.fault(0, "an instruction of the whole warp, of whose lanes %08x are here", mask))
	}
}
