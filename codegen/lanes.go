package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// laneEmitter writes the work of threads that each have VECTOR neighbours of the innermost range, the
// lanes: of rows in pointwise and column strategies and in scatters, of results in products.
type laneEmitter struct {
	*emitter
	allLanes bool                 // the current vector is inside
	stays    bool                 // threads whose lanes are outside keep running, because barriers wait for them
	laneAt   map[*ir.Range]string // the coordinates of each lane, if they do not follow from those of the first by counting
}

// gathered writes a read of all lanes at once. If it reads narrow elements that may be outside,
// it chooses between whole words.
func (e *laneEmitter) gathered(to string, r *ir.Expr) string {
	guard := e.given(r.Guard)
	if guard == nil || !e.inWords(r) || !e.wholeLanes() || e.fresh[r.Arg] || e.replaced[r] != "" {
		return fmt.Sprintf("%s = %s;", to, e.wide(r))
	}
	inside, offset := e.access(r, guard, e.wideOffset(r.Args[0]))
	return fmt.Sprintf("load_where(%s, %s, %s + %s, %s);", to, inside, e.args[r.Arg], offset, spell.Literal(r.Fill))
}

// inWords reports whether the kernel chooses between what is read and its replacement outside in
// whole words.
func (e *laneEmitter) inWords(r *ir.Expr) bool {
	return e.choosesInWords && inWords(e.v, r)
}

func inWords(v *ir.Variant, r *ir.Expr) bool {
	size := r.Type.Size()
	return r.Guard != nil && size < 4 && size*v.Schedule.Vector%4 == 0
}

// flatLanes writes a loop over the lanes. If the body only computes, lanes outside the tensors compute
// too: that costs nothing, while a branch around each lane would keep the compiler from mixing their
// instructions. With guarded, the body accesses memory, and lanes outside are skipped.
func (e *laneEmitter) flatLanes(guarded bool, body func()) {
	if e.lane == nil {
		e.line("[[maybe_unused]] constexpr int v = 0;")
		body()
		return
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	if guarded && !e.wholeLanes() {
		e.line("if (v >= n) continue;")
	}
	if e.acrossRows {
		e.laneCoordinates()
	} else {
		e.line("[[maybe_unused]] const INDEX %s = first + v;", e.ranges[e.lane])
	}
	body()
	e.close()
}

// atFirst writes text for the coordinates of the first lane.
func (e *laneEmitter) atFirst(body func()) {
	if e.acrossRows { // the offsets of vectors are written over their first points
		body()
		return
	}
	saved := e.ranges[e.lane]
	e.ranges[e.lane] = "first"
	body()
	e.ranges[e.lane] = saved
}

// rowValues writes the row-level locals the roots need: reads first.
func (e *laneEmitter) rowValues(roots []*ir.Expr) {
	have := func(l *ir.Local) bool { return e.done[l] }
	var lanes []*ir.Local
	for _, l := range e.wants(ir.RowLevel, have, roots...) {
		e.done[l] = true
		if e.perLane(l) {
			lanes = append(lanes, l)
		} else {
			e.scalar(l)
		}
	}
	e.laneValues(lanes)
}

// laneValues writes locals that differ between lanes, as [VECTOR] arrays: wide
// reads, then the rest in one loop.
func (e *laneEmitter) laneValues(locals []*ir.Local) {
	var rest []*ir.Local
	for _, l := range readsFirst(locals) {
		if l.Wide {
			name := e.raw(l, ".v[v]")
			if r := readOf(l.Def); r != nil && e.inWords(r) {
				e.line("Vec<%s, VECTOR> %s;", spell.StorageType(r.Type), name)
				e.atFirst(func() { e.noted(l.Span, "%s", e.gathered(name, r)) })
				continue
			}
			e.atFirst(func() {
				e.noted(l.Span, "const auto %s = %s;", name, e.lanesOf(l))
			})
			continue
		}
		name := e.name(l)
		e.place[l] = name + "[v]"
		e.line("%s %s[VECTOR];", e.typeOf(l), name)
		rest = append(rest, l)
	}
	if len(rest) == 0 {
		return
	}
	e.flatLanes(readsMemory(definitions(rest)...), func() {
		for _, l := range rest {
			e.noted(l.Span, "%s = %s;", e.place[l], e.s.Bare(l.Def))
		}
	})
}

// readsFirst moves reads from memory before random bits, whose arithmetic then overlaps with the reads.
func readsFirst(locals []*ir.Local) []*ir.Local {
	var reads, rest []*ir.Local
	for _, l := range locals {
		if l.Wide && readOf(l.Def) != nil {
			reads = append(reads, l)
		} else {
			rest = append(rest, l)
		}
	}
	return append(reads, rest...)
}

// touchesMemory reports whether a section reads memory in place or stores single
// elements.
func touchesMemory(sec *ir.Section) bool {
	return slices.ContainsFunc(sec.Stores, func(st *ir.Store) bool { return !st.Wide }) || readsMemory(sectionRoots(sec)...)
}

// flatStores writes a section's stores. before runs first in the loop over lanes, which has the
// given locals. Values that are only moved are stored as they were read.
func (e *laneEmitter) flatStores(sec *ir.Section, locals []*ir.Local, before func()) {
	vectors := map[*ir.Store]string{}
	computed := before != nil
	for _, st := range sec.Stores {
		if vectors[st] = e.moves(st); vectors[st] == "" {
			computed = true
		}
	}
	if computed && len(sec.Stores) > 0 {
		e.flatValues(sec, locals, before, vectors)
	}
	for _, st := range sec.Stores {
		if st.Wide {
			e.atFirst(func() {
				e.wideStore(st, vectors[st])
			})
		}
	}
}

// flatValues computes the vectors that a section stores, except those that are only moved, and
// stores single elements.
func (e *laneEmitter) flatValues(sec *ir.Section, locals []*ir.Local, before func(), vectors map[*ir.Store]string) {
	outs := map[*ir.Store]string{}
	for _, st := range sec.Stores {
		if st.Wide && vectors[st] == "" {
			outs[st] = e.names.Fresh(st.Arg.Name + "_out")
			vectors[st] = outs[st]
			e.line("%s %s[VECTOR];", spell.ComputeType(st.Arg.Type), outs[st])
		}
	}
	e.flatLanes(touchesMemory(sec) || readsMemory(definitions(locals)...), func() {
		if before != nil {
			before()
		}
		for _, st := range sec.Stores {
			switch {
			case !st.Wide:
				e.scalarStore(st)
			case outs[st] != "":
				e.noted(st.Span, "%s[v] = %s;", outs[st], e.s.Bare(st.Value))
			}
		}
	})
}

// moves is the vector that a wide store of a pointwise kernel writes unchanged, although its type would
// be computed in another one; "" for values that are computed.
func (e *laneEmitter) moves(st *ir.Store) string {
	if !e.mayMove || !st.Wide || st.Value.Op != ir.OpLocal {
		return ""
	}
	l := st.Value.Local
	if r := readOf(l.Def); !l.Wide || r == nil || r.Type != st.Arg.Type || r.Type == r.Type.Info().Compute {
		return ""
	}
	return e.vectorIn[l]
}

// width is the number of lanes, as text.
func (e *laneEmitter) width() string {
	if e.lane == nil {
		return "1"
	}
	return "VECTOR"
}

// laneVectors is the number of vectors along the innermost range, over all rows that blocks divide.
func laneVectors(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	rows := dealt(k, v)
	if len(rows) == 0 {
		return ir.IntConst(1)
	}
	outer, lane := rows[:len(rows)-1], rows[len(rows)-1]
	return ir.Apply(ir.OpMul, product(extents(outer)), ceilDiv(lane.Extent, int64(v.Schedule.Vector)))
}

// wholeLanes reports whether the innermost range is a whole number of vectors, or the current vector is
// known to be whole.
func (e *laneEmitter) wholeLanes() bool {
	return e.allLanes || ir.Multiple(e.laneExtent(), int64(e.v.Schedule.Vector), e.v.Facts)
}

// vectorInside writes n, how many elements of a vector along a range are inside.
func (e *laneEmitter) vectorInside(first string, along *ir.Range) {
	if ir.Multiple(along.Extent, int64(e.v.Schedule.Vector), e.v.Facts) {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
		return
	}
	e.line("[[maybe_unused]] const int n = (int)min(%s - %s, (INDEX)VECTOR);", e.s.Expr(along.Extent), first)
}

// laneCoordinates writes the coordinates of lane v. In the lane's scope they hide the variables of the first
// point.
func (e *laneEmitter) laneCoordinates() {
	for _, r := range e.counted() {
		e.line("[[maybe_unused]] const INDEX %s = %s[v];", e.ranges[r], e.laneAt[r])
	}
}

// laneExtent is the number of points along which vectors run: those of the innermost range, or
// of all ranges together.
func (e *laneEmitter) laneExtent() *ir.Expr {
	if e.acrossRows {
		return product(extents(e.k.Rows))
	}
	return e.lane.Extent
}

// counted lists the row ranges from the outermost one whose coordinate each point needs.
func (e *laneEmitter) counted() []*ir.Range {
	var uses []*ir.Expr
	for _, l := range e.v.Locals {
		if !l.Wide {
			uses = append(uses, l.Def)
		}
	}
	for _, s := range e.v.Sections {
		for _, st := range s.Stores {
			uses = append(uses, st.Value, st.Guard)
			if !st.Wide {
				uses = append(uses, st.Offset)
			}
		}
	}
	used := e.used(uses)
	return e.k.Rows[max(0, slices.IndexFunc(e.k.Rows, func(r *ir.Range) bool { return used[r] })):]
}
