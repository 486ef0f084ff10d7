package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// foldPrelude is the prelude of products with a reduction epilogue.
func foldPrelude(v *ir.Variant) string {
	if v.Contract.Product == nil {
		return ""
	}
	return skeleton.Text("reduction_epilogue")
}

// foldTiles writes the reduction epilogue of a product. The rows of a thread are numbered, and so are its
// columns in a row; FoldRows in the prelude of the strategy says where they are in the tile. Each fold
// goes over what the thread holds, then over the lanes and warps that share the row. All of these get the
// result, so that the next fold may read it. Results are stored as soon as they are known, before the next
// fold needs registers.
func (e *contractEmitter) foldTiles(c *ir.Contract, sums string) {
	var stores []*ir.Store
	for _, sec := range e.v.Sections {
		stores = append(stores, sec.Stores...)
	}
	known := map[*ir.Local]bool{}
	for _, sec := range e.v.Sections {
		for _, f := range sec.Folds {
			e.foldTile(c, f, sums)
			known[f.Result] = true
			ready := &ir.Section{}
			stores = slices.DeleteFunc(stores, func(st *ir.Store) bool {
				ok := len(foldsIn(known, st.Offset, st.Guard, st.Value)) == 0
				if ok {
					ready.Stores = append(ready.Stores, st)
				}
				return ok
			})
			if len(ready.Stores) > 0 {
				e.foldStores(c, ready)
			}
		}
	}
}

// foldsIn lists the results of folds that expressions need, directly or through other locals, except those
// that are known.
func foldsIn(known map[*ir.Local]bool, exprs ...*ir.Expr) (out []*ir.Local) {
	for _, x := range exprs {
		if x == nil {
			continue
		}
		ir.Walk(x, func(x *ir.Expr) bool {
			switch {
			case x.Op != ir.OpLocal || known[x.Local]:
			case x.Local.Def == nil:
				out = append(out, x.Local)
			default:
				out = append(out, foldsIn(known, x.Local.Def)...)
			}
			return true
		})
	}
	return out
}

// foldTile writes one fold; its result is an array over the thread's rows. The outer loop is over columns,
// so that what belongs to a column alone is read once for all rows.
func (e *contractEmitter) foldTile(c *ir.Contract, f *ir.Fold, sums string) {
	roots := []*ir.Expr{f.Body, f.Where, f.Index}
	e.line("")
	e.foldRowValues(c, e.foldLocals(ir.RowLevel, c, roots))
	name := e.names.Fresh(f.Result.Name)
	e.line("%s %s[FoldRows::ROWS];", foldType(f), name)
	e.eachFoldRow(func() { e.line("%s[r] = %s;", name, foldStart(f)) })
	e.line("#pragma unroll")
	e.open("for (int column = 0; column < FoldRows::COLUMNS; ++column)")
	full := e.foldLocals(ir.FullLevel, c, roots)
	uses := append(definitions(full), roots...)
	e.take(e.k.Cols, "FoldRows::point(column)", uses...)
	e.eachFoldRow(func() {
		e.foldPosition(c, uses)
		e.line("[[maybe_unused]] const float element = FoldRows::element(%s, r, column);", sums)
		e.place[c.Product] = "element"
		for _, l := range full {
			e.constant(l)
		}
		e.noted(f.Result.Span, "%s", e.foldStep(f, name+"[r]"))
	})
	e.close()
	for _, l := range full { // because another fold computes them again
		delete(e.place, l)
	}
	e.line("FoldRows::join<%s>(%s);", foldClass(f.Op), name)
	e.place[f.Result] = foldResult(f, name+"[r]")
}

// eachFoldRow writes a loop over the thread's rows.
func (e *contractEmitter) eachFoldRow(body func()) {
	e.line("#pragma unroll")
	e.open("for (int r = 0; r < FoldRows::ROWS; ++r)")
	body()
	e.close()
}

// foldLocals lists the locals of a level that expressions use and that are not computed yet.
func (e *contractEmitter) foldLocals(level ir.Level, c *ir.Contract, roots []*ir.Expr) []*ir.Local {
	return e.wants(level, func(l *ir.Local) bool { return l == c.Product || e.done[l] }, roots...)
}

// foldPosition writes the coordinates of row r that expressions use. Rows outside the product compute the
// same as the last one.
func (e *contractEmitter) foldPosition(c *ir.Contract, uses []*ir.Expr) {
	if e.dependsOn(c.M, uses) {
		e.line("const INDEX at_m = min((INDEX)rows.at_m(r), (INDEX)extent_m - 1);")
		e.take(c.M, "at_m", uses...)
	}
	if outer := c.N[:len(c.N)-len(e.k.Cols)]; e.dependsOn(outer, uses) {
		e.line("const INDEX chunk = min((INDEX)rows.chunk(r), ((INDEX)extent_n - 1) / FOLD);")
		e.take(outer, "chunk", uses...)
	}
}

// foldRowValues writes row-level locals as arrays over the thread's rows.
func (e *contractEmitter) foldRowValues(c *ir.Contract, locals []*ir.Local) {
	if len(locals) == 0 {
		return
	}
	for _, l := range locals {
		name := e.names.Fresh(l.Name)
		e.line("%s %s[FoldRows::ROWS];", e.typeOf(l), name)
		e.place[l], e.done[l] = name+"[r]", true
	}
	e.eachFoldRow(func() {
		e.foldPosition(c, definitions(locals))
		for _, l := range locals {
			e.noted(l.Span, "%s = %s;", e.place[l], e.s.Bare(l.Def))
		}
	})
}

// foldPrefetch writes the reads that belong to rows and depend on no fold, so that they are in flight
// while the products are computed.
func (e *contractEmitter) foldPrefetch(c *ir.Contract) {
	var roots []*ir.Expr
	for _, sec := range e.v.Sections {
		roots = append(roots, sectionRoots(sec)...)
	}
	var early []*ir.Local
	for _, l := range e.foldLocals(ir.RowLevel, c, roots) {
		if len(foldsIn(nil, l.Def)) == 0 {
			early = append(early, l)
		}
	}
	e.foldRowValues(c, early)
}

// foldStores writes the partial results, by one of the threads that have them.
func (e *contractEmitter) foldStores(c *ir.Contract, sec *ir.Section) {
	roots := sectionRoots(sec)
	e.foldRowValues(c, e.foldLocals(ir.RowLevel, c, roots))
	e.eachFoldRow(func() {
		e.line("if (!FoldRows::stores() || rows.at_m(r) >= extent_m || rows.chunk(r) * FOLD >= extent_n) continue;")
		e.foldPosition(c, roots)
		for _, st := range sec.Stores {
			e.scalarStore(st)
		}
	})
}

// foldDefine writes how many columns are folded together, where folds are over columns.
func foldDefine(v *ir.Variant) string {
	if v.Contract.Product == nil {
		return ""
	}
	chunk := v.Contract.N[len(v.Contract.N)-1].Extent.Int
	return fmt.Sprintf("#define FOLD %d\n", chunk)
}
