package parser

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir/diag"
)

// unused warns of inputs and names of a graph that nothing reads. A name that is bound again and
// again, as in a loop, is read where one of its values is. Names that begin with _ are meant to
// be unread, and so may be some of several results, but not all, and the counter of a loop. State may be written alone:
// other graphs read it.
func (b *builder) unused(n *graphNode, warnings *diag.List) {
	input, read := map[diag.Span]bool{}, map[diag.Span]bool{}
	for _, p := range n.Params {
		input[p.Name.span()] = true
		if st := b.states[p.Name.Text]; st != nil {
			read[p.Name.span()] = st.next != nil
		}
	}
	for _, n := range b.statements {
		read[n.span] = read[n.span] || n.used || b.outputs[n.name] != nil
	}
	eachStmt(n.Body, func(s *stmtNode) {
		if s.For != nil { // its counter may only count
			read[s.For.Var.span()] = true
		}
		if s.Assign == nil {
			return
		}
		some := slices.ContainsFunc(s.Assign.Targets, func(t *targetNode) bool { return read[t.Name.span()] })
		for i, t := range s.Assign.Targets {
			read[t.Name.span()] = some || i > 0 // of several, the first stands for all
		}
	})
	warned := map[diag.Span]bool{}
	for _, n := range b.statements {
		if read[n.span] || warned[n.span] || b.outputs[n.name] != nil || strings.HasPrefix(n.name, "_") {
			continue
		}
		warned[n.span] = true
		what := n.name
		if input[n.span] {
			what = "input " + what
		}
		*warnings = append(*warnings, diag.Warningf(n.span, "%s is never read", what))
	}
}
