//go:build linux && !nocuda

package runtime_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/internal/fakecuda"
)

// mlp is a graph of layers with widths that differ.
func mlp(layers int) string {
	width := func(i int) int { return 256 * (1 + i%5) }
	var params, body strings.Builder
	in := "x"
	for i := range layers {
		out := fmt.Sprintf("h%d", i)
		if i == layers-1 {
			out = "y"
		}
		fmt.Fprintf(&params, ", w%d: bf16[%d, %d]", i, width(i), width(i+1))
		fmt.Fprintf(&body, "    %s = relu(%s @ w%d)\n", out, in, i)
		in = out
	}
	return fmt.Sprintf("graph mlp(x: bf16[N, %d]%s) -> (y: bf16[N, %d]) {\n%s}\n", width(0), params.String(),
		width(layers), body.String())
}

// resNet is the residual part of a ResNet-34: stages of blocks of two convolutions, the
// first of a stage but the first halving the side and doubling the channels.
func resNet() string {
	var params, body strings.Builder
	in, channels := "x", 64
	for stage, blocks := range []int{3, 4, 6, 3} {
		for block := range blocks {
			name, stride, from, skip := fmt.Sprintf("s%db%d", stage, block), 1, channels, in
			if stage > 0 && block == 0 {
				stride, channels = 2, 2*channels
				fmt.Fprintf(&params, ", p_%s: f32[%d, %d, 1, 1]", name, channels, from)
				fmt.Fprintf(&body, "    k_%s = conv2d(%s, p_%s, stride=2)\n", name, in, name)
				skip = "k_" + name
			}
			fmt.Fprintf(&params, ", v_%s: f32[%d, %d, 3, 3], w_%s: f32[%d, %d, 3, 3]", name, channels, from, name,
				channels, channels)
			fmt.Fprintf(&body, "    t_%s = relu(conv2d(%s, v_%s, stride=%d, padding=1))\n", name, in, name, stride)
			fmt.Fprintf(&body, "    %s = relu(conv2d(t_%s, w_%s, padding=1) + %s)\n", name, name, name, skip)
			in = name
		}
	}
	return fmt.Sprintf("graph resnet(x: f32[N, 64, 56, 56]%s) -> (y: f32[N, 512, 7, 7]) {\n%s    y = %s * 1\n}\n",
		params.String(), body.String(), in)
}

// TestFootprintsAreNearTheLeast holds the arena of whole programs to a tenth over what
// lives at one time.
func TestFootprintsAreNearTheLeast(t *testing.T) {
	fake := fakecuda.New(t, "-DFAKE")
	dev, err := runtime.Open("cuda", runtime.Options{Driver: fake.Path, Cache: cache.Open(cache.Options{Dir: t.TempDir()})})
	require.NoError(t, err)
	defer dev.Close()
	for name, test := range map[string]struct {
		text string
		n    int64
	}{"MLP of 100 layers": {mlp(100), 8192}, "ResNet-34": {resNet(), 32}} {
		f, err := fusec.Load(context.Background(), dev, fusec.Source{Name: "net.fuse", Text: []byte(test.text)},
			fusec.Options{})
		require.NoError(t, err, name)
		p, err := f.Footprint(map[string]int64{"N": test.n})
		require.NoError(t, err, name)
		t.Logf("%s: %+v", name, p)
		assert.Greater(t, p.Least, int64(16<<20), "more than what is not worth sharing")
		assert.LessOrEqual(t, float64(p.Arena), 1.1*float64(p.Least), name)
		assert.Positive(t, p.Inputs)
		assert.Positive(t, p.Outputs)
		_, err = f.Footprint(nil)
		assert.ErrorContains(t, err, "size N is missing")
	}
}
