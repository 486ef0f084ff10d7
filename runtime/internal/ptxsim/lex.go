package ptxsim

import "fmt"

// A token is a name, a number or one character.
type token struct {
	text string
	line int
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '$' || c == '%' || c == '.'
}

// lex cuts PTX into tokens. Words hold their dots and double colons: opcodes with their
// modifiers and special registers are one token.
func lex(src string) ([]token, error) {
	var out []token
	line := 1
	for i := 0; i < len(src); {
		c := src[i]
		start := i
		switch {
		case c == '\n':
			line++
			i++
			continue
		case c == ' ' || c == '\t' || c == '\r' || c == 0:
			i++
			continue
		case c == '/' && i+1 < len(src) && src[i+1] == '/':
			for i < len(src) && src[i] != '\n' {
				i++
			}
			continue
		case c == '/' && i+1 < len(src) && src[i+1] == '*':
			for i += 2; i+1 < len(src) && !(src[i] == '*' && src[i+1] == '/'); i++ {
				if src[i] == '\n' {
					line++
				}
			}
			i += 2
			continue
		case c == '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
			}
			i++
		case isWord(c):
			for i < len(src) && (isWord(src[i]) || scopes(src, i)) {
				if src[i] == ':' {
					i++
				}
				i++
			}
		default:
			i++
		}
		if i > len(src) {
			return nil, fmt.Errorf("ptx line %d: it ends in the middle of a token", line)
		}
		out = append(out, token{src[start:i], line})
	}
	return out, nil
}

// scopes reports whether there is a double colon inside a word.
func scopes(src string, i int) bool {
	return i+2 < len(src) && src[i] == ':' && src[i+1] == ':' && isWord(src[i+2])
}
