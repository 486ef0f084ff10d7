package shrink

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// A Program is the text of a file, one graph of it, and the sizes this is run at.
type Program struct {
	Name     string // of the file: what it imports is found from there
	Text     string
	Graph    string // "" for the only one
	Sizes    map[string]int64
	ReadFile func(name string) ([]byte, error) // of imports
}

// Simpler yields programs that are one step simpler: smaller sizes, then shorter texts, large
// steps first. The parser takes all of them, and nothing in them is unread that the step left so.
func (p *Program) Simpler(yield func(*Program) bool) {
	for c := range p.smaller() {
		if !yield(c) {
			return
		}
	}
	src := newSource(p)
	for _, steps := range []func() iter.Seq[string]{
		src.fewerDeclarations, src.fewerOutputs, src.inputsForStatements, src.otherOutputs, src.fewerStatements,
		src.plainer, src.smallerNumbers, src.shorterExpressions,
	} {
		for text := range steps() {
			c := *p
			c.Text = text
			if c.right() == nil {
				continue
			}
			c.prune()
			if !yield(&c) {
				return
			}
		}
	}
}

// right is the graph, or nil where the parser finds a mistake.
func (p *Program) right() *ir.Graph {
	file, err := parser.Parse(p.Name, []byte(p.Text), parser.Options{ReadFile: p.ReadFile})
	if err != nil {
		return nil
	}
	g, err := file.Graph(p.Graph)
	if err != nil {
		return nil
	}
	return g
}

// smaller makes sizes smaller.
func (p *Program) smaller() iter.Seq[*Program] {
	return func(yield func(*Program) bool) {
		for _, name := range slices.Sorted(maps.Keys(p.Sizes)) {
			for _, n := range Below(p.Sizes[name]) {
				c := *p
				c.Sizes = maps.Clone(p.Sizes)
				c.Sizes[name] = n
				if !yield(&c) {
					return
				}
			}
		}
	}
}

// prune takes away what nothing reads, as far as the program stays right, and the sizes of
// symbols that it no longer has.
func (p *Program) prune() {
	for again := true; again; {
		again = false
		for text := range newSource(p).withoutUnread() {
			c := *p
			c.Text = text
			if c.right() != nil {
				p.Text, again = text, true
				break
			}
		}
	}
	g := p.right()
	sizes := map[string]int64{}
	for name, n := range p.Sizes {
		if g.Symbol(name) != nil {
			sizes[name] = n
		}
	}
	p.Sizes = sizes
}

// smallerNumbers puts smaller numbers in place of one, everywhere.
func (s *source) smallerNumbers() iter.Seq[string] {
	return func(yield func(string) bool) {
		seen := map[int64]bool{}
		for _, t := range s.tokens {
			n, err := strconv.ParseInt(t.Text, 10, 64)
			if t.Kind != parser.NumberToken || err != nil || n < 3 || seen[n] {
				continue
			}
			seen[n] = true
			for _, m := range Below(n) {
				var edits []edit
				for _, o := range s.tokens {
					if o.Kind == parser.NumberToken && o.Text == t.Text {
						edits = append(edits, edit{o.Pos.Offset, endOf(o), strconv.FormatInt(m, 10)})
					}
				}
				if !yield(s.with(edits...)) {
					return
				}
			}
		}
	}
}

// shorterExpressions puts operands in place of right sides, and leaves parts of them out.
func (s *source) shorterExpressions() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, at := range s.values() {
			value := strings.TrimSpace(s.text[at[0]:at[1]])
			for _, text := range append(parts(value), Shorter(value)...) {
				if text != value && !yield(s.with(edit{at[0], at[1], text})) {
					return
				}
			}
		}
	}
}
