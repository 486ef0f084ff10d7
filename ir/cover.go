package ir

// Covers reports whether at every size the condition of some variant holds. It says so only with a
// proof: one of them has no condition, or one that always holds under the facts, or the algebra proves
// that one of all conditions always holds.
func Covers(variants []*Variant, facts Facts) bool {
	var any *Expr
	for i := len(variants) - 1; i >= 0; i-- { // the last variant takes the sizes that are left
		when := variants[i].When
		if when == nil || Decide(when, facts) == True {
			return true
		}
		if any == nil {
			any = when
		} else {
			any = Apply(OpOr, any, when)
		}
	}
	return any != nil && len(variants) > 1 && Decide(any, facts) == True
}
