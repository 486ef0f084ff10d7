package codegen

import "github.com/fusec/fusec/ir"

// attendEpilogue writes the epilogue: stores of whole rows, then of the columns that each thread holds.
func (e *attendEmitter) attendEpilogue(a *ir.Attend) {
	var row *ir.Section
	for _, s := range e.v.Sections {
		if s.Level == ir.RowLevel {
			row = s
		}
	}
	e.line("#pragma unroll")
	e.open("for (int turn = 0; turn < 2; ++turn)")
	e.line("const bool inside = origin_m + warp_m + lane / 4 + 8 * turn < extent_m;")
	uses := sectionRoots(row)
	uses = append(uses, definitions(e.v.Locals)...)
	if anyOf(a.M, e.used(uses)) {
		e.line("const INDEX at_m = row[turn];")
	}
	if a.Max != nil {
		e.line("const bool none = stream.top[turn] == -infinity() && extent_n > 0;")
		e.line("// A NaN is no largest logit of the threads, but their sum has it.")
		e.line("[[maybe_unused]] const float top = none && stream.sum[turn] != stream.sum[turn] ? nan32() : stream.top[turn];")
		e.line("[[maybe_unused]] const float total = none ? nan32() : stream.sum[turn];")
	}
	e.take(a.M, "at_m", uses...)
	if a.Max != nil {
		e.place[a.Max.Result] = "top"
	}
	for _, f := range a.Sums {
		e.place[f.Result] = "total"
	}
	wholeRow, each := splitStores(row.Stores, a)
	if len(wholeRow) > 0 {
		saved := map[*ir.Range]string{}
		for _, r := range a.N {
			saved[r], e.ranges[r] = e.ranges[r], "0"
		}
		e.open("if (inside && lane %% 4 == 0)")
		e.rowEpilogue(wholeRow, nil)
		e.close()
		for r, name := range saved {
			e.ranges[r] = name
		}
	}
	if len(each) > 0 {
		e.valueStores(a, each, uses)
	}
	e.close()
}

// valueStores writes the stores of each column of the values, 32 columns at a time. A thread holds two
// neighbours of every eight. For wide stores the four threads of a row exchange theirs, so that each has
// eight neighbours.
func (e *attendEmitter) valueStores(a *ir.Attend, stores []*ir.Store, uses []*ir.Expr) {
	outs := map[*ir.Store]string{}
	e.line("#pragma unroll")
	e.open("for (int span = 0; span < TILE_V; span += 32)")
	for _, st := range stores {
		if st.Wide {
			outs[st] = e.names.Fresh(st.Arg.Name + "_out")
			e.line("float %s[4][2];", outs[st])
		}
	}
	e.line("#pragma unroll")
	e.open("for (int frag = 0; frag < 4; ++frag)")
	e.line("#pragma unroll")
	e.open("for (int part = 0; part < 2; ++part)")
	e.line("const int place = span + 8 * frag + lane %% 4 * 2 + part;")
	e.line("if (span + 8 * frag >= TILE_V) continue;")
	e.line("const INDEX at_width = min(place, extent_width - 1);")
	sum := "acc[span / 2 + 4 * frag + 2 * turn + part]"
	if a.Max != nil {
		sum = "none ? nan32() : " + sum
	}
	e.line("const float value = %s;", sum)
	e.place[a.Acc.Result] = "value"
	if a.Also != nil {
		e.line("const float also_value = also[span / 2 + 4 * frag + 2 * turn + part];")
		e.place[a.Also.Acc.Result] = "also_value"
	}
	e.take(a.N, "at_width", uses...)
	e.rowEpilogue(stores, outs)
	e.close()
	e.close()
	if len(outs) > 0 {
		e.line("const INDEX at_width = span + lane %% 4 * 8;")
		e.take(a.N, "at_width", uses...)
		for _, st := range stores {
			if st.Wide {
				e.noted(st.Span, "store_row(%s + %s, %s, inside && at_width < extent_width);", e.args[st.Arg],
					e.s.Expr(st.Offset), outs[st])
			}
		}
	}
	e.close()
}

// rowEpilogue writes stores with the locals that they need; a store with a place in outs leaves its value
// there instead.
func (e *attendEmitter) rowEpilogue(stores []*ir.Store, outs map[*ir.Store]string) {
	none := func(*ir.Local) bool { return false }
	locals := e.wants(ir.RowLevel, none, sectionRoots(&ir.Section{Stores: stores})...)
	for _, l := range locals {
		e.constant(l)
	}
	narrow := 0
	for _, st := range stores {
		if outs[st] != "" {
			e.noted(st.Span, "%s[frag][part] = %s;", outs[st], e.s.Bare(st.Value))
		} else {
			narrow++
		}
	}
	if outs != nil && narrow > 0 {
		e.open("if (inside && place < extent_width)")
	}
	for _, st := range stores {
		if outs[st] == "" {
			e.scalarStore(st)
		}
	}
	if outs != nil && narrow > 0 {
		e.close()
	}
	for _, l := range locals {
		delete(e.place, l)
	}
}

// splitStores separates the stores of a whole row, which are done at the first column of the values, from
// the stores of each column.
func splitStores(stores []*ir.Store, a *ir.Attend) (row, each []*ir.Store) {
	for _, st := range stores {
		free := ir.FreeRanges(st.Offset)
		if anyOf(a.N, free) || len(a.N) == 0 {
			each = append(each, st)
		} else {
			row = append(row, st)
		}
	}
	return row, each
}
