package ptxsim

import (
	"math"
	"strings"
)

// setFamily: set.cmp{.bool}{.ftz}.dtype.stype d, a, b{, {!}c}: all ones, or 1.0, where the
// test holds.
func setFamily(b *builder, s *statement) exec {
	if len(s.Mods) < 3 || s.Args[0].kind != regOperand {
		return nil
	}
	n := len(s.Mods)
	typ, packed := strings.CutSuffix(s.Mods[n-1], "x2")
	to, pair := strings.CutSuffix(s.Mods[n-2], "x2")
	yes := uint64(0)
	switch to {
	case "u16", "s16":
		yes = 0xffff
	case "u32", "s32":
		yes = 0xffffffff
	case "f16", "bf16", "f32":
		yes = formats[to].encode(1, toNearest)
	}
	if packed && yes == 0xffffffff { // a mask for each half
		yes, pair = 0xffff, true
	}
	t := b.testOf(s, s.Mods[:n-2], typ)
	if t == nil || yes == 0 || packed != pair {
		return nil
	}
	f := comparison(t.op, typ, t.ftz)
	if f == nil {
		return nil
	}
	p, q := b.newReg(), -1
	test := exec(nil)
	if packed {
		q = b.newReg()
		test = t.packed(f, p, q)
	} else {
		test = t.exec(f, b.newReg(), p, q)
		q = b.constant(0)
	}
	join := whole2(func(d, low, up *lanes) {
		for i := range d {
			d[i] = -low[i]&yes | -up[i]&yes<<16
		}
	}).exec([]int{s.Args[0].reg, p, q})
	if test == nil {
		return nil
	}
	return func(w *warp, mask uint32) {
		test(w, mask)
		join(w, mask)
	}
}

// selpFamily: selp.type d, a, b, p: a where the predicate holds, otherwise b.
func selpFamily(b *builder, s *statement) exec {
	keep := widthMask(s.last())
	if len(s.Mods) != 1 || len(s.Args) != 4 || keep == 0 || s.Args[3].class != "pred" {
		return nil
	}
	return b.apply(s, whole3(func(d, a, b, p *lanes) {
		for i := range d {
			choice := -(p[i] & 1)
			d[i] = (a[i]&choice | b[i]&^choice) & keep
		}
	}))
}

// widthMask has the bits of a type of 16, 32 or 64; none for other names.
func widthMask(typ string) uint64 {
	switch {
	case formats[typ] != nil:
		return formats[typ].mask()
	case bitWidth[typ] > 1:
		return ^uint64(0) >> (64 - bitWidth[typ])
	}
	return 0
}

// slctFamily: slct{.ftz}.type.{s32,f32} d, a, b, c: a where c is not negative, otherwise b;
// b too where c is a NaN.
func slctFamily(b *builder, s *statement) exec {
	n := len(s.Mods)
	if n < 2 || n > 3 || n == 3 && s.Mods[0] != "ftz" || len(s.Args) != 4 {
		return nil
	}
	keep := widthMask(s.Mods[n-2])
	var first func(c uint64) bool
	switch s.last() {
	case "s32":
		first = func(c uint64) bool { return int32(c) >= 0 }
	case "f32":
		q := &floatForm{format: f32, ftz: s.has("ftz")}
		first = func(c uint64) bool { return q.in(c) >= 0 }
	}
	if keep == 0 || first == nil {
		return nil
	}
	typed := *s
	typed.Mods = s.Mods[n-2 : n-1] // that of a and b
	return b.apply(&typed, single3(func(a, b, c uint64) uint64 {
		if first(c) {
			return a & keep
		}
		return b & keep
	}))
}

// testpFamily: testp.kind.{f32,f64} p, a (section 9.7.3.1).
func testpFamily(b *builder, s *statement) exec {
	f := formats[s.last()]
	if len(s.Mods) != 2 || f != f32 && f != f64 {
		return nil
	}
	least := power(f.least)
	kinds := map[string]func(x float64) bool{
		"finite":     finite,
		"infinite":   func(x float64) bool { return math.IsInf(x, 0) },
		"number":     func(x float64) bool { return x == x },
		"notanumber": func(x float64) bool { return x != x },
		"normal":     func(x float64) bool { return finite(x) && math.Abs(x) >= least },
		"subnormal":  func(x float64) bool { return x != 0 && math.Abs(x) < least },
	}
	kind := kinds[s.Mods[0]]
	if kind == nil {
		return nil
	}
	return b.apply(s, single1(func(a uint64) uint64 { return truth(kind(f.decode(a))) }))
}

// copysignFamily: copysign.{f32,f64} d, a, b: b with the sign of a.
func copysignFamily(b *builder, s *statement) exec {
	f := formats[s.last()]
	if len(s.Mods) != 1 || f != f32 && f != f64 {
		return nil
	}
	sign, mask := f.sign(), f.mask()
	return b.apply(s, single2(func(a, b uint64) uint64 { return a&sign | b&^sign&mask }))
}
