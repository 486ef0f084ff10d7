package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// batched reports whether a thread of a pointwise kernel works on ITEMS vectors.
func (e *emitter) batched() bool { return len(e.k.Cols) == 0 && e.v.Schedule.Unroll > 1 }

// batch writes a pointwise kernel whose threads work on ITEMS vectors each, a block's
// width apart: first all reads that need no other, then those whose places they
// give, and so on; then the arithmetic and the stores. So all reads of one kind are
// under way together.
func (e *emitter) batch() {
	var all []*ir.Local
	for _, sec := range e.v.Sections {
		all = append(all, e.wants(ir.RowLevel, func(l *ir.Local) bool { return contains(all, l) }, sectionRoots(sec)...)...)
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

func contains(locals []*ir.Local, l *ir.Local) bool {
	for _, other := range locals {
		if other == l {
			return true
		}
	}
	return false
}

// readDepth is the length of the longest chain of reads, each giving the place of
// the next, that an expression needs.
func readDepth(x *ir.Expr) int {
	depth, own := 0, 0
	ir.Walk(x, func(x *ir.Expr) bool {
		switch {
		case x.Op == ir.OpLocal && x.Local.Def != nil:
			depth = max(depth, readDepth(x.Local.Def))
		case x.Op == ir.OpRead:
			own = 1
		}
		return true
	})
	return depth + own
}

// eachItem writes a loop over the thread's vectors with their coordinates.
func (e *emitter) eachItem(body func()) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < ITEMS; ++u)")
	e.line("const INDEX t = ((INDEX)blockIdx.x * ITEMS + u) * THREADS + threadIdx.x;")
	e.flatPoint("continue")
	body()
	e.close()
}

// batchReads issues reads for all of the thread's vectors; what they hold stays in
// its storage type.
func (e *emitter) batchReads(reads []*ir.Local) {
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

func (e *emitter) batchRead(l *ir.Local) {
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

// gathered writes a read of all lanes at once, in words where it is of narrow elements that
// may be outside.
func (e *emitter) gathered(to string, r *ir.Expr) string {
	guard := e.given(r.Guard)
	if guard == nil || !e.inWords(r) || !e.wholeLanes() || e.fresh[r.Arg] || e.replaced[r] != "" {
		return fmt.Sprintf("%s = %s;", to, e.wide(r))
	}
	inside, offset := e.access(r, guard, e.wideOffset(r.Args[0]))
	return fmt.Sprintf("load_where(%s, %s, %s + %s, %s);", to, inside, e.args[r.Arg], offset, spell.Literal(r.Fill))
}

// inWords reports whether the kernel chooses in words between what is read and what
// stands for it outside.
func (e *emitter) inWords(r *ir.Expr) bool {
	return e.of.inWords && inWords(e.v, r)
}

func inWords(v *ir.Variant, r *ir.Expr) bool {
	size := r.Type.Size()
	return r.Guard != nil && size < 4 && size*v.Schedule.Vector%4 == 0
}

// pointwisePreludes are for kernels that have such a read.
func pointwisePreludes(_ *ir.Kernel, v *ir.Variant) string {
	gathers := func(l *ir.Local) bool {
		r := readOf(l.Def)
		return l.Wide && r != nil && inWords(v, r)
	}
	if slices.ContainsFunc(v.Locals, gathers) {
		return skeleton.Text("gather")
	}
	return ""
}

// pointwiseBlocks is the number of blocks whose threads have a vector each, or Unroll of them.
func pointwiseBlocks(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	return ceilDiv(laneVectors(k, v), int64(v.Schedule.Threads*max(1, v.Schedule.Unroll)))
}

func batchDefines(v *ir.Variant) string { return fmt.Sprintf("#define ITEMS %d\n", v.Schedule.Unroll) }
