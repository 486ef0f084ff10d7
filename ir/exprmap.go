package ir

// exprMap is a map from expressions. Nearly all such maps are small, so a few entries are kept
// in a list, and more in a map.
type exprMap[V any] struct {
	keys [fewExprs]*Expr
	vals [fewExprs]V
	n    int
	more map[*Expr]V
}

const fewExprs = 12

func (m *exprMap[V]) get(e *Expr) (v V, ok bool) {
	for i, k := range m.keys[:m.n] {
		if k == e {
			return m.vals[i], true
		}
	}
	v, ok = m.more[e]
	return v, ok
}

func (m *exprMap[V]) set(e *Expr, v V) {
	switch {
	case m.n < fewExprs:
		m.keys[m.n], m.vals[m.n] = e, v
		m.n++
		return
	case m.more == nil:
		m.more = map[*Expr]V{}
	}
	m.more[e] = v
}
