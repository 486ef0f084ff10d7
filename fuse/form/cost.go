package form

import "github.com/fusec/fusec/ir"

// Cost is the work of one evaluation of an expression.
type Cost struct{ Slots, Special, Nodes int }

// LoadSlots is the slots that a load counts as.
const LoadSlots = 4

// CostOf adds up the table's figures over the nodes of e, shared nodes once.
// Index arithmetic counts little: it is mostly hoisted.
func CostOf(e *ir.Expr) Cost {
	var c Cost
	ir.Walk(e, func(e *ir.Expr) bool {
		c.Nodes++
		c.Slots += OwnSlots(e)
		if e.Type != ir.Index {
			c.Special += e.Op.Info().Special
		}
		return true
	})
	return c
}

// OwnSlots is the slots of the operation of e alone, without those of its arguments.
func OwnSlots(e *ir.Expr) int {
	switch {
	case e.Op == ir.OpLoad || e.Op == ir.OpRead:
		return LoadSlots
	case e.Type == ir.Index:
		return 1
	}
	return e.Op.Info().Cost
}

// WorkOf is the slots of an expression without those of indices.
func WorkOf(e *ir.Expr) int {
	n := 0
	ir.Walk(e, func(e *ir.Expr) bool {
		switch {
		case e.Op == ir.OpRead || e.Op == ir.OpLoad:
			n += LoadSlots
			return false
		case e.Type == ir.Index:
			return false
		}
		n += e.Op.Info().Cost
		return true
	})
	return n
}
