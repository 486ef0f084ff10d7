package ir

// Covers reports whether one of the variants holds at every size. It says so only with a proof: one of
// them has no condition, or has one that always holds under the facts, or the algebra shows that all
// conditions together always hold.
func Covers(variants []*Variant, facts Facts) bool {
	var any *Expr
	for i := len(variants) - 1; i >= 0; i-- { // the last is the one for whatever is left
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
