package explain_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/parser"
)

// TestAdviceFits: a refusal before a product is answered by what helps there, and by nothing where nothing does; and the two
// ends of the merge are places of their own, although the operand has no name.
func TestAdviceFits(t *testing.T) {
	for body, want := range map[string]string{
		"x / sum(x, axis=-1, keep=true)": "by what belongs to a row",
		"bf16(f32(x) * r[:, none])":      "by what belongs to a row",
		"gelu(x @ v)":                    "", // a factor of every element, of none alone
		"x @ v":                          "multiply the weights first",
	} {
		text := "graph f(x: bf16[N, D], r: f32[N], v: bf16[D, D], w: bf16[D, F]) -> (y: bf16[N, F]) { y = (" + body + ") @ w + bf16(r)[:, none] }"
		x := Explain(t, text, explain.Options{Sizes: map[string]int64{"N": 16384, "D": 4096, "F": 4096}})
		found := 0
		for _, r := range x.Refused {
			if r.Inserted || r.Reason != "different-ranges" {
				continue
			}
			found++
			if want == "" {
				assert.Empty(t, r.Rewrite, body)
			} else {
				assert.Contains(t, r.Rewrite, want, body)
			}
			assert.NotEqual(t, r.From.Span, x.Places[r.Consumer].Span, body)
			assert.Equal(t, x.Places[r.Producer].Span, r.From.Span, body)
		}
		assert.Positive(t, found, body)
	}
}

// TestAdviceOfOrder: a transpose between two values can be taken to the inputs; a window over what is computed cannot, and
// where there is neither there is nothing to take.
func TestAdviceOfOrder(t *testing.T) {
	const norms = "graph f(x: f32[64, 64], w: f32[64, 64]) -> (y: f32[64, 64]) { y = layer_norm(x @ w) @ w }"
	const turned = "graph f(x: f32[64, 64], w: f32[64, 64]) -> (y: f32[64, 64]) { y = softmax(transpose(x @ w)) }"
	for text, advised := range map[string]bool{
		"@tf32 graph f(x: f32[8, 16, 34, 34], w: f32[16, 16, 3, 3]) -> (y: f32[8, 16, 15, 15]) { y = max_pool2d(relu(conv2d(x, w)), 3, stride=2) }": false,
		norms:  false,
		turned: true,
	} {
		x := Explain(t, text, explain.Options{})
		found := 0
		for _, r := range x.Refused {
			if r.Inserted || r.Reason != "index-mismatch" {
				continue
			}
			found++
			assert.Equal(t, advised, r.Rewrite != "", text)
		}
		assert.Positive(t, found, text)
	}
}

// TestAdviceBehindDepthwiseWindows: windows of each channel alone are no weights that could be multiplied first.
func TestAdviceBehindDepthwiseWindows(t *testing.T) {
	for _, numbers := range []string{"", "@tf32 ", "@onekernel "} {
		const program = "graph f(x: f32[64, 64, 130, 130], w: f32[64, 1, 3, 3], v: f32[128, 64, 1, 1]) -> (y: f32[64, 128, 128, 128]) { y = conv2d(conv2d(x, w, groups=64), v) }"
		file, err := parser.Parse("p.fuse", []byte(numbers+program), parser.Options{})
		require.NoError(t, err)
		plan, _ := fuse.Plan(file.Graphs[0], fuse.Options{}) // an error where one kernel cannot be had
		x := explain.Explain(file.Graphs[0], plan, explain.Options{})
		require.NotEmpty(t, x.Refused)
		for _, r := range x.Refused {
			assert.NotContains(t, r.Rewrite, "multiply the weights", numbers)
		}
	}
}

// TestNoAdviceWhereNothingHelps: a rewrite that would change what is computed, or save nothing, is not advised.
func TestNoAdviceWhereNothingHelps(t *testing.T) {
	sizes := map[string]int64{"N": 4096, "D": 1024, "F": 4096}
	for body, want := range map[string]string{
		"silu(x @ w) @ u":                                   "", // no product of the weights is that
		"x @ v @ v[:, :16] @ u[:16]":                        "multiply the weights first",
		"softmax(x) @ v":                                    "", // the exponentials are still an operand
		"layer_norm(x) @ v":                                 "", // what is left is no input
		"logsumexp(x @ w, axis=-1, keep=true) + x":          "", // sums of exponentials
		"x * rsqrt(mean((x @ w) ** 2, axis=-1, keep=true))": "",
	} {
		text := "graph f(x: f32[N, D], w: f32[D, F], v: f32[D, D], u: f32[F, D]) -> (y: f32[N, D]) { y = " + body + " }"
		x := Explain(t, text, explain.Options{Sizes: sizes})
		found := ""
		for _, r := range x.Refused {
			if !r.Inserted {
				found += r.Rewrite
			}
		}
		if want == "" {
			assert.NotContains(t, found, "multiply", body)
			assert.NotContains(t, found, "reduce over", body)
		} else {
			assert.Contains(t, found, want, body)
		}
	}
}

// TestAdviceOfFolds: sums of sums can be one, also with factors between; sums of squares of sums cannot.
func TestAdviceOfFolds(t *testing.T) {
	for between, advised := range map[string]bool{"s * r": true, "s * s": false, "exp(s)": false} {
		text := "graph f(x: f32[E, N, D], w: f32[E, D, D], r: f32[E, N, 1]) -> (y: f32[N, D]) { s = x @ w\ny = sum(" + between + ", axis=0) }"
		x := Explain(t, text, explain.Options{Sizes: map[string]int64{"E": 64, "N": 4096, "D": 1024}})
		found := false
		for _, r := range x.Refused {
			found = found || strings.Contains(r.Rewrite, "reduce over both at once")
		}
		assert.Equal(t, advised, found, between)
	}
}
