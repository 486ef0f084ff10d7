package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
)

// layered are programs whose layers share kernels: what differs from one launch to the
// next is tensors, tensor maps among them.
var layered = map[string]string{
	"products": `graph g(x: bf16[N, 256], u: bf16[256, 256], v: bf16[256, 256], w: bf16[256, 256], b: bf16[256], c: bf16[256]) -> (y: bf16[N, 256]) {
		p = rms_norm(gelu(x @ u + b), c)
		q = rms_norm(gelu(p @ v + c), b)
		y = rms_norm(gelu(q @ w + b), b)
	}`,
	"attention": `graph g(q: bf16[2, N, 64], r: bf16[2, N, 64], k: bf16[2, M, 64], l: bf16[2, M, 64], v: bf16[2, M, 64]) -> (x: bf16[2, N, 64], y: bf16[2, N, 64]) {
		x = attention(q, k, v)
		y = attention(r, l, v)
	}`,
	"rows": `@bench(N=64, M=64) graph g(x: f32[N, M], s: f32[M], t: f32[M]) -> (y: f32[N, M]) {
		p = cumsum(softmax(x * s), axis=0)
		q = cumsum(softmax(p * t), axis=0)
		r = cumsum(softmax(q * s), axis=0)
		y = cumsum(softmax(r * t), axis=0)
	}`,
}

// TestLayersShareKernels counts the compiled kernels of layered programs.
func TestLayersShareKernels(t *testing.T) {
	for name, src := range layered {
		p, err := Compile("layers.fuse", src, Options{Arch: "sm_90a"})
		require.NoError(t, err, name)
		cuda, err := p.CUDA()
		require.NoError(t, err, name)
		entries := map[string]bool{}
		for _, u := range cuda.Units {
			entries[u.Entry] = true
		}
		assert.Greater(t, len(cuda.Launches), len(entries), name)
	}
}

// TestLayersOnGPU compares layered programs with the interpreter.
func TestLayersOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name, src := range layered {
		p, f := loaded(t, dev, src)
		for _, n := range []int64{1, 33, 130} {
			sizes, _ := sizesOf(p.Graph(), []int64{n, n + 7})
			t.Run(fmt.Sprint(name, n), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	}
}
