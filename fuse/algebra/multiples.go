package algebra

import (
	"slices"
	"sort"

	"github.com/fusec/fusec/ir"
)

// SortedKeys lists the keys of a map in order.
func SortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}

// MultiplesIn makes every symbol in the expressions a multiple of n.
func MultiplesIn(n int64, exprs ...*ir.Expr) map[string]int64 {
	out := map[string]int64{}
	for _, e := range exprs {
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpSym {
				out[e.Name] = n
			}
			return true
		})
	}
	return out
}

// Assuming returns the facts for sizes that are the given multiples too. The map of the facts
// given stays as it is.
func Assuming(facts ir.Facts, multiples map[string]int64) ir.Facts {
	facts.Divisible = JoinMultiples(facts.Divisible, multiples)
	return facts
}

// WholeProduct returns the facts with a range's extent a multiple of n: as a product where it
// is one, as of the height and the width of an image; ok is false where it is none.
func WholeProduct(facts ir.Facts, extent *ir.Expr, n int64) (_ ir.Facts, ok bool) {
	if len(MultiplesIn(n, extent)) < 2 {
		return facts, false
	}
	if ir.Multiple(extent, n, facts) {
		return facts, true
	}
	facts.Multiples = append(slices.Clone(facts.Multiples), ir.MultipleOf{Size: extent, By: n})
	return facts, true
}

// JoinMultiples joins two sets of multiples by the names of symbols: of each symbol the least multiple of
// both.
func JoinMultiples(a, b map[string]int64) map[string]int64 {
	out := map[string]int64{}
	for _, m := range []map[string]int64{a, b} {
		for name, n := range m {
			out[name] = Lcm(out[name], n)
		}
	}
	return out
}

// Lcm is the least common multiple, where 0 and 1 stand for no condition.
func Lcm(a, b int64) int64 {
	if a <= 1 {
		return b
	}
	g := a
	for r := b; r != 0; {
		g, r = r, g%r
	}
	return a / g * b
}

// Divisible is the condition that sizes are the multiples that the facts say; nil where these say nothing.
func Divisible(f ir.Facts) *ir.Expr {
	var out *ir.Expr
	for _, name := range SortedKeys(f.Divisible) {
		rest := ir.Apply(ir.OpMod, ir.Sym(name), ir.IntConst(f.Divisible[name]))
		out = And(out, ir.Apply(ir.OpEq, rest, ir.IntConst(0)))
	}
	for _, m := range f.Multiples {
		rest := ir.Apply(ir.OpMod, m.Size, ir.IntConst(m.By))
		out = And(out, ir.Apply(ir.OpEq, rest, ir.IntConst(0)))
	}
	return out
}
