package codegen

import (
	_ "embed"

	"github.com/fusec/fusec/ir"
)

//go:embed scatter.cuh
var scatterPrelude string

// scatterKernel writes a kernel whose blocks read all keys, and fold for each of their
// places the columns that go there.
func (e *emitter) scatterKernel() {
	s := e.v.Scatter
	e.line("__shared__ Listed listed;")
	e.scatterTile(s, "PLACES")
	e.line("const int places = (int)min((INDEX)%s - origin, (INDEX)PLACES);", e.s.expr(s.To.Extent))
	e.line("const INDEX columns = %s;", e.s.expr(product(extents(e.k.Cols))))
	e.placeOf(s)
	e.line("count_places(listed, columns, place_of);")
	e.open("for (int low = 0, high; low < places; low = high)")
	e.line("high = places_together(listed, low, places);")
	e.line("const bool together = high > low + 1 || listed.count[low] <= ROOM - STEP;")
	e.line("int size = 0;")
	e.line("INDEX next = 0;")
	e.open("if (together)")
	e.line("next = list_columns(listed, next, columns, low, high, size, place_of);")
	e.line("sort_places(listed, low, high, size);")
	e.close()
	e.scatterTurns(s)
	e.close()
}

// scatterTile writes which places the block has, of tiles of each.
func (e *emitter) scatterTile(s *ir.Scatter, each string) {
	e.line("const INDEX tiles = (%s + %s - 1) / %s;", e.s.expr(s.To.Extent), each, each)
	e.line("[[maybe_unused]] const INDEX batch = (INDEX)%s / tiles;", e.block)
	e.take(s.Batch, "batch", e.every()...)
	e.line("const INDEX origin = (INDEX)%s %% tiles * %s;", e.block, each)
}

// placeOf writes the function that tells where a column goes.
func (e *emitter) placeOf(s *ir.Scatter) {
	have := func(l *ir.Local) bool { return e.done[l] }
	for _, l := range e.wants(ir.RowLevel, have, s.Key, s.Rest) {
		e.done[l] = true
		e.scalar(l)
	}
	e.open("const auto place_of = [&](INDEX column) -> int")
	e.columnAt(s.Key, s.Rest)
	if s.Rest != nil {
		e.line("if (!(%s)) return -1;", e.s.bare(s.Rest))
	}
	e.line("const long long place = (long long)%s - origin;", e.s.expr(s.Key))
	e.line("return place >= 0 && place < places ? (int)place : -1;")
	e.closeWith(";")
}

// columnAt writes the coordinates of a column, and the values at it, that expressions use.
func (e *emitter) columnAt(uses ...*ir.Expr) {
	locals := e.wants(ir.FullLevel, func(l *ir.Local) bool { return l.Level == ir.RowLevel }, uses...)
	e.take(e.k.Cols, "column", append(definitions(locals), uses...)...)
	for _, l := range locals {
		e.constant(l)
	}
}

// scatterTurns writes the folds of the places from low to high. A team of threads shares
// a place, a vector of lanes each; where one place has more columns than fit a list, the
// team is the block, and lists them piece by piece.
func (e *emitter) scatterTurns(s *ir.Scatter) {
	e.line("const INDEX vectors = %s;", e.laneVectors(s))
	e.line("int team = together ? 1 : THREADS;")
	e.line("while (team < vectors && team < THREADS) team *= 2;")
	e.line("const INDEX parts = (vectors + team - 1) / team;")
	e.open("for (INDEX turn = threadIdx.x / team; turn < (high - low) * parts; turn += THREADS / team)")
	e.line("const int place = low + (int)(turn / parts);")
	e.line("[[maybe_unused]] const INDEX %s = origin + place;", e.ranges[s.To])
	e.line("INDEX t = turn %% parts * team + threadIdx.x %% team;")
	e.line("const bool active = t < vectors;")
	e.line("if (!active) t = 0; // goes along to the barriers, and stores nothing")
	e.lanePoint(s)
	sweep := withoutConditions(e.v.Sections[0])
	e.rowValues(sectionRoots(sweep))
	states := e.laneStates(sweep, "")
	e.line("if (!together) next = 0;")
	e.open("do")
	e.line("if (!together) next = list_columns(listed, next, columns, low, high, size, place_of);")
	e.line("const INDEX *const list = together ? listed.sorted : listed.column;")
	e.line("const int end = together ? listed.begin[place + 1] : size;")
	e.line("#pragma unroll 4")
	e.open("for (int at = together ? listed.begin[place] : 0; at < end; ++at)")
	e.line("const INDEX column = list[at];")
	e.take(e.k.Cols, "column", e.every()...)
	e.flatColumn(sweep, e.ofColumns(sweep), states)
	e.close()
	e.closeWith(" while (next < columns);")
	for _, f := range sweep.Folds {
		e.place[f.Result] = foldResult(f, states[f])
	}
	e.open("if (active)")
	for _, sec := range e.v.Sections[1:] {
		e.rowValues(sectionRoots(sec))
		e.flatStores(sec, nil, nil)
	}
	e.close()
	e.close()
}

// withoutConditions is a section whose folds take every column that they are given.
func withoutConditions(sec *ir.Section) *ir.Section {
	out := &ir.Section{Level: sec.Level}
	for _, f := range sec.Folds {
		g := *f
		g.Where = nil
		out.Folds = append(out.Folds, &g)
	}
	return out
}

// laneVectors is the number of vectors of the lanes.
func (e *emitter) laneVectors(s *ir.Scatter) string {
	lanes := s.Lanes(e.k.Rows)
	if len(lanes) == 0 {
		return "1"
	}
	last := len(lanes) - 1
	n := ir.Apply(ir.OpMul, product(extents(lanes[:last])), ceilDiv(lanes[last].Extent, int64(e.v.Schedule.Vector)))
	return e.s.bare(ir.Simplify(n, e.v.Facts))
}

// lanePoint writes the coordinates of vector t.
func (e *emitter) lanePoint(s *ir.Scatter) {
	lanes := s.Lanes(e.k.Rows)
	if len(lanes) == 0 {
		e.line("[[maybe_unused]] const int n = 1;")
		return
	}
	extent := e.s.expr(e.lane.Extent)
	if outer := lanes[:len(lanes)-1]; len(outer) == 0 {
		e.line("[[maybe_unused]] const INDEX first = t * VECTOR;")
	} else {
		e.line("const INDEX row = (%s + VECTOR - 1) / VECTOR;", extent)
		e.line("[[maybe_unused]] const INDEX first = t %% row * VECTOR;")
		e.line("const INDEX outer = t / row;")
		e.take(outer, "outer", e.every()...)
	}
	if e.wholeLanes() {
		e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	} else {
		e.line("[[maybe_unused]] const int n = (int)min(%s - first, (INDEX)VECTOR);", extent)
	}
}

// scatterGrid is the number of blocks: tiles of the places, in every batch.
func scatterGrid(v *ir.Variant) *ir.Expr {
	s := v.Scatter
	return ir.Apply(ir.OpMul, product(extents(s.Batch)), ceilDiv(s.To.Extent, int64(v.Schedule.TileM)))
}
