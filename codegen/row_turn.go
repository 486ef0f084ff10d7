package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// rowTurn writes kernels with turned rows: some tensors are contiguous along the rows, and others along the columns.
// A block takes TILE_M neighbouring rows. Tensors that are contiguous along the rows are copied, in the order of
// memory, to or from a tile in shared memory, where the threads of a row find their columns.
type rowTurn struct {
	*rowEmitter
	tiles map[any]string // of staged reads and stores, in shared memory
	from  string         // first row of the block
}

func newRowTurn(e *emitter) *rowTurn {
	t := &rowTurn{rowEmitter: newRow(e, false), tiles: map[any]string{}}
	t.rowKind = rowKind{staging: t.turned, arrived: func(name string) string { return name + "[own + u * ROW_THREADS + lane]" }}
	return t
}

func turnDefines(v *ir.Variant) string {
	s := v.Schedule
	return rowDefines(v) + fmt.Sprintf("#define TILE_M %d\n#define PITCH %d\n#define SKEW %d\n#define BATCH %d\n", s.TileM, ir.TurnedPitch(s),
		ir.TurnedSkew(s), max(turnBatch, s.Vector))
}

// turned writes the block's tiles and the reads that fill them, and returns the function that
// stores them at the end.
func (e *rowTurn) turned() (store func()) {
	s := e.v.Schedule
	e.from = e.names.Fresh("rows_from")
	e.line("const INDEX %s = (INDEX)%s * TILE_M;", e.from, e.block)
	e.line("const int own = threadIdx.x / ROW_THREADS * PITCH + threadIdx.x / ROW_THREADS / VECTOR * SKEW; // vectors ahead of the row's")
	e.line("extern __shared__ __align__(16) unsigned char turned_rows[];")
	place := 0
	tile := func(of any, t ir.DType, name string) string {
		e.tiles[of] = e.names.Fresh(name + "_tile")
		e.line("auto *const %s = reinterpret_cast<Vec<%s, VECTOR> *>(turned_rows + %d);", e.tiles[of], spell.StorageType(t), place)
		place += ir.TurnedTile(s, t)
		return e.tiles[of]
	}
	for _, l := range e.v.Staged {
		e.staged[l] = tile(l, readOf(l.Def).Type, l.Name)
	}
	stores := stagedStores(e.v)
	for _, st := range stores {
		e.outRows[st] = tile(st, st.Arg.Type, st.Arg.Name) + "[own + u * ROW_THREADS + lane].v[0]"
	}
	for _, l := range e.v.Staged {
		e.turnIn(l)
	}
	if len(e.v.Staged) > 0 {
		e.line("__syncthreads();")
	}
	return func() {
		if len(stores) > 0 {
			e.line("__syncthreads();")
		}
		for _, st := range stores {
			e.turnOut(st)
		}
	}
}

// turnedAt is a vector of columns of a row in a tile.
func turnedAt(tile, row, vector string) string {
	return fmt.Sprintf("%s[(%s) * PITCH + (%s) / VECTOR * SKEW + %s]", tile, row, row, vector)
}

// share opens a loop over the thread's share of a tile, in pieces of some rows by some columns. Neighbouring threads
// have pieces of neighbouring rows, which are neighbours in memory. It writes the first row and the first column of a
// piece.
func (e *rowTurn) share(rows, columns string, uses ...*ir.Expr) {
	cols := e.s.Expr(product(extents(e.k.Cols)))
	e.open("for (int at = threadIdx.x; at < %[1]s * ((%[2]s + %[3]s - 1) / %[3]s); at += THREADS)", rows, cols, columns)
	e.line("const int at_p = at %% (%[1]s) * (TILE_M / (%[1]s)), at_q = at / (%[1]s) * %[2]s;", rows, columns)
	e.line("const INDEX row = %s + at_p;", e.from)
	e.line("if (row >= %s) continue;", e.s.Expr(product(extents(e.rows()))))
	e.take(e.rows(), "row", uses...)
}

// columns opens a loop over the columns of a piece.
func (e *rowTurn) columns(variable, count string, uses ...*ir.Expr) {
	e.line("#pragma unroll")
	e.open("for (int %s = 0; %[1]s < %s; ++%[1]s)", variable, count)
	e.line("const INDEX c = at_q + %s;", variable)
	e.line("if (c >= %s) continue;", e.s.Expr(product(extents(e.k.Cols))))
	e.take(e.k.Cols, "c", uses...)
}

// turnIn fills the tile of a read.
func (e *rowTurn) turnIn(l *ir.Local) {
	r, tile := readOf(l.Def), e.tiles[l]
	kind := spell.StorageType(r.Type)
	if !l.Wide { // each thread reads some columns of a row, element by element
		e.share("TILE_M", "BATCH", r.Args[0], r.Guard)
		e.line("Vec<%s, VECTOR> turn_piece[BATCH / VECTOR];", kind)
		e.columns("v", "BATCH", r.Args[0], r.Guard)
		e.noted(l.Span, "turn_piece[v / VECTOR].v[v %% VECTOR] = %s;", e.read(r))
		e.close()
		e.line("#pragma unroll")
		e.line("for (int u = 0; u < BATCH / VECTOR; ++u) if (at_q + u * VECTOR < %s) %s = turn_piece[u];", e.s.Expr(product(extents(e.k.Cols))), turnedAt(tile, "at_p", "at_q / VECTOR + u"))
		e.close()
		return
	}
	e.share("(TILE_M / VECTOR)", "VECTOR", r.Args[0], r.Guard)
	e.line("[[maybe_unused]] constexpr int n = VECTOR;")
	e.line("Vec<%s, VECTOR> turn_square[VECTOR];", kind)
	e.columns("u", "VECTOR", r.Args[0], r.Guard)
	e.noted(l.Span, "turn_square[u] = %s;", e.wide(r))
	e.close()
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	e.turnVector(kind)
	e.line("%s = turn_vector;", turnedAt(tile, "at_p + v", "at_q / VECTOR"))
	e.close()
	e.close()
}

// turnVector writes the v-th vector of a transposed square, from the vectors that were read.
func (e *rowTurn) turnVector(kind string) {
	e.line("Vec<%s, VECTOR> turn_vector;", kind)
	e.line("#pragma unroll")
	e.line("for (int u = 0; u < VECTOR; ++u) turn_vector.v[u] = turn_square[u].v[v];")
}

// turnOut stores the tile of a store.
func (e *rowTurn) turnOut(st *ir.Store) {
	tile, kind, to := e.tiles[st], spell.StorageType(st.Arg.Type), e.args[st.Arg]
	if !st.Wide {
		e.share("TILE_M", "BATCH", st.Offset)
		e.columns("v", "BATCH", st.Offset)
		e.noted(st.Span, "%s[%s] = %s.v[v %% VECTOR];", to, e.s.Bare(st.Offset), turnedAt(tile, "at_p", "at_q / VECTOR + v / VECTOR"))
		e.close()
		e.close()
		return
	}
	e.share("(TILE_M / VECTOR)", "VECTOR", st.Offset)
	e.line("Vec<%s, VECTOR> turn_square[VECTOR];", kind)
	e.line("#pragma unroll")
	e.line("for (int u = 0; u < VECTOR; ++u) turn_square[u] = %s;", turnedAt(tile, "at_p + u", "at_q / VECTOR"))
	e.columns("v", "VECTOR", st.Offset)
	e.turnVector(kind)
	e.noted(st.Span, "*reinterpret_cast<Vec<%s, VECTOR> *>(%s + %s) = turn_vector;", kind, to, e.s.Expr(st.Offset))
	e.close()
	e.close()
}

// turnBatch is the least columns that a thread takes together where it reads or stores single elements, so that many
// accesses are under way.
const turnBatch = 8
