package lsp

import (
	"sort"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

// text is a source with the places of its lines.
type text struct {
	src   string
	lines []int // offsets at which they begin
	wide  bool  // characters of positions are units of UTF-16, else bytes
}

func newText(src string, wide bool) *text {
	t := &text{src: src, lines: []int{0}, wide: wide}
	for i := range len(src) {
		if src[i] == '\n' {
			t.lines = append(t.lines, i+1)
		}
	}
	return t
}

// line is the text of a line, without its end.
func (t *text) line(n int) string {
	if n < 0 || n >= len(t.lines) {
		return ""
	}
	end := len(t.src)
	if n+1 < len(t.lines) {
		end = t.lines[n+1] - 1
	}
	return strings.TrimSuffix(t.src[t.lines[n]:end], "\r")
}

// offset is the place of a position in bytes; the nearest where it is outside.
func (t *text) offset(p position) int {
	if p.Line < 0 {
		return 0
	}
	if p.Line >= len(t.lines) {
		return len(t.src)
	}
	line, start := t.line(p.Line), t.lines[p.Line]
	if !t.wide {
		at := max(0, min(p.Character, len(line)))
		for at > 0 && at < len(line) && !utf8.RuneStart(line[at]) {
			at--
		}
		return start + at
	}
	units := 0
	for i, r := range line {
		if units >= p.Character {
			return start + i
		}
		units += max(1, utf16.RuneLen(r))
	}
	return start + len(line)
}

// position is the place of an offset in lines and characters.
func (t *text) position(offset int) position {
	offset = max(0, min(offset, len(t.src)))
	n := sort.SearchInts(t.lines, offset+1) - 1
	part := t.src[t.lines[n]:offset]
	if !t.wide {
		return position{n, len(part)}
	}
	units := 0
	for _, r := range part {
		units += max(1, utf16.RuneLen(r))
	}
	return position{n, units}
}

func (t *text) span(s diag.Span) textRange {
	return textRange{t.position(s.Start.Offset), t.position(max(s.Start.Offset, s.End.Offset))}
}

// whole is the range of all of the text.
func (t *text) whole() textRange { return textRange{position{}, t.position(len(t.src))} }

// edited applies changes in order.
func (t *text) edited(changes []change) *text {
	for _, c := range changes {
		if c.Range == nil {
			t = newText(c.Text, t.wide)
			continue
		}
		from, to := t.offset(c.Range.Start), t.offset(c.Range.End)
		t = newText(t.src[:min(from, to)]+c.Text+t.src[max(from, to):], t.wide)
	}
	return t
}

// document is an open file, or one that was read to look for names.
type document struct {
	path     string
	version  int
	text     *text
	analyzer *parser.Analyzer
	found    *parser.Analysis // of text; nil until it is asked for
	plans    map[string]*planned
}

// symbolAt returns the use of a name at an offset, its ends included.
func symbolAt(a *parser.Analysis, offset int) *parser.Use {
	n := sort.Search(len(a.Details().Uses), func(i int) bool { return a.Details().Uses[i].Span.End.Offset >= offset })
	for ; n < len(a.Details().Uses) && a.Details().Uses[n].Span.Start.Offset <= offset; n++ {
		u := &a.Details().Uses[n]
		if n+1 < len(a.Details().Uses) && u.Span.End.Offset == offset && a.Details().Uses[n+1].Span.Start.Offset == offset {
			continue
		}
		return u
	}
	return nil
}

// declAt returns the declaration around an offset; nil between declarations.
func declAt(a *parser.Analysis, offset int) *parser.Decl {
	for i := range a.Decls {
		if d := &a.Decls[i]; d.Span.Start.Offset <= offset && offset <= d.Span.End.Offset {
			return d
		}
	}
	return nil
}
