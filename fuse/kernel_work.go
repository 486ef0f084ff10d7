package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// foldWork is the work of a point, without what follows from the totals.
func (lo *kernel) foldWork() int {
	n := 0
	for _, root := range lo.roots() {
		if root.level == ir.FullLevel {
			n += form.WorkOf(*root.expr)
		}
	}
	return n
}

// rowWords is the registers that one column of a persistent row takes in a thread.
func (lo *kernel) rowWords(sections []*ir.Section) float64 {
	b := newBody(lo)
	v := &ir.Variant{Sections: b.sections(sections), Locals: b.locals}
	return words(v, keep(v))
}

// exchanged is the bytes that a warp hands to others for all folds of a row.
func (lo *kernel) exchanged() int {
	bytes := 0
	for _, f := range lo.folds {
		size := max(4, f.Result.Type.Size())
		if f.Op.IsArg() {
			size *= 2
		}
		bytes += size
	}
	return bytes
}

// work is slots without the arithmetic of indices, which rows in vectors share.
func (lo *kernel) work() int {
	n := 0
	for _, root := range lo.roots() {
		n += form.WorkOf(*root.expr)
	}
	return n
}

// sharedWork is the work of one point of the kernel, where equal expressions count once, as they become one local.
func (lo *kernel) sharedWork() int {
	w := sharedWork{counted: map[uint64]bool{}}
	for _, root := range lo.roots() {
		w.add(*root.expr)
	}
	return w.slots
}

// columnWork is the work of a column, without what belongs to its row, which the threads of the row compute once. What several
// folds and stores need counts once.
func (lo *kernel) columnWork() int {
	slots, counted := 0, map[*ir.Expr]bool{}
	for _, root := range lo.roots() {
		ir.Walk(*root.expr, func(e *ir.Expr) bool {
			if counted[e] || e.Type == ir.Index || !lo.inColumn(e) {
				return false
			}
			counted[e] = true
			slots += form.OwnSlots(e)
			return true
		})
	}
	return slots
}

// inColumn reports whether a value differs between the columns of a row.
func (lo *kernel) inColumn(e *ir.Expr) bool {
	free := ir.FreeRanges(e)
	return slices.ContainsFunc(lo.k.Cols, func(r *ir.Range) bool { return free[r] })
}

// hasScan reports whether the kernel holds a scan.
func (lo *kernel) hasScan() bool { return lo.k.Template == ir.ScanTemplate }

// gathers reports whether the index of a read is itself read from memory. Such a kernel waits
// for two reads, one after the other, and one access for each thread does not hide that.
func (lo *kernel) gathers() bool {
	for _, root := range lo.roots() {
		if ir.Contains(*root.expr, func(e *ir.Expr) bool { return e.Op == ir.OpRead && algebra.ReadsMemory(e.Args[0]) }) {
			return true
		}
	}
	return false
}

// slots is the work of one point of the kernel.
func (lo *kernel) slots() int {
	n := 0
	for _, root := range lo.roots() {
		n += form.CostOf(*root.expr).Slots
	}
	return n
}
