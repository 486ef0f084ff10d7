package fuse

import (
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// sharedWork adds up the work of expressions, equal ones once: a kernel computes them once for each point.
type sharedWork struct {
	slots   int
	counted map[uint64]bool // hashes of the expressions
}

func (w *sharedWork) add(e *ir.Expr) {
	ir.Walk(e, func(e *ir.Expr) bool {
		if w.counted[e.Hash()] {
			return false
		}
		w.counted[e.Hash()] = true
		w.slots += form.OwnSlots(e)
		return true
	})
}
