package codegen

import "github.com/fusec/fusec/ir"

// Scatters that read no key twice: few columns are marked, in a bit for each place and
// column, and many are put in bins by all blocks together.

// onceKernel writes a kernel whose blocks read all keys at once. Marks have the order
// of columns whatever the order that they were made in, and there are two barriers.
func (e *scatterEmitter) onceKernel() {
	s := e.v.Scatter
	e.line("__shared__ unsigned marks[PLACES][COLUMNS / 32];")
	e.scatterBegin(s)
	e.open("const auto lines = [&]")
	e.prefetchLines(s)
	e.closeWith(";")
	e.line("mark_columns(marks, columns, place_of, lines);")
	e.teamFolds(s, "0", "places", 32, func(fold func(there, column string)) {
		e.line("Marks left(marks[place], columns);")
		e.open("while (left.some_left())")
		e.line("INDEX list[gathered];")
		e.line("const int end = left.take(list);")
		fold("u < end", "list[u]")
		e.close()
	})
}

// linesMost is the vectors of all columns up to which the L2 cache is asked for them ahead.
const linesMost = 1 << 20

// prefetchLines writes that the blocks ask for what the folds read of all columns, a part each,
// before any knows which are its own: most go somewhere, and are on their way beside the keys.
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
		const line = 128 // bytes
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

// Figures of bins, in columns: a bin has room for some times as many as it gets where keys
// are spread evenly, and some more.
const (
	binMost  = 2048 - 2 // as many as are put in order in shared memory
	binLeast = 64
	binTimes = 3
)
