package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// kernel is a region as loops: what is folded and stored, over locals and reads at flat offsets. Lowering makes it. It
// does not change while variants are made of it, except for the numbers that locals get. A kernel for special sizes,
// such as those at which a range has one element, is another value.
type kernel struct {
	*scope
	k          *ir.Kernel
	folds      []*ir.Fold
	stores     []*storing
	partial    []*ir.Partial
	score      *ir.Local   // the product, of a stream or of a reduction epilogue
	products   []*ir.Local // scores of all products of a stream, in the order of its products
	attend     *ir.Attend  // of a stream
	fewQueries bool        // queries are few, so the heads of a group are rows of one tile
	locals     int
	order      *ir.Sort               // of the sort template
	reverse    bool                   // the scans run from the last column to the first
	rows       []*ir.Range            // before any were joined
	joined     map[*ir.Range]*ir.Expr // what replaces each range that was joined with another
	parts      map[*ir.Range]bool     // the rows that last blocks fold
	unit       bool                   // one of a product's rows has one element: see withOne
	taps       *tapCounts             // of a product with absent taps: see contract_taps.go
	plane      *plane                 // two of the rows, joined: see lower_plane.go
	paired     bool                   // shares a launch with another kernel: see last_block.go
}

// storing is a store and the level it happens at.
type storing struct {
	*ir.Store
	level ir.Level
}

// tapCounts is the condition of a sum with absent taps, and the number of taps along some of its
// columns, as expressions over rows.
type tapCounts struct {
	where *ir.Expr
	of    map[*ir.Range]*ir.Expr
}

func (lo *kernel) local(name string, t ir.DType, level ir.Level) *ir.Local {
	lo.locals++
	return &ir.Local{ID: lo.locals, Name: name, Type: t, Level: level}
}

// inside is the facts that hold wherever an expression of the given level is evaluated: the
// loops around it are not empty. At row level there may be no columns.
func (lo *kernel) inside(level ir.Level) ir.Facts {
	f := lo.facts
	f.Within = lo.k.Rows
	if level == ir.FullLevel {
		f.Within = append(append([]*ir.Range(nil), lo.k.Rows...), lo.k.Cols...)
	}
	return f
}

// root is the place of an expression and the level it is evaluated at.
type root struct {
	expr  **ir.Expr
	level ir.Level
}

// roots returns every expression of the kernel.
func (lo *kernel) roots() []root {
	var out []root
	level := ir.FullLevel
	add := func(e **ir.Expr) {
		if *e != nil {
			out = append(out, root{e, level})
		}
	}
	for _, f := range lo.folds {
		add(&f.Where)
		add(&f.Body)
		add(&f.Index)
	}
	for _, p := range lo.partial {
		add(&p.Body)
		add(&p.Offset)
	}
	for _, s := range lo.stores {
		level = s.level
		add(&s.Offset)
		add(&s.Guard)
		add(&s.Value)
	}
	level = ir.RowLevel
	add(&lo.k.Inside)
	return out
}

// promised is the facts that hold for the sizes that a variant takes.
func (lo *kernel) promised(v *ir.Variant) ir.Facts {
	return algebra.Joined(lo.facts, v.Facts)
}

// positive is the facts that hold where tiles are computed: no range is empty.
func (lo *kernel) positive() ir.Facts {
	f := lo.facts
	f.Positive = true
	return f
}

// require adds to a variant's condition what its accesses require of the sizes.
func (lo *kernel) require(v *ir.Variant, needs *algebra.Needs) {
	v.When = algebra.And(v.When, needs.Condition())
	if !needs.None() {
		v.Facts = needs.With(lo.facts)
	}
}

// replaces reports whether the kernel writes the next value of what an argument holds.
func (lo *kernel) replaces(a *ir.Arg) bool {
	return slices.ContainsFunc(lo.k.Args, func(w *ir.Arg) bool { return w.Buffer.Updates == a.Buffer })
}
