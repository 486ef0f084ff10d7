package parser

import (
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir/diag"
)

// TokenKind says what a token of a source is.
type TokenKind uint8

// The kinds of token.
const (
	IdentToken TokenKind = iota
	KeywordToken
	ReductionToken // sum, max, ... before [
	NumberToken
	TextToken
	OperatorToken
	PunctuationToken
	CommentToken
	LineEndToken // a line end or ; that ends a statement
)

// Token is a word of a source.
type Token struct {
	Kind TokenKind
	Text string
	Pos  diag.Pos
}

var tokenKinds = map[lexer.TokenType]TokenKind{
	tokIdent: IdentToken, tokKeyword: KeywordToken, tokReduce: ReductionToken, tokNumber: NumberToken,
	tokString: TextToken, tokOp: OperatorToken, tokPunct: PunctuationToken, tokComment: CommentToken,
	tokEOL: LineEndToken,
}

// Tokens cuts a source into words, comments included, for editors: what is no word
// is left out.
func Tokens(filename string, src []byte) []Token {
	raw, _ := tokenizeAll(filename, src, DefaultLimits)
	return exported(raw)
}

func exported(raw []lexer.Token) []Token {
	out := make([]Token, 0, len(raw)/2)
	for _, t := range raw {
		if kind, ok := tokenKinds[t.Type]; ok {
			out = append(out, Token{kind, t.Value, diag.Pos(t.Pos)})
		}
	}
	return out
}

// Keywords lists the keywords, and the words that are keywords in their places.
func Keywords() []string {
	return []string{"import", "const", "fn", "graph", "for", "in", "if", "else", "return", "error", "require", "where", "at", "state"}
}

// tokenizeAll is tokenize that goes on behind what is no token. It reports the first of each line: what follows is often
// a part of the same mistake, as in torch.nn.relu(x).
func tokenizeAll(filename string, src []byte, limits Limits) ([]lexer.Token, diag.List) {
	var errs diag.List
	if len(src) > limits.Bytes {
		errs.Add(fileSpan(filename), "source is larger than %d bytes", limits.Bytes)
		return nil, errs
	}
	text := strings.TrimPrefix(string(src), string(bom))
	start := lexer.Position{Filename: filename, Offset: len(src) - len(text), Line: 1, Column: 1}
	s := &scanner{src: text, pos: start, tokens: make([]lexer.Token, 0, len(text)/bytesPerToken)}
	for s.src != "" {
		if len(s.tokens) >= limits.Tokens {
			errs.Add(s.span(1), "source has more than %d tokens: split it into several files", limits.Tokens)
			return nil, errs
		}
		if err := s.scan(); err != nil {
			if len(errs) < limits.Errors && (len(errs) == 0 || errs[len(errs)-1].Span.Start.Line < s.pos.Line) {
				errs = append(errs, diag.All(err)...)
			}
			s.skip()
		}
	}
	s.tokens = append(s.tokens, lexer.Token{Type: tokEOF, Pos: s.pos})
	if err := checkNesting(s.tokens, limits); err != nil {
		return nil, append(errs, diag.All(err)...)
	}
	markLines(s.tokens)
	return s.tokens, errs
}

// skip takes what is no token for a blank; a text that is not closed for one that is.
func (s *scanner) skip() {
	line := strings.IndexByte(s.src, '\n')
	if line < 0 {
		line = len(s.src)
	}
	switch s.src[0] {
	case '"':
		s.emit(tokString, line)
		s.tokens[len(s.tokens)-1].Value = `""`
	case '#':
		s.emit(tokWhitespace, line)
	default:
		n := 1
		for n < len(s.src) && s.src[n]&0xc0 == 0x80 { // the rest of a character in UTF-8
			n++
		}
		s.emit(tokWhitespace, n)
	}
}
