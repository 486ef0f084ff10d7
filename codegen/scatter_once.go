package codegen

import "github.com/fusec/fusec/ir"

// Scatters that read no key twice. Few columns are marked, with a bit for each place and column; many are
// put into bins by all blocks together.

// onceKernel writes a kernel whose blocks read all keys at once. Marks are in the order of the columns,
// whatever the order in which they are made, so two barriers are enough.
func (e *scatterEmitter) onceKernel() {
	s := e.v.Scatter
	e.line("__shared__ Marked marked;")
	e.scatterTile(s, "PLACES")
	e.scatterSizes(s)
	e.placeOf(s)
	e.open("const auto lines = [&]")
	e.prefetchLines(s)
	e.closeWith(";")
	e.line("const bool some_shared = mark_columns(marked, columns, place_of, lines);")
	e.teamSizes(32)
	e.line("constexpr int low = 0;")
	e.line("const int high = places, alone = some_shared ? find_shared(marked, teams) : ALONE, shared = some_shared ? marked.shared : 0;")
	e.line("__shared__ alignas(16) unsigned char team_states[THREADS * %d];", stateMost(e.v))
	e.plainFolds(s, "shared == 0", e.markedColumns)
	e.teamFolds(s, teamPlaces{"marked.count[place]", "marked.shares", "team_states"}, e.markedColumns, e.scatterResults)
	e.close()
}

// markedColumns writes the folds of the marked columns of a place.
func (e *scatterEmitter) markedColumns(pass *ir.Section, states map[*ir.Fold]string) {
	e.line("Marks left(marked.marks[place], columns, together ? threadIdx.x >> bits : 0, together ? __ffs(teams) - 1 : 0);")
	e.open("while (marked.count[place] > 0 && left.some_left())")
	e.line("INDEX list[gathered];")
	e.line("const int end = left.take(list);")
	e.foldPrefetched(pass, states, "u < end", "list[u]")
	e.close()
}

// linesMost is the most vectors, of all columns, that are prefetched to the L2 cache.
const linesMost = 1 << 20

// prefetchLines writes a prefetch of what the folds read of all columns, of which each block does a part.
// It begins before a block knows which columns are its own: most columns go to some place, and they are
// in flight while the keys are read.
func (e *scatterEmitter) prefetchLines(s *ir.Scatter) {
	if len(s.Lanes(e.k.Rows)) != 1 {
		return
	}
	for _, l := range e.ofColumns(withConditions(e.v.Sections[0], nil)) {
		r := readOf(l.Def)
		if r == nil || !l.Wide || r.Guard != nil || ir.Has(r.Args[0], ir.OpLocal) ||
			e.dependsOn([]*ir.Range{s.To}, r.Args) || !e.dependsOn(e.k.Cols, r.Args) {
			continue
		}
		const line = 128 // bytes of a line
		vectors := line / (e.v.Schedule.Vector * r.Type.Size())
		e.open("if ((long long)columns * vectors <= %d)", linesMost)
		e.line("constexpr int warps = THREADS / 32;")
		e.line("INDEX column = origin / PLACES * warps + threadIdx.x / 32;")
		e.open("for (; column < columns; column += tiles * warps)")
		e.take(e.k.Cols, "column", r.Args...)
		e.open("for (INDEX t = threadIdx.x %% 32 * %d; t < vectors; t += 32 * %d)", vectors, vectors)
		first := e.ranges[e.lane]
		e.ranges[e.lane] = "(t * VECTOR)"
		e.noted(l.Span, "prefetch_line(%s + %s);", e.args[r.Arg], e.s.Expr(r.Args[0]))
		e.ranges[e.lane] = first
		e.close()
		e.close()
		e.close()
	}
}
