package parser

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// The token types. A line end is an EOL only where it ends a statement;
// elsewhere it is Whitespace, as the blanks are.
const (
	tokEOF        = lexer.EOF
	tokIdent      = lexer.TokenType(-10)
	tokKeyword    = lexer.TokenType(-11)
	tokReduce     = lexer.TokenType(-12) // sum, max, ... before [
	tokNumber     = lexer.TokenType(-13)
	tokString     = lexer.TokenType(-14)
	tokOp         = lexer.TokenType(-15) // binary operators, - included
	tokPunct      = lexer.TokenType(-16)
	tokEOL        = lexer.TokenType(-17)
	tokWhitespace = lexer.TokenType(-18)
	tokComment    = lexer.TokenType(-19)
)

var keywords = map[string]bool{
	"import": true, "const": true, "fn": true, "graph": true, "for": true, "if": true,
	"else": true, "return": true, "error": true, "require": true,
}

// symbols lists operators and punctuation, longest first.
var symbols = []struct {
	text string
	kind lexer.TokenType
}{
	{"...", tokPunct}, {"..", tokPunct}, {"->", tokPunct},
	{"**", tokOp}, {"<<", tokOp}, {">>", tokOp}, {"<=", tokOp}, {">=", tokOp}, {"==", tokOp}, {"!=", tokOp},
	{"&&", tokOp}, {"||", tokOp},
	{"+", tokOp}, {"-", tokOp}, {"*", tokOp}, {"/", tokOp}, {"%", tokOp}, {"@", tokOp}, {"<", tokOp}, {">", tokOp},
	{"&", tokOp}, {"|", tokOp}, {"^", tokOp},
	{"(", tokPunct}, {")", tokPunct}, {"[", tokPunct}, {"]", tokPunct}, {"{", tokPunct}, {"}", tokPunct},
	{",", tokPunct}, {":", tokPunct}, {"=", tokPunct}, {"!", tokPunct}, {";", tokEOL},
}

// language is the lexer.Definition of .fuse text.
type language struct{ limits Limits }

// Symbols names the token types for the grammar.
func (language) Symbols() map[string]lexer.TokenType {
	return map[string]lexer.TokenType{
		"EOF": tokEOF, "Ident": tokIdent, "Keyword": tokKeyword, "Reduce": tokReduce, "Number": tokNumber,
		"String": tokString, "Op": tokOp, "Punct": tokPunct, "EOL": tokEOL, "Whitespace": tokWhitespace,
		"Comment": tokComment,
	}
}

// Lex reads r to its end; participle asks for it when it builds the grammar.
func (l language) Lex(filename string, r io.Reader) (lexer.Lexer, error) {
	src, err := io.ReadAll(r)
	if err != nil {
		return nil, err
	}
	tokens, err := tokenize(filename, src, l.limits)
	if err != nil {
		return nil, err
	}
	return &tokenStream{tokens: tokens}, nil
}

// tokenStream hands out tokens one by one.
type tokenStream struct {
	tokens []lexer.Token
	next   int
}

// Next returns the next token, and the last one (EOF) for ever.
func (s *tokenStream) Next() (lexer.Token, error) {
	t := s.tokens[s.next]
	if s.next < len(s.tokens)-1 {
		s.next++
	}
	return t, nil
}

// scanner cuts text into raw tokens.
type scanner struct {
	src    string
	pos    lexer.Position
	tokens []lexer.Token
}

// bytesPerToken is about what tokens take, blanks included, and a little less.
const bytesPerToken = 3

// tokenize cuts src into tokens, blanks and comments included, ending with EOF.
func tokenize(filename string, src []byte, limits Limits) ([]lexer.Token, error) {
	if len(src) > limits.Bytes {
		return nil, diag.Errorf(fileSpan(filename), "source is larger than %d bytes", limits.Bytes)
	}
	text := bytes.TrimPrefix(src, bom)
	start := lexer.Position{Filename: filename, Offset: len(src) - len(text), Line: 1, Column: 1}
	return tokenizeAt(start, string(text), limits)
}

// tokenizeAt cuts a part of a source that starts at pos.
func tokenizeAt(pos lexer.Position, src string, limits Limits) ([]lexer.Token, error) {
	s := &scanner{src: src, pos: pos, tokens: make([]lexer.Token, 0, len(src)/bytesPerToken)}
	for s.src != "" {
		if len(s.tokens) >= limits.Tokens {
			return nil, diag.Errorf(s.span(1), "source has more than %d tokens: split it into several files",
				limits.Tokens)
		}
		if err := s.scan(); err != nil {
			return nil, err
		}
	}
	s.tokens = append(s.tokens, lexer.Token{Type: tokEOF, Pos: s.pos})
	if err := checkNesting(s.tokens, limits); err != nil {
		return nil, err
	}
	markLines(s.tokens)
	return s.tokens, nil
}

var bom = []byte("\xef\xbb\xbf")

func fileSpan(filename string) diag.Span {
	at := diag.Pos{Filename: filename, Line: 1, Column: 1}
	return diag.Span{Start: at, End: at}
}

func (s *scanner) span(n int) diag.Span {
	end := s.pos
	end.Advance(s.src[:min(n, len(s.src))])
	return diag.Span{Start: diag.Pos(s.pos), End: diag.Pos(end)}
}

func (s *scanner) emit(kind lexer.TokenType, n int) {
	text := s.src[:n]
	s.tokens = append(s.tokens, lexer.Token{Type: kind, Value: text, Pos: s.pos})
	switch kind {
	case tokString, tokComment, tokWhitespace, tokEOL:
		s.pos.Advance(text)
	default: // characters of ASCII on one line
		s.pos.Offset += n
		s.pos.Column += n
	}
	s.src = s.src[n:]
}

func (s *scanner) scan() error {
	c := s.src[0]
	switch {
	case c == '\n':
		s.emit(tokEOL, 1)
	case c == ' ' || c == '\t' || c == '\r':
		s.emit(tokWhitespace, prefixLen(s.src, func(c byte) bool { return c == ' ' || c == '\t' || c == '\r' }))
	case c == '#':
		return s.comment()
	case c == '"':
		return s.text()
	case isDigit(c) || c == '.' && len(s.src) > 1 && isDigit(s.src[1]):
		s.emit(tokNumber, numberLen(s.src))
	case isLetter(c):
		s.word()
	default:
		return s.symbol()
	}
	return nil
}

func (s *scanner) comment() error {
	n := strings.IndexByte(s.src, '\n')
	if n < 0 {
		n = len(s.src)
	}
	if !utf8.ValidString(s.src[:n]) {
		return diag.Errorf(s.span(1), "comment is not valid UTF-8")
	}
	s.emit(tokComment, len(strings.TrimRight(s.src[:n], " \t\r")))
	return nil
}

func (s *scanner) text() error {
	for i := 1; i < len(s.src) && s.src[i] != '\n'; i++ {
		switch s.src[i] {
		case '\\':
			i++
		case '"':
			if !utf8.ValidString(s.src[:i+1]) {
				return diag.Errorf(s.span(i+1), "text is not valid UTF-8")
			}
			s.emit(tokString, i+1)
			return nil
		}
	}
	return diag.Errorf(s.span(1), "text is not closed: expected \" before the end of the line")
}

func (s *scanner) word() {
	n := prefixLen(s.src, func(c byte) bool { return isLetter(c) || isDigit(c) })
	kind := tokIdent
	if keywords[s.src[:n]] {
		kind = tokKeyword
	} else if _, ok := ir.MonoidNamed(s.src[:n]); ok {
		if strings.HasPrefix(strings.TrimLeft(s.src[n:], " \t"), "[") {
			kind = tokReduce
		}
	}
	s.emit(kind, n)
}

func (s *scanner) symbol() error {
	for _, sym := range symbols {
		if strings.HasPrefix(s.src, sym.text) {
			s.emit(sym.kind, len(sym.text))
			return nil
		}
	}
	r, n := utf8.DecodeRuneInString(s.src)
	if r == utf8.RuneError && n <= 1 {
		return diag.Errorf(s.span(1), "source is not valid UTF-8 here (byte 0x%02x)", s.src[0])
	}
	if hint := foreignSymbol(r, s.tokens, s.src[n:]); hint != "" {
		return diag.Errorf(s.span(n), "unexpected character %q: %s", r, hint)
	}
	return diag.Errorf(s.span(n), "unexpected character %q: names are ASCII letters, digits and _", r)
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }
func isDigit(c byte) bool  { return c >= '0' && c <= '9' }

func prefixLen(s string, ok func(byte) bool) int {
	for i := range len(s) {
		if !ok(s[i]) {
			return i
		}
	}
	return len(s)
}

// numberLen measures 12, 0x1f, 1.5, .5, 1e-5 and 1_000; it leaves the dots of 0..8.
func numberLen(s string) int {
	digits := func(c byte) bool { return isDigit(c) || c == '_' }
	if len(s) > 2 && s[0] == '0' && (s[1]|0x20 == 'x' || s[1]|0x20 == 'b') {
		return 2 + prefixLen(s[2:], func(c byte) bool { return isDigit(c) || isLetter(c) })
	}
	n := prefixLen(s, digits)
	if n < len(s) && s[n] == '.' && !strings.HasPrefix(s[n:], "..") {
		n++
		n += prefixLen(s[n:], digits)
	}
	if n < len(s) && s[n]|0x20 == 'e' {
		sign := 0
		if n+1 < len(s) && (s[n+1] == '+' || s[n+1] == '-') {
			sign = 1
		}
		if d := prefixLen(s[n+1+sign:], digits); d > 0 {
			n += 1 + sign + d
		}
	}
	return n
}

// markLines turns the line ends that do not end a statement into Whitespace:
// those inside ( ) and [ ], after an operator or comma, on blank lines, and before else and ->.
func markLines(tokens []lexer.Token) {
	brackets, last := 0, -1 // last: index of the last token that is not blank
	for i := range tokens {
		t := &tokens[i]
		switch {
		case t.Type == tokWhitespace || t.Type == tokComment:
			continue
		case t.Type == tokEOL && t.Value == "\n" && (brackets > 0 || last < 0 || !endsStatement(tokens[last])):
			t.Type = tokWhitespace
			continue
		case t.Value == "(" || t.Value == "[":
			brackets++
		case t.Value == ")" || t.Value == "]":
			brackets--
		case t.Value == "{" || t.Value == "}":
			brackets = 0
		case (t.Value == "else" || t.Value == "->") && last >= 0 && tokens[last].Type == tokEOL:
			tokens[last].Type = tokWhitespace
		}
		last = i
	}
}

func endsStatement(t lexer.Token) bool {
	switch t.Type {
	case tokIdent, tokKeyword, tokReduce, tokNumber, tokString:
		return true
	}
	return t.Value == ")" || t.Value == "]" || t.Value == "}"
}

// checkNesting bounds how deep the grammar recurses on these tokens: brackets,
// reductions (each holds the rest of its statement) and else.
//
// It bounds the operators of a statement as well, since ** recurses on them.
func checkNesting(tokens []lexer.Token, limits Limits) error {
	depth, terms := 0, 0
	var saved []int // depth outside each open bracket
	for _, t := range tokens {
		switch {
		case t.Value == "(" || t.Value == "[" || t.Value == "{":
			saved = append(saved, depth)
			depth++
		case t.Value == ")" || t.Value == "]":
			if len(saved) > 0 {
				saved = saved[:len(saved)-1] // a reduction or else before it stays open
				depth--
			}
		case t.Value == "}":
			if len(saved) > 0 {
				depth, saved = saved[len(saved)-1], saved[:len(saved)-1]
			}
		case t.Type == tokReduce || t.Value == "else":
			depth++
		case t.Type == tokEOL && len(saved) > 0:
			depth = len(saved)
		case t.Type == tokEOL:
			depth = 0
		}
		if depth > limits.Depth {
			return diag.Errorf(tokenSpan(t), "nested more than %d deep", limits.Depth)
		}
		if t.Type == tokOp || t.Value == "!" {
			terms++
		} else if t.Type == tokEOL {
			terms = 0
		}
		if terms > limits.Terms {
			return diag.Errorf(tokenSpan(t), "statement has more than %d operators: name its parts", limits.Terms)
		}
	}
	return nil
}

func tokenSpan(t lexer.Token) diag.Span {
	end := t.Pos
	end.Advance(t.Value)
	return diag.Span{Start: diag.Pos(t.Pos), End: diag.Pos(end)}
}
