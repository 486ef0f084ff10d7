package cpu_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/parser"
)

// TestRowAccumulation runs programs whose kernels accumulate over rows, on one core and on several: the
// gradients of a norm, a maximum over rows of what is made of each row, narrow
// tensors.
func TestRowAccumulation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]string{"f32", "f64", "bf16"}).Draw(t, "dtype")
		body := rapid.SampledFrom([]string{
			"h = x * rsqrt(mean(x * x, axis=-1, keep=true) + 1)\n y = dy - h * mean(dy * h, axis=-1, keep=true)\n s = sum(dy * h, axis=0)",
			"y = softmax(x)\n s = max(x + dy, axis=0)",
			"y = tanh(x - dy)\n s = sum(x, axis=0)",
		}).Draw(t, "body")
		rows := "N"
		if rapid.Bool().Draw(t, "two axes") {
			rows, body = "B, N", strings.ReplaceAll(body, "axis=0", "axis=(0, 1)")
		}
		src := fmt.Sprintf("graph g(x: %[1]s[%[3]s, M], dy: %[1]s[%[3]s, M]) -> (y: %[1]s[%[3]s, M], s: %[1]s[M]) {\n %[2]s\n}", dtype, body, rows)
		f, err := parser.Parse("rows.fuse", []byte(src), parser.Options{})
		require.NoError(t, err, src)
		g, err := f.Graph("")
		require.NoError(t, err)
		plan, err := fuse.Plan(g, fuse.Options{})
		require.NoError(t, err)
		require.NotEmpty(t, plan.Kernels[0].Accumulated, src)
		symbols := map[string]int64{
			"N": rapid.SampledFrom([]int64{0, 1, 7, 265, 600}).Draw(t, "N"),
			"M": rapid.SampledFrom([]int64{1, 2, 9}).Draw(t, "M"),
		}
		if rows != "N" {
			symbols["B"] = rapid.SampledFrom([]int64{0, 1, 3}).Draw(t, "B")
		}
		check(t, g, waves(t, g, symbols))
	})
}
