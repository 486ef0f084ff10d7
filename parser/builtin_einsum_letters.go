package parser

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// einsumLetters are the index letters of an einsum as its operands give them sizes.
type einsumLetters struct {
	*builder
	operands []val
	span     diag.Span // of the letters
	letters  map[rune]einsumLetter
	order    []rune // of first use
}

// einsumLetter is a letter with the operand and the axis that gave it its range.
type einsumLetter struct {
	rng           *ir.Range
	operand, axis int
}

func (l *einsumLetters) ranges() map[rune]*ir.Range {
	out := map[rune]*ir.Range{}
	for letter, found := range l.letters {
		out[letter] = found.rng
	}
	return out
}

// The axes of an operand that ... stands for broadcast against those of others, from the last on. Each of these places, counted from the
// last, is a letter of its own, one that cannot be written.
const (
	restText   = "..."
	firstRest  = '\uE000'
	restLetter = "i" // what the printed graph calls all of them
)

func isRest(letter rune) bool { return letter >= firstRest }

// rest is the letters of the axes that ... stands for in the result.
func (l *einsumLetters) rest() string {
	var out []rune
	for letter := range l.letters {
		if isRest(letter) {
			out = append(out, letter)
		}
	}
	slices.Sort(out)
	slices.Reverse(out)
	return string(out)
}

// term reads the letters of one operand, and returns them with those that ... stands for.
func (l *einsumLetters) term(term string, a *array, operand int) (string, bool) {
	v := l.operands[operand]
	before, after, some := strings.Cut(term, restText)
	letters := []rune(before + after)
	if rest := len(a.shape) - len(letters); some && rest >= 0 {
		for k := range rest {
			letters = slices.Insert(letters, len([]rune(before)), firstRest+rune(k))
		}
	}
	if len(letters) != len(a.shape) {
		l.origins(l.errorf(l.span, "einsum gives %s %q to %s, which has %s: expected a letter for each axis, or ... for the others",
			letterText(len(letters)), term, v.describe(), plural(len(a.shape), "axis")), []val{v})
		return "", false
	}
	for d, letter := range letters {
		if !l.letter(letter, a.shape[d], einsumLetter{operand: operand, axis: d}) {
			return "", false
		}
	}
	return string(letters), true
}

// letter gives a letter the size of an axis, or compares it with the one that it has.
func (l *einsumLetters) letter(letter rune, size *ir.Expr, at einsumLetter) bool {
	name := string(letter)
	switch {
	case isRest(letter):
		name = restLetter
	case letter > 'z' || !isLetter(byte(letter)):
		l.errorf(l.span, "einsum letter %q: expected a to z or A to Z", letter)
		return false
	}
	old, ok := l.letters[letter]
	switch {
	case !ok:
		l.order = append(l.order, letter)
		fallthrough
	case isRest(letter) && old.rng.Extent.IsConst(1):
		at.rng = l.g.NewRange(name, size)
		l.letters[letter] = at
		return true
	case isRest(letter) && size.IsConst(1) || l.sameSize(old.rng.Extent, size):
		return true
	}
	what := "einsum letter " + name + " is"
	if isRest(letter) {
		what = "einsum's ... stands for"
	}
	first, v := l.operands[old.operand], l.operands[at.operand]
	l.origins(l.errorf(l.span, "%s axis %d of %s and axis %d of %s: the sizes %s", what,
		old.axis, first.describe(), at.axis, v.describe(), differText(old.rng.Extent, size)), []val{first, v})
	return false
}

func letterText(n int) string {
	if n == 1 {
		return "the letter"
	}
	return "the letters"
}

// lettersOnce is the result of an einsum without ->: the letters that stand once, in order.
func lettersOnce(left string) string {
	var out []rune
	for c := 'A'; c <= 'z'; c++ {
		if strings.Count(left, string(c)) == 1 {
			out = append(out, c)
		}
	}
	return string(out)
}
