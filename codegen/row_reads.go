package codegen

import (
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// rowReads writes the row-level values that do not depend on the row's folds before the wait for the row, so that
// their reads are under way meanwhile. Values computed from these reads are written later, where they are needed,
// because here threads would wait for the reads.
func (e *rowEmitter) rowReads() {
	have := func(l *ir.Local) bool { return e.done[l] }
	after := map[*ir.Local]bool{} // values that need the result of a fold, or of a read
	for _, l := range e.wants(ir.RowLevel, have, e.every()...) {
		read := readOf(l.Def)
		after[l] = ir.Contains(l.Def, func(x *ir.Expr) bool {
			return x.Op == ir.OpLocal && (x.Local.Def == nil || after[x.Local] || read == nil && readOf(x.Local.Def) != nil)
		})
		switch {
		case after[l]:
		case read != nil && read != l.Def:
			e.convertedLater(l, read)
		default:
			e.done[l] = true
			e.scalar(l)
		}
	}
}

// convertedLater reads a row-level value as memory holds it; scalar converts it.
func (e *rowEmitter) convertedLater(l *ir.Local, read *ir.Expr) {
	e.settle(read.Args[0])
	if read.Guard != nil {
		e.settle(read.Guard)
	}
	name := e.names.Fresh(l.Name + "_stored")
	e.noted(l.Span, "const %s %s = %s;", spell.StorageType(read.Type), name, e.read(read))
	e.stored[l] = name
}

// settle converts the values that an offset depends on and that convertedLater left as memory holds them.
func (e *rowEmitter) settle(place *ir.Expr) {
	ir.Walk(place, func(x *ir.Expr) bool {
		if x.Op == ir.OpLocal && e.stored[x.Local] != "" && !e.done[x.Local] {
			e.done[x.Local] = true
			e.scalar(x.Local)
		}
		return true
	})
}

// divisors writes the sizes by which a column's position is divided, each with the factor by which a division
// becomes a multiplication.
func (e *rowEmitter) divisors() {
	for _, r := range e.k.Cols[1:] {
		if r.Extent.Op == ir.OpConst {
			continue
		}
		e.divisor[r] = e.names.Fresh(e.ranges[r] + "_extent")
		e.line("const Divisor<INDEX> %s(%s);", e.divisor[r], e.s.Bare(r.Extent))
	}
}

// earlyReads issues reads of single elements of a row, whose offsets follow from the row's number, before the
// passes, so that they have arrived when the passes are done. Reads whose offsets are read themselves are left
// out, because the passes would wait for those offsets.
func (e *rowEmitter) earlyReads(sections []*ir.Section) {
	for _, sec := range sections {
		have := func(l *ir.Local) bool { return e.done[l] }
		if sec.Level != ir.RowLevel {
			continue
		}
		for _, l := range e.wants(ir.RowLevel, have, sectionRoots(sec)...) {
			if r := readOf(l.Def); r != nil && r.Guard == nil && readDepth(l.Def) == 1 && !ir.Has(r.Args[0], ir.OpLocal) {
				e.done[l] = true
				e.scalar(l)
			}
		}
	}
}

// loadLoop issues the reads of all current vectors of a thread. Elements stay in their storage type, which takes
// half the registers for 16-bit floats, and are converted where they are used.
func (e *rowEmitter) loadLoop(reads []*ir.Local) {
	if len(reads) == 0 {
		return
	}
	for _, l := range reads {
		e.line("Vec<%s, VECTOR> %s[ITEMS];", spell.StorageType(readOf(l.Def).Type), e.raw(l, "[u].v[v]"))
	}
	if e.arrive != nil && slices.ContainsFunc(reads, e.isStaged) {
		e.arrive()
	}
	e.openVectors()
	var wide, narrow []*ir.Local
	for _, l := range reads {
		if l.Wide || e.isStaged(l) { // in shared memory, rows are always vectors
			wide = append(wide, l)
		} else {
			narrow = append(narrow, l)
		}
	}
	if len(wide) > 0 {
		e.take(e.k.Cols, "c", e.wideUses(e.unstaged(wide))...)
		for _, l := range wide {
			if next, ok := e.staged[l]; ok {
				e.line("%s[u] = %s;", e.rawName[l], e.arrived(next))
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

// together issues the early reads together with the reads of the first pass.
func (e *rowEmitter) together(reads []*ir.Local) {
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

// earlyRows issues the early reads of single elements of the row, before the columns of the first pass.
func (e *rowEmitter) earlyRows() {
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

// lookUps issues reads of later sections whose offsets are read themselves, such as the score of a target, before
// the threads of the row exchange their partial results: the two latencies overlap.
func (e *rowEmitter) lookUps(number int) {
	e.readsAhead(number)
	if e.stays || e.accumulates {
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

// readsAhead issues the reads that have to be complete before the threads of the row exchange their partial results.
// A barrier is part of that exchange, but not within a warp, nor where blocks that stay send each other their results.
func (e *rowEmitter) readsAhead(number int) {
	found := false
	for _, a := range e.v.Ahead {
		if a.Section == number {
			e.rowLocals(ir.LocalRef(a.Local))
			found = true
		}
	}
	switch s := e.v.Schedule; {
	case !found:
	case s.Cluster > 1 && e.stays:
		e.line("__threadfence();")
	case s.Cluster <= 1 && 1 < s.RowThreads && s.RowThreads <= 32:
		e.line("__syncwarp();")
	}
}

// known reports whether an expression of the row needs only folds that are complete.
func (e *rowEmitter) known(x *ir.Expr) bool {
	known := true
	ir.WalkThrough(func(x *ir.Expr) bool {
		if x.Op == ir.OpLocal && x.Local.Def == nil && e.place[x.Local] == "" {
			known = false
		}
		return known
	}, x)
	return known
}

// earlyColumns lists the early reads of columns: the first pass issues them, and later passes find them in registers.
func (e *rowEmitter) earlyColumns(inRegisters map[*ir.Local]bool) (early []*ir.Local) {
	for _, l := range e.v.Early {
		if l.Level == ir.FullLevel && !inRegisters[l] {
			inRegisters[l] = true
			early = append(early, l)
		}
	}
	return early
}

// unstaged lists the reads that do not go through shared memory.
func (e *rowEmitter) unstaged(reads []*ir.Local) []*ir.Local {
	return slices.DeleteFunc(slices.Clone(reads), e.isStaged)
}

// isStaged reports whether a read is prefetched to shared memory.
func (e *rowEmitter) isStaged(l *ir.Local) bool {
	_, ok := e.staged[l]
	return ok
}

// keptFirst splits the reads of a later pass. Kept reads are issued first; the others are left to the loop that
// computes. Those come mostly from the L2 cache, and reading a vector at a time takes fewer registers than
// reading the whole row.
func (e *rowEmitter) keptFirst(reads, rest []*ir.Local) (first, later []*ir.Local) {
	for _, l := range reads {
		if e.kept[l] {
			first = append(first, l)
		} else {
			later = append(later, l)
		}
	}
	return first, append(later, rest...)
}

// launder hides from the compiler that the 16-bit and 8-bit values in registers are the same that an earlier pass
// converted to f32. Otherwise the compiler keeps the converted values, which take two or four times as many
// registers.
func (e *rowEmitter) launder(inRegisters map[*ir.Local]bool) {
	for _, l := range e.v.Keep {
		if r := readOf(l.Def); inRegisters[l] && r != nil && e.rawName[l] != "" && (r.Type.Size() < 4 || e.fetched) {
			e.line("launder(%s);", e.rawName[l])
		}
	}
}

// forget does the same within a pass that goes through its values twice, where a row fills the registers of a
// thread: values that are computed the first time must not be kept for the second.
func (e *rowEmitter) forget() {
	if !e.fetched {
		return
	}
	for _, l := range e.v.Keep {
		if e.rawName[l] != "" {
			e.line("launder(%s);", e.rawName[l])
		}
	}
}

// copyRun writes the copies of n contiguous columns, from c on, for all staged reads. In shared memory the reads lie
// one after the other, each with room for the columns from first on.
func (e *rowEmitter) copyRun(room, first string) {
	e.take(e.k.Cols, "c", e.wideUses(e.v.Staged)...)
	before := 0
	for _, l := range e.v.Staged {
		r := readOf(l.Def)
		e.noted(l.Span, "bytes_load(to + (int)%s * %d + (int)(c - %s) * %d, %s + %s, n * %d, bar%s);", room, before,
			first, r.Type.Size(), e.args[r.Arg], e.s.Expr(e.wideOffset(r.Args[0])), r.Type.Size(), e.under(r))
		before += r.Type.Size()
	}
}
