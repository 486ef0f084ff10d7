package ir

// JoinedReads returns the reads of an expression that is the element of one of several tensors, by its place, and the
// conditions that choose among them; ok is false if it is something else. Where no tensor has the element, it is 0. A plain
// read is the simplest such expression. Locals and conversions are looked through.
func JoinedReads(e *Expr) (reads, conditions []*Expr, ok bool) {
	switch e = Unconverted(e); {
	case e.Op == OpRead:
		return []*Expr{e}, nil, true
	case e.IsConst(0):
		return nil, nil, true
	case e.Op != OpSelect:
		return nil, nil, false
	}
	conditions = []*Expr{e.Args[0]}
	for _, a := range e.Args[1:] {
		r, c, ok := JoinedReads(a)
		if !ok {
			return nil, nil, false
		}
		reads, conditions = append(reads, r...), append(conditions, c...)
	}
	return reads, conditions, len(reads) > 0
}

// Unconverted is an expression without the conversions around it, and the definition of a local in its place.
func Unconverted(e *Expr) *Expr {
	for {
		switch {
		case e.Op == OpCast:
			e = e.Args[0]
		case e.Op == OpLocal && e.Local.Def != nil:
			e = e.Local.Def
		default:
			return e
		}
	}
}
