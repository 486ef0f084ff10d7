package parser

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
)

func analyze(t *testing.T, src string) *Analysis {
	t.Helper()
	out, err := NewAnalyzer("t.fuse", Options{}).Analyze([]byte(src))
	require.NoError(t, err)
	return out
}

// TestAnalysisErrors: an analysis finds the mistakes that Parse finds.
func TestAnalysisErrors(t *testing.T) {
	for _, src := range seedPrograms(t, 1) {
		assert.NoError(t, analyze(t, src).Errors.Err())
	}
	for _, src := range []string{
		"graph f(x: f32[N]) -> (y: f32[M]) { y = tahn(x) + z }\ngraph g(x: f32[N]) -> (y: f32[N]) { y = f32(x, x) }",
		"fn a(x: T[...]) -> T[...] = y\nconst K = k\ngraph f(x: f32[N]) -> (y: f32[N]) {\n y = x\n y = x }",
		"graph f(x: f32[N]) -> (y: f32[N]) {\n    y = x +\n}\ngraph g(x: f32[N) -> (y: f32[N]) { y = x }",
	} {
		_, err := Parse("t.fuse", []byte(src), Options{})
		require.Error(t, err)
		got := analyze(t, src).Errors
		for _, e := range diag.All(err) {
			assert.Contains(t, got, e)
		}
	}
}

// TestAnalysisAfterMistake: what stands beside a mistake of syntax is understood.
func TestAnalysisAfterMistake(t *testing.T) {
	a := analyze(t, `graph f(x: f32[N, M]) -> (y: f32[N]) {
    s = exp(x) *
    t = "open
    z = sum(x, axis=1)
    y = z + q
}
`)
	var got []string
	for _, e := range a.Errors {
		got = append(got, e.Error())
	}
	assert.Equal(t, []string{
		`t.fuse:3:9: text is not closed: expected " before the end of the line`,
		"t.fuse:3:7: unexpected \"=\", expected the end of the line, ; or }: == compares, and each statement binds one value",
		"t.fuse:5:13: unknown name q",
	}, orderless(got))
	for _, s := range a.Details().Symbols {
		if s.Name == "z" {
			assert.Equal(t, []string{"f32[N]"}, s.Types)
			return
		}
	}
	assert.Fail(t, "z is not known")
}

func orderless(lines []string) []string {
	if len(lines) > 1 && strings.Contains(lines[1], "not closed") {
		lines[0], lines[1] = lines[1], lines[0]
	}
	return lines
}

// TestAnalysisSymbols: names are found where they are declared, in every scope, with their types.
func TestAnalysisSymbols(t *testing.T) {
	const src = `const EPS = 1e-5

# scaled divides.
fn scaled(x: T[..., N], eps: float = EPS) -> T[..., N] = x / (sum(x, axis=-1, keep=true) + eps)

@bench(N=8)
graph f(x: f32[N, M]) -> (y: f32[N, M]) {
    a = scaled(x, eps=2)
    for k in 0..2 {
        a = a + k
    }
    y[i, j] = a[i, j] + sum[k: M where k < j] x[i, k]
}
`
	a := analyze(t, src)
	require.NoError(t, a.Errors.Err())
	var got []string
	for _, u := range a.Details().Uses {
		s := u.Symbol
		got = append(got, fmt.Sprintf("%d:%d %s %d@%d %s", u.Span.Start.Line, u.Span.Start.Column, s.Name, s.Kind, s.Span.Start.Line,
			strings.Join(s.Types, "|")))
	}
	assert.Equal(t, strings.TrimSpace(`
1:7 EPS 2@1 the number 1e-05
4:4 scaled 1@4 
4:11 x 5@4 f32[N, M]
4:14 T 7@4 
4:21 N 6@4 
4:25 eps 5@4 the number 2.0
4:38 EPS 2@1 the number 1e-05
4:46 T 7@4 
4:53 N 6@4 
4:58 x 5@4 f32[N, M]
4:63 sum 11@0 
4:67 x 5@4 f32[N, M]
4:70 axis 5@0 
4:79 keep 5@0 
4:84 true 11@0 
4:92 eps 5@4 the number 2.0
6:2 bench 12@0 
6:8 N 6@7 the size N
7:7 f 0@7 
7:9 x 3@7 f32[N, M]
7:16 N 6@7 the size N
7:19 M 6@7 the size M
7:27 y 4@7 f32[N, M]
7:34 N 6@7 the size N
7:37 M 6@7 the size M
8:5 a 8@8 f32[N, M]
8:9 scaled 1@4 
8:16 x 3@7 f32[N, M]
8:19 eps 5@4 the number 2.0
9:9 k 10@9 the integer 0|the integer 1
10:9 a 8@8 f32[N, M]
10:13 a 8@8 f32[N, M]
10:17 k 10@9 the integer 0|the integer 1
12:5 y 4@7 f32[N, M]
12:7 i 9@12 an index below N
12:10 j 9@12 an index below M
12:15 a 8@8 f32[N, M]
12:17 i 9@12 an index below N
12:20 j 9@12 an index below M
12:25 sum 11@0 
12:29 k 9@12 an index below M
12:32 M 6@7 the size M
12:40 k 9@12 an index below M
12:44 j 9@12 an index below M
12:47 x 3@7 f32[N, M]
12:49 i 9@12 an index below N
12:52 k 9@12 an index below M`), strings.TrimSpace(strings.Join(got, "\n")))
	require.Len(t, a.Details().Calls, 2)
	assert.Equal(t, "f32[N, M]", a.Details().Calls[1].Type)
}

// TestAnalysisOfGrad: the names of a function and its parameters in a call of grad stand for those.
func TestAnalysisOfGrad(t *testing.T) {
	a := analyze(t, `fn f(x: T[...], w: T[...]) -> T[] = sum(x * w)

graph g(x: f32[N]) -> (y: f32[N]) {
    y = grad(f, x, w=x, wrt=(w, z))
    y = grad(f, x, x, wrt=w)
}
`)
	var got []string
	for _, u := range a.Details().Uses {
		if u.Span.Start.Line > 3 && u.Symbol.Name != "y" {
			got = append(got, fmt.Sprintf("%d:%d %s %d@%d", u.Span.Start.Line, u.Span.Start.Column, u.Symbol.Name, u.Symbol.Kind, u.Symbol.Span.Start.Line))
		}
	}
	const builtin, fn, param, input = int(BuiltinSymbol), int(FunctionSymbol), int(ParamSymbol), int(InputSymbol)
	use := func(line, column int, name string, kind, at int) string {
		return fmt.Sprintf("%d:%d %s %d@%d", line, column, name, kind, at)
	}
	assert.Equal(t, []string{
		use(4, 9, "grad", builtin, 0), use(4, 14, "f", fn, 1), use(4, 17, "x", input, 3), use(4, 20, "w", param, 1),
		use(4, 22, "x", input, 3), use(4, 30, "w", param, 1), use(4, 33, "z", param, 0),
		use(5, 9, "grad", builtin, 0), use(5, 14, "f", fn, 1), use(5, 17, "x", input, 3), use(5, 20, "x", input, 3),
		use(5, 27, "w", param, 1),
	}, got)
}

// TestAnalysisIsIncremental: what is kept between versions gives what an analysis from
// nothing gives, whatever is changed.
func TestAnalysisIsIncremental(t *testing.T) {
	pick := rand.New(rand.NewPCG(5, 6))
	var pool []string
	var words []string
	for i, src := range seedPrograms(t, 1) {
		if i%9 > 0 {
			continue
		}
		src = strings.ReplaceAll(src, "graph ", fmt.Sprintf("graph g%d_", i))
		tokens, err := tokenize("t.fuse", []byte("\n"+src), DefaultLimits)
		require.NoError(t, err)
		for _, tok := range tokens {
			words = append(words, tok.Value)
			if tok.Type != tokWhitespace {
				pool = append(pool, tok.Value)
			}
		}
	}
	a := NewAnalyzer("t.fuse", Options{})
	for step := range 60 {
		at := pick.IntN(len(words))
		old := words[at]
		switch pick.IntN(4) {
		case 0:
			words[at] = ""
		case 1:
			words[at] += "\n"
		default:
			words[at] = " " + pool[pick.IntN(len(pool))] + " "
		}
		src := strings.Join(words, "")
		got, err := a.Analyze([]byte(src))
		require.NoError(t, err)
		want := analyze(t, src)
		require.Equal(t, want.Errors.Error(), got.Errors.Error(), "step %d", step)
		require.Equal(t, want.Details().Calls, got.Details().Calls)
		require.Equal(t, len(want.Details().Uses), len(got.Details().Uses))
		for i, u := range want.Details().Uses {
			require.Equal(t, *u.Symbol, *got.Details().Uses[i].Symbol)
		}
		if pick.IntN(2) == 0 {
			words[at] = old
		}
	}
}
