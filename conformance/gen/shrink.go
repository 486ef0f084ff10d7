package gen

import (
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/internal/shrink"
)

// Shrink looks for a shorter program that still fails, step by step, with at most so many
// calls of fails.
func Shrink(p *Program, most int, fails func(*Program) bool) *Program {
	return shrink.Search(p, most, func(p *Program) iter.Seq[*Program] { return p.simpler }, fails)
}

// simpler yields programs that are one step simpler, large steps first. All are right.
func (p *Program) simpler(yield func(*Program) bool) {
	for _, steps := range []func(func(*Program) bool) bool{
		p.fewerOutputs, p.fewerStates, p.cutLines, p.otherOutputs, p.sameValues, p.smallerSizes, p.plainer, p.shorterTexts,
	} {
		if !steps(func(c *Program) bool {
			c.prune()
			if !c.sound() {
				return true
			}
			return yield(c)
		}) {
			return
		}
	}
}

// sound types a changed program anew and asks the parser whether it is right.
func (p *Program) sound() bool {
	if !p.retype() {
		return false
	}
	types := map[string]Value{}
	for _, l := range p.Lines {
		for _, v := range l.Results {
			types[v.Name] = v
		}
	}
	for i, o := range p.Outputs {
		if v, made := types[o.Name]; made {
			p.Outputs[i] = v
		}
	}
	g, err := graphOf(p.Source())
	if err != nil {
		return false
	}
	return (&drawer{program: p, most: 20 * mostPoints}).affordable(g)
}

func (p *Program) fewerOutputs(yield func(*Program) bool) bool {
	for i := range p.Outputs {
		if len(p.Outputs) == 1 {
			return true
		}
		c := p.clone()
		c.Outputs = slices.Delete(c.Outputs, i, i+1)
		if !yield(c) {
			return false
		}
	}
	return true
}

// cutLines makes inputs of what a line binds.
func (p *Program) cutLines(yield func(*Program) bool) bool {
	for i, l := range p.Lines {
		if slices.ContainsFunc(l.Results, func(v Value) bool { return p.isOutput(v.Name) }) {
			continue
		}
		c := p.clone()
		c.Lines = slices.Delete(c.Lines, i, i+1)
		c.Inputs = append(c.Inputs, l.Results...)
		if !yield(c) {
			return false
		}
	}
	return true
}

func (p *Program) isOutput(name string) bool {
	return slices.ContainsFunc(p.Outputs, func(o Value) bool { return o.Name == name })
}

// otherOutputs returns, in place of the only output, what its line reads.
func (p *Program) otherOutputs(yield func(*Program) bool) bool {
	for i := len(p.Lines) - 1; i >= 0 && len(p.Outputs) == 1; i-- {
		for _, v := range p.Lines[i].Results {
			if p.isOutput(v.Name) {
				continue
			}
			c := p.clone()
			c.Outputs = []Value{v}
			if !yield(c) {
				return false
			}
		}
	}
	return true
}

// sameValues puts an input in place of another value of the same type.
func (p *Program) sameValues(yield func(*Program) bool) bool {
	values := slices.Clone(p.Inputs)
	for _, l := range p.Lines {
		values = append(values, l.Results...)
	}
	for i, v := range values {
		for _, other := range values[:i] {
			if v.typeText() != other.typeText() || p.isOutput(v.Name) {
				continue
			}
			c := p.clone()
			for n, l := range c.Lines {
				c.Lines[n] = l.renamed(v.Name, other)
			}
			if !yield(c) {
				return false
			}
		}
	}
	return true
}

// renamed is a line that reads another value.
func (l Line) renamed(from string, to Value) Line {
	name := regexp.MustCompile(`\b` + from + `\b`)
	left, right, _ := strings.Cut(l.Text, " = ")
	l.Text = left + " = " + name.ReplaceAllString(right, to.Name)
	l.Python = ""
	l.Uses = slices.Clone(l.Uses)
	for i, u := range l.Uses {
		if u.Name == from {
			l.Uses[i] = to
		}
	}
	return l
}

// smallerSizes makes symbols and numbers smaller.
func (p *Program) smallerSizes(yield func(*Program) bool) bool {
	for _, name := range slices.Sorted(maps.Keys(p.Sizes)) {
		for _, n := range shrink.Below(p.Sizes[name]) {
			c := p.clone()
			c.Sizes[name] = n
			if !yield(c) {
				return false
			}
		}
	}
	for _, word := range numbers(p.Source()) {
		n, err := strconv.ParseInt(word, 10, 64)
		if err != nil || n < 3 {
			continue
		}
		for _, m := range shrink.Below(n) {
			if !yield(p.replaced(regexp.MustCompile(`\b`+word+`\b`), fmt.Sprint(m))) {
				return false
			}
		}
	}
	return true
}

var digits = regexp.MustCompile(`\b\d+\b`)

// numbers are the numbers of a text, each once.
func numbers(text string) []string {
	out := digits.FindAllString(text, -1)
	slices.Sort(out)
	return slices.Compact(out)
}

// replaced puts text in place of a word everywhere.
func (p *Program) replaced(word *regexp.Regexp, by string) *Program {
	c := p.clone()
	for i, v := range c.Inputs {
		dims := make([]string, len(v.Dims))
		for d := range v.Dims {
			dims[d] = word.ReplaceAllString(v.Dims[d], by)
		}
		c.Inputs[i].Dims = dims
	}
	for i, l := range c.Lines {
		c.Lines[i].Text = word.ReplaceAllString(l.Text, by)
		c.Lines[i].Python = ""
	}
	return c
}

// plainer drops annotations and hostile inputs.
func (p *Program) plainer(yield func(*Program) bool) bool {
	if p.Annotations != "" {
		c := p.clone()
		c.Annotations = ""
		if !yield(c) {
			return false
		}
	}
	if p.Hostile {
		c := p.clone()
		c.Hostile = false
		return yield(c)
	}
	return true
}

// shorterTexts puts parts of right sides in place of them: what is in parentheses in place of
// a call or an operation, and nothing in place of else and where.
func (p *Program) shorterTexts(yield func(*Program) bool) bool {
	for i, l := range p.Lines {
		left, right, _ := strings.Cut(l.Text, " = ")
		for _, text := range shrink.Shorter(right) {
			c := p.clone()
			c.Lines[i].Text, c.Lines[i].Python = left+" = "+text, ""
			if !yield(c) {
				return false
			}
		}
	}
	return true
}
