package parser

import (
	"strings"

	"github.com/fusec/fusec/ir/diag"
)

// unused warns of inputs and names of a graph that nothing reads. A name that is bound again and
// again, as in a loop, is read where one of its values is. Names that begin with _ are meant to
// be unread, and one of several results and the counter of a loop may be. State may be written alone:
// other graphs read it.
func (b *builder) unused(n *graphNode, warnings *diag.List) {
	input, read := map[diag.Span]bool{}, map[diag.Span]bool{}
	for _, p := range n.Params {
		input[p.Name.span()] = true
		if st := b.states[p.Name.Text]; st != nil {
			read[p.Name.span()] = st.next != nil
		}
	}
	eachStmt(n.Body, func(s *stmtNode) {
		if s.For != nil { // its counter may only count
			read[s.For.Var.span()] = true
		}
		if s.Assign != nil && len(s.Assign.Targets) > 1 {
			for _, t := range s.Assign.Targets {
				read[t.Name.span()] = true
			}
		}
	})
	for _, n := range b.statements {
		read[n.span] = read[n.span] || n.used
	}
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
