package parser

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// stateWord stands before an input of a graph that the graph gives a next value.
const stateWord = "state"

// state is an input that a graph updates. Its name stands for the value before the run until
// a statement assigns the next one, and for nothing behind that: so no text can be read as if
// the name meant the next value.
type state struct {
	declared
	value   *ir.Value
	old     *binding // of the name, to the value before the run
	next    *binding // nil until it is assigned
	settles string   // the name of the result that is the next value
}

// noState refuses the word before the name of a result.
func (b *builder) noState(p *paramNode) {
	if p.State {
		b.errorf(p.span(), "result %s is marked as state: only inputs of a graph may be state", p.Name.Text)
	}
}

// noState refuses the word before a parameter of a function.
func (l *loader) noState(p *paramNode) {
	if p.State {
		l.errs.Add(p.span(), "parameter %s of a fn is marked as state: only inputs of a graph may be state; return the next "+
			"value, and assign it in the graph", p.Name.Text)
	}
}

// declareState makes an input that has just been bound state, where its declaration says so.
func (b *builder) declareState(p *paramNode, t ir.DType, shape []*ir.Expr) {
	if !p.State {
		return
	}
	old := b.scope.names[p.Name.Text]
	if old == nil || !old.val.ok() || old.val.arr == nil {
		return
	}
	name := p.Name.Text
	b.states[name] = &state{declared: declared{name: name, dtype: t, shape: shape, span: p.span()}, value: old.val.arr.value, old: old}
}

// nameStates gives next values the names of results that they have outside of the graph: w_next
// for w, or with a number behind it where that is taken.
func (b *builder) nameStates(n *graphNode) {
	taken := map[string]bool{}
	for name := range b.scope.names {
		taken[name] = true
	}
	for _, p := range n.Results {
		taken[p.Name.Text] = true
	}
	for _, p := range n.Params {
		s := b.states[p.Name.Text]
		if s == nil || s.settles != "" {
			continue
		}
		s.settles = s.name + "_next"
		for i := 2; taken[s.settles]; i++ {
			s.settles = fmt.Sprintf("%s_next_%d", s.name, i)
		}
		taken[s.settles] = true
	}
}

// setState gives a state its next value.
func (b *builder) setState(s *state, id *identNode, v val) {
	if s.next != nil {
		b.errorf(id.span(), "state %s is assigned twice: bind other names on the way, and assign its next value once", s.name).
			Note(b.shown(s.next.span), "%s is assigned here first", s.name)
		return
	}
	v.bound = id.span()
	b.trace.bound(id.span(), v)
	s.next = &binding{val: v, span: id.span(), dynamic: b.dynamic > 0}
}

// readsState refuses a read of a state's name behind its assignment.
func (b *builder) readsState(s *state, span diag.Span) {
	if s.next == nil {
		return
	}
	b.errorf(span, "%s is read after its next value is assigned: it is the value before the run; "+
		"read it above, or give the next value a name of its own: %s = ...; %s = %s", s.name, s.settles, s.name, s.settles).
		Note(b.shown(s.next.span), "%s is assigned here", s.name)
}

// declaredAs is what the header says about a name that a statement defines; nil for nothing.
func (b *builder) declaredAs(name string) *declared {
	if s := b.states[name]; s != nil {
		return &s.declared
	}
	return b.outputs[name]
}

// resultName is the name that what a statement defines has in the graph.
func (b *builder) resultName(name string) string {
	if s := b.states[name]; s != nil {
		return s.settles
	}
	return name
}

// emitStates makes the next values outputs of the graph, behind its results.
func (b *builder) emitStates(n *graphNode, used map[*ir.Value]bool) {
	for _, p := range n.Params {
		s := b.states[p.Name.Text]
		if s == nil || s.bad {
			continue
		}
		if s.next == nil {
			if definedIn(n.Body, s.name) == nil {
				b.errorf(p.Name.span(), "state %s is never assigned: write %s = ... with its next value, or leave the word state out",
					s.name, s.name)
			}
			continue
		}
		a := b.result(&s.declared, s.next)
		if a == nil {
			continue
		}
		if a.value == nil || len(a.outer) > 0 || a.value.IsInput() || used[a.value] {
			a = b.define(s.settles, a, s.next.span)
		}
		used[a.value] = true
		b.g.Output(s.settles, a.value, s.span)
		b.g.Outputs[len(b.g.Outputs)-1].State = s.name
	}
}
