package ptxsim

import "slices"

// quarters is mma.m8n8k4 of f16: four products, each of four lanes and the four that are
// 16 further on (PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point
// type"). Matrices of the four follow each other.
type quarters struct {
	columnsA, rowsB bool // of which lanes hold pieces
	d, a, b, c      fragment
}

// quartersFamily: mma.sync.aligned.m8n8k4.alayout.blayout.dtype.f16.f16.ctype d, a, b, c.
func quartersFamily(b *builder, s *statement, layout, types []string) exec {
	orders, totals := []string{"row", "col"}, []string{"f16.f16", "f32.f16", "f32.f32"} // of D and C
	if !slices.Contains(orders, layout[0]) || !slices.Contains(orders, layout[1]) || types[2] != "f16" ||
		!slices.Contains(totals, types[0]+"."+types[3]) {
		return nil
	}
	operand := fragment{element: elements["f16"], first: []int{0, 2}}
	for lane := range warpSize {
		operand.lanes[lane] = lane%16/4*8*4 + lane/16*4*4 + lane%4*4
	}
	p := quarters{columnsA: layout[0] == "col", rowsB: layout[1] == "row",
		d: quarterD(types[0]).in(b, s, s.Args[0]),
		a: operand.in(b, s, s.Args[1]),
		b: operand.in(b, s, s.Args[2]),
		c: quarterD(types[3]).in(b, s, s.Args[3])}
	return p.run
}

// quarterD is where results lie: by rows of f16, and by a rule of their own of f32.
func quarterD(t string) fragment {
	f := fragment{element: elements[t], first: []int{0, 2, 4, 6}}
	if t == "f32" {
		f.first = nil
		for i := range 8 {
			f.first = append(f.first, i&2*8+i&4+i&1)
		}
	}
	for lane := range warpSize {
		f.lanes[lane] = lane%16/4*8*8 + lane/16*4*8
		if t == "f32" {
			f.lanes[lane] += lane&1*8 + lane&2
		} else {
			f.lanes[lane] += lane % 4 * 8
		}
	}
	return f
}

func (p *quarters) run(w *warp, mask uint32) {
	w.whole(mask)
	t := w.matrices()
	p.a.gather(w, t.a[:])
	p.b.gather(w, t.b[:])
	p.c.gather(w, t.d[:])
	for i := range 4 {
		x, y := t.a[i*8*4:][:8*4], t.b[i*8*4:][:8*4]
		if p.columnsA {
			acrossHalves(x)
		}
		if p.rowsB {
			acrossHalves(y)
		}
		multiply(t.d[i*8*8:], x, y, 8, 8, 4, 1)
	}
	p.d.scatter(w, t.d[:])
}

// acrossHalves transposes each half of a matrix of two times four by four.
func acrossHalves(x []float64) {
	for half := 0; half < len(x); half += 16 {
		for i := range 4 {
			for j := range i {
				at, to := half+4*i+j, half+4*j+i
				x[at], x[to] = x[to], x[at]
			}
		}
	}
}
