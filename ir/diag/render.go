package diag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Sources returns the text of a file named in a span; ok is false where the
// text is not at hand, and then only the position is printed.
type Sources func(filename string) (text string, ok bool)

// Render draws each error in err with its source line and a caret:
//
//	f.fuse:2:9: error: cannot add f32[N, 128] and f32[N]
//	    2 |     return x + y
//	      |            ^^^^^
//	f.fuse:1:10: note: x is f32[N, 128] here
//
// An err that holds no diagnostics is rendered as "error: " and its message.
func Render(err error, src Sources) string {
	list := All(err)
	if list == nil {
		return "error: " + err.Error() + "\n"
	}
	var b strings.Builder
	for _, e := range list {
		kind := "error"
		if e.Warning {
			kind = "warning"
		}
		draw(&b, src, e.Span, kind, e.Msg)
		for _, n := range e.Notes {
			draw(&b, src, n.Span, "note", n.Msg)
		}
	}
	return b.String()
}

func draw(b *strings.Builder, src Sources, span Span, kind, msg string) {
	if span.IsZero() {
		fmt.Fprintf(b, "%s: %s\n", kind, msg)
		return
	}
	fmt.Fprintf(b, "%s: %s: %s\n", span.Start, kind, msg)
	if src == nil {
		return
	}
	text, ok := src(span.Start.Filename)
	if !ok || span.Start.Offset > len(text) {
		return
	}
	line, column := lineAt(text, span.Start.Offset)
	const widest = 200 // a machine-made line would drown the caret
	if len(line) > widest {
		return
	}
	fmt.Fprintf(b, "%5d | %s\n", span.Start.Line, line)
	fmt.Fprintf(b, "      | %s%s\n", blank(line[:column]), strings.Repeat("^", caretWidth(span, line[column:])))
}

// lineAt returns the line around a byte offset and the offset inside that line.
func lineAt(text string, offset int) (line string, column int) {
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	end := strings.IndexByte(text[offset:], '\n')
	if end < 0 {
		end = len(text)
	} else {
		end += offset
	}
	return strings.TrimRight(text[start:end], "\r"), min(offset-start, len(strings.TrimRight(text[start:end], "\r")))
}

// blank keeps tabs, so that the caret stands below its character at any tab width.
func blank(prefix string) string {
	return strings.Map(func(r rune) rune {
		if r == '\t' {
			return '\t'
		}
		return ' '
	}, prefix)
}

// caretWidth counts the characters of the span that lie on its first line.
func caretWidth(span Span, rest string) int {
	n := span.End.Offset - span.Start.Offset
	return max(1, utf8.RuneCountInString(rest[:max(0, min(n, len(rest)))]))
}
