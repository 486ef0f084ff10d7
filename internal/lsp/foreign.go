package lsp

import (
	"regexp"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Rewrites of what other languages say, as the messages of errors suggest them.

var (
	writeFunction = regexp.MustCompile(`^unknown function ([A-Za-z_]\w*): write (.+)$`)
	writeMember   = regexp.MustCompile(`values have no members: write (.+)$`)
	noModules     = regexp.MustCompile(`there are no modules of functions: write `)
	operatorIs    = regexp.MustCompile(`: write (&&|\|\||\^|!) for (and|or|xor|not)$`)
	formOfCall    = regexp.MustCompile(`^([a-z]\w*)\((.*)\)$`)
	formWord      = regexp.MustCompile(`[A-Za-z_]\w*`)
	axisArgument  = regexp.MustCompile(`\baxis=-?\w+`)
	simpleOperand = regexp.MustCompile(`^[\w.]+$`)
)

// foreignFixes are rewrites of what an error says is written otherwise here.
func foreignFixes(src string, e *diag.Error) []fix {
	from, to := e.Span.Start.Offset, e.Span.End.Offset
	replace := func(from, to int, text string) []fix {
		at := e.Span
		at.Start.Offset, at.End.Offset = from, to
		return []fix{{"Write " + text, at, text}}
	}
	if m := writeFunction.FindStringSubmatch(e.Msg); m != nil {
		if end, args, ok := callAt(src, from+len(m[1])); ok && strings.HasPrefix(src[from:], m[1]) {
			return replace(from, end, filled(m[2], args))
		}
	}
	if m := writeMember.FindStringSubmatch(e.Msg); m != nil {
		return memberFix(src, from, m[1], replace)
	}
	if noModules.MatchString(e.Msg) {
		begin, end := wordBefore(src, from), from+1
		for after := wordAfter(src, end); after < len(src) && src[after] == '.'; after = wordAfter(src, end) {
			end = after + 1
		}
		at := e.Span
		at.Start.Offset, at.End.Offset = begin, end
		return []fix{{"Leave out " + src[begin:end], at, ""}}
	}
	if m := operatorIs.FindStringSubmatch(e.Msg); m != nil {
		if src[from:to] == m[2] {
			return replace(from, to, m[1])
		}
		before := strings.TrimRight(src[:from], " ")
		if strings.HasSuffix(before, m[2]) {
			return replace(len(before)-len(m[2]), from, m[1])
		}
	}
	if strings.Contains(e.Msg, "keep=true leaves an axis") {
		return keepFix(src, e)
	}
	if strings.HasSuffix(e.Msg, "where(condition, a, b) chooses") {
		return choiceFix(src, from, replace)
	}
	return nil
}

// callAt reads the arguments of a call whose parenthesis opens at an offset.
func callAt(src string, open int) (end int, args []string, ok bool) {
	if open >= len(src) || src[open] != '(' {
		return 0, nil, false
	}
	depth, from := 0, open+1
	for i := open; i < len(src); i++ {
		switch src[i] {
		case '(', '[':
			depth++
		case ')', ']':
			depth--
		case '\n':
			return 0, nil, false
		}
		if depth == 0 || depth == 1 && src[i] == ',' {
			if text := strings.TrimSpace(src[from:i]); text != "" {
				args = append(args, text)
			}
			from = i + 1
		}
		if depth == 0 {
			return i + 1, args, true
		}
	}
	return 0, nil, false
}

// filled is a form, as clamp(x, lo, hi), a * b or full(1, ...), with arguments in place of its
// words. Where their number is another, they stay as they are, behind the name.
func filled(form string, args []string) string {
	form, _, _ = strings.Cut(form, ", or ")
	call := formOfCall.FindStringSubmatch(form)
	if call != nil && strings.HasSuffix(call[2], "...") {
		first := strings.TrimSuffix(call[2], "...")
		if first != "" && (first[0] < '0' || first[0] > '9') {
			first = "" // a value, which is the first argument
		}
		return call[1] + "(" + first + strings.Join(args, ", ") + ")"
	}
	var words []string
	inside := form
	if call != nil {
		inside = call[2]
	}
	for _, w := range formWord.FindAllString(inside, -1) {
		words = append(words, w)
	}
	if len(words) != len(args) || strings.Contains(strings.Join(args, ""), "=") {
		if call != nil {
			return call[1] + "(" + strings.Join(args, ", ") + ")"
		}
		return form
	}
	n := 0
	apart := call == nil || call[2] != strings.Join(words, ", ") // operands, and no list of arguments
	inside = formWord.ReplaceAllStringFunc(inside, func(string) string {
		arg := args[n]
		n++
		if apart && !simpleOperand.MatchString(arg) {
			arg = "(" + arg + ")"
		}
		return arg
	})
	if call != nil {
		return call[1] + "(" + inside + ")"
	}
	return "(" + inside + ")"
}

// memberFix rewrites x.sum(axis=0) as sum(x, axis=0). dot is the offset of the dot, form what
// the message suggests.
func memberFix(src string, dot int, form string, replace func(from, to int, text string) []fix) []fix {
	begin, end := wordBefore(src, dot), wordAfter(src, dot+1)
	if begin == dot || end == dot+1 {
		return nil
	}
	receiver, args := src[begin:dot], []string(nil)
	if after, list, ok := callAt(src, end); ok {
		end, args = after, list
	}
	form, _, _ = strings.Cut(form, ", or ")
	call := formOfCall.FindStringSubmatch(form)
	switch {
	case form == receiver:
		return replace(begin, end, receiver)
	case call == nil:
		return nil
	}
	if _, cast := ir.DTypeNamed(call[1]); cast { // to the dtype that the argument named
		args = nil
	}
	return replace(begin, end, call[1]+"("+strings.Join(append([]string{receiver}, args...), ", ")+")")
}

// choiceFix rewrites a choice that is all of a right side: c ? a : b, and a if c else b.
func choiceFix(src string, at int, replace func(from, to int, text string) []fix) []fix {
	begin := strings.LastIndexByte(src[:at], '\n') + 1
	eq := strings.Index(src[begin:at], " = ")
	if eq < 0 {
		return nil
	}
	begin += eq + len(" = ")
	end := len(src)
	if i := strings.IndexAny(src[at:], "\n#;}"); i >= 0 {
		end = at + i
	}
	end = len(strings.TrimRight(src[:end], " \t\r"))
	first, rest := strings.TrimSpace(src[begin:at]), src[at:end]
	if a, b, ok := strings.Cut(strings.TrimPrefix(rest, "?"), ":"); ok && rest[0] == '?' {
		return replace(begin, end, "where("+first+", "+strings.TrimSpace(a)+", "+strings.TrimSpace(b)+")")
	}
	if c, b, ok := strings.Cut(strings.TrimPrefix(rest, "if "), " else "); ok && strings.HasPrefix(rest, "if ") {
		return replace(begin, end, "where("+strings.TrimSpace(c)+", "+first+", "+strings.TrimSpace(b)+")")
	}
	return nil
}

// keepFix keeps the axis of the one reduction among operands that do not fit.
func keepFix(src string, e *diag.Error) []fix {
	from, to := e.Span.Start.Offset, e.Span.End.Offset
	at := axisArgument.FindAllStringIndex(src[from:to], -1)
	if len(at) != 1 || strings.Contains(src[from:to], "keep=") {
		return nil
	}
	span := e.Span
	span.Start.Offset, span.End.Offset = from+at[0][1], from+at[0][1]
	return []fix{{"Keep the axis: keep=true", span, ", keep=true"}}
}

func wordBefore(src string, at int) int {
	for at > 0 && isWordByte(src[at-1]) {
		at--
	}
	return at
}

func wordAfter(src string, at int) int {
	for at < len(src) && isWordByte(src[at]) {
		at++
	}
	return at
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
