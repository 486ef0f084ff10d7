package codegen

import (
	"fmt"
	"strconv"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// An epilogue of a warpgroup that needs only the sums. It is computed in the registers of the sums,
// and the results, of 16 bits, are staged instead of the sums.

// Figures of a warp's staging: the elements in a row of results, and how many tensors' rows it holds.
const (
	halvesColumns = 64
	halvesStores  = 2
)

// staysInRegisters reports whether every result has 16 bits and depends only on the sums at its own place.
func (e *contractWarpgroup) staysInRegisters(c *ir.Contract) bool {
	s, row := e.v.Schedule, e.v.Sections[1]
	if c.Between != nil || len(row.Stores) > halvesStores || s.Vector*2 != 16 || s.TileN/len(c.B)%halvesColumns != 0 {
		return false
	}
	for _, st := range row.Stores {
		if !st.Wide || st.Between > 0 || st.Guard != nil || st.Arg.Type.Size() != 2 || !st.Arg.Type.IsFloat() || e.needsPlace(st.Value) {
			return false
		}
	}
	return len(row.Stores) > 0
}

// needsPlace reports whether a value also depends on its place.
func (e *contractWarpgroup) needsPlace(value *ir.Expr) bool {
	needs := false
	ir.WalkThrough(func(x *ir.Expr) bool {
		switch x.Op {
		case ir.OpRange, ir.OpRead, ir.OpReduce, ir.OpRandom, ir.OpRandom16:
			needs = true
		}
		return !needs
	}, value)
	return needs
}

// halvesEpilogue writes this epilogue. One instruction (stmatrix) stores 16 rows and columns as
// four matrices, from exactly the elements that each thread holds.
func (e *contractWarpgroup) halvesEpilogue(c *ir.Contract) {
	row := e.v.Sections[1]
	e.tileChunks(strconv.Itoa(halvesColumns), "#pragma unroll")
	e.line("__syncwarp();")
	e.halvesOfSums(c, row)
	e.line("__syncwarp();")
	e.passes(plainUnits)
	var offsets []*ir.Expr
	for _, st := range row.Stores {
		offsets = append(offsets, st.Offset)
	}
	e.epiloguePosition(c, "warp_m + block * 64", offsets)
	for i, st := range row.Stores {
		e.atFirst(func() {
			e.line("store_lanes<VECTOR>(%s + %s, halves_get<%s>(staging, %d, at_row, at_column), n);",
				e.args[st.Arg], e.s.Expr(e.wideOffset(st.Offset)), spell.StorageType(st.Arg.Type), i)
		})
	}
	e.close()
	e.close()
	e.close()
}

// halvesOfSums writes the values of the stores from the sums, and stages them.
func (e *contractWarpgroup) halvesOfSums(c *ir.Contract, row *ir.Section) {
	var values []*ir.Expr
	for _, st := range row.Stores {
		values = append(values, st.Value)
	}
	for i, f := range e.v.Sections[0].Folds {
		first := "chunk * CHUNK"
		if i > 0 {
			first = fmt.Sprintf("%d * OWN_N_EACH + %s", i, first)
		}
		at := fmt.Sprintf("sums[block][(%s + pair * 16) / 2 + v]", first)
		if !c.Type.IsFloat() {
			at = fmt.Sprintf("(%s)%s", spell.ComputeType(f.Result.Type), at)
		}
		e.place[f.Result] = at
	}
	var lanes []*ir.Local
	for _, l := range e.wants(ir.RowLevel, func(l *ir.Local) bool { return e.done[l] }, values...) {
		e.done[l] = true
		if e.perLane(l) {
			lanes = append(lanes, l)
		} else {
			e.scalar(l)
		}
	}
	e.line("#pragma unroll")
	e.open("for (int pair = 0; pair < CHUNK / 16; ++pair)")
	outs := make([]string, len(row.Stores))
	for i, st := range row.Stores {
		outs[i] = e.names.Fresh(st.Arg.Name + "_out")
		e.line("float %s[VECTOR];", outs[i])
	}
	e.line("#pragma unroll")
	e.open("for (int v = 0; v < VECTOR; ++v)")
	for _, l := range lanes {
		e.scalar(l)
	}
	for i, st := range row.Stores {
		e.noted(st.Span, "%s[v] = %s;", outs[i], e.s.Bare(st.Value))
	}
	e.close()
	for i, st := range row.Stores {
		e.line("halves_put<%s>(staging, %d, pair, %s);", spell.StorageType(st.Arg.Type), i, outs[i])
	}
	e.close()
}
