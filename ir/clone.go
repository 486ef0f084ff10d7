package ir

// Clone returns a copy of g whose values can be changed without touching g.
// Ranges and unchanged expressions are shared.
func (g *Graph) Clone() *Graph {
	c := *g
	c.names, c.kept = map[string]int{}, nil
	for name, n := range g.names {
		c.names[name] = n
	}
	to := map[*Value]*Value{}
	c.Values = make([]*Value, len(g.Values))
	for i, v := range g.Values {
		fresh := *v
		to[v], c.Values[i] = &fresh, &fresh
	}
	for _, v := range c.Values {
		v.MapExprs(func(e *Expr) *Expr { return RetargetLoads(e, to) })
	}
	c.Inputs = make([]*Value, len(g.Inputs))
	for i, v := range g.Inputs {
		c.Inputs[i] = to[v]
	}
	c.Outputs = append([]Output(nil), g.Outputs...)
	for i := range c.Outputs {
		c.Outputs[i].Value = to[c.Outputs[i].Value]
	}
	c.Symbols = append([]Symbol(nil), g.Symbols...)
	c.Constraints = append([]Constraint(nil), g.Constraints...)
	return &c
}

// MapExprs replaces the body, the predicate and the rank of v by f of them.
func (v *Value) MapExprs(f func(*Expr) *Expr) {
	if v.Body != nil {
		v.Body = f(v.Body)
	}
	if v.Reduce != nil && (v.Reduce.Where != nil || v.Reduce.Rank != nil) {
		r := *v.Reduce
		if r.Where != nil {
			r.Where = f(r.Where)
		}
		if r.Rank != nil {
			r.Rank = f(r.Rank)
		}
		v.Reduce = &r
	}
}

// RetargetLoads makes loads of a key of to read its value instead, at the same
// indices.
func RetargetLoads(e *Expr, to map[*Value]*Value) *Expr {
	return Rewrite(e, func(e *Expr) *Expr {
		if e.Op == OpLoad {
			if v, ok := to[e.From]; ok && v != e.From {
				c := *e
				c.From = v
				return c.seal()
			}
		}
		return e
	})
}
