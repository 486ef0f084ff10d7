package ptxsim

import "encoding/binary"

// A descriptor is a matrix in shared memory as wgmma takes it (PTX ISA, "Matrix Descriptor
// Format"). Its bits are
//
//	 0-13  the address that the matrix begins at, in units of 16 bytes as the next two
//	16-29  the leading dimension byte offset
//	32-45  the stride dimension byte offset
//	49-51  the base offset: where the swizzle's pattern begins, in lines of 128 bytes
//	62-63  the swizzle: none, 128, 64 or 32 bytes
//
// A matrix consists of pieces of 16 bytes, and of atoms: eight lines of as many bytes as
// the swizzle has. In a K-major matrix a line holds elements of one row (of M or N), in an
// MN-major one elements of one of K. The places of pieces are those of the "Canonical
// Layouts" of the PTX ISA, through the swizzle.
type descriptor struct {
	start, leading, stride uint64 // bytes
	base                   uint64 // lines of 128 bytes
	line                   uint64 // bytes of an atom's line; 16 without a swizzle
}

const (
	descriptorField = 1<<14 - 1
	descriptorBits  = descriptorField | descriptorField<<16 | descriptorField<<32 | 7<<49 | 3<<62
	piece           = 16 // bytes
)

// descriptorOf reads the one in a register.
func (w *warp) descriptorOf(reg int) descriptor {
	bits := w.uniform(reg, "a matrix descriptor")
	if bits&^descriptorBits != 0 {
		panic(w.fault(0, "%#x is not a matrix descriptor: it has bits of no field", bits))
	}
	d := descriptor{
		start:   bits & descriptorField * piece,
		leading: bits >> 16 & descriptorField * piece,
		stride:  bits >> 32 & descriptorField * piece,
		base:    bits >> 49 & 7,
		line:    [...]uint64{16, 128, 64, 32}[bits>>62],
	}
	if d.base != 0 && d.line == piece {
		panic(w.fault(0, "%#x is not a matrix descriptor: a base offset without a swizzle", bits))
	}
	return d
}

// uniform is the value of a register whose value must be the same in all lanes.
func (w *warp) uniform(reg int, what string) uint64 {
	all := &w.regs[reg]
	for lane, v := range all {
		if v != all[0] {
			panic(w.fault(lane, "%s that differs between lanes: %#x, and %#x in the first", what, v, all[0]))
		}
	}
	return all[0]
}

// alongK is the place of a piece of a row of a K-major matrix. Within a swizzle's line
// pieces follow each other, whatever the leading dimension offset says.
func (d *descriptor) alongK(row, n uint64) uint64 {
	step := uint64(piece)
	if d.line == piece {
		step = d.leading
	}
	return row%8*d.line + row/8*d.stride + n*step
}

// alongMN is the place of a piece of one of K of an MN-major matrix.
func (d *descriptor) alongMN(k, n uint64) uint64 {
	if d.line == piece {
		return n*d.stride + k%8*piece + k/8*d.leading
	}
	pieces := d.line / piece
	return n%pieces*piece + n/pieces*d.leading + k%8*d.line + k/8*d.stride
}

// piece is the memory of the piece at a place. The swizzle exchanges pieces of a line of 128
// bytes by the number of the line in the pattern: it depends only on the address, so a matrix
// may begin within an atom.
func (d *descriptor) piece(w *warp, place uint64) []byte {
	addr := d.start + place
	addr ^= (addr>>7 - d.base) << 4 & (d.line - piece)
	out := w.sharedBytes(0, addr, piece)
	if r := w.cta.cluster.races; r != nil {
		t, offset := w.place(0, addr)
		r.read(r.product(w), t, offset, piece)
	}
	return out
}

// gather reads rows of a matrix with k columns, 32 bytes.
func (d *descriptor) gather(w *warp, e element, to []float64, first, rows, k int) {
	for row := range rows {
		line := to[row*k:][:k]
		for n := range 2 {
			p := d.piece(w, d.alongK(uint64(first+row), uint64(n)))
			e.decodeBytes(line[n*k/2:], p)
		}
	}
}

// gatherAcross does the same of an MN-major matrix of elements of 16 bits.
func (d *descriptor) gatherAcross(w *warp, e element, to []float64, first, rows, k int) {
	var column [8]float64
	for n := range rows / 8 {
		block := to[n*8*k:][:8*k]
		for l := range k {
			e.decodeBytes(column[:], d.piece(w, d.alongMN(uint64(l), uint64(first/8+n))))
			for i, v := range column {
				block[i*k+l] = v
			}
		}
	}
}

// decodeBytes takes a piece apart.
func (e element) decodeBytes(to []float64, from []byte) {
	for i := 0; i < piece; i += 4 {
		e.decode(to[i/4*e.count:], uint64(binary.LittleEndian.Uint32(from[i:])))
	}
}
