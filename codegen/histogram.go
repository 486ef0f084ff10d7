package codegen

import "github.com/fusec/fusec/ir"

// A histogram kernel is a scatter by warps that work alone: the running values of a
// block's rows lie in shared memory, and its one warp folds columns into them in their
// order. It lists the columns that go to its rows, and folds 32 of them at a time. Lanes
// whose columns go to the same row take turns, so that sums do not depend on timing.
// Neither barriers nor atomic operations are needed.

// histogramAhead is the keys of a thread on their way.
const histogramAhead = 8

// histogramKernel writes the kernel.
func (e *emitter) histogramKernel() {
	s, sweep := e.v.Scatter, withoutConditions(e.v.Sections[0])
	e.histogramTile(s)
	states := e.histogramStates(sweep)
	e.line("const INDEX columns = %s;", e.s.expr(product(extents(e.k.Cols))))
	e.placeOf(s)
	e.line("constexpr int AHEAD = %d;", histogramAhead)
	e.line("constexpr int STEP = AHEAD * THREADS, ROOM = 2 * STEP;")
	e.line("__shared__ INDEX listed[ROOM]; // a ring: columns in their order")
	e.line("__shared__ unsigned short places_listed[ROOM];")
	e.line("int begin = 0, size = 0;")
	e.open("for (INDEX base = 0; base < columns; base += STEP)")
	e.histogramList()
	e.line("const int least = base + STEP < columns ? THREADS : 1; // of one turn: the last takes all")
	e.open("for (; size >= least; begin = (begin + THREADS) %% ROOM, size -= THREADS)")
	e.histogramFolds(s, sweep, states)
	e.close()
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

// histogramList writes the list of the columns of a step that go to the block's rows.
func (e *emitter) histogramList() {
	e.line("int place[AHEAD];")
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < AHEAD; ++u)")
	e.line("const INDEX column = base + u * THREADS + threadIdx.x;")
	e.line("place[u] = column < columns ? place_of(column) : -1;")
	e.close()
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < AHEAD; ++u)")
	e.line("const unsigned found = __ballot_sync(0xffffffffu, place[u] >= 0);")
	e.open("if (place[u] >= 0)")
	e.line("const int at = (begin + size + __popc(found & ((1u << threadIdx.x) - 1))) %% ROOM;")
	e.line("listed[at] = base + u * THREADS + threadIdx.x;")
	e.line("places_listed[at] = (unsigned short)place[u];")
	e.close()
	e.line("size += __popc(found);")
	e.close()
	e.line("__syncwarp();")
}

// histogramFolds writes the folds of the first columns of the list, one a lane.
func (e *emitter) histogramFolds(s *ir.Scatter, sweep *ir.Section, states map[*ir.Fold]string) {
	lanes := s.Lanes(e.k.Rows)
	e.line("const unsigned active = __ballot_sync(0xffffffffu, (int)threadIdx.x < size);")
	e.open("if ((int)threadIdx.x < size)")
	e.line("[[maybe_unused]] const INDEX column = listed[(begin + threadIdx.x) %% ROOM];")
	e.line("const int place = places_listed[(begin + threadIdx.x) %% ROOM];")
	e.line("const unsigned same = __match_any_sync(active, place);")
	e.line("const int rank = __popc(same & ((1u << threadIdx.x) - 1));")
	e.line("[[maybe_unused]] const INDEX %s = origin + place;", e.ranges[s.To])
	roots := sectionRoots(sweep)
	values := e.wants(ir.RowLevel, func(l *ir.Local) bool { return e.done[l] }, roots...)
	values = append(values, e.wants(ir.FullLevel, func(l *ir.Local) bool { return l.Level == ir.RowLevel }, roots...)...)
	uses := append(definitions(values), roots...)
	e.take(e.k.Cols, "column", uses...)
	if len(lanes) > 0 {
		e.line("#pragma unroll 4")
		e.open("for (int of_lane = 0; of_lane < (int)lanes; ++of_lane)")
		e.take(lanes, "of_lane", uses...)
		e.line("const int at = place * (int)lanes + of_lane;")
	} else {
		e.line("const int at = place;")
	}
	for _, l := range values {
		e.constant(l)
	}
	e.open("for (int turn = 0; __any_sync(active, rank >= turn); ++turn)")
	e.open("if (rank == turn)")
	e.flatFolds(sweep, states)
	e.close()
	e.line("__syncwarp(active);")
	e.close()
	if len(lanes) > 0 {
		e.close()
	}
	e.close()
	e.line("__syncwarp();")
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
