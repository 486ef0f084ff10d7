package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// Rows that share warps and pass through shared memory (staged.cuh).

// stagesRows reports whether a body has reads or stores of rows that pass through shared
// memory.
func stagesRows(v *ir.Variant) bool {
	return sharesWarp(v) && v.Across == nil && (len(v.Staged) > 0 || len(stagedStores(v)) > 0)
}

// stagedStores are the stores of a body that pass through shared memory.
func stagedStores(v *ir.Variant) (out []*ir.Store) {
	for _, sec := range v.Sections {
		for _, st := range sec.Stores {
			if st.Staged {
				out = append(out, st)
			}
		}
	}
	return out
}

// stagedRows writes the reads of the block's rows, and returns the function that writes their
// stores at the end.
func (e *rowEmitter) stagedRows() (store func()) {
	if !stagesRows(e.v) {
		return func() {}
	}
	from, elements, own := e.names.Fresh("block_from"), e.names.Fresh("block_elements"), e.names.Fresh("own_row")
	rows, cols := e.s.Expr(product(extents(e.k.Rows))), e.s.Expr(product(extents(e.k.Cols)))
	e.line("constexpr int BLOCK_ROWS = THREADS / ROW_THREADS;")
	e.line("[[maybe_unused]] const INDEX %s = (INDEX)%s * BLOCK_ROWS * %s;", from, e.block, cols)
	e.line("const int %s = (int)(min((INDEX)BLOCK_ROWS, %s - (INDEX)%s * BLOCK_ROWS) * %s);", elements, rows, e.block, cols)
	e.line("const int %s = (int)(threadIdx.x / ROW_THREADS * %s);", own, cols)
	shared := func(t ir.DType, arg string) string {
		name := e.names.Fresh(arg + "_rows")
		e.line("__shared__ __align__(16) %s %s[THREADS * ITEMS * VECTOR];", spell.StorageType(t), name)
		return name
	}
	for _, l := range e.v.Staged {
		r := readOf(l.Def)
		name := shared(r.Type, e.args[r.Arg])
		policy := e.under(r)
		if policy == "" {
			policy = ", evict_normal()"
		}
		e.noted(l.Span, "rows_in(%s, %s + %s, %s%s);", name, e.args[r.Arg], from, elements, policy)
		e.inRows[l] = fmt.Sprintf("%s[%s + (int)c]", name, own)
	}
	var calls []string
	for _, st := range stagedStores(e.v) {
		name := shared(st.Arg.Type, e.args[st.Arg])
		e.outRows[st] = fmt.Sprintf("%s[%s + (int)c]", name, own)
		calls = append(calls, fmt.Sprintf("rows_out(%s + %s, %s, %s);", e.args[st.Arg], from, name, elements))
	}
	if len(e.v.Staged) > 0 {
		e.line("__syncthreads();")
	}
	return func() {
		if len(calls) > 0 {
			e.line("__syncthreads();")
		}
		for _, call := range calls {
			e.line("%s", call)
		}
	}
}
