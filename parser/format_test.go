package parser

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFormat(t *testing.T) {
	for _, c := range []struct{ name, src, want string }{
		{"spaces", "graph  f(x:f32[ N,M ])->( y :f32[N]){y=sum( x*2 ,axis = -1)+-x[ : ,0]**2}",
			"graph f(x: f32[N, M]) -> (y: f32[N]) {\n    y = sum(x * 2, axis=-1) + -x[:, 0] ** 2\n}\n"},
		{"index notation", "graph f(x: f32[N]) -> (y: f32[N]) {\ny[i:N]=sum[ k :3 where k<=i ]-x[i+k-1]else-inf\n}\n",
			"graph f(x: f32[N]) -> (y: f32[N]) {\n    y[i: N] = sum[k: 3 where k <= i] -x[i + k - 1] else -inf\n}\n"},
		{"orders", "graph f(x: f32[N]) -> (y: f32[N]) {\ny[i]=min[ k :N   at i ]x[k]+max[k:N at(i)]-x[k]\n}\n",
			"graph f(x: f32[N]) -> (y: f32[N]) {\n    y[i] = min[k: N at i] x[k] + max[k: N at (i)] -x[k]\n}\n"},
		{"slices", "const A = 1\ngraph f(x: f32[N]) -> (y: f32[N]) {\n  y = x[ 1 : N-1 ][::2][...,none]\n}",
			"const A = 1\ngraph f(x: f32[N]) -> (y: f32[N]) {\n    y = x[1:N - 1][::2][..., none]\n}\n"},
		{"statements", "fn f(x:T[...B,N],axis:int=-1)->(T[...],T[...]){a=x;b=a\n\n\n\n# note\nreturn a,b}",
			"fn f(x: T[...B, N], axis: int = -1) -> (T[...], T[...]) {\n    a = x\n    b = a\n\n    # note\n    return a, b\n}\n"},
		{"control", "fn f(x: T[...]) -> T[...] {\nfor k in -1..3{x=x*k}\nif !a&&b==none{y=x}\nelse   if c{error(\"no\")}else{y=-(x)}\nreturn y }",
			"fn f(x: T[...]) -> T[...] {\n    for k in -1..3 {\n        x = x * k\n    }\n    if !a && b == none {\n        y = x\n    } else if c {\n        error(\"no\")\n    } else {\n        y = -(x)\n    }\n    return y\n}\n"},
		{"comments", "#a\n\n\n#b\ngraph f(x: f32[N]) -> (y: f32[N]) { # c\n\n  # d\n  y = x    # e\n  # f\n\n} # g\n# h",
			"#a\n\n#b\ngraph f(x: f32[N]) -> (y: f32[N]) {  # c\n    # d\n    y = x  # e\n    # f\n}  # g\n# h\n"},
		{"broken lines", "graph f(x: f32[N],\n  z: f32[N],  # second\n) -> (y: f32[N]) {\ny = x +\nexp(\nz\n)\n}", ""},
		{"continued", "graph f(x: f32[N],\n  z: f32[N]  # second\n) -> (y: f32[N]) {\ny = x +\nexp(\nz\n)\n}",
			"graph f(x: f32[N],\n    z: f32[N]  # second\n) -> (y: f32[N]) {\n    y = x +\n        exp(\n        z\n    )\n}\n"},
		{"results on a line of their own", "fn f(x: T[...])\n  ->T[...] = x\ngraph g(x: f32[N])  # all\n\n# of it\n-> (y: f32[N],\nz: f32[N]) {\ny = x\nz = f(x)\n}",
			"fn f(x: T[...])\n    -> T[...] = x\ngraph g(x: f32[N])  # all\n    # of it\n    -> (y: f32[N],\n    z: f32[N]) {\n    y = x\n    z = f(x)\n}\n"},
		{"annotations", "@onekernel   @bench( N = 8 ,M=9 )graph f(x: f32[N, M]) -> (y: f32[N]) {\ny = x\n}",
			"@onekernel @bench(N=8, M=9)\ngraph f(x: f32[N, M]) -> (y: f32[N]) {\n    y = x\n}\n"},
		{"line ends", "\xef\xbb\xbfconst A = 1\r\n\r\n\r\nconst B = 2 # b\r\n", "const A = 1\n\nconst B = 2  # b\n"},
		{"empty", "\n\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := Format("t.fuse", []byte(c.src))
			if c.want == "" && strings.TrimSpace(c.src) != "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, c.want, string(got))
			checkFormat(t, c.src)
		})
	}
}

// TestFormatReference formats every program and library file: the tokens stay,
// and a second pass changes nothing.
func TestFormatReference(t *testing.T) {
	for _, src := range referencePrograms(t) {
		checkFormat(t, src)
	}
	entries, err := stdFiles.ReadDir("std")
	require.NoError(t, err)
	for _, e := range entries {
		src, err := stdFiles.ReadFile("std/" + e.Name())
		require.NoError(t, err)
		got := checkFormat(t, string(src))
		assert.Equal(t, string(src), got, "%s is not in the canonical layout", e.Name())
	}
}

func checkFormat(t *testing.T, src string) string {
	t.Helper()
	once, err := Format("t.fuse", []byte(src))
	require.NoError(t, err, src)
	twice, err := Format("t.fuse", once)
	require.NoError(t, err, string(once))
	assert.Equal(t, string(once), string(twice), src)
	assert.Equal(t, words(t, src), words(t, string(once)), src)
	return string(once)
}

// words is what the grammar sees of a source: its tokens, with one ; for each
// run of statement ends, and its comments.
func words(t *testing.T, src string) []string {
	tokens, err := tokenize("t.fuse", []byte(src), DefaultLimits)
	require.NoError(t, err)
	var out, comments []string
	for _, tok := range tokens {
		switch {
		case tok.Type == tokWhitespace || tok.Type == tokEOF:
		case tok.Type == tokComment:
			comments = append(comments, tok.Value)
		case tok.Type == tokEOL || tok.Value == "}" || tok.Value == "{" || tok.Value == "graph":
			for len(out) > 0 && out[len(out)-1] == ";" {
				out = out[:len(out)-1]
			}
			if tok.Type != tokEOL {
				out = append(out, tok.Value)
			}
			out = append(out, ";")
		default:
			out = append(out, tok.Value)
		}
	}
	for len(out) > 0 && out[len(out)-1] == ";" {
		out = out[:len(out)-1]
	}
	return append(out, comments...)
}
