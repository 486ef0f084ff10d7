package cpu

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fusec/fusec/ir"
)

// tileLanes is how many elements a register holds: a dozen registers of f32 fit
// in the first-level cache.
const tileLanes = 1024

// keepBytes bounds the part of a persistent row between sections.
const keepBytes = 512 << 10

// axis is one loop.
type axis struct {
	slot   int
	extent int64
}

// code is one kernel at known sizes, ready to run. It is not changed by a run
// and may be shared by goroutines.
type code struct {
	name        string
	bufs        []int // position in Plan.Buffers of each argument
	slots       int
	rows        []axis // the loops of a job, outermost first, without the lanes' range
	cols        []axis // the loops of a pass, likewise
	lane        axis   // the range that lanes run along
	vecRow      bool   // it is a row range
	block       int64  // tiles cross no multiple of it; the whole extent where they may
	tile        int64
	items       int64 // jobs
	steps       int64 // of a pass
	chunk       int64 // steps of one part of a pass; steps where it is not split
	regs        [numClasses]int
	constF      []float64 // initial scalar registers
	constI      []int64
	kept        []class
	accumulated []axis // the last row ranges where results are folded over them: loops of a job
	inside      operand
	guarded     bool
	running     []running
	places      []axis    // of a scatter: the rows that have a list each
	idle        sync.Pool // of *worker
	panelCount  int
	perGroup    int64 // jobs that share panels
	job         []instr
	sections    []*section
	folds       []*fold
	passes      bool // the section being compiled passes over the columns
	nowKept     []*ir.Local
	pinned      map[pinnedReg]bool
	used        [numClasses][]bool // tile registers that need memory
}

type pinnedReg struct {
	class class
	reg   int
}

// section is a compiled step of a job.
type section struct {
	pass     bool
	reverse  bool // from the last step to the first
	folds    []*fold
	prologue []instr
	body     []instr
}

// lowerVariant compiles a kernel for the given sizes with the body v. Where lists is not
// nil, each row folds the columns of its list only: lanes run along rows that share one.
func lowerVariant(k *ir.Kernel, v *ir.Variant, symbols map[string]int64, lists *ir.Scatter) (*code, error) {
	if k.Template == ir.AttendTemplate || v.Contract != nil && v.Contract.Product != nil {
		return nil, fmt.Errorf("kernel %s: the CPU engine does not run kernels of the %s template: plan for a device without tensor cores", k.Name, k.Template)
	}
	g, err := newGen(k, symbols)
	if err != nil {
		return nil, err
	}
	g.scatter = lists
	v = g.asStores(k, v)
	if lists == nil {
		g.coalesce(k.Rows[:len(k.Rows)-len(k.Accumulated)], v)
		g.coalesce(k.Cols, v)
	} else {
		g.coalesce(lists.Lanes(k.Rows), v)
	}
	g.chooseLanes(k, v)
	g.loops(k, v)
	g.compile(k, v)
	g.allocate()
	return g.code, nil
}

// newGen starts the compilation of a kernel for the given sizes.
func newGen(k *ir.Kernel, symbols map[string]int64) (*gen, error) {
	g := &gen{code: &code{name: k.Name, pinned: map[pinnedReg]bool{}}, symbols: symbols,
		strict: k.Numerics == ir.Strict, slot: map[*ir.Range]int{}, extent: map[*ir.Range]int64{},
		isCol: map[*ir.Range]bool{}, job: map[node]operand{}, folds: map[*ir.Local]*fold{},
		moving: map[*ir.Local]operand{},
		keep:   map[*ir.Local]int{}, saved: map[*ir.Local]bool{}}
	if err := g.ranges(k); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	for _, a := range k.Args {
		g.bufs = append(g.bufs, a.Buffer.Index)
	}
	return g, nil
}

// variant returns the first variant that takes the sizes.
func variant(k *ir.Kernel, symbols map[string]int64) (*ir.Variant, error) {
	for _, v := range k.Variants {
		if v.When == nil {
			return v, nil
		}
		if yes, ok := ir.EvalSize(v.When, symbols); ok && yes != 0 {
			return v, nil
		}
	}
	return nil, fmt.Errorf("no variant takes the sizes %v", symbols)
}

// extents lists the extents of a kernel's ranges.
func (g *gen) extents(k *ir.Kernel) string {
	var out []string
	for _, r := range slices.Concat(k.Rows, k.Cols) {
		out = append(out, fmt.Sprintf("%s=%d", r.Name, g.extent[r]))
	}
	return strings.Join(out, " ")
}

// maxPoints is the most points of a kernel. More would take weeks, and tiles are counted in 64
// bits.
const maxPoints = 1 << 52

func (g *gen) ranges(k *ir.Kernel) error {
	points := int64(1)
	for _, r := range append(append([]*ir.Range(nil), k.Rows...), k.Cols...) {
		n, ok := ir.EvalSize(r.Extent, g.symbols)
		if !ok || n < 0 {
			return fmt.Errorf("range %s has the extent %d, expected 0 to 2^63-1", r.Name, n)
		}
		g.slot[r], g.extent[r] = g.slots, n
		g.slots++
		points = times(points, max(n, 1))
	}
	if points > maxPoints {
		return fmt.Errorf("its ranges multiply to more points than can be computed: expected at most 2^52, found extents %s",
			g.extents(k))
	}
	for _, r := range k.Cols {
		g.isCol[r] = true
	}
	return nil
}

// loops lays out jobs and passes around the lanes.
func (g *gen) loops(k *ir.Kernel, v *ir.Variant) {
	s := surveyOf(v)
	g.items, g.steps, g.perGroup = 1, 1, 1
	for _, r := range k.Accumulated {
		g.accumulated = append(g.accumulated, axis{g.slot[r], g.extent[r]})
	}
	for _, r := range k.Rows[:len(k.Rows)-len(k.Accumulated)] {
		if r != g.vec {
			g.rows = append(g.rows, axis{g.slot[r], g.extent[r]})
			g.items *= g.extent[r]
		}
	}
	for _, r := range k.Cols {
		if r != g.vec {
			g.cols = append(g.cols, axis{g.slot[r], g.extent[r]})
			g.steps *= g.extent[r]
		}
	}
	g.lane = axis{g.slots, 1}
	if g.vec != nil {
		g.lane = axis{g.slot[g.vec], g.extent[g.vec]}
	} else {
		g.slots++
	}
	g.tile = min(tileLanes, max(g.lane.extent, 1))
	if g.block == 0 {
		g.block = max(g.lane.extent, 1)
	}
	g.tile = min(g.tile, g.block)
	g.shorten(s)
	if len(k.Accumulated) == 0 && g.scatter == nil {
		g.planPanels(k, s)
	}
	if g.vecRow {
		g.items *= g.tiles()
	} else {
		g.steps *= g.tiles()
	}
	if g.shared != nil {
		g.perGroup = g.extent[g.shared]
	}
	g.chunk = g.chunkSteps(len(k.Cols) > 0 && len(k.Accumulated) == 0 && g.scatter == nil && !hasScans(v))
	if g.scatter != nil {
		for _, r := range append(slices.Clone(g.scatter.Batch), g.scatter.To) {
			g.places = append(g.places, axis{g.slot[r], g.extent[r]})
		}
	}
}

// blockTiles is the number of tiles of a whole block.
func (c *code) blockTiles() int64 { return (c.block + c.tile - 1) / c.tile }

// tiles is the number of tiles of the lanes' range.
func (c *code) tiles() int64 {
	return c.lane.extent/c.block*c.blockTiles() + (c.lane.extent%c.block+c.tile-1)/c.tile
}

// seekTile moves the lanes to a tile.
func (c *code) seekTile(w *worker, n int64) {
	first, per := n*c.tile, c.blockTiles()
	end := c.lane.extent
	if c.block < end {
		start := n / per * c.block
		first, end = start+n%per*c.tile, min(end, start+c.block)
	}
	w.at[c.lane.slot] = first
	w.n = int(min(c.tile, end-first))
}

// enoughItems is the least jobs of which none is split.
const enoughItems = 64

// chunkSteps splits long passes of few jobs into parts whose results are merged
// in order. The split depends on sizes only, never on the machine.
func (g *gen) chunkSteps(passes bool) int64 {
	const chunkElements, maxChunks = 1 << 16, 256
	size := max(1, chunkElements/g.tile, (g.steps+maxChunks-1)/maxChunks)
	if !passes || g.items >= enoughItems || g.steps < 2*size {
		return max(g.steps, 1)
	}
	return size
}

func (g *gen) compile(k *ir.Kernel, v *ir.Variant) {
	for _, s := range v.Sections {
		for _, f := range s.Folds {
			if g.folds[f.Result] == nil { // a scan may be in several sections
				g.folds[f.Result] = g.newFold(f, len(g.code.folds))
				g.code.folds = append(g.code.folds, g.folds[f.Result])
			}
		}
	}
	g.planKeep(v)
	g.guardAccumulated(k)
	for _, s := range v.Sections {
		out := &section{pass: s.Level == ir.FullLevel && len(k.Cols) > 0, reverse: s.Reverse}
		g.passes = out.pass || s.Level == ir.FullLevel
		g.beginSection(out)
		for _, f := range s.Folds {
			out.folds = append(out.folds, g.folds[f.Result])
			if f.Prefix != ir.WholeRow {
				g.scan(g.folds[f.Result], f, s.Reverse)
				continue
			}
			g.fold(g.folds[f.Result], f)
		}
		for _, st := range s.Stores {
			g.store(st)
		}
		for _, l := range g.nowKept {
			g.saved[l] = true
		}
		g.nowKept = nil
		g.sections = append(g.sections, out)
	}
}

// planKeep decides which of the variant's kept locals stay on chip here: only
// where lanes run along the columns of one unsplit row that is short enough.
func (g *gen) planKeep(v *ir.Variant) {
	if g.vecRow || g.chunk < g.steps || len(v.Sections) < 2 {
		return
	}
	budget := int64(keepBytes)
	for _, l := range v.Keep {
		size := int64(8)
		if classOf(l.Type) == classF32 {
			size = 4
		}
		if budget -= size * g.steps * g.tile; budget < 0 {
			return
		}
		g.keep[l] = len(g.kept)
		g.kept = append(g.kept, classOf(l.Type))
	}
}

// save copies a tile to its place in the row.
func (g *gen) save(k int, o operand) {
	tile := g.tile
	switch o.class {
	case classF32:
		g.effect(func(w *worker, i *instr) { copy(w.keep32[k][w.step*tile:], f32s(w, i.src[0].reg)) }, o)
	case classF64:
		g.effect(func(w *worker, i *instr) { copy(w.keep64[k][w.step*tile:], f64s(w, i.src[0].reg)) }, o)
	default:
		g.effect(func(w *worker, i *instr) { copy(w.keepI[k][w.step*tile:], ints(w, i.src[0].reg)) }, o)
	}
}

// restore points a register at a saved tile.
func (g *gen) restore(k int, c class) operand {
	tile := g.tile
	run := func(w *worker, i *instr) { w.i64[i.dst.reg] = w.keepI[k][w.step*tile : (w.step+1)*tile] }
	switch c {
	case classF32:
		run = func(w *worker, i *instr) { w.f32[i.dst.reg] = w.keep32[k][w.step*tile : (w.step+1)*tile] }
	case classF64:
		run = func(w *worker, i *instr) { w.f64[i.dst.reg] = w.keep64[k][w.step*tile : (w.step+1)*tile] }
	}
	return g.emitView(c, stageStep, run, g.intConst(0))
}

// pin keeps registers that instructions name other than as source or result.
func (g *gen) pin(list ...operand) {
	for _, o := range list {
		if o.vec {
			g.pinned[pinnedReg{o.class, o.reg}] = true
		}
	}
}
