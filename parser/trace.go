package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// trace keeps what a graph's expansion finds out about the text of one file: editors
// show it. A nil trace keeps nothing.
type trace struct {
	file  string
	marks []mark
}

// markKind says what a mark is about.
type markKind uint8

const (
	typeMark  markKind = iota // what the name at span is
	callMark                  // what the call of the name at span gives
	needsMark                 // a condition on sizes that the text at span relies on
)

type mark struct {
	kind   markKind
	span   diag.Span
	text   string
	why    string // of a condition
	tensor bool
}

func (t *trace) add(m mark) {
	const most = 100_000 // static loops bind names again and again
	if t != nil && m.span.Start.Filename == t.file && len(t.marks) < most {
		t.marks = append(t.marks, m)
	}
}

// bound notes what a name is bound to.
func (t *trace) bound(span diag.Span, v val) {
	if t != nil && v.ok() {
		t.add(mark{kind: typeMark, span: span, text: v.describe(), tensor: v.kind == arrayVal && v.arr.dtype != ir.Index})
	}
}

// ran notes how far an index name runs.
func (t *trace) ran(r *rangeInfo) {
	if t != nil && r.rng.Extent != nil {
		t.add(mark{kind: typeMark, span: r.span, text: "an index below " + sizeText(r.rng.Extent)})
	}
}

// called notes what a call gives.
func (t *trace) called(span diag.Span, results []val) {
	if t == nil {
		return
	}
	text := ""
	for i, v := range results {
		if !v.ok() {
			return
		}
		if i > 0 {
			text += ", "
		}
		text += v.describe()
	}
	t.add(mark{kind: callMark, span: span, text: text})
}

// relied notes a condition on sizes that the program does not state.
func (t *trace) relied(span diag.Span, cond *ir.Expr, why string) {
	if t != nil {
		t.add(mark{kind: needsMark, span: span, text: cond.String(), why: why})
	}
}
