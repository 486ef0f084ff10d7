package ptxsim

import "math"

// A fragment is a matrix in the registers of a warp. A register of a lane holds neighbours
// along a row of the matrix, or a column of B, kept here as a row: so a register is a piece of
// consecutive elements.
//
// All shapes of mma but m8n8k4 of f16, and all of wgmma, follow one rule (PTX ISA,
// "Matrix Fragments for mma", the figures of each shape): the eight groups of four lanes
// hold a row each, of every eight, and the lanes of a group the pieces of that row. With
// c elements in a register, g the group and t the lane in it:
//
//	A: register r is row g + 8*(r%h), columns t*c + 4*c*(r/h) and on, h being m/8
//	B: register r is column g, rows t*c + 4*c*r and on
//	C, D: element e is row g + 8*(e/2%h), column 2*t + e%2 + 8*(e/2/h)
type fragment struct {
	element
	regs []int
	// A register's first element is at first[register] + lanes[lane] of the matrix.
	first []int
	lanes [warpSize]int
}

// fragmentA is a matrix of m by k elements, row after row.
func fragmentA(e element, m, k int) fragment {
	f := fragment{element: e, lanes: groups(k, e.count)}
	halves := m / 8
	for r := range m * k / warpSize / e.count {
		f.first = append(f.first, r%halves*8*k+r/halves*4*e.count)
	}
	return f
}

// fragmentB is a matrix of k by 8 elements, column after column.
func fragmentB(e element, k int) fragment {
	f := fragment{element: e, lanes: groups(k, e.count)}
	for r := range 8 * k / warpSize / e.count {
		f.first = append(f.first, r*4*e.count)
	}
	return f
}

// fragmentD is a matrix of m by n elements, row after row, that products are added to.
func fragmentD(e element, m, n int) fragment {
	f := fragment{element: e, lanes: groups(n, 2)}
	halves := m / 8
	for r := range m * n / warpSize / e.count {
		at := r * e.count
		f.first = append(f.first, at/2%halves*8*n+at/2/halves*8+at%2)
	}
	return f
}

// groups is the places of lanes where those of a group are so far apart.
func groups(group, thread int) (at [warpSize]int) {
	for lane := range warpSize {
		at[lane] = lane/4*group + lane%4*thread
	}
	return at
}

// in gives the fragment the registers of an operand.
func (f fragment) in(b *builder, s *statement, o operand) fragment {
	f.regs = b.vector(s, o, len(f.first))
	return f
}

// vector is the n registers of an operand.
func (b *builder) vector(s *statement, o operand, n int) []int {
	elems := []operand{o}
	if o.kind == vecOperand {
		elems = o.elems
	}
	if len(elems) != n {
		b.fail("%s with an operand of %d registers, not %d", s.text(), len(elems), n)
	}
	var regs []int
	for _, e := range elems {
		regs = append(regs, b.use(e))
	}
	return regs
}

// gather reads the registers. Loops of their own are for f32, which most results are of.
func (f *fragment) gather(w *warp, to []float64) {
	for i, r := range f.regs {
		reg, first := &w.regs[r], f.first[i]
		if f.plain {
			for lane, at := range f.lanes {
				to[first+at] = float64(math.Float32frombits(uint32(reg[lane])))
			}
			continue
		}
		for lane, at := range f.lanes {
			f.decode(to[first+at:], reg[lane])
		}
	}
}

// scatter writes them.
func (f *fragment) scatter(w *warp, from []float64) {
	for i, r := range f.regs {
		reg, first := &w.regs[r], f.first[i]
		if f.plain {
			for lane, at := range f.lanes {
				reg[lane] = floatBits(from[first+at])
			}
			continue
		}
		for lane, at := range f.lanes {
			reg[lane] = f.encode(from[first+at:])
		}
	}
}

// tiles is what matrices are gathered in: of A at most 16 by 64, or wgmma's 16 by 32; of
// B 64 by 8, or 32 by 256; of D 16 by 256. A launch has one, as its warps take turns.
type tiles struct {
	a [16 * 64]float64
	b [32 * 256]float64
	d [16 * 256]float64
}

// matrices is the launch's tiles.
func (w *warp) matrices() *tiles {
	l := w.cta.cluster.launch
	if l.tiles == nil {
		l.tiles = new(tiles)
	}
	return l.tiles
}

// multiply adds scale times the product of a, m rows of k, and b, n columns of k, to d, m
// rows of n. m is even and n a multiple of four: eight sums at a time are in flight.
//
// Products are exact and sums are in f64, which whoever stores d rounds once. The tensor
// cores keep fewer bits: they align products to the largest and cut off what is below
// some 24 bits, in an order that PTX leaves open. Results differ in the last bits of f32.
func multiply(d, a, b []float64, m, n, k int, scale float64) {
	for i := 0; i < m; i += 2 {
		x0, x1 := a[i*k:][:k], a[(i+1)*k:][:k]
		for j := 0; j < n; j += 4 {
			y0, y1, y2, y3 := b[j*k:][:k], b[(j+1)*k:][:k], b[(j+2)*k:][:k], b[(j+3)*k:][:k]
			var s00, s01, s02, s03, s10, s11, s12, s13 float64
			for l := range k {
				u, v := x0[l], x1[l]
				p, q, r, t := y0[l], y1[l], y2[l], y3[l]
				s00 += u * p
				s01 += u * q
				s02 += u * r
				s03 += u * t
				s10 += v * p
				s11 += v * q
				s12 += v * r
				s13 += v * t
			}
			top, low := d[i*n+j:][:4], d[(i+1)*n+j:][:4]
			top[0] += scale * s00
			top[1] += scale * s01
			top[2] += scale * s02
			top[3] += scale * s03
			low[0] += scale * s10
			low[1] += scale * s11
			low[2] += scale * s12
			low[3] += scale * s13
		}
	}
}
