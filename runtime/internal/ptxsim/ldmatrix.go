package ptxsim

import (
	"encoding/binary"
	"slices"
)

// A matrixMove is ldmatrix, stmatrix or movmatrix: matrices of 8 by 8 elements of 16 bits,
// whose rows are 16 bytes. Lane l holds the neighbours 2*(l%4) and 2*(l%4)+1 of row l/4;
// transposed, of column l/4.
type matrixMove struct {
	regs       []int // one a matrix
	transposed bool
	in         space
	base       int
	offset     uint64
}

// matrixMoveOf reads op.sync.aligned.m8n8.num{.trans}{.shared}.b16.
func matrixMoveOf(b *builder, s *statement, addr, data operand) *matrixMove {
	mods := s.Mods
	if len(mods) < 5 || !slices.Equal(mods[:3], []string{"sync", "aligned", "m8n8"}) || s.last() != "b16" ||
		addr.kind != addrOperand {
		return nil
	}
	count := slices.Index([]string{"x1", "x2", "", "x4"}, mods[3]) + 1
	mods = mods[4 : len(mods)-1]
	x := &matrixMove{in: spaceOf(s), base: b.use(*addr.base), offset: addr.bits}
	if len(mods) > 0 && mods[0] == "trans" {
		x.transposed = true
		mods = mods[1:]
	}
	if count == 0 || len(mods) > 1 || len(mods) == 1 && mods[0] != "shared" && mods[0] != "shared::cta" {
		return nil
	}
	x.regs = b.vector(s, data, count)
	return x
}

// loadMatrixFamily: ldmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 r, [p].
func loadMatrixFamily(b *builder, s *statement) exec {
	if len(s.Args) != 2 {
		return nil
	}
	x := matrixMoveOf(b, s, s.Args[1], s.Args[0])
	if x == nil {
		return nil
	}
	return x.load
}

// storeMatrixFamily: stmatrix.sync.aligned.m8n8.num{.trans}{.shared}.b16 [p], r.
func storeMatrixFamily(b *builder, s *statement) exec {
	if len(s.Args) != 2 {
		return nil
	}
	x := matrixMoveOf(b, s, s.Args[0], s.Args[1])
	if x == nil {
		return nil
	}
	return x.store
}

// rows are the rows of all matrices: lane l gives the address of row l%8 of matrix l/8,
// as far as there are so many matrices.
func (x *matrixMove) rows(w *warp) (rows [warpSize][]byte) {
	const size = 16
	for lane := range 8 * len(x.regs) {
		addr := w.regs[x.base][lane] + x.offset
		if x.in == generic && addr&windowMask != sharedWindow {
			panic(w.fault(lane, "%#x is not an address of shared memory, where matrices are", addr))
		}
		rows[lane] = w.bytes(lane, x.in, addr, size, size)
	}
	return rows
}

// places are where a lane's two elements are: the row and its byte.
func (x *matrixMove) places(lane int) (row0, byte0, row1, byte1 int) {
	g, t := lane/4, lane%4
	if x.transposed {
		return 2 * t, 2 * g, 2*t + 1, 2 * g
	}
	return g, 4 * t, g, 4*t + 2
}

func (x *matrixMove) load(w *warp, mask uint32) {
	w.whole(mask)
	rows := x.rows(w)
	if r := w.cta.cluster.races; r != nil {
		r.readRows(w, x)
	}
	for lane := range warpSize {
		row0, byte0, row1, byte1 := x.places(lane)
		for i, r := range x.regs {
			low := binary.LittleEndian.Uint16(rows[8*i+row0][byte0:])
			high := binary.LittleEndian.Uint16(rows[8*i+row1][byte1:])
			w.regs[r][lane] = uint64(low) | uint64(high)<<16
		}
	}
}

func (x *matrixMove) store(w *warp, mask uint32) {
	w.whole(mask)
	w.cta.cluster.launch.events++
	rows := x.rows(w)
	if r := w.cta.cluster.races; r != nil {
		defer r.writeRows(w, x, rows)()
	}
	for lane := range warpSize {
		row0, byte0, row1, byte1 := x.places(lane)
		for i, r := range x.regs {
			v := w.regs[r][lane]
			binary.LittleEndian.PutUint16(rows[8*i+row0][byte0:], uint16(v))
			binary.LittleEndian.PutUint16(rows[8*i+row1][byte1:], uint16(v>>16))
		}
	}
}

// moveMatrixFamily: movmatrix.sync.aligned.m8n8.trans.b16 d, a: a matrix across the warp.
func moveMatrixFamily(b *builder, s *statement) exec {
	if len(s.Args) != 2 || !slices.Equal(s.Mods, []string{"sync", "aligned", "m8n8", "trans", "b16"}) {
		return nil
	}
	d, a := b.use(s.Args[0]), b.use(s.Args[1])
	return func(w *warp, mask uint32) {
		w.whole(mask)
		from := w.regs[a]
		for lane := range warpSize {
			// Elements (2t, g) and (2t+1, g), which lanes of groups 2t and 2t+1 hold.
			g, t := lane/4, lane%4
			shift := g % 2 * 16
			low, high := from[8*t+g/2]>>shift&0xffff, from[8*t+4+g/2]>>shift&0xffff
			w.regs[d][lane] = low | high<<16
		}
	}
}
