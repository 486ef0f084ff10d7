package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// A histogram kernel is a scatter in which a block keeps the running values of a tile of rows in shared
// memory. In each step, its warps list the columns that go to these rows. Then each warp takes the columns
// of its own rows from all lists, in their order, and folds 32 at a time. Lanes whose columns go to the
// same row first fold these into one value, in the order of the lanes. So sums do not depend on timing, and
// there are no atomic operations.

// histogramKernel writes the kernel.
func (e *scatterEmitter) histogramKernel() {
	s, pass := e.v.Scatter, withConditions(e.v.Sections[0], nil)
	e.histogramTile(s)
	states := e.histogramStates(pass)
	e.line("const INDEX columns = %s;", e.s.Expr(product(extents(e.k.Cols))))
	e.placeOf(s)
	e.line("int begin = 0, size = 0; // of the ring")
	e.open("const auto fold = [&]")
	e.histogramFolds(s, pass, states)
	e.closeWith(";")
	e.line("int turn = 0;")
	e.open("for (INDEX base = 0; base < columns; base += WARPS * STEP, turn ^= 1)")
	e.histogramList()
	e.histogramPick()
	e.close()
	e.line("if (size > 0) fold();")
	e.line("__syncthreads();")
	e.histogramResults(s, pass, states)
}

// histogramPrefetch is the keys of a thread that are in flight.
const histogramPrefetch = 8

// histogramTile writes which rows the block has.
func (e *scatterEmitter) histogramTile(s *ir.Scatter) {
	e.histogramShared()
	e.line("const INDEX lanes = %s;", e.s.Expr(product(extents(s.Lanes(e.k.Rows)))))
	e.line("const INDEX each = RUNNING / lanes;")
	e.scatterTile(s, "each")
	e.line("const int rows = (int)(places * lanes);")
}

// histogramStates declares the running values and sets them to the identity.
func (e *scatterEmitter) histogramStates(pass *ir.Section) map[*ir.Fold]string {
	states := map[*ir.Fold]string{}
	for _, f := range pass.Folds {
		name := e.names.Fresh(f.Result.Name + "_running")
		states[f] = name + "[at]"
		e.line("__shared__ %s %s[RUNNING];", foldType(f), name)
	}
	e.line("#pragma unroll 4")
	e.open("for (int at = threadIdx.x; at < rows; at += THREADS)")
	for _, f := range pass.Folds {
		e.line("%s = %s;", states[f], foldStart(f))
	}
	e.close()
	e.line("__syncthreads();")
	return states
}

// histogramShared declares the lists of the warps, in two buffers so that one barrier for each step is
// enough, and a ring for each warp, of the columns that it has picked.
func (e *scatterEmitter) histogramShared() {
	e.line("constexpr int WARPS = THREADS / 32, PREFETCH = %d, STEP = 32 * PREFETCH, ROOM = 64;", histogramPrefetch)
	e.line("const int warp = threadIdx.x / 32, lane = threadIdx.x %% 32;")
	e.line("const unsigned below = (1u << lane) - 1;")
	e.line("__shared__ unsigned short listed[2][WARPS][STEP], places_listed[2][WARPS][STEP]; // columns behind base")
	e.line("__shared__ INDEX ring[WARPS][ROOM];")
	e.line("__shared__ unsigned short ring_places[WARPS][ROOM];")
	e.line("__shared__ int counts[2][WARPS];")
}

// histogramList writes a warp's list of its columns of a step.
func (e *scatterEmitter) histogramList() {
	e.line("int place[PREFETCH], count = 0;")
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < PREFETCH; ++u)")
	e.line("const INDEX column = base + warp * STEP + u * 32 + lane;")
	e.line("place[u] = column < columns ? place_of(column) : -1;")
	e.close()
	e.line("#pragma unroll")
	e.open("for (int u = 0; u < PREFETCH; ++u)")
	e.line("const unsigned found = __ballot_sync(0xffffffffu, place[u] >= 0);")
	e.open("if (place[u] >= 0)")
	e.line("const int at = count + __popc(found & below);")
	e.line("listed[turn][warp][at] = (unsigned short)(warp * STEP + u * 32 + lane);")
	e.line("places_listed[turn][warp][at] = (unsigned short)place[u];")
	e.close()
	e.line("count += __popc(found);")
	e.close()
	e.line("if (lane == 0) counts[turn][warp] = count;")
	e.line("__syncthreads();")
}

// histogramPick writes what a warp does with the lists: it puts the columns that go to its rows into its
// ring, and folds the ring when it has 32.
func (e *scatterEmitter) histogramPick() {
	e.line("#pragma unroll 1")
	e.open("for (int from = 0; from < WARPS; ++from)")
	e.line("#pragma unroll 1")
	e.open("for (int next = lane, end = counts[turn][from]; next - lane < end; next += 32)")
	e.line("const int place = next < end ? places_listed[turn][from][next] : -1;")
	e.line("const bool mine = place >= 0 && place %% WARPS == warp;")
	e.line("const unsigned found = __ballot_sync(0xffffffffu, mine);")
	e.open("if (mine)")
	e.line("const int at = (begin + size + __popc(found & below)) %% ROOM;")
	e.line("ring[warp][at] = base + listed[turn][from][next];")
	e.line("ring_places[warp][at] = (unsigned short)place;")
	e.close()
	e.line("size += __popc(found);")
	e.line("__syncwarp();")
	e.open("if (size >= 32)")
	e.line("fold();")
	e.line("begin = (begin + 32) %% ROOM;")
	e.line("size -= 32;")
	e.close()
	e.close()
	e.close()
}

// histogramFolds writes the folds of the first columns of the ring, one for each lane.
func (e *scatterEmitter) histogramFolds(s *ir.Scatter, pass *ir.Section, states map[*ir.Fold]string) {
	lanes := s.Lanes(e.k.Rows)
	e.line("const unsigned active = __ballot_sync(0xffffffffu, lane < size);")
	e.open("if (lane < size)")
	e.line("[[maybe_unused]] const INDEX column = ring[warp][(begin + lane) %% ROOM];")
	e.line("const int place = ring_places[warp][(begin + lane) %% ROOM];")
	e.line("const unsigned same = __match_any_sync(active, place);")
	e.line("const int behind = __ffs(same & (~1u << lane)) - 1; // the next lane that goes to the same place, or -1")
	e.line("[[maybe_unused]] const INDEX %s = origin + place;", e.ranges[s.To])
	roots := sectionRoots(pass)
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
	own := map[*ir.Fold]string{}
	for _, f := range pass.Folds {
		own[f] = e.names.Fresh(f.Result.Name + "_own")
		e.line("%s %s = %s;", foldType(f), own[f], foldStart(f))
	}
	e.flatFolds(pass, own)
	for _, f := range pass.Folds {
		e.line("fold_lanes<%s>(active, %s, behind);", foldClass(f.Op), own[f])
		e.line("if (!(same & below)) %s = %s::apply(%s, %s);", states[f], foldClass(f.Op), states[f], own[f])
	}
	e.line("__syncwarp(active);")
	if len(lanes) > 0 {
		e.close()
	}
	e.close()
	e.line("__syncwarp();")
}

// histogramResults writes what is computed from the results of the folds, row by row.
func (e *scatterEmitter) histogramResults(s *ir.Scatter, pass *ir.Section, states map[*ir.Fold]string) {
	e.line("#pragma unroll 4")
	e.open("for (int at = threadIdx.x; at < rows; at += THREADS)")
	e.line("[[maybe_unused]] const INDEX %s = origin + at / (int)lanes;", e.ranges[s.To])
	if lanes := s.Lanes(e.k.Rows); len(lanes) > 0 {
		e.line("[[maybe_unused]] const INDEX of_lane = at %% (int)lanes;")
		e.take(lanes, "of_lane", e.every()...)
	}
	for _, f := range pass.Folds {
		e.place[f.Result] = foldResult(f, states[f])
	}
	for _, sec := range e.v.Sections[1:] {
		e.rowValues(sectionRoots(sec))
		e.flatStores(sec, nil, nil)
	}
	e.close()
}

func histogramDefines(v *ir.Variant) string {
	return fmt.Sprintf("#define RUNNING %d\n", v.Schedule.TileM)
}

// histogramGrid is the number of blocks: tiles of the rows, in every batch.
func histogramGrid(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	s, to := v.Scatter, v.Scatter.To.Extent
	each := ir.Apply(ir.OpFloorDiv, ir.IntConst(int64(v.Schedule.TileM)), product(extents(s.Lanes(k.Rows))))
	more := ir.Apply(ir.OpSub, ir.Apply(ir.OpAdd, to, each), ir.IntConst(1))
	return ir.Apply(ir.OpMul, product(extents(s.Batch)), ir.Apply(ir.OpFloorDiv, more, each))
}
