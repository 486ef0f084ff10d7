package conformance

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestGPUWarmStart is the promise of the caches: the second time nothing is parsed,
// planned or compiled.
func TestGPUWarmStart(t *testing.T) {
	dir := t.TempDir()
	src := sourceFiles(t, "examples/softmax.fuse")[0]
	for _, warm := range []bool{false, true} {
		trace := runtime.NewTrace()
		dev := openGPU(t, runtime.Options{Cache: cache.Open(cache.Options{Dir: dir}), Trace: trace})
		f, err := fusec.Load(context.Background(), dev.Device, src, fusec.Options{})
		require.NoError(t, err)
		x, err := tensor.Random(ir.BF16, 1, 64, 512)
		require.NoError(t, err)
		_, err = f.Call(context.Background(), runtime.Args{"x": x})
		require.NoError(t, err)
		var names []string
		for _, s := range trace.Steps() {
			names = append(names, s.Name)
			t.Logf("%9.3f ms at %9.3f ms: %s %s", s.Took.Seconds()*1e3, s.Start.Seconds()*1e3, s.Name, s.Detail)
		}
		assert.Equal(t, !warm, slices.Contains(names, "nvrtc open"))
		assert.Equal(t, !warm, slices.Contains(names, "plan"))
	}
}

func TestGPUManyGoroutines(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	p, err := fusec.Compile("a.fuse", scaled, fusec.Options{})
	require.NoError(t, err)
	f, err := p.Load(context.Background(), dev.Device)
	require.NoError(t, err)
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			for n := range 50 {
				args := arguments(t, 1+i*37, 1+n*41)
				out, err := f.Call(context.Background(), args)
				if !assert.NoError(t, err) {
					return
				}
				x, w := args["x"].(*tensor.Tensor), args["w"].(*tensor.Tensor)
				y, last := out["y"], x.Len()-1
				assert.Equal(t, x.Float32s()[last]*w.Float32s()[w.Len()-1], y.Float32s()[last])
			}
		})
	}
	group.Wait()
}
