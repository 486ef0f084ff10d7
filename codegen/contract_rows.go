package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// contractRows writes kernels whose blocks first compute the rows of the left operand.
type contractRows struct {
	contractEmitter
	rows *rowEmitter // writes into the same text
}

// handed is a fold whose result for each row of the tile is kept in shared memory.
type handed struct {
	fold *ir.Fold
	name string
}

func newContractRows(e *emitter) *contractRows {
	return &contractRows{contractEmitter: newContract(e), rows: newRow(e, e.v.Schedule.Items == 0)}
}

// kernel writes a kernel whose blocks fold the rows of a tile, each warp one row at a time, and then
// multiply the operand that is computed from the folds. Shared memory holds both operands whole: rows
// of the left one, lines along N of the right one.
func (e *contractRows) kernel() {
	c := e.v.Contract
	e.line("using Element = %s;", spell.StorageType(c.Type))
	e.line("using Total = %s;", spell.ComputeType(productFold(e.v).Result.Type))
	e.line("const INDEX extent_m = %s, extent_n = %s, extent_k = %s;", e.size(c.M), e.size(c.N), e.size(e.k.Cols))
	e.tilePosition(c, "blockIdx.x")
	e.line("using TileB = OperandTile<Element, TILE_N, false, 4>;")
	e.line("extern __shared__ __align__(16) unsigned char tiles[];")
	e.line("Element *const rows_a = reinterpret_cast<Element *>(tiles);")
	e.line("TileB *const tile_b = reinterpret_cast<TileB *>(tiles + TILE_M * ROW_WIDTH * sizeof(Element));")
	b := &side{e: &e.contractEmitter, name: "b", row: "n", tile: "TileB", own: c.N, o: c.B[0], element: c.Type}
	b.write()
	fetch := func() {
		e.line("fetch_b(0, 0, false);")
		e.line("pieces_commit();")
	}
	if c.B[0].Early {
		fetch()
	}
	e.line("wait_for_prerequisites();")
	e.line("launch_dependents();")
	if !c.B[0].Early {
		fetch()
	}
	results := e.foldedRows(c)
	e.line("put_b(0, 0, false);")
	e.line("pieces_wait<0>();")
	e.line("__syncthreads();")
	e.line("RowParts<Element> parts;")
	e.line("parts.multiply(rows_a, tile_b[0]);")
	e.line("__syncthreads(); // the groups' sums take the operands' place")
	e.rowProductEpilogue(c, results)
}

// foldedRows writes the loop over a warp's rows of the tile: the folds, then a pass that stores the
// operand's values, with zeros after them. Rows outside the tensor are not written, and the sums of them
// are not used. It returns the folds whose results it keeps for the product's epilogue.
func (e *contractRows) foldedRows(c *ir.Contract) []handed {
	lane := e.lane
	e.lane = e.k.Cols[len(e.k.Cols)-1]
	e.line("const INDEX cols = extent_k;")
	e.line("const int lane = threadIdx.x %% ROW_THREADS;")
	handed := e.handedOn()
	for _, h := range handed {
		e.line("__shared__ %s %s[TILE_M];", spell.ComputeType(h.fold.Result.Type), h.name)
	}
	e.line("#pragma unroll 1")
	e.open("for (int tile_row = threadIdx.x / ROW_THREADS; tile_row < TILE_M; tile_row += THREADS / ROW_THREADS)")
	e.line("const INDEX at_m = origin_m + tile_row;")
	e.line("if (at_m >= extent_m) break;")
	folds := e.v.Sections[:len(e.v.Sections)-2]
	row := &ir.Arg{Name: "row_a", Type: c.Type, Write: true}
	e.args[row] = e.names.Fresh("row_a")
	e.line("Element *const %s = rows_a + tile_row * ROW_WIDTH;", e.args[row])
	value := &ir.Store{Arg: row, Offset: e.columnOffset(), Value: c.A.Value, Span: c.A.Value.Span,
		Wide: ir.Multiple(product(extents(e.k.Cols)), int64(e.v.Schedule.Vector), e.v.Facts)}
	sections := append(slices.Clone(folds), &ir.Section{Level: ir.FullLevel, Stores: []*ir.Store{value}})
	var uses []*ir.Expr
	for _, s := range sections {
		uses = append(uses, sectionRoots(s)...)
	}
	uses = append(uses, definitions(e.operandLocals(ir.Apply(ir.OpMul, c.A.Value, productFold(e.v).Body)))...)
	for _, level := range []ir.Level{ir.RowLevel, ir.FullLevel} { // the terms of the folds
		uses = append(uses, definitions(e.wants(level, func(*ir.Local) bool { return false }, uses...))...)
	}
	e.take(c.M, "at_m", uses...)
	e.rows.rowSections(sections)
	for _, h := range handed {
		e.line("if (lane == 0) %s[tile_row] = %s;", h.name, e.place[h.fold.Result])
	}
	if n := product(extents(e.k.Cols)); n.Int != int64(e.v.Schedule.TileK) {
		e.line("for (int k = (int)cols + lane; k < TILE_K; k += ROW_THREADS) %s[k] = 0;", e.args[row])
	}
	e.close()
	e.lane = lane
	return handed
}

// handedOn lists the folds of rows that the product's epilogue reads.
func (e *contractRows) handedOn() []handed {
	row := e.v.Sections[len(e.v.Sections)-1]
	uses := append(sectionRoots(row), definitions(e.wants(ir.RowLevel, func(*ir.Local) bool { return false }, sectionRoots(row)...))...)
	read := map[*ir.Local]bool{}
	for _, x := range uses {
		if x == nil {
			continue
		}
		ir.Walk(x, func(x *ir.Expr) bool {
			if x.Op == ir.OpLocal {
				read[x.Local] = true
			}
			return true
		})
	}
	var out []handed
	for _, s := range e.v.Sections[:len(e.v.Sections)-2] {
		for _, f := range s.Folds {
			if read[f.Result] {
				out = append(out, handed{f, e.names.Fresh("rows_" + f.Result.Name)})
			}
		}
	}
	return out
}

// columnOffset is the position of a column among all columns.
func (e *contractRows) columnOffset() *ir.Expr {
	at := make([]*ir.Expr, len(e.k.Cols))
	for i, r := range e.k.Cols {
		at[i] = r.At()
	}
	return ir.Simplify(ir.FlatOffset(extents(e.k.Cols), at), e.s.Facts)
}

// rowProductEpilogue adds the sums of the groups in order, then writes the epilogue, VECTOR neighbours of
// a result at a time.
func (e *contractRows) rowProductEpilogue(c *ir.Contract, results []handed) {
	e.epilogueLane(c)
	alongN := e.lane == nil || slices.Contains(c.N, e.lane)
	along, across, row := "n", "m", "sum_line"
	if !alongN {
		along, across, row = "m", "n", "sum_at + v"
	}
	for _, h := range results {
		e.place[h.fold.Result] = fmt.Sprintf("%s[%s]", h.name, row)
	}
	e.line("using Sums = SumTile<Total, %t>;", alongN)
	e.line("Sums *const sums = reinterpret_cast<Sums *>(tiles);")
	e.line("parts.share(sums[parts.group()]);")
	e.line("__syncthreads();")
	e.open("for (int chunk = threadIdx.x; chunk < TILE_M * TILE_N / VECTOR; chunk += THREADS)")
	e.line("const int sum_line = chunk / (Sums::WIDTH / VECTOR), sum_at = chunk %% (Sums::WIDTH / VECTOR) * VECTOR;")
	e.line("const INDEX at_%s = origin_%s + sum_line, at_%s = origin_%s + sum_at;", across, across, along, along)
	e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
	e.line("Total total[VECTOR] = {};")
	e.line("#pragma unroll")
	e.open("for (int group = 0; group < parts.GROUPS; ++group)")
	e.line("#pragma unroll")
	e.line("for (int v = 0; v < VECTOR; ++v) total[v] += sums[group].at[sum_line][sum_at + v];")
	e.close()
	e.sumStores(c, productFold(e.v), e.v.Sections[len(e.v.Sections)-1])
	e.close()
}

func rowProductDefines(v *ir.Variant) string {
	s := v.Schedule
	return fmt.Sprintf("#define TILE_M %d\n#define TILE_N %d\n#define TILE_K %d\n#define PART_M %d\n#define PART_N %d\n"+
		"#define ROW_THREADS %d\n#define ROW_WIDTH %d\n#define CLUSTER 1\n#define ITEMS %d\n",
		s.TileM, s.TileN, s.TileK, s.PartM, s.PartN, s.RowThreads, ir.ContractRowsWidth(s), max(s.Items, s.Unroll))
}

// rowProductShared is the dynamic shared memory of both operands, then of the groups' sums.
func rowProductShared(v *ir.Variant) int {
	return ir.ContractRowsBytes(v.Schedule, v.Contract.Type.Size())
}
