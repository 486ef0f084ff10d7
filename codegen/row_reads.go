package codegen

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// splitReads separates the reads whose places are known from the position alone:
// they are issued together, before anything is computed.
func (e *emitter) splitReads(full []*ir.Local) (reads, rest []*ir.Local) {
	for _, l := range full {
		if readOf(l.Def) != nil && !usesFull(l.Def) {
			reads = append(reads, l)
		} else {
			rest = append(rest, l)
		}
	}
	return reads, rest
}

// loadLoop issues the reads of all vectors in hand. What is read stays in its
// storage type, half the registers for the 16-bit floats, and is converted where
// it is used.
func (e *emitter) loadLoop(reads []*ir.Local) {
	if len(reads) == 0 {
		return
	}
	for _, l := range reads {
		e.line("Vec<%s, VECTOR> %s[ITEMS];", spell.StorageType(readOf(l.Def).Type), e.raw(l, "[u].v[v]"))
	}
	if e.stagedAmong(reads) && !e.chunked() {
		e.arrive()
	}
	e.openVectors()
	wide, narrow := splitWide(reads)
	if len(wide) > 0 {
		e.take(e.k.Cols, "c", e.wideUses(e.unstaged(wide))...)
		for _, l := range wide {
			if next, ok := e.staged[l]; ok {
				e.line("%s[u] = %s;", e.rawName[l], e.arrivedVector(next))
				continue
			}
			if rows, ok := e.inRows[l]; ok {
				e.line("%s[u] = load<VECTOR>(&%s, n);", e.rawName[l], rows)
				continue
			}
			e.noted(l.Span, "%s[u] = %s;", e.rawName[l], e.wide(readOf(l.Def)))
		}
	}
	if len(narrow) > 0 {
		e.lanes(definitions(narrow), func() {
			for _, l := range narrow {
				e.noted(l.Span, "%s[u].v[v] = %s;", e.rawName[l], e.read(readOf(l.Def)))
			}
		})
	}
	e.closeVectors()
	e.together(reads)
}

// together has the early reads issued with those that the first sweep waits for.
func (e *emitter) together(reads []*ir.Local) {
	isEarly := func(l *ir.Local) bool { return slices.Contains(e.v.Early, l) }
	first := slices.IndexFunc(reads, func(l *ir.Local) bool { return !isEarly(l) })
	if first < 0 {
		return
	}
	for _, l := range reads {
		if isEarly(l) {
			e.issued = append(e.issued, e.rawName[l])
		}
	}
	for _, name := range e.issued {
		e.line("together(%s, %s);", e.rawName[reads[first]], name)
	}
	e.issued = nil
}

// earlyRows issues what is read of the row itself ahead of the first sweep's columns.
func (e *emitter) earlyRows() {
	for _, l := range e.v.Early {
		if l.Level != ir.RowLevel || e.done[l] || e.stored[l] != "" {
			continue
		}
		r := readOf(l.Def)
		e.stored[l] = e.names.Fresh(l.Name)
		e.issued = append(e.issued, e.stored[l])
		e.noted(l.Span, "%s %s = %s;", spell.StorageType(r.Type), e.stored[l], e.read(r))
	}
}

// lookUps issues what later sections read of the row at places that are read themselves, as the score
// of a target, before the threads of the row exchange what they folded: both take their time at once.
func (e *emitter) lookUps(number int) {
	if e.ahead() || e.walking() {
		return
	}
	have := func(l *ir.Local) bool { return e.done[l] }
	for _, sec := range e.v.Sections[number+1:] {
		for _, l := range e.wants(ir.RowLevel, have, sectionRoots(sec)...) {
			if readOf(l.Def) != nil && readDepth(l.Def) > 1 && e.known(l.Def) {
				e.rowLocals(ir.LocalRef(l))
			}
		}
	}
}

// known reports whether an expression of the row needs no fold that is still to come.
func (e *emitter) known(x *ir.Expr) bool {
	known := true
	ir.WalkThrough(func(x *ir.Expr) bool {
		if x.Op == ir.OpLocal && x.Local.Def == nil && e.place[x.Local] == "" {
			known = false
		}
		return known
	}, x)
	return known
}

// earlyColumns is what the first sweep reads for later ones, which find it held.
func (e *emitter) earlyColumns(held map[*ir.Local]bool) (early []*ir.Local) {
	for _, l := range e.v.Early {
		if l.Level == ir.FullLevel && !held[l] {
			held[l] = true
			early = append(early, l)
		}
	}
	return early
}

// unstaged are those of the reads that go to memory themselves.
func (e *emitter) unstaged(reads []*ir.Local) []*ir.Local {
	var out []*ir.Local
	for _, l := range reads {
		if _, ok := e.staged[l]; !ok {
			out = append(out, l)
		}
	}
	return out
}

// stagedAmong reports whether one of the reads passes through shared memory.
func (e *emitter) stagedAmong(reads []*ir.Local) bool {
	for _, l := range reads {
		if _, ok := e.staged[l]; ok {
			return true
		}
	}
	return false
}

// keptFirst leaves to the compute loop the reads of a later sweep that are not
// held: they mostly come from the L2 cache, and a vector of each at a time costs
// fewer registers than all of a row.
func (e *emitter) keptFirst(reads, rest []*ir.Local) (first, later []*ir.Local) {
	for _, l := range reads {
		if e.kept[l] {
			first = append(first, l)
		} else {
			later = append(later, l)
		}
	}
	return first, append(later, rest...)
}

// launder hides from the compiler that held 16-bit and 8-bit values are what an
// earlier sweep converted: it would keep the conversions, at twice the registers.
func (e *emitter) launder(held map[*ir.Local]bool) {
	for _, l := range e.v.Keep {
		if r := readOf(l.Def); held[l] && r != nil && e.rawName[l] != "" && (r.Type.Size() < 4 || aheadOf(e.v)) {
			e.line("launder(%s);", e.rawName[l])
		}
	}
}

// forget does so within a sweep that goes through its values twice: what the first
// time makes of a row that fills a thread's registers must not be kept for the second.
func (e *emitter) forget() {
	if !aheadOf(e.v) {
		return
	}
	for _, l := range e.v.Keep {
		if e.rawName[l] != "" {
			e.line("launder(%s);", e.rawName[l])
		}
	}
}

// raw names the registers that hold what a local reads, and says how the local
// is written from now on: the element, converted.
func (e *emitter) raw(l *ir.Local, element string) string {
	name := e.rawName[l]
	if name == "" {
		name = e.names.Fresh(l.Name)
		e.rawName[l] = name
	}
	e.place[l] = converted(l, e.laneOf(l, name+element))
	e.vectorIn[l], _ = strings.CutSuffix(name+element, ".v[v]")
	return name
}

// laneOf is an element of a vector as it is converted: where rows are held, and where blocks fold
// few reads each, one of bf16 by its vector and its lane. Rows that stream past have their loads in
// another order then, which made sums slower.
func (e *emitter) laneOf(l *ir.Local, element string) string {
	vector, ok := strings.CutSuffix(element, ".v[v]")
	if r := readOf(l.Def); ok && e.of.lanesInVectors && r != nil && r != l.Def && r.Type == ir.BF16 {
		return vector + ", v"
	}
	return element
}

// converted converts an element in its storage type as the local's definition does.
func converted(l *ir.Local, element string) string {
	r := readOf(l.Def)
	if r == nil || r == l.Def {
		return element
	}
	return spell.CastText(element, r.Type, l.Type)
}

func splitWide(locals []*ir.Local) (wide, narrow []*ir.Local) {
	for _, l := range locals {
		if l.Wide {
			wide = append(wide, l)
		} else {
			narrow = append(narrow, l)
		}
	}
	return wide, narrow
}
