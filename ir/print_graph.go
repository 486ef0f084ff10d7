package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Print formats a graph as .fuse text in index notation, one statement a value. The
// text parses back to an equal graph.
func Print(g *Graph) string {
	p := &printer{values: valueNames(g), graph: g}
	p.annotations(g)
	p.header(g)
	for _, c := range g.Constraints {
		p.WriteString("    require(")
		p.expr(c.Cond, looseLevel)
		p.WriteString(", " + strconv.Quote(c.Why) + ")\n")
	}
	taken := p.takenNames(g)
	for _, v := range g.Values {
		if !v.IsInput() {
			p.statement(v, taken)
		}
	}
	for _, o := range g.Outputs {
		switch name := p.value(o.Value); {
		case o.State != "":
			fmt.Fprintf(p, "    %s = %s\n", o.State, name)
		case name != o.Name:
			fmt.Fprintf(p, "    %s = %s\n", o.Name, name)
		}
	}
	p.WriteString("}\n")
	return p.String()
}

func (p *printer) annotations(g *Graph) {
	var notes []string
	if g.OneKernel {
		notes = append(notes, "@onekernel")
	}
	if g.Numerics == Strict {
		notes = append(notes, "@strict")
	}
	if g.TF32 {
		notes = append(notes, "@tf32")
	}
	var sizes []string
	for _, s := range g.Symbols {
		if s.Default != 0 {
			sizes = append(sizes, fmt.Sprintf("%s=%d", s.Name, s.Default))
		}
	}
	if sizes != nil {
		notes = append(notes, "@bench("+strings.Join(sizes, ", ")+")")
	}
	if notes != nil {
		p.WriteString(strings.Join(notes, " ") + "\n")
	}
}

func (p *printer) header(g *Graph) {
	p.WriteString("graph " + g.Name + "(")
	state := map[string]bool{}
	for _, o := range g.Outputs {
		state[o.State] = true
	}
	for i, v := range g.Inputs {
		p.parameter(i, state[v.Name], p.value(v), v)
	}
	p.WriteString(") -> (")
	results := 0
	for _, o := range g.Outputs {
		if o.State == "" {
			p.parameter(results, false, o.Name, o.Value)
			results++
		}
	}
	p.WriteString(") {\n")
}

func (p *printer) parameter(i int, state bool, name string, v *Value) {
	if i > 0 {
		p.WriteString(", ")
	}
	if state {
		p.WriteString("state ")
	}
	p.WriteString(name + ": " + v.Type.String() + "[")
	for d, r := range v.Axes {
		if d > 0 {
			p.WriteString(", ")
		}
		p.expr(r.Extent, looseLevel)
	}
	p.WriteByte(']')
}

// statement writes name[axes] = body.
func (p *printer) statement(v *Value, taken map[string]bool) {
	p.ranges = rangeNames(v, taken)
	p.WriteString("    " + p.value(v) + "[")
	for d, r := range v.Axes {
		if d > 0 {
			p.WriteString(", ")
		}
		p.WriteString(p.rangeName(r))
		if !inferred(r, v) {
			p.WriteString(": ")
			p.expr(r.Extent, looseLevel)
		}
	}
	p.WriteString("] = ")
	if v.Reduce != nil {
		p.reduction(v.Reduce, v.Body)
	} else {
		p.top(v.Body)
	}
	p.WriteByte('\n')
	p.ranges = nil
}

// inferred reports whether the extent of an axis can be left out: the axis
// indexes a tensor alone, and wherever it does, over the same extent.
func inferred(r *Range, v *Value) bool {
	uses := 0
	for _, l := range printedLoads(v) {
		for d, a := range l.Args {
			if a.Op != OpRange || a.Range != r {
				continue
			}
			if !Equal(l.From.Axes[d].Extent, r.Extent) {
				return false
			}
			uses++
		}
	}
	return uses > 0
}

// printedLoads are the loads of a value that are printed as loads.
func printedLoads(v *Value) (out []*Expr) {
	visit := func(e *Expr) bool {
		if e.Op == OpLoad && e.alwaysOutside() {
			return false
		}
		if e.Op == OpLoad {
			out = append(out, e)
		}
		return true
	}
	Walk(v.Body, visit)
	if v.Reduce != nil {
		Walk(v.Reduce.Where, visit)
		Walk(v.Reduce.Rank, visit)
	}
	return out
}

// valueNames gives every output's value the output's name, and every value a
// name of its own.
func valueNames(g *Graph) map[*Value]string {
	names, taken := map[*Value]string{}, map[string]bool{}
	for _, v := range g.Inputs {
		names[v], taken[v.Name] = v.Name, true
	}
	for _, s := range g.Symbols {
		taken[s.Name] = true
	}
	for _, o := range g.Outputs {
		if names[o.Value] == "" && !taken[o.Name] {
			names[o.Value] = o.Name
		}
		taken[o.Name] = true
	}
	for _, v := range g.Values {
		if names[v] == "" {
			names[v] = freshName(v.Name, taken)
		}
	}
	return names
}

// freshName returns name, with a number where it is taken, and takes it.
func freshName(name string, taken map[string]bool) string {
	fresh := name
	for n := 2; taken[fresh]; n++ {
		fresh = fmt.Sprintf("%s_%d", name, n)
	}
	taken[fresh] = true
	return fresh
}

// takenNames is what the name of a range must not hide.
func (p *printer) takenNames(g *Graph) map[string]bool {
	taken := map[string]bool{}
	for _, name := range p.values {
		taken[name] = true
	}
	for _, s := range g.Symbols {
		taken[s.Name] = true
	}
	for _, word := range []string{"true", "false", "none", "inf", "nan", "pi", "where", "in"} {
		taken[word] = true
	}
	return taken
}

// rangeNames gives the ranges of one statement names of their own.
func rangeNames(v *Value, taken map[string]bool) map[*Range]string {
	here := map[string]bool{}
	names := map[*Range]string{}
	ranges := v.Axes
	if v.Reduce != nil {
		ranges = append(append([]*Range(nil), ranges...), v.Reduce.Ranges...)
	}
	for _, r := range ranges {
		fresh := r.Name
		for n := 2; taken[fresh] || here[fresh]; n++ {
			fresh = fmt.Sprintf("%s_%d", r.Name, n)
		}
		here[fresh] = true
		names[r] = fresh
	}
	return names
}
