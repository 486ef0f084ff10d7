package form

import "github.com/fusec/fusec/ir"

// Expansions is the bodies of the readers of products over all products, and over each product alone, in order.
func Expansions(g *ir.Graph) (out []*ir.Expr) {
	m := NewRecogniser(g)
	for _, v := range m.readers() {
		out = append(out, m.Whole(v))
	}
	for _, v := range g.Values {
		if m.products[v] {
			out = append(out, m.over(v)...)
		}
	}
	return out
}
