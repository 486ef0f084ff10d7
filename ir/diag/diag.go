// Package diag holds source positions and the errors that point at them.
//
// It is a leaf: every stage reports through it and it knows none of them. An
// Error is data (span, message, notes); drawing it is Render's job and printing
// it is the command line's.
package diag

import (
	"errors"
	"fmt"
	"sort"
	"strings"
)

// Pos is a place in a source file. Its layout equals participle's lexer.Position,
// so that syntax trees can hold it without importing the parser library.
type Pos struct {
	Filename string
	Offset   int // bytes from the start of the file
	Line     int // from 1; 0 where there is no position
	Column   int // from 1, in characters
}

// String formats the position as file:line:column.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.Filename
	}
	return fmt.Sprintf("%s:%d:%d", p.Filename, p.Line, p.Column)
}

// Span is the half-open range of source text from Start to End.
type Span struct{ Start, End Pos }

// IsZero reports whether the span names no source text.
func (s Span) IsZero() bool { return s.Start.Line == 0 }

// String formats the start of the span as file:line:column.
func (s Span) String() string { return s.Start.String() }

// Join returns the smallest span that covers both s and t.
func (s Span) Join(t Span) Span {
	switch {
	case s.IsZero():
		return t
	case t.IsZero():
		return s
	}
	if t.Start.Offset < s.Start.Offset {
		s.Start = t.Start
	}
	if t.End.Offset > s.End.Offset {
		s.End = t.End
	}
	return s
}

// Note is a second place that explains an Error.
type Note struct {
	Span Span // may be zero: then the note is text alone
	Msg  string
}

// Error is one mistake in a program.
type Error struct {
	Span    Span
	Msg     string // lower case, no full stop
	Notes   []Note
	Warning bool // the program is valid, but may not do what was meant
}

// Errorf returns an Error at span.
func Errorf(span Span, format string, args ...any) *Error {
	return &Error{Span: span, Msg: fmt.Sprintf(format, args...)}
}

// Warningf returns a warning at span.
func Warningf(span Span, format string, args ...any) *Error {
	return &Error{Span: span, Msg: fmt.Sprintf(format, args...), Warning: true}
}

// Note adds a note and returns e.
func (e *Error) Note(span Span, format string, args ...any) *Error {
	e.Notes = append(e.Notes, Note{Span: span, Msg: fmt.Sprintf(format, args...)})
	return e
}

// Error formats the error as file:line:column: message.
func (e *Error) Error() string {
	if e.Span.IsZero() {
		return e.Msg
	}
	return e.Span.String() + ": " + e.Msg
}

// List is a set of errors of one program.
type List []*Error

// Add appends an error at span.
func (l *List) Add(span Span, format string, args ...any) *Error {
	e := Errorf(span, format, args...)
	*l = append(*l, e)
	return e
}

// Err returns nil for an empty list, else the list sorted by position with
// repeated messages dropped.
func (l List) Err() error {
	if len(l) == 0 {
		return nil
	}
	sorted := append(List(nil), l...)
	sort.SliceStable(sorted, func(i, j int) bool {
		a, b := sorted[i].Span.Start, sorted[j].Span.Start
		if a.Filename != b.Filename {
			return a.Filename < b.Filename
		}
		return a.Offset < b.Offset
	})
	kept := sorted[:1]
	for _, e := range sorted[1:] {
		if e.Error() != kept[len(kept)-1].Error() {
			kept = append(kept, e)
		}
	}
	return kept
}

// Error joins the messages, one a line.
func (l List) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.Is and errors.As look at each error.
func (l List) Unwrap() []error {
	out := make([]error, len(l))
	for i, e := range l {
		out[i] = e
	}
	return out
}

// All returns the diagnostics inside err, in order; nil where it holds none.
func All(err error) List {
	var l List
	if errors.As(err, &l) {
		return l
	}
	var e *Error
	if errors.As(err, &e) {
		return List{e}
	}
	return nil
}
