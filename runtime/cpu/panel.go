package cpu

import "github.com/fusec/fusec/ir"

// A panel holds the tiles of a read over a whole pass. It is used if lanes run along a row
// range, and the next jobs, which differ only in the innermost other row range, read the same
// elements. So the second operand of a product is gathered and converted once for many rows of
// the first.

// panelBytes bounds one panel; tiles are shortened to shortestPanel lanes for it.
const (
	panelBytes    = 1 << 20
	shortestPanel = 64
	fewestRows    = 4
)

// panel is the memory of one such read in a worker.
type panel struct {
	data  []float32
	group []int64 // by step: the group of jobs whose tile is there, 0 for none
}

// stridedTile is the most lanes if an access along them is strided. The lines that one tile
// touches then stay in the cache for the neighbouring rows, which use the rest of each line,
// even if strides that are powers of two map them to few sets.
const stridedTile = 256

// shorten shortens tiles of rows for strided accesses.
func (g *gen) shorten(s *survey) {
	for _, a := range s.accesses {
		if stride, ok := g.stride(a.offset); g.vecRow && ok && stride > 1 {
			g.tile = min(g.tile, stridedTile)
		}
	}
}

// planPanels finds the row range that panels are shared along, and shortens the
// tiles so that the panel of a strided read fits.
func (g *gen) planPanels(k *ir.Kernel, s *survey) {
	if !g.vecRow || len(k.Cols) == 0 {
		return
	}
	for _, r := range k.Rows {
		if r != g.vec && g.extent[r] > 1 {
			g.shared = r
		}
	}
	if g.shared == nil || g.extent[g.shared] < fewestRows {
		g.shared = nil
		return
	}
	for _, a := range s.accesses {
		stride, ok := g.stride(a.offset)
		costly := !a.store && (!ok || stride != 0 && stride != 1)
		if costly && !g.dependsOn(a.offset, g.shared) {
			g.tile = min(g.tile, max(shortestPanel, panelBytes/4/max(g.steps, 1)))
		}
	}
}

// dependsOn reports whether r occurs in e.
func (g *gen) dependsOn(e *ir.Expr, r *ir.Range) bool {
	found := false
	ir.WalkThrough(func(e *ir.Expr) bool {
		found = found || e.Op == ir.OpRange && e.Range == r || e.Op == ir.OpLocal && e.Local.Def == nil
		return !found
	}, e)
	return found
}

// panels reports whether a read of e goes through a panel.
func (g *gen) panels(e *ir.Expr) bool {
	return g.shared != nil && g.passes && g.dep(e).stage == stageStep && e.Guard == nil &&
		classOf(e.Type) == classF32 && g.steps*g.tile*4 <= panelBytes && !g.dependsOn(e.Args[0], g.shared)
}

// readPanel compiles a read of a tile at first, first+stride, ... through a panel.
func (g *gen) readPanel(e *ir.Expr, stride int64) operand {
	arg, t, tile := e.Arg.Index, e.Arg.Type, g.tile
	scratch := g.newReg(classInt, true, stageStep)
	g.pin(scratch)
	k := g.panelCount
	g.panelCount++
	return g.emitView(classF32, stageStep, func(w *worker, i *instr) {
		p := w.panel(k, g.steps, tile)
		dst := p.data[w.step*tile:][:w.n]
		w.f32[i.dst.reg] = dst
		if p.group[w.step] == w.group {
			return
		}
		p.group[w.step] = w.group
		if first := w.si[i.src[0].reg]; stride == 1 {
			runOf(&moveF32, dst, w.bufs[arg], t, first, 0)
		} else {
			at := ints(w, scratch.reg)
			iota64(at, first, stride)
			gatherF32(dst, t, w.bufs[arg], at, 0)
		}
	}, g.first(e.Args[0]))
}

// panel returns the worker's k-th panel, made at its first use.
func (w *worker) panel(k int, steps, tile int64) *panel {
	for len(w.panels) <= k {
		w.panels = append(w.panels, panel{})
	}
	if p := &w.panels[k]; p.data == nil {
		p.data, p.group = make([]float32, steps*tile), make([]int64, steps)
	}
	return &w.panels[k]
}
