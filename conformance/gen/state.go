package gen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"

	"github.com/fusec/fusec/ir"
)

// A Next is the next value of an input that is state.
type Next struct {
	Input string
	Text  string // what is assigned to it
}

// WithState makes some inputs of a program state, drawn by its seed. The next values read elements at
// the same point, at other ones and all of them, their own state, other ones, and what the program
// computes: all that a planner must tell apart.
func (p *Program) WithState() *Program {
	r := rand.New(rand.NewPCG(p.Seed, 0x57a7e))
	out := p.clone()
	for i, v := range p.Inputs {
		if i > 0 && r.IntN(3) == 0 {
			continue
		}
		for range 4 {
			c := out.clone()
			c.State = append(c.State, Next{v.Name, p.nextValue(r, v)})
			if _, err := graphOf(c.Source()); err == nil {
				out = c
				break
			}
		}
	}
	return out
}

// nextValue draws what an input may have as its next value; the parser says whether it does.
func (p *Program) nextValue(r *rand.Rand, v Value) string {
	x := v.Name
	choices := []string{x, x + " * 2 + 1", fmt.Sprintf("%s(1 - %s)", v.Type, x)}
	for d := range v.Dims {
		choices = append(choices, fmt.Sprintf("flip(%s, axis=%d)", x, d), fmt.Sprintf("roll(%s, 1, axis=%d)", x, d),
			fmt.Sprintf("%s - max(%s, axis=%d, keep=true)", x, x, d), fmt.Sprintf("%s(cumsum(%s, axis=%d))", v.Type, x, d))
	}
	if v.Rank() > 1 {
		choices = append(choices, fmt.Sprintf("transpose(%s, 0, 1)", x))
	}
	if v.Type == ir.Bool {
		choices = append(choices, "!"+x, "!"+x)
	}
	same := func(o Value) bool { return o.Name != x && o.Type == v.Type && slices.Equal(o.Dims, v.Dims) }
	for _, list := range p.values() {
		if same(list) {
			choices = append(choices, list.Name, fmt.Sprintf("where(%s > %s, %s, %s)", x, list.Name, list.Name, x),
				fmt.Sprintf("%s + %s", x, list.Name))
		}
	}
	return one(r, choices)
}

// values are all that a program has names for.
func (p *Program) values() []Value {
	out := slices.Clone(p.Inputs)
	for _, l := range p.Lines {
		out = append(out, l.Results...)
	}
	return out
}

func (p *Program) isState(name string) bool {
	return slices.ContainsFunc(p.State, func(n Next) bool { return n.Input == name })
}

// keepStates drops next values of what is no input any more, and marks what the others need.
func (p *Program) keepStates(needed map[string]bool) {
	p.State = slices.DeleteFunc(slices.Clone(p.State), func(n Next) bool {
		return !slices.ContainsFunc(p.Inputs, func(v Value) bool { return v.Name == n.Input })
	})
	for _, n := range p.State {
		needed[n.Input] = true
		for _, v := range p.values() {
			if regexp.MustCompile(`\b` + v.Name + `\b`).MatchString(n.Text) {
				needed[v.Name] = true
			}
		}
	}
}

// fewerStates yields programs with one state less.
func (p *Program) fewerStates(yield func(*Program) bool) bool {
	for i := range p.State {
		c := p.clone()
		c.State = slices.Delete(c.State, i, i+1)
		if !yield(c) {
			return false
		}
	}
	return true
}
