package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// Figures of bins, in columns. A bin has room for a multiple of what it gets if keys are spread evenly, and a
// little more. A tile that gets more is crowded: it is cut into slices, which all blocks share.
const (
	binMost  = 2048 - 2 // as many as can be sorted in shared memory
	binLeast = 64
	binTimes = 3
	binSlice = 512 // least columns of a slice, if a tile has several
)

// binCounters is the counters of a launch ahead of those of the bins, which are so far apart, as in scatter_bins.cuh.
const (
	binCounters = 16
	binApart    = 8
)

// binChunk is the keys that a thread reads in a chunk, as in scatter_bins.cuh.
const binChunk = 2

// binsKernel writes a kernel in which blocks share the keys. A block then folds one job after the other: its
// own bin, then slices of crowded tiles, then places of tiles whose slices have partial results.
func (e *scatterEmitter) binsKernel() {
	s := e.v.Scatter
	e.line("__shared__ Listed listed;")
	e.scatterSizes(s)
	e.rowLocals(s.Key, s.Rest)
	e.placeFunction(s, "place_in", "INDEX", "0", e.s.Expr(s.To.Extent))
	e.line("const Bins all_bins(%s, %s, (int)%s, columns, %s);", e.counters, e.workspace, e.s.Expr(binRoom(e.k, e.v)), e.s.Expr(s.To.Extent))
	e.line("__shared__ Job job;")
	e.line("const bool crowded = first_job(listed, all_bins, place_in, job);")
	e.teamSizes(1)
	e.open("do")
	e.line("const INDEX origin = job.tile * PLACES;")
	e.line("const int low = job.low, high = job.high, alone = job.merges > 0 ? -1 : most_alone(job.size, teams);")
	e.line("const int shared = job.merges > 0 ? 1 : find_shared(listed, low, high, job.size, alone);")
	e.plainFolds(s, "shared == 0 && job.part < 0", e.listColumns)
	e.teamFolds(s, listedPlaces, e.jobColumns, e.jobResults)
	e.close()
	e.closeWith(" while (crowded && next_job(listed, all_bins, job));")
}

// jobColumns writes the folds of the listed columns of a place, or of its partial results.
func (e *scatterEmitter) jobColumns(pass *ir.Section, states map[*ir.Fold]string) {
	e.open("if (job.merges > 0)")
	e.line("const Share share(0, job.merges, threadIdx.x >> bits, teams);")
	e.line("#pragma unroll 1")
	e.open("for (int at = share.begin; at < share.end; ++at)")
	e.eachPartial(pass, "job.part + at", func(f *ir.Fold, where string) {
		held := e.names.Fresh(f.Result.Name + "_part")
		e.line("const auto %s = fresh(%s);", held, where)
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < %s; ++v) %s = %s::apply(%s, %s.v[v]);", e.width(), states[f], foldClass(f.Op), states[f], held)
	})
	e.close()
	e.orElse()
	e.listColumns(pass, states)
	e.close()
}

// jobResults writes what is computed from a place's folds, or its partial results.
func (e *scatterEmitter) jobResults(pass *ir.Section, states map[*ir.Fold]string) {
	e.open("if (job.part >= 0 && job.merges == 0)")
	e.eachPartial(pass, "job.part", func(f *ir.Fold, where string) {
		held := e.names.Fresh(f.Result.Name + "_part")
		e.line("Vec<%s, %s> %s;", foldType(f), e.width(), held)
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < %s; ++v) %s.v[v] = %s;", e.width(), held, states[f])
		e.line("if (first_vector + part * team < vectors) *%s = %s;", where, held)
	})
	e.line("continue;")
	e.close()
	e.scatterResults(pass, states)
}

// eachPartial writes what is done with each vector of a thread in a table of partial results, given where in
// memory a fold has it. A table has the places of a tile; of several folds, each has tables of its own.
func (e *scatterEmitter) eachPartial(pass *ir.Section, table string, body func(f *ir.Fold, where string)) {
	e.line("const long long row = ((long long)(%s) * PLACES + place) * vectors;", table)
	e.line("#pragma unroll")
	e.open("for (int part = 0; part < parts; ++part)")
	e.line("const INDEX t = min(first_vector + part * team, vectors - 1);")
	before := 0
	for _, f := range pass.Folds {
		at := fmt.Sprintf("all_bins.part_tables() + all_bins.most_parts() * PLACES * vectors * %d", before)
		if before == 0 {
			at = "all_bins.part_tables()"
		}
		body(f, fmt.Sprintf("(reinterpret_cast<Vec<%s, %s> *>(%s) + row + t)", foldType(f), e.width(), at))
		before += stateBytes(f) * e.v.Schedule.Vector
	}
	e.close()
}

// stateBytes is the size of a running state, and stateMost the most of a variant.
func stateBytes(f *ir.Fold) int {
	switch {
	case f.Op.IsArg():
		return 16
	case strings.HasSuffix(foldType(f), "long long") || foldType(f) == "double":
		return 8
	}
	return 4
}

func stateMost(v *ir.Variant) int {
	most := 0
	for _, f := range v.Sections[0].Folds {
		most = max(most, stateBytes(f))
	}
	return most
}

// binRoom is the number of columns for which a bin has room.
func binRoom(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	shares := ir.Apply(ir.OpFloorDiv, v.Scatter.To.Extent, ir.IntConst(int64(binTimes*v.Schedule.TileM)))
	even := ir.Apply(ir.OpFloorDiv, product(extents(k.Cols)), ir.Apply(ir.OpMax, shares, ir.IntConst(1)))
	return ir.Apply(ir.OpMin, ir.Apply(ir.OpAdd, even, ir.IntConst(binLeast)), ir.IntConst(binMost))
}

// binDefines spells the schedule and the figures of bins.
func binDefines(v *ir.Variant) string {
	return scatterDefines(v) + fmt.Sprintf("#define BIN_LEAST %d\n#define SLICE %d\n", binLeast, binSlice)
}

// binOwn is the workspace of a launch, as struct Bins of scatter_bins.cuh has it.
func binOwn(k *ir.Kernel, v *ir.Variant) workspace {
	times := func(a *ir.Expr, n int64) *ir.Expr { return ir.Apply(ir.OpMul, a, ir.IntConst(n)) }
	tiles, columns := scatterGrid(k, v), product(extents(k.Cols))
	chunk := int64(binChunk * v.Schedule.Threads)
	chunks := ceilDiv(columns, chunk)
	crowded, cut := ir.Apply(ir.OpFloorDiv, columns, ir.IntConst(binLeast)), ir.Apply(ir.OpFloorDiv, columns, ir.IntConst(binSlice))
	bytes := times(ir.Apply(ir.OpMul, tiles, binRoom(k, v)), 8)
	for _, more := range []*ir.Expr{
		times(chunks, 8*chunk), times(ir.Apply(ir.OpAdd, chunks, ir.IntConst(3)), 4), // columns in order, and how many of each chunk
		times(ir.Apply(ir.OpAdd, crowded, ir.IntConst(1)), 16),                           // crowded tiles
		times(ir.Apply(ir.OpAdd, ir.Apply(ir.OpAdd, cut, crowded), ir.IntConst(4)), 2*4), // slices, and tiles with partial results
		ir.IntConst(32),
		ir.Apply(ir.OpMul, partBytes(k, v), cut),
	} {
		bytes = ir.Apply(ir.OpAdd, bytes, more)
	}
	return workspace{counters: ir.Apply(ir.OpAdd, times(tiles, binApart), ir.IntConst(binCounters)), bytes: bytes}
}

// partBytes is the size of a table of partial results.
func partBytes(k *ir.Kernel, v *ir.Variant) *ir.Expr {
	bytes := 0
	for _, f := range v.Sections[0].Folds {
		bytes += stateBytes(f) * v.Schedule.Vector * v.Schedule.TileM
	}
	return ir.Apply(ir.OpMul, vectorsOfLanes(k, v), ir.IntConst(int64(bytes)))
}
