package codegen

import "github.com/fusec/fusec/ir"

// A histogram kernel is a scatter by warps that work alone: the running values of a
// block's rows lie in shared memory, and its one warp folds columns into them in their
// order. Lanes whose columns go to the same row take turns, so that sums do not depend on
// timing. Neither barriers nor atomic operations are needed.

// histogramAhead is the columns of a thread whose keys and values are on their way.
const histogramAhead = 8

// histogramKernel writes the kernel. A point is a column with a choice of the rows that
// share its key, the lanes.
func (e *emitter) histogramKernel() {
	s, sweep := e.v.Scatter, withoutConditions(e.v.Sections[0])
	e.histogramTile(s)
	states := e.histogramStates(sweep)
	e.line("const INDEX points = %s * lanes;", e.s.expr(product(extents(e.k.Cols))))
	e.placeOf(s)
	e.line("constexpr int AHEAD = %d;", histogramAhead)
	e.open("for (INDEX base = 0; base < points; base += AHEAD * THREADS)")
	e.histogramReads(s, sweep)
	e.histogramFolds(s, sweep, states)
	e.close()
	e.histogramResults(s, sweep, states)
}

// histogramTile writes which rows the block has.
func (e *emitter) histogramTile(s *ir.Scatter) {
	to := e.s.expr(s.To.Extent)
	e.line("const INDEX lanes = %s;", e.s.expr(product(extents(s.Lanes(e.k.Rows)))))
	e.line("const INDEX each = RUNNING / lanes;")
	e.line("const INDEX tiles = (%s + each - 1) / each;", to)
	e.line("[[maybe_unused]] const INDEX batch = (INDEX)%s / tiles;", e.block)
	e.take(s.Batch, "batch", e.every()...)
	e.line("const INDEX origin = (INDEX)%s %% tiles * each;", e.block)
	e.line("const INDEX places = min((INDEX)%s - origin, each);", to)
	e.line("const int rows = (int)(places * lanes);")
}

// histogramStates declares the running values and begins them.
func (e *emitter) histogramStates(sweep *ir.Section) map[*ir.Fold]string {
	states := map[*ir.Fold]string{}
	for _, f := range sweep.Folds {
		name := e.names.fresh(f.Result.Name + "_running")
		states[f] = name + "[at]"
		e.line("__shared__ %s %s[RUNNING];", foldType(f), name)
	}
	e.open("for (int at = threadIdx.x; at < rows; at += THREADS)")
	for _, f := range sweep.Folds {
		e.line("%s = %s;", states[f], foldStart(f))
	}
	e.close()
	e.line("__syncwarp();")
	return states
}

// histogramReads writes the loop that finds where points go and makes the values at those
// that the block has.
func (e *emitter) histogramReads(s *ir.Scatter, sweep *ir.Section) {
	roots := sectionRoots(sweep)
	values := e.wants(ir.RowLevel, func(l *ir.Local) bool { return e.done[l] }, roots...)
	values = append(values, e.wants(ir.FullLevel, func(l *ir.Local) bool { return l.Level == ir.RowLevel }, roots...)...)
	e.line("int place[AHEAD];")
	names := make([]string, len(values))
	for i, l := range values {
		names[i] = e.name(l)
		e.line("%s %s[AHEAD];", e.typeOf(l), names[i])
	}
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < AHEAD; ++u)")
	e.line("const INDEX point = base + u * THREADS + threadIdx.x, column = point / lanes;")
	e.line("place[u] = point < points ? place_of(column) : -1;")
	if len(values) > 0 {
		e.line("if (place[u] < 0) continue;")
		e.histogramPoint(s, definitions(values))
	}
	for i, l := range values {
		e.noted(l.Span, "%s[u] = %s;", names[i], e.s.bare(l.Def))
		e.place[l] = names[i] + "[u]"
	}
	e.close()
}

// histogramPoint writes the coordinates of a point that the expressions use.
func (e *emitter) histogramPoint(s *ir.Scatter, uses []*ir.Expr) {
	e.take(e.k.Cols, "column", uses...)
	e.line("[[maybe_unused]] const INDEX %s = origin + place[u];", e.ranges[s.To])
	if lanes := s.Lanes(e.k.Rows); len(lanes) > 0 {
		e.line("[[maybe_unused]] const INDEX of_lane = point %% lanes;")
		e.take(lanes, "of_lane", uses...)
	}
}

// histogramFolds writes the loop that folds the values of a step.
func (e *emitter) histogramFolds(s *ir.Scatter, sweep *ir.Section, states map[*ir.Fold]string) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < AHEAD; ++u)")
	e.line("const unsigned active = __ballot_sync(0xffffffffu, place[u] >= 0);")
	e.open("if (place[u] >= 0)")
	e.line("[[maybe_unused]] const INDEX point = base + u * THREADS + threadIdx.x, column = point / lanes;")
	e.line("const int at = place[u] * (int)lanes + (int)(point %% lanes);")
	e.line("const unsigned same = __match_any_sync(active, at);")
	e.line("const int rank = __popc(same & ((1u << threadIdx.x) - 1));")
	e.histogramPoint(s, sectionRoots(sweep))
	e.open("for (int turn = 0; __any_sync(active, rank >= turn); ++turn)")
	e.open("if (rank == turn)")
	e.flatFolds(sweep, states)
	e.close()
	e.line("__syncwarp(active);")
	e.close()
	e.close()
	e.line("__syncwarp();")
	e.close()
}

// histogramResults writes what is made of the folds' results, row by row.
func (e *emitter) histogramResults(s *ir.Scatter, sweep *ir.Section, states map[*ir.Fold]string) {
	e.open("for (int at = threadIdx.x; at < rows; at += THREADS)")
	e.line("[[maybe_unused]] const INDEX %s = origin + at / (int)lanes;", e.ranges[s.To])
	if lanes := s.Lanes(e.k.Rows); len(lanes) > 0 {
		e.line("[[maybe_unused]] const INDEX of_lane = at %% (int)lanes;")
		e.take(lanes, "of_lane", e.every()...)
	}
	for _, f := range sweep.Folds {
		e.place[f.Result] = foldResult(f, states[f])
	}
	for _, sec := range e.v.Sections[1:] {
		e.rowValues(sectionRoots(sec))
		e.flatStores(sec, nil, nil)
	}
	e.close()
}

// histogramGrid is the number of blocks: tiles of the rows, in every batch.
func histogramGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s, to := v.Scatter, v.Scatter.To.Extent
	each := ir.Apply(ir.OpFloorDiv, ir.IntConst(int64(v.Schedule.TileM)), product(extents(s.Lanes(k.Rows))))
	more := ir.Apply(ir.OpSub, ir.Apply(ir.OpAdd, to, each), ir.IntConst(1))
	return ir.Apply(ir.OpMul, product(extents(s.Batch)), ir.Apply(ir.OpFloorDiv, more, each))
}
