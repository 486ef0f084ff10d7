package parser

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
)

// TestMinAndMaxAsElsewhere: min and max of a tensor and an axis, and items of their results, are programs that mean something
// else than in PyTorch. Where that shows, messages name what was meant; where nothing speaks for it, they do not.
func TestMinAndMaxAsElsewhere(t *testing.T) {
	const reduces, places = "max(x, axis=1)", "argmax(x, axis=1)"
	for _, c := range []struct {
		body, y string
		err     string // a part of the error; "" for none
		warning string // a part of the warning; "" for none
	}{
		{"y = max(x, 1)[0]", "[16]", "", reduces + " reduces, and " + places + " gives the places"},
		{"y = max(x, 1)[1]", "[16]", "", reduces},
		{"m = max(x, 1)\n y = m[0]", "[16]", "", reduces},
		{"y = max(x, axis=1)[0]", "[]", "", reduces + " gives the values alone, so [0] picks one of them: " + places},
		{"y = min(x + 1, axis=0)[1]", "[]", "", "argmin(..., axis=0)"},
		{"m = max(x, axis=1)\n y = m[0]", "[]", "", ""},
		{"y = max(x, 1)[3]", "[16]", "", ""},
		{"y = max(x[0], 1)", "[16]", "", ""},
		{"y = max(x, 1)[0, 2]", "[]", "", ""},
		{"y = max(x, 5)[0]", "[16]", "", ""}, // x has no axis 5
		{"y = max(x, 1)", "[8, 16]", "", ""},
		{"y = clamp(x, lo=0)[0]", "[16]", "", ""}, // the library may say max(x, 0)
		{"y = max(x, 1)", "[8]", "did you mean " + reduces + "?", ""},
		{"y = min(x, -1)", "[8]", "did you mean min(x, axis=-1)?", ""},
		{"y = max(x, 1)[0]", "[8]", reduces + " reduces", ""},
		{"y = max(x, axis=1)[0]", "[8]", "gives the values alone", ""},
		{"y = z - max(x, 1)", "[8]", "did you mean " + reduces + "?", ""},
		{"y = z @ max(x, 1) @ max(x, 1)", "[8]", "did you mean " + reduces + "?", ""},
		{"y = z - x", "[8]", "8 and 16 differ", ""},
		{"y, i = max(x, axis=1)", "[8]", "max gives the values, and " + places + " their places", ""},
		{"y, i = max(x, 1)", "[8]", places, ""},
		{"y, i = sort(z)", "[8]", "sort gives the values, and argsort(...) their places", ""},
	} {
		what := c.body + " for " + c.y
		f, err := Parse("p.fuse", fmt.Appendf(nil, "graph g(x: f32[8, 16], z: f32[8]) -> (y: f32%s) { \n %s\n _ = z }", c.y, c.body), Options{})
		if c.err != "" {
			require.ErrorContains(t, err, c.err, what)
			continue
		}
		require.NoError(t, err, what)
		said := ""
		for _, w := range f.Warnings {
			if w.Msg != "input z is never read" {
				said += w.Msg
			}
		}
		if c.warning == "" {
			assert.Empty(t, said, what)
		} else {
			assert.Contains(t, said, c.warning, what)
			assert.Len(t, f.Warnings, 1, what)
		}
	}
}

// TestReducersSayTheirAxes: where a function of the library gives fewer axes than fit, the message holds what it says of
// itself; where the number of axes is right, or another function made the value, it does not.
func TestReducersSayTheirAxes(t *testing.T) {
	const frobenius = "over the last two axes, one of each matrix; l2_norm goes over all axes"
	for _, c := range []struct {
		body, y string
		note    string
	}{
		{"y = frobenius_norm(x)", "[]", frobenius},
		{"n = frobenius_norm(x)\n y = n", "[]", frobenius},
		{"y = x / frobenius_norm(x)", "[2, 3, 4, 5]", frobenius},
		{"y = mean(x, axis=0)", "[]", "mean is sum(x)"},
		{"y = frobenius_norm(x)", "[3, 2]", ""},
		{"y = frobenius_norm(x) * 2", "[]", ""},
		{"y = relu(x)", "[]", ""},
		{"y = sum(x, axis=0)", "[]", ""},
	} {
		_, err := Parse("p.fuse", fmt.Appendf(nil, "graph g(x: f32[2, 3, 4, 5]) -> (y: f32%s) { \n %s\n}", c.y, c.body), Options{})
		require.Error(t, err, c.body)
		said := diag.Render(err, Source)
		if c.note == "" {
			assert.NotContains(t, said, "_norm is", c.body)
			assert.NotContains(t, said, "relu is", c.body)
		} else {
			assert.Contains(t, said, c.note, c.body)
		}
	}
	_, err := Parse("p.fuse", []byte(`graph g(x: f32[2, 3]) -> (y: f32[]) { y = norm(x, p="fro") }`), Options{})
	assert.ErrorContains(t, err, "l2_norm(x) is the length of all elements together, and frobenius_norm(x) that of each matrix")
}

// TestFormulasOfForeignFunctionsAreValid: what a message proposes as a formula is one.
func TestFormulasOfForeignFunctionsAreValid(t *testing.T) {
	for _, name := range []string{"hann_window", "hamming_window", "blackman_window", "linspace", "dct"} {
		src := "graph g(x: f32[B, N], k: f32[K], lo: f32[], hi: f32[]) -> (y: f32[]) { y = sum(k) + sum(x) + lo + hi + sum(" + foreignFunctions[name] + ") }"
		_, err := Parse("t.fuse", []byte(src), Options{})
		require.NoError(t, err, name)
	}
}
