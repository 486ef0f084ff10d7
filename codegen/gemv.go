package codegen

import (
	_ "embed"
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

//go:embed gemv.cuh
var gemvPrelude string

// gemvKernel writes a kernel for few rows of one side, x, and many of the other, w:
// each thread reads pieces of w's rows, of which its warp makes fragments without a
// detour through shared memory. The warps of a block take different columns.
func (e *emitter) gemvKernel() {
	c := e.v.Contract
	x := &side{e: e, name: "a", row: "m", own: c.M, o: c.A, element: c.Type}
	w := &side{e: e, name: "b", row: "n", own: c.N, o: c.B[0], element: c.Type}
	if c.FewN {
		x, w = w, x
	}
	e.line("using Element = %s;", storageType(c.Type))
	e.line("using Total = float;")
	e.line("const INDEX extent_m = %s, extent_n = %s, extent_k = %s;", e.size(c.M), e.size(c.N), e.size(e.k.Cols))
	e.line("const INDEX tiles_%[1]s = (extent_%[1]s + TILE_N - 1) / TILE_N;", w.row)
	if len(c.Batch) > 0 {
		e.line("const INDEX batch = blockIdx.x / tiles_%s;", w.row)
		e.take(c.Batch, "batch", e.every()...)
	}
	e.line("const INDEX origin_%[1]s = blockIdx.x %% tiles_%[1]s * TILE_N;", w.row)
	e.line("constexpr INDEX origin_%s = 0;", x.row)
	e.line("constexpr int WARPS = THREADS / 32, PIECE = %d, STEP = WARPS * 4 * PIECE;", w.o.Pieces.Length)
	e.line("const int lane_row = threadIdx.x %% 32 / 4;")
	e.line("const INDEX first_k = (threadIdx.x / 32 * 4 + threadIdx.x %% 4) * PIECE;")
	e.line("float parts[TILE_N / 8][4] = {};")
	e.open("for (INDEX begin_k = 0; begin_k < extent_k; begin_k += ITEMS * STEP)")
	w.declare("[ITEMS][TILE_N / 8]")
	e.nest([2]string{"turn", "ITEMS"}, [2]string{"tile", "TILE_N / 8"}, func() {
		w.gemvPosition("8 * tile + lane_row", "")
		w.loads("[turn][tile]")
	})
	e.nest([2]string{"turn", "ITEMS"}, [2]string{"sub", "PIECE / 8"}, func() {
		e.line("unsigned fragment_x[2][4], fragment_w[4];")
		e.nest([2]string{"upper", "2"}, [2]string{}, func() {
			x.gemvPosition("8 * upper + lane_row", " + 8 * sub")
			if x.o.Pieces == nil {
				x.gather("fragment_x[upper]")
				return
			}
			x.declare("")
			x.loads("")
			x.fragment("fragment_x[upper]", "", "0")
		})
		e.nest([2]string{"tile", "TILE_N / 8"}, [2]string{}, func() {
			w.gemvPosition("8 * tile + lane_row", "")
			w.fragment("fragment_w", "[turn][tile]", "sub")
			e.line("multiply_pieces<Element>(parts[tile], fragment_x, fragment_w);")
		})
	})
	e.close()
	e.gemvEpilogue(c)
}

// nest writes one or two unrolled loops around body.
func (e *emitter) nest(outer, inner [2]string, body func()) {
	for _, loop := range [][2]string{outer, inner} {
		if loop[0] != "" {
			e.line("#pragma unroll")
			e.open("for (int %[1]s = 0; %[1]s < %[2]s; ++%[1]s)", loop[0], loop[1])
		}
	}
	body()
	for _, loop := range [][2]string{outer, inner} {
		if loop[0] != "" {
			e.close()
		}
	}
}

// declare writes the registers of a side's reads.
func (s *side) declare(dims string) {
	for _, r := range s.o.Pieces.Reads {
		s.e.rawName[r.Local] = s.e.names.fresh(r.Local.Name)
		s.e.line("Vec<%s, %d> %s%s;", storageType(r.Arg.Type), r.Width, s.e.rawName[r.Local], dims)
	}
}

// gemvPosition writes where the thread's piece is in the operand.
func (s *side) gemvPosition(row, more string) {
	s.e.line("const INDEX at_%s = origin_%s + %s, at_k = begin_k + turn * STEP + first_k%s;", s.row, s.row, row, more)
	s.e.line("const bool inside = at_%s < extent_%s && at_k < extent_k;", s.row, s.row)
}

// loads writes the reads of one piece into registers.
func (s *side) loads(at string) {
	e, p := s.e, s.o.Pieces
	var bases []*ir.Expr
	for _, r := range p.Reads {
		bases = append(bases, r.Base)
	}
	e.open("if (inside)")
	s.take(bases...)
	for _, r := range p.Reads {
		e.noted(r.Local.Span, "%s%s = load<%d>(%s + %s, %d);", e.rawName[r.Local], at, r.Width, e.args[r.Arg], e.s.expr(r.Base), r.Width)
	}
	e.close()
}

// fragment writes eight elements of a piece as words for the tensor cores: what was
// read, or what is computed from it; zeros outside.
func (s *side) fragment(to, at, sub string) {
	e, p := s.e, s.o.Pieces
	if r := p.Reads[0]; len(p.Reads) == 1 && r.Arg.Type == s.element && isLane(p, r) {
		e.line("words(%s, %s%s, %s, inside);", to, e.rawName[r.Local], at, sub)
		return
	}
	e.line("float values[8] = {};")
	e.open("if (inside)")
	s.pieceValues(at, sub, func(value string) { e.noted(p.Value.Span, "values[v %% 8] = %s;", value) })
	e.close()
	e.line("pack_pairs(%s, values, Element{});", to)
}

// gather writes eight elements as words for the tensor cores, each computed by
// itself from memory.
func (s *side) gather(to string) {
	e := s.e
	e.line("float values[8] = {};")
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < 8; ++v)")
	e.line("const INDEX at_col = at_k + v;")
	e.open("if (inside && at_col < extent_k)")
	s.value("at_col", func(value string) { e.line("values[v] = %s;", value) })
	e.close()
	e.close()
	e.line("pack_pairs(%s, values, Element{});", to)
}

// isLane reports whether a piece is what it reads, converted.
func isLane(p *ir.Piece, r ir.Packed) bool {
	value := p.Value
	if value.Op == ir.OpLocal && value.Local.Def != nil {
		value = value.Local.Def
	}
	if value.Op == ir.OpCast {
		value = value.Args[0]
	}
	return value.Op == ir.OpLocal && value.Local == r.Local && r.At.Op == ir.OpRange && r.Width == p.Length
}

// gemvEpilogue adds the warps' sums in order, then writes what follows them.
func (e *emitter) gemvEpilogue(c *ir.Contract) {
	e.epilogueLane(c)
	alongN := e.lane == nil || slices.Contains(c.N, e.lane)
	along, across := "n", "m"
	if !alongN {
		along, across = "m", "n"
	}
	// Sums are kept the way results run: x's rows are those of M, or of N.
	linesOfX := alongN != c.FewN
	width := "TILE_N"
	if !linesOfX {
		width = "TILE_M"
	}
	e.line("constexpr int WIDTH = %s, LINES = TILE_M * TILE_N / WIDTH;", width)
	e.line("__shared__ __align__(16) float sums[WARPS][LINES][WIDTH + 4];")
	e.nest([2]string{"tile", "TILE_N / 8"}, [2]string{"part", "4"}, func() {
		e.line("const int row_x = lane_row + part / 2 * 8, row_w = 8 * tile + threadIdx.x %% 4 * 2 + part %% 2;")
		at := "[row_x][row_w]"
		if !linesOfX {
			at = "[row_w][row_x]"
		}
		e.line("sums[threadIdx.x / 32]%s = parts[tile][part];", at)
	})
	e.line("__syncthreads();")
	e.open("for (int chunk = threadIdx.x; chunk < LINES * WIDTH / VECTOR; chunk += THREADS)")
	e.line("const int sum_line = chunk / (WIDTH / VECTOR), sum_at = chunk %% (WIDTH / VECTOR) * VECTOR;")
	e.line("const INDEX at_%s = origin_%s + sum_line, at_%s = origin_%s + sum_at;", across, across, along, along)
	e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
	e.line("Total total[VECTOR] = {};")
	e.line("#pragma unroll")
	e.open("for (int warp = 0; warp < WARPS; ++warp)")
	e.line("#pragma unroll")
	e.line("for (int v = 0; v < VECTOR; ++v) total[v] += sums[warp][sum_line][sum_at + v];")
	e.close()
	e.sumStores(c, e.v.Sections[0].Folds[0], e.v.Sections[1])
	e.close()
}

// gemvGrid is the number of blocks: TileN rows of the many, in every batch.
func gemvGrid(v *ir.Variant) *ir.Expr {
	c := v.Contract
	many := c.N
	if c.FewN {
		many = c.M
	}
	return ir.Apply(ir.OpMul, ceilDiv(product(extents(many)), int64(v.Schedule.TileN)), product(extents(c.Batch)))
}

func gemvDefines(s ir.Schedule) string {
	return fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K 16\n#define PART_M 16\n#define PART_N 8\n#define CLUSTER 1\n#define ITEMS %d\n",
		s.TileM, s.TileN, s.Unroll)
}
