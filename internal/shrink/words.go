package shrink

import (
	"regexp"
	"strings"
)

var optional = regexp.MustCompile(` else -?[\w.]+| where \([^()]*\)|, (axis|keep|reverse|exclusive|descending|largest)=[-\w]+|[-+*/%] \d+\b`)

// Shorter are texts of an expression with a part of it left out: what is in parentheses in place
// of a call or an operation, and nothing in place of else, where and options. Not all are right.
func Shorter(text string) (out []string) {
	for _, at := range optional.FindAllStringIndex(text, -1) {
		out = append(out, text[:at[0]]+text[at[1]:])
	}
	for from, c := range text {
		if c != '(' {
			continue
		}
		to := closing(text, from)
		if to < 0 {
			continue
		}
		begin := from
		for begin > 0 && (isWord(text[begin-1])) {
			begin--
		}
		for _, part := range parts(text[from+1 : to]) {
			out = append(out, text[:begin]+part+text[to+1:])
		}
	}
	return out
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// closing is where the parenthesis that opens at from closes.
func closing(text string, from int) int {
	depth := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '(', '[':
			depth++
		case ')', ']':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// parts are the operands of an operation or the arguments of a call.
func parts(text string) (out []string) {
	depth, from := 0, 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case depth == 0 && (c == ',' || c == ' ' && i+2 < len(text) && strings.ContainsRune("+-*/%<>=!&|^@", rune(text[i+1]))):
			out = append(out, strings.Trim(text[from:i], ", "))
			from = i + 1
			for from < len(text) && strings.ContainsRune(" +-*/%<>=!&|^@,", rune(text[from])) {
				from++
			}
			i = from - 1
		}
	}
	return append(out, strings.TrimSpace(text[from:]))
}
