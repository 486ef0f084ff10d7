package parser

import (
	"sort"

	"github.com/fusec/fusec/ir/diag"
)

// What was found in a declaration is kept relative to the declarations that it is
// about, as these move when the text before them changes.

// anchors finds the declaration around a place.
type anchors struct {
	file  string
	parts []*section // in the order of the text
}

// place is a position relative to a declaration; absolute where that is nil.
type place struct {
	in *section
	at diag.Pos // its offset and line less those of the declaration, and its column
}

type movableSpan struct{ start, end place }

type movableMark struct {
	mark mark
	at   movableSpan
}

type movable struct {
	err   *diag.Error
	at    movableSpan
	notes []movableSpan
}

func (a *anchors) place(pos diag.Pos) place {
	if pos.Filename != a.file || pos.Line == 0 {
		return place{at: pos}
	}
	n := sort.Search(len(a.parts), func(i int) bool { return a.parts[i].pos.Offset > pos.Offset })
	if n == 0 {
		return place{at: pos}
	}
	p := a.parts[n-1]
	pos.Offset -= p.pos.Offset
	pos.Line -= p.pos.Line
	if pos.Line == 0 {
		pos.Column -= p.pos.Column
	}
	return place{p, pos}
}

func (p place) back() diag.Pos {
	if p.in == nil {
		return p.at
	}
	pos := p.at
	if pos.Line == 0 {
		pos.Column += p.in.pos.Column
	}
	pos.Offset += p.in.pos.Offset
	pos.Line += p.in.pos.Line
	return pos
}

func (a *anchors) span(s diag.Span) movableSpan { return movableSpan{a.place(s.Start), a.place(s.End)} }

func (m movableSpan) back() diag.Span { return diag.Span{Start: m.start.back(), End: m.end.back()} }

func (a *anchors) movable(e *diag.Error) movable {
	m := movable{err: e, at: a.span(e.Span)}
	for _, n := range e.Notes {
		m.notes = append(m.notes, a.span(n.Span))
	}
	return m
}

// back is the error where its declarations stand now.
func (m movable) back() *diag.Error {
	out := *m.err
	out.Span = m.at.back()
	out.Notes = append([]diag.Note(nil), m.err.Notes...)
	for i := range out.Notes {
		out.Notes[i].Span = m.notes[i].back()
	}
	return &out
}
