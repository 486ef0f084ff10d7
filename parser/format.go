package parser

import (
	"strings"

	"github.com/alecthomas/participle/v2/lexer"
)

// Format lays a source out in the canonical way: four spaces a block, one
// statement a line, one space around operators, no more than one empty line. Comments and
// line breaks inside brackets stay. The result parses to the same program, and
// formatting it again changes nothing. A source with syntax errors is returned
// as an error.
func Format(filename string, src []byte) ([]byte, error) {
	if _, err := parseSource(filename, src, DefaultLimits); err != nil {
		return nil, err
	}
	tokens, err := tokenize(filename, src, DefaultLimits)
	if err != nil {
		return nil, err
	}
	f := &formatter{}
	for i, t := range tokens {
		f.token(t, f.nextWord(tokens[i+1:]))
	}
	return []byte(f.finish()), nil
}

// bracketKind says what an open bracket holds.
type bracketKind uint8

// The kinds of bracket.
const (
	groupBracket  bracketKind = iota // ( ) around an expression, or of a call
	headerBracket                    // ( ) of parameters and results
	indexBracket                     // [ ] of an index or a type
	bindBracket                      // [ ] that binds index names
	reduceBracket                    // [ ] of a reduction
)

// formatter rebuilds a source from its tokens.
type formatter struct {
	lines    []line
	open     bool // the last line may take more tokens
	blank    bool // an empty line comes before the next one
	soft     bool // the next line continues a statement
	depth    int  // open blocks
	brackets []bracketKind

	prev    lexer.Token // the last token of the statement
	first   lexer.Token // the first token of the statement
	count   int         // tokens in the statement so far
	unary   bool        // prev is a prefix operator
	reduced bool        // prev closes a reduction's bracket
	noted   bool        // inside annotations
	valued  bool        // behind the = of the statement
	newline int         // line ends since the last token or comment
}

type line struct {
	indent int
	blank  bool // an empty line stands before it
	text   []string
}

// nextWord returns the next token that is no blank or comment.
func (f *formatter) nextWord(rest []lexer.Token) lexer.Token {
	for _, t := range rest {
		if t.Type != tokWhitespace && t.Type != tokComment {
			return t
		}
	}
	return lexer.Token{Type: tokEOF}
}

func (f *formatter) token(t, next lexer.Token) {
	switch {
	case t.Value == "\n":
		f.lineEnd(t)
	case t.Type == tokWhitespace || t.Type == tokEOF:
	case t.Type == tokComment:
		f.comment(t)
	case t.Type == tokEOL: // ;
		f.endStatement()
	case t.Value == "{":
		f.write(t)
		f.depth++
		f.endStatement()
	case t.Value == "}":
		f.closeBlock(t, next)
	default:
		f.word(t)
	}
}

func (f *formatter) lineEnd(t lexer.Token) {
	f.newline++
	if t.Type == tokEOL {
		f.endStatement()
	}
	if f.prev.Value == "}" {
		return // else follows
	}
	f.soft = f.count > 0
	f.open = false
	if f.newline > 1 && f.count == 0 {
		f.blank = true
	}
}

func (f *formatter) endStatement() {
	f.prev, f.count, f.open, f.soft, f.noted, f.valued = lexer.Token{}, 0, false, false, false, false
	f.brackets = f.brackets[:0]
}

// text adds to the last line, or starts one.
func (f *formatter) text(parts ...string) {
	if !f.open {
		indent := f.depth
		if f.soft && parts[0] != ")" && parts[0] != "]" {
			indent++
		}
		after := len(f.lines) > 0 && !f.lines[len(f.lines)-1].opensBlock()
		f.lines = append(f.lines, line{indent: indent, blank: f.blank && after && parts[0] != "}"})
		f.open, f.blank = true, false
	}
	last := &f.lines[len(f.lines)-1]
	last.text = append(last.text, parts...)
	f.newline = 0
}

func (l line) opensBlock() bool {
	for _, t := range l.text {
		if t == "{" {
			return true
		}
	}
	return false
}

// comment stays behind the text it follows.
func (f *formatter) comment(t lexer.Token) {
	if f.newline == 0 && len(f.lines) > 0 {
		f.open = true
		f.text("  ", t.Value)
		f.open = false
		return
	}
	f.text(t.Value)
}

func (f *formatter) closeBlock(t, next lexer.Token) {
	f.endStatement()
	f.depth = max(0, f.depth-1)
	f.write(t)
	if next.Value != "else" {
		f.endStatement()
	}
}

func (f *formatter) word(t lexer.Token) {
	if t.Value == "graph" && f.noted {
		f.endStatement()
	}
	if f.count == 0 {
		f.first = t
		f.noted = t.Value == "@"
	}
	f.write(t)
}

// write puts a token on the line, with a space before it where one belongs.
func (f *formatter) write(t lexer.Token) {
	unary := t.Value == "!" || t.Value == "-" && f.startsOperand()
	if f.open && f.spaced(t) {
		f.text(" ", t.Value)
	} else {
		f.text(t.Value)
	}
	f.reduced = false
	switch t.Value {
	case "(", "[":
		f.brackets = append(f.brackets, f.opened(t))
	case ")", "]":
		if n := len(f.brackets); n > 0 {
			f.reduced = f.brackets[n-1] == reduceBracket
			f.brackets = f.brackets[:n-1]
		}
	}
	f.valued = f.valued || t.Value == "=" && len(f.brackets) == 0
	f.prev, f.unary = t, unary
	f.count++
}

func (f *formatter) inside() bracketKind {
	if n := len(f.brackets); n > 0 {
		return f.brackets[n-1]
	}
	return groupBracket
}

// opened says what a bracket that comes after prev holds.
func (f *formatter) opened(t lexer.Token) bracketKind {
	header := f.first.Value == "fn" || f.first.Value == "graph"
	switch {
	case t.Value == "(" && header && len(f.brackets) == 0 && (f.count == 2 || f.prev.Value == "->"):
		return headerBracket
	case t.Value == "(":
		return groupBracket
	case f.prev.Type == tokReduce:
		return reduceBracket
	case f.count == 1 && f.depth > 0:
		return bindBracket
	}
	return indexBracket
}

// startsOperand reports whether what follows prev begins an operand.
func (f *formatter) startsOperand() bool {
	switch p := f.prev; {
	case f.count == 0 || f.reduced || p.Type == tokOp || p.Type == tokKeyword:
		return true
	case p.Type == tokPunct:
		return p.Value != ")" && p.Value != "]" && p.Value != "}" && p.Value != "..."
	case p.Value == "where" || p.Value == "at":
		return f.inside() == reduceBracket
	case p.Value == "in":
		return f.first.Value == "for" && f.count == 3
	}
	return false
}

// spaced reports whether a space stands between prev and t.
func (f *formatter) spaced(t lexer.Token) bool {
	p := f.prev
	switch {
	case f.unary || p.Value == "(" || p.Value == "[" || p.Value == "..." && t.Type == tokIdent:
		return false
	case p.Value == "@" && f.first.Value == "fn" && !f.valued && f.depth == 0: // of a declared derivative
		return false
	case f.noted && (p.Value == "@" || t.Value == "=" || p.Value == "="):
		return false
	case t.Value == ")" || t.Value == "]" || t.Value == "," || p.Value == ".." || t.Value == "..":
		return false
	case t.Value == ":":
		return p.Value == ","
	case p.Value == ":":
		return f.inside() != indexBracket
	case t.Value == "=" || p.Value == "=":
		return len(f.brackets) == 0 || f.inside() == headerBracket
	case t.Value == "(":
		predicate := (p.Value == "where" || p.Value == "at") && f.inside() == reduceBracket
		return f.reduced || predicate || !(p.Type == tokIdent || p.Value == "error" || p.Value == "require")
	case t.Value == "[":
		opens := p.Type == tokPunct && p.Value != ")" && p.Value != "]"
		return f.reduced || opens || p.Type == tokOp || p.Type == tokKeyword
	}
	return true
}

func (f *formatter) finish() string {
	var out strings.Builder
	for _, l := range f.lines {
		if l.blank {
			out.WriteByte('\n')
		}
		out.WriteString(strings.Repeat("    ", l.indent))
		for _, t := range l.text {
			out.WriteString(t)
		}
		out.WriteByte('\n')
	}
	return out.String()
}
