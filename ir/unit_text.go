package ir

import (
	"fmt"
	"regexp"
	"strings"
)

// Text is the complete CUDA C of a unit, ready for the compiler.
func (p *Program) Text(unit int) string { return p.TextOf(unit, p.Units[unit].Entry+".cu") }

// TextOf is the text of a unit that the compiler knows by the name of a file.
func (p *Program) TextOf(unit int, file string) string {
	u := p.Units[unit]
	text := u.Defines + p.Sources[u.Source]
	if u.LineInfo {
		return lineDirectives(text, file)
	}
	return text
}

// WithLineInfo returns the program with units that record the lines of the source that their code
// comes from.
func (p *Program) WithLineInfo() *Program {
	out := *p
	out.Units = make([]Unit, len(p.Units))
	for i, u := range p.Units {
		u.LineInfo = true
		out.Units[i] = u
	}
	return &out
}

// sourceNote matches the comment that the generator writes after a statement: its place in the source.
var sourceNote = regexp.MustCompile(`\S.* // (\S.*):(\d+):\d+$`)

// lineDirectives puts a #line before each statement with such a comment, so that the compiler takes it for a
// line of the source, and another one after it for the lines of the CUDA text that follow.
func lineDirectives(text, file string) string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		note := sourceNote.FindStringSubmatch(line)
		if note == nil {
			out = append(out, line)
			continue
		}
		out = append(out, fmt.Sprintf("#line %s %q", note[2], note[1]), line)
		out = append(out, fmt.Sprintf("#line %d %q", len(out)+2, file))
	}
	return strings.Join(out, "\n")
}
