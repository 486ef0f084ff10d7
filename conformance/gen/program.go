// Package gen draws whole programs of the language, for tests that compare every engine with
// the interpreter: all operators and library functions, views, index notation, reductions,
// sorts, scans, gathers and scatters, on all dtypes and on sizes from nothing to some
// thousands.
//
// A program is drawn line by line. A line is a row of a table (lines.go) or is composed
// (index.go); the parser says whether it is right and what type its results have, so that the
// package needs no rules of its own about types and shapes. Beside its .fuse text a line has
// the same in Python, where python.go knows how, for a reference that shares no code with
// fusec (testdata/reference/oracle.py).
//
// The package must not know plans, engines or devices.
package gen

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// A Value is an input or the result of a line.
type Value struct {
	Name string
	Type ir.DType
	Dims []string // as in a type: "N", "7", "N - 1"
}

func (v Value) typeText() string { return fmt.Sprintf("%s[%s]", v.Type, strings.Join(v.Dims, ", ")) }

// Rank is the number of axes.
func (v Value) Rank() int { return len(v.Dims) }

// A Line is a statement.
type Line struct {
	Text    string  // of one or more lines
	Python  string  // the same for the oracle; "" where it cannot say it
	Results []Value // what it binds
	Uses    []Value // what it reads
	Feature string  // what is tested, for counts
}

// A Program is one graph and the sizes it is run at.
type Program struct {
	Seed        uint64
	Annotations string           // "@strict", "@tf32", or ""
	Sizes       map[string]int64 // of symbols
	Hostile     bool             // inputs hold NaN, infinities and extremes
	Gradient    bool             // what is tested is the program's gradient
	Tangent     bool             // what is tested is the program's derivative along a direction
	Inputs      []Value
	Lines       []Line
	Outputs     []Value
	State       []Next // of inputs
}

// Source is the program's .fuse text.
func (p *Program) Source() string {
	var b strings.Builder
	if p.Annotations != "" {
		b.WriteString(p.Annotations + "\n")
	}
	fmt.Fprintf(&b, "graph g(%s) -> (%s) {\n", p.inputs(), declarations(p.Outputs))
	for _, l := range p.Lines {
		for text := range strings.Lines(l.Text) {
			fmt.Fprintf(&b, "    %s\n", strings.TrimRight(text, "\n"))
		}
	}
	for _, n := range p.State {
		fmt.Fprintf(&b, "    %s = %s\n", n.Input, n.Text)
	}
	b.WriteString("}\n")
	return b.String()
}

// inputs declares the inputs, and which are state.
func (p *Program) inputs() string {
	var out []string
	for _, v := range p.Inputs {
		word := ""
		if p.isState(v.Name) {
			word = "state "
		}
		out = append(out, word+declarations([]Value{v}))
	}
	return strings.Join(out, ", ")
}

func declarations(values []Value) string {
	var out []string
	for _, v := range values {
		out = append(out, v.Name+": "+v.typeText())
	}
	return strings.Join(out, ", ")
}

// Python is the program for the oracle: one statement a line; ok is false where a line has no
// such form.
func (p *Program) Python() (text string, ok bool) {
	var lines []string
	for _, l := range p.Lines {
		if l.Python == "" {
			return "", false
		}
		lines = append(lines, l.Python)
	}
	return strings.Join(lines, "\n"), true
}

// SizesText lists the sizes as files of found programs do: "N=5 M=3".
func (p *Program) SizesText() string {
	var out []string
	for name, n := range p.Sizes {
		out = append(out, fmt.Sprintf("%s=%d", name, n))
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Features are what the program's lines test, each once, in order.
func (p *Program) Features() []string {
	var out []string
	for _, l := range p.Lines {
		out = append(out, l.Feature)
	}
	for _, v := range append(append([]Value(nil), p.Inputs...), p.Outputs...) {
		out = append(out, "dtype "+v.Type.String())
	}
	if p.Annotations != "" {
		out = append(out, p.Annotations)
	}
	if p.Hostile {
		out = append(out, "hostile values")
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// prune drops inputs and lines that no output needs, and symbols that no input has.
func (p *Program) prune() {
	needed := map[string]bool{}
	for _, o := range p.Outputs {
		needed[o.Name] = true
	}
	p.keepStates(needed)
	var lines []Line
	for i := len(p.Lines) - 1; i >= 0; i-- {
		l := p.Lines[i]
		if !slices.ContainsFunc(l.Results, func(v Value) bool { return needed[v.Name] }) {
			continue
		}
		for _, u := range l.Uses { // unless the text has become shorter
			if regexp.MustCompile(`\b` + u.Name + `\b`).MatchString(l.Text) {
				needed[u.Name] = true
			}
		}
		lines = append(lines, l)
	}
	slices.Reverse(lines)
	p.Lines = lines
	p.keepSymbols(needed)
	p.Inputs = slices.DeleteFunc(slices.Clone(p.Inputs), func(v Value) bool { return !needed[v.Name] })
}

// keepSymbols marks an input for each symbol that lines or outputs name, and drops the others.
func (p *Program) keepSymbols(needed map[string]bool) {
	var all strings.Builder
	for _, l := range p.Lines {
		all.WriteString(l.Text + "\n")
	}
	all.WriteString(declarations(p.Outputs))
	for _, v := range p.Inputs {
		if needed[v.Name] {
			all.WriteString(v.typeText())
		}
	}
	sizes := map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(p.Sizes)) { // in order: a seed stands for one program
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(all.String()) {
			continue
		}
		sizes[name] = p.Sizes[name]
		binds := func(v Value) bool { return needed[v.Name] && slices.Contains(v.Dims, name) }
		if slices.ContainsFunc(p.Inputs, binds) {
			continue
		}
		for _, v := range p.Inputs {
			if slices.Contains(v.Dims, name) {
				needed[v.Name] = true
				for _, dim := range v.Dims { // and its other symbols
					if n, symbol := p.Sizes[dim]; symbol {
						sizes[dim] = n
					}
				}
				break
			}
		}
	}
	p.Sizes = sizes
}

// clone is a copy that may be changed.
func (p *Program) clone() *Program {
	out := *p
	out.Sizes = map[string]int64{}
	for name, n := range p.Sizes {
		out.Sizes[name] = n
	}
	out.Inputs, out.Outputs = slices.Clone(p.Inputs), slices.Clone(p.Outputs)
	out.Lines, out.State = slices.Clone(p.Lines), slices.Clone(p.State)
	return &out
}

// one is one of some things.
func one[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }
