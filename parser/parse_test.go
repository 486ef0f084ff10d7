package parser

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
)

// TestReaderFollowsGrammar compares the reader with the parser that participle makes of
// the grammar: what they accept, the trees, and where the first mistake is. The programs are
// those of the tree, and the same with words replaced, removed and doubled.
func TestReaderFollowsGrammar(t *testing.T) {
	pick := rand.New(rand.NewPCG(3, 4))
	var pool []string
	var corpus [][]lexer.Token
	for _, src := range seedPrograms(t, 1) {
		compareWithGrammar(t, src)
		tokens, err := tokenize("t.fuse", []byte(src), DefaultLimits)
		require.NoError(t, err)
		corpus = append(corpus, tokens)
		for _, tok := range tokens {
			pool = append(pool, tok.Value)
		}
	}
	refused := 0
	for range 600 {
		tokens := corpus[pick.IntN(len(corpus))]
		words := make([]string, len(tokens))
		for i, tok := range tokens {
			words[i] = tok.Value
		}
		at := pick.IntN(len(words))
		switch pick.IntN(3) {
		case 0:
			words[at] = ""
		case 1:
			words[at] += " " + words[at]
		default:
			words[at] = " " + pool[pick.IntN(len(pool))] + " "
		}
		if !compareWithGrammar(t, strings.Join(words, "")) {
			refused++
		}
		if t.Failed() {
			t.Fatal(strings.Join(words, ""))
		}
	}
	assert.Greater(t, refused, 200)
}

// compareWithGrammar reports whether the source has no mistake of syntax.
func compareWithGrammar(t *testing.T, src string) bool {
	tokens, err := tokenize("t.fuse", []byte(src), DefaultLimits)
	if err != nil {
		return false
	}
	peek, err := lexer.Upgrade(&tokenStream{tokens: tokens}, tokWhitespace, tokComment)
	require.NoError(t, err)
	want, wrongly := grammar().ParseFromLexer(peek)
	got, errs := parseTokens(tokens, DefaultLimits)
	var bad *participle.UnexpectedTokenError
	switch {
	case wrongly == nil:
		require.NoError(t, errs.Err())
		require.Equal(t, len(want.Decls), len(got.Decls))
		for i, d := range want.Decls {
			assert.Equal(t, d, got.Decls[i])
		}
	case errors.As(wrongly, &bad):
		require.NotEmpty(t, errs)
		assert.Equal(t, diag.Pos(bad.Unexpected.Pos), errs[0].Span.Start)
	}
	return wrongly == nil
}

// TestRecovers: each mistake of syntax of a source is found in one run, and what
// stands around them is read.
func TestRecovers(t *testing.T) {
	const src = `fn half(x: T[...]) -> T[...] {
    y = x *
    return y / 2
}

graph one(x: f32[N]) -> (y: f32[N]) {
    a = exp(x
    b = a + ) 1
    for k in 0..3 {
        c = = 1
    }
    y = b
}

const K = 

graph two(x f32[N]) -> (y: f32[N]) { y = x }

@fast
graph three(x: f32[N]) -> (y: f32[N]) {
    y = x
`
	tokens, err := tokenize("t.fuse", []byte(src), DefaultLimits)
	require.NoError(t, err)
	tree, errs := parseTokens(tokens, DefaultLimits)
	var got []string
	for _, e := range errs {
		got = append(got, fmt.Sprintf("%d:%d %s", e.Span.Start.Line, e.Span.Start.Column, e.Msg))
	}
	assert.Equal(t, []string{
		`3:5 unexpected keyword return, expected a value`,
		`8:5 unexpected "b", expected ")"`,
		`8:13 unexpected ")", expected a value`,
		`10:13 unexpected "=", expected a value`,
		`17:1 unexpected keyword graph, expected a value`,
		`17:13 unexpected "f32", expected ":"`,
		`22:1 unexpected end of file, expected the end of the line, ; or }`,
	}, got)
	var names []string
	for _, d := range tree.Decls {
		switch {
		case d.Fn != nil:
			names = append(names, d.Fn.Name.Text)
		case d.Graph != nil:
			names = append(names, d.Graph.Name.Text)
		}
	}
	assert.Equal(t, []string{"half", "one", "three"}, names)
}

// TestReaderIsLinear: many mistakes, brackets and lines take time in proportion.
func TestReaderIsLinear(t *testing.T) {
	src := strings.Repeat("graph f(x: f32[N]) -> (y: f32[N]) {\n    a = (x\n    y = ) x[(\n}\n", 20_000)
	start := time.Now()
	_, err := Parse("t.fuse", []byte(src), Options{})
	require.Error(t, err)
	assert.Less(t, time.Since(start), 5*time.Second)
	assert.LessOrEqual(t, len(diag.All(err)), DefaultLimits.Errors)
}
