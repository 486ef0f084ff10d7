package cpu

import "github.com/fusec/fusec/ir"

// A scan is a fold whose running value is read at every column. Where lanes run
// along the columns, one scalar is carried from tile to tile; where they run along
// a row range, every lane has a running value of its own. Passes with scans are
// not split: each step needs the one before it.

// hasScans reports whether a section of the variant scans.
func hasScans(v *ir.Variant) bool {
	for _, s := range v.Sections {
		if len(s.Scans()) > 0 {
			return true
		}
	}
	return false
}

// isScan reports whether l is the result of a scan: no other local of full level
// lacks a definition, but for those that move with a streamed fold.
func (g *gen) isScan(l *ir.Local) bool {
	_, moves := g.moving[l]
	return l.Def == nil && l.Level == ir.FullLevel && !moves
}

// scan compiles one step of a scan; its result is a tile.
func (g *gen) scan(f *fold, src *ir.Fold, reverse bool) {
	in := intake{f: f, when: g.intConst(1)}
	switch {
	case src.Where == nil:
	case !g.dep(src.Where).vec:
		in.when = g.value(src.Where)
	default:
		in.u = g.guard(src.Where)
		g.pin(in.u.mask)
	}
	p := scanStep{intake: in, exclusive: src.Prefix == ir.Exclusive, reverse: reverse}
	switch f.class {
	case classF32:
		f.finished = scanTile(g, p, src, f32s, &opsF32)
	case classF64:
		f.finished = scanTile(g, p, src, f64s, &opsF64)
	default:
		f.finished = scanTile(g, p, src, ints, &opsI64)
	}
}

// scanStep is what a step of a scan depends on besides its body.
type scanStep struct {
	intake
	exclusive, reverse bool
}

func scanTile[T element](g *gen, p scanStep, src *ir.Fold, at bank[T], table *opTable[T]) operand {
	f := p.f
	scratch := g.newReg(f.class, true, stageStep)
	g.pin(scratch)
	combine, _ := tileFold(table, f.op)
	ident := identity[T](f)
	return g.emit(f.class, true, stageStep, func(w *worker, i *instr) {
		out := at(w, i.dst.reg)
		tile := terms(w, p, at(w, scratch.reg), at(w, i.src[0].reg), ident)
		switch {
		case f.acc.vec && p.exclusive:
			acc := at(w, f.acc.reg)
			copy(at(w, scratch.reg), tile) // out may be where the body is
			copy(out, acc)
			combine(acc, acc, at(w, scratch.reg))
		case f.acc.vec:
			acc := at(w, f.acc.reg)
			combine(acc, acc, tile)
			copy(out, acc)
		case f.class == classInt:
			prefix(p, out, tile, &w.si[f.acc.reg], combineInts(f.op))
		default:
			prefix(p, out, tile, &w.sf[f.acc.reg], combineFloats(f.op))
		}
	}, g.vector(src.Body))
}

// terms is the body's tile with the identity in lanes that do not take part.
func terms[T element](w *worker, p scanStep, scratch, tile []T, ident T) []T {
	switch {
	case w.si[p.when.reg] == 0:
		fill(scratch, ident)
	case p.u.kind == onLanes:
		lo, hi := p.u.lanes.clamp(w)
		fill(scratch, ident)
		copy(scratch[lo:hi], tile[lo:hi])
	case p.u.kind == onMask:
		masked(scratch, tile, ints(w, p.u.mask.reg), ident)
	default:
		return tile
	}
	return scratch
}

// combineFloats is how float64 values of a fold are combined.
func combineFloats(m ir.Monoid) func(a, b float64) float64 {
	if m == ir.Sum {
		return func(a, b float64) float64 { return a + b }
	}
	combine := m.Info().Combine.Info().Float
	return func(a, b float64) float64 { return combine(a, b, 0) }
}

func combineInts(m ir.Monoid) func(a, b int64) int64 {
	combine := m.Info().Combine.Info().Int
	return func(a, b int64) int64 { return combine(a, b, 0) }
}

// prefix scans a tile of neighbouring columns in the direction of the scan, with the
// value of the columns before it in carried.
func prefix[T element, C float64 | int64](p scanStep, out, tile []T, carried *C, combine func(a, b C) C) {
	acc := *carried
	step := func(k int) {
		old := acc
		acc = combine(acc, C(tile[k]))
		if p.exclusive {
			out[k] = T(old)
		} else {
			out[k] = T(acc)
		}
	}
	if p.reverse {
		for k := len(tile) - 1; k >= 0; k-- {
			step(k)
		}
	} else {
		for k := range tile {
			step(k)
		}
	}
	*carried = acc
}
