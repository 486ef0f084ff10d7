package parser

import (
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// An einsum of several tensors in f32 or f64 is summed in steps: letters that stand in one tensor alone are summed there, and
// then two tensors at a time are multiplied where letters stand in these two alone. Summed at once, each term would be multiplied
// by all tensors, for every combination of all letters. Other types are summed at once: steps would round in between.

// einsumTerms are the tensors of an einsum that are still to be multiplied, the letters of each, and those of the result.
type einsumTerms struct {
	parts []*array
	terms []string
	right string
}

// inSteps sums what can be summed before all tensors are multiplied.
func (e *einsumTerms) inSteps(b *builder, ranges map[rune]*ir.Range, order []rune, span diag.Span) {
	for _, p := range e.parts {
		if p.dtype != ir.F32 && p.dtype != ir.F64 || p.dtype != e.parts[0].dtype {
			return
		}
	}
	for i := 0; len(e.parts) > 1 && i < len(e.parts); i++ {
		if rest := e.rest(i, i); len(rest) < len(lettersOf(e.terms[i])) {
			e.replace(b, i, i, rest, ranges, order, span)
		}
	}
	for len(e.parts) > 2 {
		i, j, rest := e.shortest()
		if j == 0 {
			return
		}
		e.replace(b, i, j, rest, ranges, order, span)
	}
}

// rest is the letters of one or two terms that stand in another term or in the result.
func (e *einsumTerms) rest(i, j int) string {
	others := e.right
	for k, term := range e.terms {
		if k != i && k != j {
			others += term
		}
	}
	var out strings.Builder
	for _, letter := range lettersOf(e.terms[i], e.terms[j]) {
		if strings.ContainsRune(others, letter) {
			out.WriteRune(letter)
		}
	}
	return out.String()
}

// shortest is the two terms with letters of their own, of whose product the fewest letters are left; j is 0 where no two have any.
func (e *einsumTerms) shortest() (i, j int, rest string) {
	for b := range e.terms {
		for a := range b {
			left := e.rest(a, b)
			if len(left) < len(lettersOf(e.terms[a], e.terms[b])) && (j == 0 || len(left) < len(rest)) {
				i, j, rest = a, b, left
			}
		}
	}
	return i, j, rest
}

// replace puts the sum of one or two terms over their own letters in the place of the first.
func (e *einsumTerms) replace(b *builder, i, j int, rest string, ranges map[rune]*ir.Range, order []rune, span diag.Span) {
	parts, terms := []*array{e.parts[i]}, []string{e.terms[i]}
	if i != j {
		parts, terms = append(parts, e.parts[j]), append(terms, e.terms[j])
	}
	own := map[rune]*ir.Range{}
	for _, letter := range lettersOf(terms...) {
		own[letter] = b.g.NewRange(string(letter), ranges[letter].Extent)
	}
	var axes []*ir.Range
	kept := map[rune]bool{}
	for _, letter := range rest {
		axes, kept[letter] = append(axes, own[letter]), true
	}
	e.parts[i], e.terms[i] = b.contract(parts, terms, own, order, axes, kept, span).arr, rest
	if i != j {
		e.parts, e.terms = append(e.parts[:j:j], e.parts[j+1:]...), append(e.terms[:j:j], e.terms[j+1:]...)
	}
}

// lettersOf are the letters of some terms, each once.
func lettersOf(terms ...string) string {
	var out strings.Builder
	for _, letter := range strings.Join(terms, "") {
		if !strings.ContainsRune(out.String(), letter) {
			out.WriteRune(letter)
		}
	}
	return out.String()
}
