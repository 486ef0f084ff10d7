package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// batch writes a pointwise kernel whose threads compute ITEMS vectors each, a block's width apart. It
// first issues all reads that depend on no other read, then those whose indices the first ones have
// read, and so on. The arithmetic and the stores follow. So all reads of one step are in flight
// together.
func (e *pointEmitter) batch() {
	var all []*ir.Local
	for _, sec := range e.v.Sections {
		all = append(all, e.wants(ir.RowLevel, func(l *ir.Local) bool { return slices.Contains(all, l) }, sectionRoots(sec)...)...)
	}
	for depth := 1; ; depth++ {
		var reads []*ir.Local
		for _, l := range all {
			if readOf(l.Def) != nil && readDepth(l.Def) == depth {
				reads = append(reads, l)
			}
		}
		if len(reads) == 0 {
			break
		}
		e.batchReads(reads)
	}
	e.eachItem(func() {
		for _, sec := range e.v.Sections {
			e.rowValues(sectionRoots(sec))
			e.flatStores(sec, nil, nil)
		}
	})
}

// eachItem writes a loop over the thread's vectors with their coordinates.
func (e *pointEmitter) eachItem(body func()) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.line("const INDEX t = ((INDEX)blockIdx.x * ITEMS + u) * THREADS + threadIdx.x;")
	e.flatPoint("continue", true)
	body()
	e.close()
}

// batchReads issues reads for all of the thread's vectors. The results keep their storage type.
func (e *pointEmitter) batchReads(reads []*ir.Local) {
	for _, l := range reads {
		if e.perLane(l) {
			e.line("Vec<%s, VECTOR> %s[ITEMS];", spell.StorageType(readOf(l.Def).Type), e.raw(l, "[u].v[v]"))
		} else {
			e.line("%s %s[ITEMS];", spell.StorageType(readOf(l.Def).Type), e.raw(l, "[u]"))
		}
		e.done[l] = true
	}
	e.eachItem(func() {
		have := func(l *ir.Local) bool { return e.done[l] }
		for _, l := range e.wants(ir.RowLevel, have, definitions(reads)...) {
			if e.perLane(l) {
				e.laneValues([]*ir.Local{l})
			} else {
				e.constant(l)
			}
		}
		for _, l := range reads {
			e.batchRead(l)
		}
	})
}

func (e *pointEmitter) batchRead(l *ir.Local) {
	r, name := readOf(l.Def), e.rawName[l]
	switch {
	case l.Wide:
		e.atFirst(func() { e.noted(l.Span, "%s", e.gathered(name+"[u]", r)) })
	case e.perLane(l):
		e.flatLanes(true, func() { e.noted(l.Span, "%s[u].v[v] = %s;", name, e.read(r)) })
	default:
		e.noted(l.Span, "%s[u] = %s;", name, e.read(r))
	}
}

func batchDefines(v *ir.Variant) string { return fmt.Sprintf("#define ITEMS %d\n", v.Schedule.Unroll) }
