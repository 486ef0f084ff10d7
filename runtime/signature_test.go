//go:build linux && !nocuda

package runtime_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/internal/fakecuda"
)

// TestFunctionsAreTheSameOnAllDevices: what a function takes and gives, and what it refuses, follows from the graph alone, though the
// processor's is made of the plan and the GPU's of the compiled program. Temporaries and results of checks are no part of it.
func TestFunctionsAreTheSameOnAllDevices(t *testing.T) {
	gpu, err := runtime.Open("cuda", runtime.Options{Driver: fakecuda.New(t, "-DFAKE").Path, Cache: cache.Open(cache.Options{Off: true})})
	require.NoError(t, err)
	defer func() { assert.NoError(t, gpu.Close()) }()
	cpu, err := runtime.Open("cpu", runtime.Options{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, cpu.Close()) }()
	for _, text := range []string{
		"graph g(x: f32[N, M], w: bf16[M]) -> (y: f32[N, M], z: f32[M]) {\n    y = softmax(x) * f32(w)\n    z = sum(y, axis=0)\n}", // a temporary
		"@strict graph g(x: f32[N], at: i32[M]) -> (y: f32[M]) { y = x[at] }",                                                      // a check
		"@bench(N=7) graph g(x: f32[N, 2*N]) -> (y: f32[N]) { y = x[:, N] }",
		"graph g(x: i8[]) -> (y: i8[3]) { y[i: 3] = x * i8(i) }",
		"graph g(a: bf16[64, K], b: bf16[K, 64]) -> (y: bf16[64, 64]) { y = relu(a @ b) }",
	} {
		var functions []*runtime.Function
		for _, dev := range []*runtime.Device{cpu, gpu} {
			f, err := fusec.Load(t.Context(), dev, fusec.Source{Name: "g.fuse", Text: []byte(text)}, fusec.Options{})
			require.NoError(t, err, text)
			functions = append(functions, f)
		}
		assert.Equal(t, functions[0].String(), functions[1].String())
		assert.Equal(t, fmt.Sprint(functions[0].Params()), fmt.Sprint(functions[1].Params()))
		for i, p := range functions[0].Params() {
			assert.Equal(t, p.Where, functions[1].Params()[i].Where)
		}
		for _, sizes := range []map[string]int64{nil, {"N": 3}, {"N": 3, "M": 5}, {"N": -1, "M": 5}, {"K": 8}, {"K": 1 << 62}} {
			_, onCPU := functions[0].Footprint(sizes)
			_, onGPU := functions[1].Footprint(sizes)
			if onGPU != nil && onCPU != nil {
				assert.Equal(t, onCPU.Error(), onGPU.Error(), "%s at %v", text, sizes)
			}
		}
		for _, f := range functions {
			assert.NoError(t, f.Close())
		}
	}
}
