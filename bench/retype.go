package bench

import (
	"slices"

	"github.com/fusec/fusec/parser"
)

// graph is a graph as the words of its declaration say, whatever its lines look like: annotations may stand before it, and
// it may be the gradient of another.
type graph struct {
	name string
	line int            // of the name
	of   string         // the graph that it is derived from; "" where it has parameters of its own
	head []parser.Token // from the name to the body, which is left out
}

// graphsOf finds the graphs of a text in order.
func graphsOf(text string) []graph {
	words := slices.DeleteFunc(parser.Tokens("", []byte(text)), func(t parser.Token) bool {
		return t.Kind == parser.CommentToken
	})
	var out []graph
	for i, w := range words {
		if w.Kind != parser.KeywordToken || w.Text != "graph" || i+1 == len(words) || words[i+1].Kind != parser.IdentToken {
			continue
		}
		rest := words[i+1:]
		g := graph{name: rest[0].Text, line: rest[0].Pos.Line}
		if len(rest) > 4 && rest[1].Text == "=" && rest[3].Text == "(" { // graph b = grad(a, ...)
			g.of = rest[4].Text
		} else if end := slices.IndexFunc(rest, func(t parser.Token) bool { return t.Text == "{" }); end >= 0 {
			g.head = rest[:end]
		}
		out = append(out, g)
	}
	return out
}

// Retype returns the program's text with the floating-point parameters of one graph, but those that keep theirs, declared as
// another type. What a graph is derived from is retyped in its place. Positions change only on the lines of the signature.
func (p Program) Retype(c Case, dtype string) string {
	graphs := graphsOf(p.Text)
	name, keep := c.Graph, slices.Clone(c.Keep)
	for range graphs { // a gradient of a gradient; mistaken programs may go in circles
		i := slices.IndexFunc(graphs, func(g graph) bool { return g.name == name })
		if i < 0 {
			break
		}
		if graphs[i].of == "" {
			return retyped(p.Text, graphs[i].head, keep, dtype)
		}
		name = graphs[i].of
		for _, source := range p.Cases {
			if source.Graph == name {
				keep = append(keep, source.Keep...)
			}
		}
	}
	return p.Text
}

// floatTypes are the types that Retype replaces.
var floatTypes = []string{"f64", "f32", "f16", "bf16"}

// retyped replaces the types in a header, from the last to the first: what is before them stays where it is.
func retyped(text string, head []parser.Token, keep []string, dtype string) string {
	for i := len(head) - 1; i >= 2; i-- {
		name, colon, word := head[i-2], head[i-1], head[i]
		if colon.Text != ":" || !slices.Contains(floatTypes, word.Text) || slices.Contains(keep, name.Text) {
			continue
		}
		at := word.Pos.Offset
		text = text[:at] + dtype + text[at+len(word.Text):]
	}
	return text
}
