package codegen

import (
	"fmt"
	"maps"

	"github.com/fusec/fusec/ir"
)

// scatterEmitter writes kernels in which a block has a tile of places and folds the columns that go to
// these places.
type scatterEmitter struct{ laneEmitter }

func newScatter(e *emitter) *scatterEmitter { return &scatterEmitter{laneEmitter{emitter: e}} }

// listsKernel writes a kernel in which a block lists the columns of its places, and then folds the
// listed columns of each place. If the list has no room for all, the block takes as many places at a
// time as the list has room for. A place with more columns than a list is taken alone.
func (e *scatterEmitter) listsKernel() {
	s := e.v.Scatter
	e.line("__shared__ Listed listed;")
	e.scatterTile(s, "PLACES")
	e.scatterSizes(s)
	e.placeOf(s)
	e.line("int size = 0;")
	e.line("INDEX next = list_columns(listed, 0, columns, 0, places, size, place_of);")
	e.line("const bool all = next >= columns;")
	e.open("if (all)")
	e.line("sort_places(listed, size);")
	e.orElse()
	e.line("count_places(listed, columns, place_of);")
	e.close()
	e.open("for (int low = 0, high; low < places; low = high)")
	e.line("high = all ? places : places_together(listed, low, places);")
	done := maps.Clone(e.done)
	e.open("if (all || high > low + 1 || listed.count[low] <= ROOM - STEP)")
	e.open("if (!all)")
	e.line("list_columns(listed, 0, columns, low, high, size, place_of);")
	e.line("sort_places(listed, size);")
	e.close()
	e.listTeams("size")
	e.plainFolds(s, "shared == 0", e.listColumns)
	e.teamFolds(s, listedPlaces, e.listColumns, e.scatterResults)
	e.close()
	e.orElse()
	e.done = done
	e.placeAlone(s)
	e.close()
	e.close()
}

// scatterGathered is the vectors of a thread that are in flight together: parts of a column, and parts of
// the next columns.
const scatterGathered = 4

func scatterDefines(v *ir.Variant) string {
	s := v.Schedule
	parts := max(s.Unroll, 1)
	text := fmt.Sprintf("#define PLACES %d\n#define PARTS %d\n#define GATHERED %d\n", s.TileM, parts,
		scatterGathered/parts)
	if s.Items > 0 {
		text += fmt.Sprintf("#define ITEMS %d\n", s.Items)
	}
	return text
}

// teamSizes writes the teams of a block: the threads that have the vectors of one place, at least so many.
func (e *scatterEmitter) teamSizes(least int) {
	e.line("constexpr int parts = PARTS, gathered = GATHERED;")
	e.line("const int bits = team_bits((vectors + parts - 1) / parts, %d), team = 1 << bits, teams = THREADS >> bits;", least)
}

// listTeams writes how many of the listed columns one team folds alone, and which places have more.
func (e *scatterEmitter) listTeams(size string) {
	e.teamSizes(1)
	e.line("const int alone = most_alone(%s, teams), shared = find_shared(listed, low, high, %s, alone);", size, size)
}

// listColumns writes the folds of the listed columns of a place.
func (e *scatterEmitter) listColumns(pass *ir.Section, states map[*ir.Fold]string) {
	e.line("int at = listed.begin[place], end = listed.begin[place + 1];")
	e.open("if (together)")
	e.line("const Share share(at, end, threadIdx.x >> bits, teams);")
	e.line("at = share.begin, end = share.end;")
	e.close()
	e.open("for (; at < end; at += gathered)")
	e.foldPrefetched(pass, states, "at + u < end", "listed.column[ROOM + min(at + u, end - 1)]")
	e.close()
}

// teamPlaces is text for the places that teams fold: how many columns a place has, the list of the places that
// all teams share, and shared memory for a state of each thread.
type teamPlaces struct{ columns, shares, states string }

var listedPlaces = teamPlaces{"listed.begin[place + 1] - listed.begin[place]", "listed.shares", "listed.column"}

// teamFolds writes the folds of the places from low to high, and what is computed from the folds. First each
// team takes places that have no more columns than `alone`. Then all teams together take the others, each a
// part of the columns. columns writes the loop over the columns, and results what is done with the states.
func (e *scatterEmitter) teamFolds(s *ir.Scatter, of teamPlaces, columns, results func(*ir.Section, map[*ir.Fold]string)) {
	e.line("const int rounds = (high - low + teams - 1) / teams;")
	e.open("for (int turn = 0; turn < rounds + shared; ++turn)")
	e.line("const bool together = turn >= rounds;")
	e.line("const int place = together ? %s[turn - rounds] : low + turn * teams + (threadIdx.x >> bits);", of.shares)
	e.line("if (place >= high || !together && %s > alone) continue;", of.columns)
	e.line("[[maybe_unused]] const INDEX %s = origin + place;", e.ranges[s.To])
	e.line("INDEX first_vector = threadIdx.x & (team - 1);")
	e.open("for (INDEX base = 0; base < vectors; base += team * parts, first_vector += team * parts)")
	pass, states := e.scatterStates(e.there())
	columns(pass, states)
	e.open("if (together)")
	e.foldTeams(pass, states, of.states)
	e.line("if (threadIdx.x >= team) continue;")
	e.close()
	results(pass, states)
	e.close()
	e.close()
}

// plainFolds writes the folds for blocks in which each team folds places of its own, which most do: a loop of
// few instructions. It leaves open what other blocks do.
func (e *scatterEmitter) plainFolds(s *ir.Scatter, when string, columns func(*ir.Section, map[*ir.Fold]string)) {
	done := maps.Clone(e.done)
	e.open("if (%s)", when)
	e.line("constexpr bool together = false;")
	e.open("for (int place = low + (threadIdx.x >> bits); place < high; place += teams)")
	e.line("[[maybe_unused]] const INDEX %s = origin + place;", e.ranges[s.To])
	e.line("INDEX first_vector = threadIdx.x & (team - 1);")
	e.open("for (INDEX base = 0; base < vectors; base += team * parts, first_vector += team * parts)")
	pass, states := e.scatterStates(e.there())
	columns(pass, states)
	e.scatterResults(pass, states)
	e.close()
	e.close()
	e.done = done
	e.orElse()
}

// foldTeams writes the folds of what all teams have for one place.
func (e *scatterEmitter) foldTeams(pass *ir.Section, states map[*ir.Fold]string, memory string) {
	e.line("#pragma unroll")
	e.line("for (int part = 0; part < parts; ++part)")
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < %s; ++v)", e.width())
	for _, f := range pass.Folds {
		e.line("fold_teams<%s>(%s, %s, bits);", foldClass(f.Op), states[f], memory)
	}
	e.close()
}

// placeAlone writes the folds of one place with many columns, which the block lists piece by piece. Each team
// takes a part of every piece.
func (e *scatterEmitter) placeAlone(s *ir.Scatter) {
	e.teamSizes(1)
	e.line("const int place = low;")
	e.line("[[maybe_unused]] const INDEX %s = origin + place;", e.ranges[s.To])
	e.line("INDEX first_vector = threadIdx.x & (team - 1);")
	e.open("for (INDEX base = 0; base < vectors; base += team * parts, first_vector += team * parts)")
	pass, states := e.scatterStates(e.there())
	e.line("next = 0;")
	e.open("do")
	e.line("next = list_columns(listed, next, columns, low, high, size, place_of);")
	e.line("const Share share(0, size, threadIdx.x >> bits, teams);")
	e.open("for (int at = share.begin; at < share.end; at += gathered)")
	e.foldPrefetched(pass, states, "at + u < share.end", "listed.column[min(at + u, share.end - 1)]")
	e.close()
	e.closeWith(" while (next < columns);")
	e.foldTeams(pass, states, listedPlaces.states)
	e.line("if (threadIdx.x >= team) continue;")
	e.scatterResults(pass, states)
	e.close()
}

// scatterSizes writes how many columns there are, and vectors of the lanes of a place.
func (e *scatterEmitter) scatterSizes(s *ir.Scatter) {
	e.line("const INDEX columns = %s;", e.s.Expr(product(extents(e.k.Cols))))
	e.line("const INDEX vectors = %s;", e.vectorsOf(s))
}

// scatterTile writes which places the block has, in tiles of each.
func (e *scatterEmitter) scatterTile(s *ir.Scatter, each string) {
	e.line("[[maybe_unused]] const INDEX tiles = (%s + %s - 1) / %s;", e.s.Expr(s.To.Extent), each, each)
	if len(s.Batch) == 0 {
		e.line("const INDEX origin = (INDEX)%s * %s;", e.block, each)
	} else {
		e.line("const INDEX batch = (INDEX)%s / tiles;", e.block)
		e.take(s.Batch, "batch", e.every()...)
		e.line("const INDEX origin = (INDEX)%s %% tiles * %s;", e.block, each)
	}
	e.line("const int places = (int)min((INDEX)%s - origin, (INDEX)%s);", e.s.Expr(s.To.Extent), each)
}

// placeOf writes the function that returns to which of the block's places a column goes.
func (e *scatterEmitter) placeOf(s *ir.Scatter) {
	e.rowLocals(s.Key, s.Rest)
	e.placeFunction(s, "place_of", "int", "origin", "places")
}

// placeFunction writes a function that returns the place of a column, counted from origin, or -1 if that
// is not below places.
func (e *scatterEmitter) placeFunction(s *ir.Scatter, name, result, origin, places string) {
	e.open("const auto %s = [&](INDEX column) -> %s", name, result)
	e.columnAt(s.Key, s.Rest)
	if s.Rest != nil {
		e.line("if (!(%s)) return -1;", e.s.Bare(s.Rest))
	}
	e.line("const unsigned long long place = (unsigned long long)%s - %s;", e.s.Expr(s.Key), origin)
	e.line("return place < (unsigned long long)%s ? (%s)place : -1;", places, result)
	e.closeWith(";")
}

// columnAt writes the coordinates of a column, and the values at it, that expressions use.
func (e *scatterEmitter) columnAt(uses ...*ir.Expr) {
	locals := e.wants(ir.FullLevel, func(l *ir.Local) bool { return l.Level == ir.RowLevel }, uses...)
	e.take(e.k.Cols, "column", append(definitions(locals), uses...)...)
	for _, l := range locals {
		e.constant(l)
	}
}

// scatterStates writes the start of a place's folds, for each of a thread's parts. The folds take the
// columns where a condition holds.
func (e *scatterEmitter) scatterStates(where *ir.Expr) (pass *ir.Section, states map[*ir.Fold]string) {
	pass, states = withConditions(e.v.Sections[0], where), map[*ir.Fold]string{}
	for _, f := range pass.Folds {
		name := e.names.Fresh(f.Result.Name)
		states[f] = name + "[part][v]"
		e.line("%s %s[parts][%s];", foldType(f), name, e.width())
		e.line("#pragma unroll")
		e.line("for (int part = 0; part < parts; ++part)")
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < %s; ++v) %s = %s;", e.width(), states[f], foldStart(f))
	}
	have := func(l *ir.Local) bool { return e.done[l] }
	for _, l := range e.wants(ir.RowLevel, have, sectionRoots(pass)...) {
		if !e.perLane(l) {
			e.done[l] = true
			e.scalar(l)
		}
	}
	return pass, states
}

// eachPart writes what is done for each vector of a thread, at its coordinates. A vector that is not
// inside repeats the first, and stores nothing.
func (e *scatterEmitter) eachPart(body func()) {
	done := maps.Clone(e.done)
	e.line("#pragma unroll")
	e.open("for (int part = 0; part < parts; ++part)")
	e.line("[[maybe_unused]] const bool active = first_vector + part * team < vectors;")
	e.line("[[maybe_unused]] const INDEX t = active ? first_vector + part * team : 0;")
	e.lanePoint(e.v.Scatter)
	body()
	e.close()
	e.done = done
}

// there is the condition that the current one of the columns in flight exists.
func (e *scatterEmitter) there() *ir.Expr {
	l := &ir.Local{Name: "there", Type: ir.Bool, Level: ir.FullLevel}
	e.place[l] = "there"
	return ir.LocalRef(l)
}

// foldPrefetched writes the folds of the next columns of a place, all of which are in flight before the
// first is folded. If fewer columns are left, the spare reads repeat one of them.
func (e *scatterEmitter) foldPrefetched(pass *ir.Section, states map[*ir.Fold]string, there, column string) {
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < gathered; ++u)")
	e.line("const bool there = %s;", there)
	e.scatterFold(pass, states, column)
	e.close()
}

// scatterFold writes the folds of one column.
func (e *scatterEmitter) scatterFold(pass *ir.Section, states map[*ir.Fold]string, column string) {
	e.line("const INDEX column = %s;", column)
	e.take(e.k.Cols, "column", e.every()...)
	e.eachPart(func() {
		e.rowValues(sectionRoots(pass))
		e.flatColumn(pass, e.ofColumns(pass), states)
	})
}

// scatterResults writes what is computed from a place's folds.
func (e *scatterEmitter) scatterResults(pass *ir.Section, states map[*ir.Fold]string) {
	for _, f := range pass.Folds {
		e.place[f.Result] = foldResult(f, states[f])
	}
	e.eachPart(func() {
		e.line("if (!active) continue;")
		for _, sec := range e.v.Sections[1:] {
			e.rowValues(sectionRoots(sec))
			e.flatStores(sec, nil, nil)
		}
	})
}

// withConditions is a section whose folds take those of the given columns for which a condition holds; nil
// for all.
func withConditions(sec *ir.Section, where *ir.Expr) *ir.Section {
	out := &ir.Section{Level: sec.Level}
	for _, f := range sec.Folds {
		g := *f
		g.Where = where
		out.Folds = append(out.Folds, &g)
	}
	return out
}

// vectorsOf is the number of vectors of the lanes.
func (e *scatterEmitter) vectorsOf(s *ir.Scatter) string {
	if len(s.Lanes(e.k.Rows)) == 0 {
		return "1"
	}
	return e.s.Bare(ir.Simplify(vectorsOfLanes(e.k, e.v), e.v.Facts))
}

// vectorsOfLanes is the number of vectors of the lanes of a kernel.
func vectorsOfLanes(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	lanes := v.Scatter.Lanes(k.Rows)
	if len(lanes) == 0 {
		return ir.IntConst(1)
	}
	last := len(lanes) - 1
	return ir.Apply(ir.OpMul, product(extents(lanes[:last])), ceilDiv(lanes[last].Extent, int64(v.Schedule.Vector)))
}

// lanePoint writes the coordinates of vector t.
func (e *scatterEmitter) lanePoint(s *ir.Scatter) {
	lanes := s.Lanes(e.k.Rows)
	if len(lanes) == 0 {
		e.line("[[maybe_unused]] const int n = 1;")
		return
	}
	extent := e.s.Expr(e.lane.Extent)
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
func scatterGrid(_ *ir.Kernel, v *ir.Variant) *ir.Expr {
	s := v.Scatter
	return ir.Apply(ir.OpMul, product(extents(s.Batch)), ceilDiv(s.To.Extent, int64(v.Schedule.TileM)))
}

// scatterLane is the range along which vectors run: the innermost after the places, if there is one.
func scatterLane(k *ir.Kernel, v *ir.Variant) *ir.Range {
	if lanes := v.Scatter.Lanes(k.Rows); len(lanes) > 0 {
		return lanes[len(lanes)-1]
	}
	return nil
}
