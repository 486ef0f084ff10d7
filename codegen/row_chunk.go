package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Rows in chunks, for rows so long that shared memory holds no two of them. The chunks of a row are dealt out to the
// warps in turn. Each warp has a ring in shared memory for its own chunks, which the copy engine fills in order, row
// after row, and the warp waits for these copies only. The first chunks of a row go on to registers; the others stay
// in the ring until the last pass has read them. A place of the ring is filled with the next chunk as soon as it is
// free, so the next row arrives while this one is computed and stored. Warps wait for each other in folds only.
//
// A dynamic scheduler gives blocks their rows.

// rowChunk writes these kernels.
type rowChunk struct {
	*rowEmitter
	registerName map[*ir.Local]string // the array with a thread's chunks in registers, of each read
}

func newRowChunk(e *emitter) *rowChunk {
	c := &rowChunk{rowEmitter: newRow(e, true), registerName: map[*ir.Local]string{}}
	c.rowKind = rowKind{looped: true, stays: true, fetched: true, vector: c.position, arrived: c.arrivedVector, pass: c.passOverChunks,
		pairs: c.foldPairs, row: c.fetchMore}
	return c
}

func (e *rowChunk) kernel() {
	e.line("const INDEX cols = %s;", e.s.Bare(product(extents(e.k.Cols))))
	e.loopRows(e.rowBody)
}

// position writes the first column of a vector, and how many of its elements exist.
func (e *rowChunk) position() {
	e.line("[[maybe_unused]] const INDEX c = base + (u * 32 + threadIdx.x %% 32) * VECTOR;")
	e.line("[[maybe_unused]] const int n = c < cols ? VECTOR : 0;")
}

func (e *rowChunk) arrivedVector(name string) string { return name + "[u * 32 + threadIdx.x % 32]" }

// fetchMore goes on fetching with the row that the scheduler has given.
func (e *rowChunk) fetchMore() {
	e.open("if (threadIdx.x %% 32 == 0)")
	e.line("if (prefetched == 2) fetch_row = row_2;")
	e.line("fetch();")
	e.close()
}

func chunkPreludes(k *ir.Kernel, v *ir.Variant) string {
	return skeleton.Text("hopper", "chunks", "scheduler") + scanPreludes(k, v)
}

func chunkDefines(v *ir.Variant) string {
	return rowDefines(v) + fmt.Sprintf("#define STAGES %d\n#define REGISTER_CHUNKS %d\n", v.Schedule.Stages, v.Schedule.RegisterChunks)
}

// loopRows writes the loop of a block, or of a cluster, over its rows.
func (e *rowChunk) loopRows(body func()) {
	e.line("constexpr int WARPS = ROW_THREADS / 32;")
	e.line("constexpr INDEX CHUNK = ITEMS * 32 * VECTOR, TURN = CHUNK * WARPS * CLUSTER; // columns")
	e.line("constexpr int CHUNK_BYTES = ITEMS * 32 * VECTOR * %d;", stagedBytes(e.v))
	e.line("const INDEX rows = %s;", e.s.Bare(product(extents(e.k.Rows))))
	e.line("const INDEX stride = gridDim.x / CLUSTER;")
	e.line("const int rank = CLUSTER > 1 ? cluster_rank() : 0, warp = threadIdx.x / 32;")
	e.line("[[maybe_unused]] const int lane = rank * ROW_THREADS + threadIdx.x;")
	e.line("const int chunks = (int)((cols + TURN - 1) / TURN); // of a warp, from mine on")
	e.line("const INDEX mine = (rank * WARPS + warp) * CHUNK;")
	e.divisors()
	e.line("extern __shared__ __align__(128) unsigned char ring_places[]; // [WARPS][STAGES][CHUNK_BYTES]")
	e.line("__shared__ Barrier arrived[WARPS][STAGES], meeting[2];")
	e.line("unsigned char *const ring = ring_places + warp * (STAGES * CHUNK_BYTES);")
	e.firstRows()
	e.fetchChunk()
	e.open("if (threadIdx.x %% 32 == 0)")
	e.line("for (int s = 0; s < STAGES; ++s) barrier_init(shared_address(&arrived[warp][s]), 1);")
	e.line("if (warp == 0) barrier_init(shared_address(&meeting[0]), 1), barrier_init(shared_address(&meeting[1]), 1);")
	e.line("barriers_publish();")
	e.line("fetch();")
	e.close()
	e.line("__syncthreads();")
	if e.v.Schedule.Cluster > 1 {
		e.line("row_sync<ROW_THREADS, CLUSTER>(); // all blocks of the cluster are there")
	}
	e.awaited = true
	e.line("unsigned turn = 0, parity = 0;")
	e.line("Meetings meetings{meeting, 0};")
	e.line("int place = 0; // of the next chunk")
	e.startScheduler()
	e.open("for (; row < rows; ++turn)")
	e.takeTile()
	e.take(e.k.Rows, "row", e.every()...)
	e.rowReads()
	for _, l := range e.v.Staged {
		name := e.names.Fresh(l.Name + "_held")
		e.registerName[l] = name
		e.line("Vec<%s, VECTOR> %s[REGISTER_CHUNKS > 0 ? REGISTER_CHUNKS : 1][ITEMS];", spell.StorageType(readOf(l.Def).Type), name)
	}
	body()
	e.line("%s, --prefetched;", nextRow)
	e.close()
}

// fetchChunk writes the function by which the first lane of a warp starts the copies of the next chunks to all free
// places of the ring. In a place, the staged reads lie one after the other.
func (e *rowChunk) fetchChunk() {
	whole := e.v.Run == len(e.k.Cols)
	if !whole {
		run := product(extents(e.k.Cols[len(e.k.Cols)-e.v.Run:]))
		e.line("const INDEX run = %s; // columns that are neighbours in memory", e.s.Bare(run))
	}
	e.line("INDEX fetch_row = row;")
	e.line("int prefetched = 0, fetch_chunk = 0, fetch_place = 0, free_places = STAGES; // rows ahead of this one")
	e.open("auto fetch = [&]")
	e.open("for (; free_places > 0 && fetch_row < rows; --free_places)")
	e.take(e.k.Rows, "fetch_row", definitions(e.v.Staged)...)
	e.line("const INDEX begin = mine + fetch_chunk * TURN, end = min(cols, begin + CHUNK);")
	e.line("const unsigned bar = shared_address(&arrived[warp][fetch_place]), to = shared_address(ring) + fetch_place * CHUNK_BYTES;")
	e.line("barrier_expect(bar, max((int)(end - begin), 0) * %d);", stagedBytes(e.v))
	if whole {
		e.open("if (begin < end)")
		e.line("const INDEX c = begin;")
		e.line("const int n = (int)(end - begin);")
	} else {
		e.open("for (INDEX c = begin, next; c < end; c = next)")
		e.line("next = min(end, c - c %% run + run);")
		e.line("const int n = (int)(next - c);")
	}
	e.copyRun("CHUNK", "begin")
	e.close()
	e.line("if (++fetch_place == STAGES) fetch_place = 0;")
	e.line("if (++fetch_chunk == chunks) fetch_chunk = 0, ++prefetched, fetch_row = prefetched == 1 ? row_1 : prefetched == 2 ? row_2 : rows;")
	e.close()
	e.closeWith(";")
}

// passOverChunks writes one pass over the chunks of a row. The first pass takes chunks as they arrive. The last pass
// begins with the chunks in the ring, so that their places become free early, and ends with those in registers.
func (e *rowChunk) passOverChunks(number int, sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string) {
	first, last := number == 0, e.lastPass(sec)
	if first {
		e.registerChunks(sec, full, states, true, last)
		e.line("const int kept = place; // where the chunks that stay in the ring begin")
		e.chunksInRing(sec, full, states, true, last)
		return
	}
	e.chunksInRing(sec, full, states, false, last)
	e.registerChunks(sec, full, states, false, last)
}

// lastPass reports whether no later section goes over the columns.
func (e *rowChunk) lastPass(sec *ir.Section) bool {
	last := sec
	for _, s := range e.v.Sections {
		if s.Level == ir.FullLevel {
			last = s
		}
	}
	return last == sec
}

// registerChunks writes the loop over the chunks in registers; the first pass moves them there from the ring.
func (e *rowChunk) registerChunks(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string, first, last bool) {
	reads, rest := e.splitReads(full)
	e.line("#pragma unroll")
	e.open("for (int chunk = 0; chunk < REGISTER_CHUNKS; ++chunk)")
	e.open("if (chunk < chunks)")
	e.line("const INDEX base = mine + chunk * TURN;")
	for _, l := range e.v.Staged {
		e.rawName[l] = e.registerName[l] + "[chunk]"
		e.raw(l, "[u].v[v]")
	}
	if first {
		e.arriveChunk()
		e.ringVectors("place")
		e.openVectors()
		for _, l := range e.v.Staged {
			e.line("%s[u] = %s;", e.rawName[l], e.arrivedVector(e.staged[l]))
		}
		e.closeVectors()
	}
	e.passChunk(sec, e.unstaged(reads), rest, states)
	if first {
		e.freeChunk()
		e.nextPlace("place")
	}
	if !last {
		for _, l := range e.v.Staged {
			e.line("launder(%s);", e.rawName[l])
		}
	}
	e.close()
	e.close()
	for _, l := range e.v.Staged {
		delete(e.rawName, l)
	}
}

// chunksInRing writes the loop over the chunks that stay in the ring.
func (e *rowChunk) chunksInRing(sec *ir.Section, full []*ir.Local, states map[*ir.Fold]string, first, last bool) {
	reads, rest := e.splitReads(full)
	at := "place"
	if !first {
		at = e.names.Fresh("at")
		e.line("int %s = kept;", at)
	}
	e.line("#pragma unroll 1")
	e.open("for (int chunk = REGISTER_CHUNKS; chunk < chunks; ++chunk)")
	e.line("const INDEX base = mine + chunk * TURN;")
	if first {
		e.arriveChunk()
	}
	e.ringVectors(at)
	e.passChunk(sec, reads, rest, states)
	if last {
		e.freeChunk()
	}
	e.nextPlace(at)
	e.close()
	for _, l := range e.v.Staged {
		delete(e.rawName, l)
	}
}

// passChunk folds and stores the vectors of a chunk.
func (e *rowChunk) passChunk(sec *ir.Section, reads, rest []*ir.Local, states map[*ir.Fold]string) {
	e.loadLoop(reads)
	if streamed(sec) {
		e.maxima(sec, rest, states)
		for _, l := range e.v.Staged {
			e.line("launder(%s);", e.rawName[l])
		}
	}
	e.computeLoop(sec, rest, states)
}

// ringVectors writes the address of each staged read's vectors in a place of the ring.
func (e *rowChunk) ringVectors(place string) {
	e.stagedVectors("const ", "ring + "+place+" * CHUNK_BYTES", "ITEMS * 32")
}

func (e *rowChunk) arriveChunk() {
	e.line("barrier_wait(shared_address(&arrived[warp][place]), parity);")
}

// freeChunk writes the copy that fills the place of a chunk again, once all lanes have used its values. It is not
// enough that the reads were issued: the copy could overtake a read whose value nothing has waited for.
func (e *rowChunk) freeChunk() {
	e.line("__syncwarp();")
	e.line("if (threadIdx.x %% 32 == 0) ++free_places, fetch();")
}

// nextPlace goes on to the next place of the ring; at its end the parity of the barriers changes.
func (e *rowChunk) nextPlace(place string) {
	if place == "place" {
		e.line("if (++place == STAGES) place = 0, parity ^= 1;")
		return
	}
	e.line("if (++%[1]s == STAGES) %[1]s = 0;", place)
}

// foldPairs folds the current vectors two elements at a time, where the fold is a maximum or minimum of 16-bit
// floats as they were read, which gives the same result. It reports whether it is such a fold.
func (e *rowChunk) foldPairs(f *ir.Fold, state string) bool {
	if f.Op != ir.Max && f.Op != ir.Min || f.Where != nil || f.Body.Op != ir.OpLocal || f.Body.Type != ir.F32 {
		return false
	}
	l := f.Body.Local
	r := readOf(l.Def)
	if r == nil || r.Type != ir.BF16 && r.Type != ir.F16 || e.rawName[l] == "" {
		return false
	}
	pair := e.names.Fresh(f.Result.Name + "_pair")
	e.line("Pair %s = pair_start<%s>(%s);", pair, r.Type, foldStart(f))
	e.openVectors()
	e.line("fold_pairs<%s>(%s, %s[u]);", foldClass(f.Op), pair, e.rawName[l])
	e.closeVectors()
	e.line("%s = fold_lanes<%s, %s>(%s, %s);", state, foldClass(f.Op), r.Type, state, pair)
	return true
}
