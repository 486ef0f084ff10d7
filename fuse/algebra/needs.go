package algebra

import (
	"github.com/fusec/fusec/ir"
)

// Needs collects what the symbols of a graph must be multiples of for the accesses of a variant. Every access asks
// here whether it is aligned. If that is not known, it is assumed where Assume allows it, and becomes the
// variant's condition.
type Needs struct {
	Facts  ir.Facts // what is known, and what was assumed so far
	Assume bool     // whether what accesses need may be assumed; if not, only known facts count
	Any    bool     // something asked for holds
	of     ir.Facts // what was assumed
}

// NewNeeds starts with what is known.
func NewNeeds(known ir.Facts, assume bool) *Needs {
	return &Needs{Facts: known, Assume: assume}
}

// Try reports whether something holds. If it does not hold by the facts alone, Try assumes that the given sizes
// are multiples of n, and if that is not enough, that all symbols in them are.
func (a *Needs) Try(n int64, sizes []*ir.Expr, holds func(ir.Facts) bool) bool {
	if holds(a.Facts) {
		a.Any = true
		return true
	}
	if !a.Assume {
		return false
	}
	if facts, weaker := Whole(a.Facts, n, sizes...); weaker && holds(facts) {
		assumed, _ := Whole(a.of, n, sizes...)
		a.Facts, a.of, a.Any = facts, assumed, true
		return true
	}
	symbols := MultiplesIn(n, sizes...)
	if len(symbols) == 0 || !holds(Assuming(a.Facts, symbols)) {
		return false
	}
	a.need(ir.Facts{Divisible: symbols})
	return true
}

// Multiple reports whether e is a multiple of n. If that is not known, it is assumed of e, or
// else of all symbols in e.
func (a *Needs) Multiple(e *ir.Expr, n int64) bool {
	return a.Try(n, []*ir.Expr{e}, func(f ir.Facts) bool { return ir.Multiple(e, n, f) })
}

func (a *Needs) need(of ir.Facts) {
	a.Facts, a.of, a.Any = Joined(a.Facts, of), Joined(a.of, of), true
}

// Add also assumes what another collection assumes.
func (a *Needs) Add(b *Needs) { a.need(b.of) }

// None reports whether nothing was assumed.
func (a *Needs) None() bool { return !Assumes(a.of) }

// Condition is what was assumed; nil for nothing.
func (a *Needs) Condition() *ir.Expr { return Divisible(a.of) }

// With returns facts with what was assumed.
func (a *Needs) With(facts ir.Facts) ir.Facts { return Joined(facts, a.of) }

// Offer is facts that may be assumed all together or not at all. It is for conditions that all accesses along a
// range share.
type Offer struct {
	Known, Facts ir.Facts // the facts without the offer and with it
	Used         bool     // something holds only with it
}

// Holds reports whether something holds with the offered facts, and notes whether it needs
// them.
func (o *Offer) Holds(holds func(ir.Facts) bool) bool {
	if holds(o.Known) {
		return true
	}
	if !holds(o.Facts) {
		return false
	}
	o.Used = true
	return true
}
