package ptxsim

import (
	"fmt"
	"slices"
)

// wgmmaFamily are the instructions of warpgroups: four warps that multiply 64 rows of A by N
// columns of B in shared memory. Each warp has sixteen of the rows and executes its part by
// itself, when it comes to it: none waits for the others. Results are written at once, because
// PTX may move them between registers before it waits for them. An instruction that reads them
// too early is found by watchProducts.
func wgmmaFamily(b *builder, s *statement) exec {
	if len(s.Mods) < 3 || s.Mods[1] != "sync" || s.Mods[2] != "aligned" {
		return nil
	}
	switch {
	case s.Mods[0] == "mma_async":
		return groupProductFamily(b, s)
	case len(s.Mods) > 3:
		return nil
	case s.Mods[0] == "fence" && len(s.Args) == 0:
		return func(w *warp, mask uint32) {
			w.warpgroup(mask)
			w.flight.fenced = true
		}
	case s.Mods[0] == "commit_group" && len(s.Args) == 0:
		return (*warp).commit
	case s.Mods[0] == "wait_group" && len(s.Args) == 1 && s.Args[0].kind == immOperand:
		return await(int(s.Args[0].bits))
	}
	return nil
}

// warpgroup is a fault where lanes are missing, or warps.
func (w *warp) warpgroup(mask uint32) {
	w.whole(mask)
	if last := w.index | 3; last >= len(w.cta.warps) {
		panic(w.fault(0, "an instruction of four warps in a block that ends after %d", len(w.cta.warps)))
	}
}

// A wgmmaForm is types of A and B with their length of K, and what their products are
// added in.
type wgmmaForm struct {
	operands, totals []string
	k                int
	scales           bool // the instruction may negate operands
	orders           bool // and says in which order they lie
}

// wgmmaForms are those of sm_90a (PTX ISA, wgmma.mma_async), without those of single bits.
var wgmmaForms = []wgmmaForm{
	{[]string{"f16"}, []string{"f16", "f32"}, 16, true, true},
	{[]string{"bf16"}, []string{"f32"}, 16, true, true},
	{[]string{"tf32"}, []string{"f32"}, 8, true, false},
	{[]string{"e4m3", "e5m2"}, []string{"f16", "f32"}, 32, true, false},
	{[]string{"s8", "u8"}, []string{"s32"}, 32, false, false},
}

// A groupProduct is a wgmma.mma_async.
type groupProduct struct {
	n, k             int
	d, a             fragment
	elemA, elemB     element
	descA, descB     int // registers; descA -1: a is in registers
	acrossA, acrossB bool
	add              int // predicate: d is added to
	scale            float64
}

// groupProductFamily: wgmma.mma_async.sync.aligned.m64nNkK.dtype.atype.btype{.satfinite} d, a,
// b-desc, scale-d{, imm-scale-a, imm-scale-b{, imm-trans-a}{, imm-trans-b}}: a is a
// descriptor too, or a fragment, which has no order.
func groupProductFamily(b *builder, s *statement) exec {
	form, n := groupForm(s)
	if form == nil || len(s.Args) < 4 {
		return nil
	}
	add := s.Args[3]
	if add.kind != regOperand || add.class != "pred" || add.negate {
		return nil
	}
	typeD, typeA, typeB := s.Mods[4], s.Mods[5], s.Mods[6]
	total := elements[typeD]
	if s.last() == "satfinite" {
		total.encode = encodeSaturated
	}
	x := &groupProduct{n: n, k: form.k, elemA: elements[typeA], elemB: elements[typeB], descA: -1,
		add: add.reg, scale: 1}
	x.d = fragmentD(total, 16, n).in(b, s, s.Args[0])
	inRegisters := s.Args[1].kind == vecOperand
	if inRegisters {
		x.a = fragmentA(x.elemA, 16, form.k).in(b, s, s.Args[1])
	} else {
		x.descA = b.use(s.Args[1])
	}
	x.descB = b.use(s.Args[2])
	if !x.immediates(form, s.Args[4:], inRegisters) {
		return nil
	}
	return x.run
}

// groupForm is the form that the modifiers name, and N; nil where there is none.
func groupForm(s *statement) (form *wgmmaForm, n int) {
	const types = 7 // mma_async.sync.aligned.shape.dtype.atype.btype
	if len(s.Mods) < types || len(s.Mods) > types+1 {
		return nil, 0
	}
	for i := range wgmmaForms {
		f := &wgmmaForms[i]
		if slices.Contains(f.operands, s.Mods[5]) && slices.Contains(f.operands, s.Mods[6]) &&
			slices.Contains(f.totals, s.Mods[4]) {
			form = f
		}
	}
	var k int
	if _, err := fmt.Sscanf(s.Mods[3], "m64n%dk%d", &n, &k); err != nil || form == nil || k != form.k {
		return nil, 0
	}
	integer := s.Mods[4] == "s32"
	if n < 8 || n > 256 || n%8 != 0 || integer && n > 24 && n%16 != 0 {
		return nil, 0
	}
	if len(s.Mods) > types && !(integer && s.last() == "satfinite") {
		return nil, 0
	}
	return form, n
}

// immediates reads the last operands; false where they are not what the form has.
func (x *groupProduct) immediates(f *wgmmaForm, args []operand, inRegisters bool) bool {
	var values []uint64
	for _, o := range args {
		if o.kind != immOperand {
			return false
		}
		values = append(values, o.bits)
	}
	if f.scales {
		if len(values) < 2 {
			return false
		}
		for _, v := range values[:2] {
			if v != 1 && int64(v) != -1 {
				return false
			}
			x.scale *= float64(int64(v))
		}
		values = values[2:]
	}
	var across []*bool
	switch {
	case f.orders && inRegisters:
		across = []*bool{&x.acrossB}
	case f.orders:
		across = []*bool{&x.acrossA, &x.acrossB}
	}
	if len(values) != len(across) {
		return false
	}
	for i, v := range values {
		if v > 1 {
			return false
		}
		*across[i] = v == 1
	}
	return true
}

func (x *groupProduct) run(w *warp, mask uint32) {
	w.warpgroup(mask)
	if !w.flight.fenced {
		panic(w.fault(0, "wgmma.mma_async before any wgmma.fence: registers may not be written yet"))
	}
	t := w.matrices()
	if x.descA < 0 {
		x.a.gather(w, t.a[:])
	} else {
		x.bring(w, x.descA, x.elemA, t.a[:], x.acrossA, w.index%4*16, 16)
	}
	x.bring(w, x.descB, x.elemB, t.b[:], x.acrossB, 0, x.n)
	if w.uniform(x.add, "scale-d")&1 != 0 {
		x.d.gather(w, t.d[:])
	} else {
		clear(t.d[:16*x.n])
	}
	multiply(t.d[:], t.a[:], t.b[:], 16, x.n, x.k, x.scale)
	x.d.scatter(w, t.d[:])
}

// bring gathers rows of the operand that a register describes.
func (x *groupProduct) bring(w *warp, reg int, e element, to []float64, across bool, first, rows int) {
	d := w.descriptorOf(reg)
	if across {
		d.gatherAcross(w, e, to, first, rows, x.k)
	} else {
		d.gather(w, e, to, first, rows, x.k)
	}
}
