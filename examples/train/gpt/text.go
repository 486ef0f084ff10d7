package main

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// words are what sentences of the text are made of, in the order of a sentence.
var words = [][]string{
	{"the", "a", "one", "every"},
	{"small", "red", "old", "quiet", "proud", "sleepy"},
	{"fox", "owl", "miller", "river", "lantern", "sailor"},
	{"watches", "follows", "forgets", "carries", "greets"},
	{"the", "a", "some", "that"},
	{"moon", "bread", "wind", "letter", "garden", "bell"},
	{"at night", "in spring", "by the sea", "once more", "without a word"},
}

// makeText writes sentences by chance, always the same ones.
func makeText(sentences int) string {
	r := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	for range sentences {
		for i, from := range words {
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(from[r.IntN(len(from))])
		}
		b.WriteString(".\n")
	}
	return b.String()
}

// A corpus is a text as numbers of characters.
type corpus struct {
	letters []rune // by number
	text    []int32
}

func newCorpus(text string) *corpus {
	c := &corpus{letters: slices.Compact(slices.Sorted(slices.Values([]rune(text))))}
	for _, r := range text {
		c.text = append(c.text, c.number(r))
	}
	return c
}

func (c *corpus) number(r rune) int32 {
	at, _ := slices.BinarySearch(c.letters, r)
	return int32(at)
}

// batch draws pieces of the text, and what follows each of their characters. It depends on the step
// alone, so that a run that goes on sees what one that was never stopped sees.
func (c *corpus) batch(step int) (runtime.Args, error) {
	r := rand.New(rand.NewPCG(7, uint64(step)))
	var at, next []int32
	for range pieces {
		from := r.IntN(len(c.text) - context)
		at = append(at, c.text[from:from+context]...)
		next = append(next, c.text[from+1:from+context+1]...)
	}
	x, err := tensor.FromSlice(at, pieces, context)
	if err != nil {
		return nil, err
	}
	y, err := tensor.FromSlice(next, pieces, context)
	return runtime.Args{"at": x, "next": y}, err
}
