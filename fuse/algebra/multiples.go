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

// Joined returns the facts with the multiples of others.
func Joined(facts, of ir.Facts) ir.Facts {
	facts = Assuming(facts, of.Divisible)
	facts.Multiples = slices.Clone(facts.Multiples)
	for _, m := range of.Multiples {
		if !ir.Multiple(m.Size, m.By, facts) {
			facts.Multiples = append(facts.Multiples, m)
		}
	}
	return facts
}

// Whole adds to facts that sizes are multiples of n, requiring no more of the symbols than that: for 4*C and n = 8 it
// says that C is even, and for H*W, the height times the width of an image, it says so of the product. It leaves out
// sizes that are no products of symbols. weaker is false if the result requires as much as MultiplesIn does.
func Whole(facts ir.Facts, n int64, sizes ...*ir.Expr) (_ ir.Facts, weaker bool) {
	of := map[string]int64{}
	for _, size := range sizes {
		if ir.Multiple(size, n, facts) {
			continue
		}
		coefficient, factors, ok := ir.Factors(size)
		by := n / gcd(n, coefficient)
		switch {
		case !ok || len(factors) == 0 || len(ir.FreeRanges(size)) > 0: // not a product of symbols, such as the place at which an access begins
			weaker = true
		case len(factors) > 1 || factors[0].Op != ir.OpSym:
			facts.Multiples, weaker = append(slices.Clone(facts.Multiples), ir.MultipleOf{Size: size, By: n}), true
		default:
			name := factors[0].Name
			of[name], weaker = Lcm(of[name], by), weaker || by < n
		}
	}
	return Assuming(facts, of), weaker
}

// Assumes reports whether facts say that sizes are multiples.
func Assumes(f ir.Facts) bool { return len(f.Divisible)+len(f.Multiples) > 0 }

// JoinMultiples joins two maps of multiples by symbol: a symbol gets the least common multiple of both.
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
	return a / gcd(a, b) * b
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
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
