package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// contractGemv writes kernels of products of few rows.
type contractGemv struct{ contractEmitter }

// gemvSides are the operands of a product with few rows on one side.
type gemvSides struct {
	few, many *side // x and w in the text
	scale     *side // factor of many that is hoisted out of the sums; nil for none
}

func newContractGemv(e *emitter) *contractGemv { return &contractGemv{newContract(e)} }

// kernel writes a kernel for few rows of one side, x in the text, and many rows of the other, w. Each
// thread reads pieces of w's rows, of which its warp makes fragments in registers, without shared memory
// between. The warps of a block take different columns.
func (e *contractGemv) kernel() {
	c := e.v.Contract
	x := &side{e: &e.contractEmitter, name: "a", row: "m", own: c.M, o: c.A, element: c.Type, words: true}
	w := &side{e: &e.contractEmitter, name: "b", row: "n", own: c.N, o: c.B[0], element: c.Type, words: true}
	if c.FewN {
		x, w = w, x
	}
	g := gemvSides{few: x, many: w}
	if w.o.Scale != nil {
		g.scale = &side{e: &e.contractEmitter, name: "scale", row: w.row, own: w.own, o: ir.Operand{Pieces: w.o.Scale}, element: c.Type}
	}
	e.line("using Element = %s;", spell.StorageType(c.Type))
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
	e.line("const int warp = threadIdx.x / 32, lane_row = threadIdx.x %% 32 / 4;")
	e.line("const INDEX first_k = (warp * ITEMS * 4 + threadIdx.x %% 4) * PIECE;")
	e.line("float parts[TILE_N / 16][TILE_M / 8][4] = {};")
	e.gemvFetch(g)
	e.gemvMultiply(g)
	e.open("for (INDEX begin_k = 0; begin_k < extent_k; begin_k += ITEMS * STEP)")
	e.line("fetch(begin_k);")
	e.line("multiply_step(begin_k);")
	e.close()
	e.gemvEpilogue(c)
}

// gemvFetch writes the reads of a step into registers.
func (e *contractGemv) gemvFetch(g gemvSides) {
	g.many.declare("[ITEMS][TILE_N / 8]")
	if g.scale != nil {
		g.scale.declare("[ITEMS][TILE_N / 8]")
	}
	if g.few.o.Pieces != nil {
		g.few.declare("[ITEMS][TILE_M / 8][PIECE / 8]")
	}
	e.open("auto fetch = [&]([[maybe_unused]] INDEX begin_k)")
	e.unrolled("turn", "ITEMS", func() {
		e.unrolled("tile", "TILE_N / 8", func() {
			g.many.gemvPosition("8 * tile + lane_row", "")
			g.many.loads("[turn][tile]")
			if g.scale != nil {
				g.scale.loads("[turn][tile]")
			}
		})
	})
	if g.few.o.Pieces != nil {
		e.unrolled("turn", "ITEMS", func() {
			e.unrolled("tile", "TILE_M / 8", func() {
				e.unrolled("sub", "PIECE / 8", func() {
					g.few.gemvPosition("8 * tile + lane_row", " + 8 * sub")
					g.few.loads("[turn][tile][sub]")
				})
			})
		})
	}
	e.closeWith(";")
}

// gemvMultiply writes the multiplication of what a step has read. The rows of w are the rows of fragments,
// and those of x are the columns, so that everything that is unpacked is multiplied at once.
func (e *contractGemv) gemvMultiply(g gemvSides) {
	e.open("auto multiply_step = [&](INDEX begin_k)")
	e.unrolled("turn", "ITEMS", func() {
		e.gemvColumns(g)
		if f := g.many.o.Pieces.Fields; f != nil {
			e.fieldConstants(f)
		}
		e.gemvTiles(g)
	})
	e.closeWith(";")
}

// gemvColumns writes the fragments of x's pieces, in the order of the pairs in the fragments of w.
func (e *contractGemv) gemvColumns(g gemvSides) {
	e.line("unsigned fragment_x[PIECE / 8][TILE_M / 8][4];")
	e.unrolled("tile", "TILE_M / 8", func() {
		e.line("unsigned words_x[PIECE / 8][4];")
		e.unrolled("sub", "PIECE / 8", func() {
			g.few.gemvPosition("8 * tile + lane_row", " + 8 * sub")
			if g.few.o.Pieces == nil {
				g.few.gather("words_x[sub]")
				return
			}
			g.few.fragment("words_x[sub]", "[turn][tile][sub]", "0")
		})
		e.line("#pragma unroll")
		e.line("for (int sub = 0; sub < PIECE / 8; ++sub) pick_pairs<%s>(fragment_x[sub][tile], words_x, sub);",
			gemvOrder(g.many.o.Pieces))
	})
}

// gemvTiles writes the products of w's rows with these fragments, tile by tile, so that few sums wait
// for their factor.
func (e *contractGemv) gemvTiles(g gemvSides) {
	e.unrolled("tile", "TILE_N / 16", func() {
		into := "parts[tile]"
		if g.scale != nil {
			into = "sums_w"
			e.line("float sums_w[TILE_M / 8][4] = {};")
		}
		e.unrolled("sub", "PIECE / 8", func() {
			e.line("unsigned fragment_w[2][4];")
			e.unrolled("upper", "2", func() {
				g.many.gemvPosition("16 * tile + 8 * upper + lane_row", "")
				at := "[turn][2 * tile + upper]"
				if g.many.o.Pieces.Fields != nil {
					g.many.unpack("fragment_w[upper]", at)
					return
				}
				g.many.fragment("fragment_w[upper]", at, "sub")
			})
			e.line("#pragma unroll")
			e.line("for (int few = 0; few < TILE_M / 8; ++few) multiply_pieces<Element>(%s[few], fragment_w, fragment_x[sub][few]);", into)
		})
		if g.scale != nil {
			e.gemvScale(g.scale)
		}
	})
}

// declare writes the registers of a side's reads.
func (s *side) declare(dims string) {
	for i, r := range s.o.Pieces.Reads {
		s.e.rawName[r.Local] = s.e.names.Fresh(r.Local.Name)
		if s.inWords(i) {
			s.e.line("Vec<unsigned, %d> %s%s;", r.Width*r.Arg.Type.Size()/4, s.e.rawName[r.Local], dims)
			continue
		}
		s.e.line("Vec<%s, %d> %s%s;", spell.StorageType(r.Arg.Type), r.Width, s.e.rawName[r.Local], dims)
	}
}

// inWords reports whether a read is kept as words until fragments are made of these, and no element is
// needed by itself.
func (s *side) inWords(read int) bool {
	p := s.o.Pieces
	return s.words && (p.Fields != nil && p.Fields.Read == read || s.asInMemory() || s.isByteFloat())
}

// isByteFloat reports whether the elements of a piece are 8-bit floats that it reads, unchanged.
func (s *side) isByteFloat() bool {
	p := s.o.Pieces
	t := p.Reads[0].Arg.Type
	return len(p.Reads) == 1 && t.IsFloat() && t.Size() == 1 && isLane(p, p.Reads[0])
}

// asInMemory reports whether the elements of a piece are exactly those that it reads, in the type
// of the tiles.
func (s *side) asInMemory() bool {
	p := s.o.Pieces
	r := p.Reads[0]
	return len(p.Reads) == 1 && r.Arg.Type == s.element && isLane(p, r)
}

// gemvPosition writes where the thread's piece is in the operand.
func (s *side) gemvPosition(row, more string) {
	s.e.line("const INDEX at_%s = origin_%s + %s, at_k = begin_k + first_k + turn * 4 * PIECE%s;", s.row, s.row, row, more)
	s.e.line("[[maybe_unused]] const bool inside = at_%s < extent_%s && at_k < extent_k;", s.row, s.row)
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
	for i, r := range p.Reads {
		if s.inWords(i) {
			e.noted(r.Local.Span, "load_words(%s%s, %s + %s%s);", e.rawName[r.Local], at, e.args[r.Arg], e.s.Expr(r.Base), e.policyOf(r.Arg))
			continue
		}
		e.noted(r.Local.Span, "%s%s = load<%d>(%s + %s, %d);", e.rawName[r.Local], at, r.Width, e.args[r.Arg], e.s.Expr(r.Base), r.Width)
	}
	e.close()
}

// policyOf is the last argument of reads that the L2 cache is to evict first; empty for other reads.
func (e *contractEmitter) policyOf(arg *ir.Arg) string {
	for read, policy := range e.replaced {
		if read.Arg == arg {
			return ", " + policy
		}
	}
	return ""
}

// fragment writes eight elements of a piece as words for the tensor cores: as they were read, or computed
// from that; zeros outside.
func (s *side) fragment(to, at, sub string) {
	e, p := s.e, s.o.Pieces
	if s.asInMemory() {
		e.line("words(%s, %s%s, %s, inside);", to, e.rawName[p.Reads[0].Local], at, sub)
		return
	}
	if s.words && s.isByteFloat() {
		r := p.Reads[0]
		e.line("words_of_bytes<%s, Element>(%s, %s%s, %s, inside);", spell.StorageType(r.Arg.Type), to, e.rawName[r.Local], at, sub)
		return
	}
	e.line("float values[8] = {};")
	e.open("if (inside)")
	s.pieceValues(at, sub, func(value string) { e.noted(p.Value.Span, "values[v %% 8] = %s;", value) })
	e.close()
	e.line("pack_pairs(%s, values, Element{});", to)
}

// gather writes eight elements as words for the tensor cores, each read and computed by itself.
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

// isLane reports whether the elements of a piece are those that it reads, converted.
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

// gemvEpilogue adds the sums of the warps in order, then writes the epilogue.
func (e *contractGemv) gemvEpilogue(c *ir.Contract) {
	e.epilogueLane(c)
	alongN := e.lane == nil || slices.Contains(c.N, e.lane)
	along, across := "n", "m"
	if !alongN {
		along, across = "m", "n"
	}
	// Sums lie in the direction of the results: the rows of x are those of M, or those of N.
	linesOfX := alongN != c.FewN
	width := "TILE_N"
	if !linesOfX {
		width = "TILE_M"
	}
	e.line("constexpr int WIDTH = %s, LINES = TILE_M * TILE_N / WIDTH;", width)
	e.line("__shared__ __align__(16) float sums[WARPS][LINES][WIDTH + 4];")
	at := "[row_x][row_w]"
	if !linesOfX {
		at = "[row_w][row_x]"
	}
	e.unrolled("tile", "TILE_N / 16", func() {
		e.unrolled("few", "TILE_M / 8", func() {
			e.unrolled("part", "4", func() {
				e.line("const int row_w = 16 * tile + lane_row + part / 2 * 8, row_x = 8 * few + threadIdx.x %% 4 * 2 + part %% 2;")
				e.line("sums[warp]%s = parts[tile][few][part];", at)
			})
		})
	})
	e.line("__syncthreads();")
	e.open("for (int chunk = threadIdx.x; chunk < LINES * WIDTH / VECTOR; chunk += THREADS)")
	e.line("const int sum_line = chunk / (WIDTH / VECTOR), sum_at = chunk %% (WIDTH / VECTOR) * VECTOR;")
	e.line("const INDEX at_%s = origin_%s + sum_line, at_%s = origin_%s + sum_at;", across, across, along, along)
	e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
	e.line("Total total[VECTOR] = {};")
	e.line("#pragma unroll")
	e.open("for (int part = 0; part < WARPS; ++part)")
	e.line("#pragma unroll")
	e.line("for (int v = 0; v < VECTOR; ++v) total[v] += sums[part][sum_line][sum_at + v];")
	e.close()
	e.sumStores(c, e.v.Sections[0].Folds[0], e.v.Sections[1])
	e.close()
}

// gemvGrid is the number of blocks: tiles of TileN rows of the side with many, in every batch.
func gemvGrid(_ *ir.Kernel, v *ir.Variant) *ir.Expr {
	c := v.Contract
	many := c.N
	if c.FewN {
		many = c.M
	}
	return ir.Apply(ir.OpMul, ceilDiv(product(extents(many)), int64(v.Schedule.TileN)), product(extents(c.Batch)))
}

func gemvDefines(v *ir.Variant) string {
	s := v.Schedule
	return fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K 16\n#define PART_M 16\n#define PART_N 8\n#define CLUSTER 1\n#define ITEMS %d\n",
		s.TileM, s.TileN, s.Unroll)
}
