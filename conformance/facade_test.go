package conformance

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/sign"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestBundleOnGPU: a bundle runs on a GPU with neither NVRTC nor a cache.
func TestBundleOnGPU(t *testing.T) {
	RequireNVRTC(t)
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize))
	var warnings []error
	dev := openGPU(t, runtime.Options{Cache: cache.Open(cache.Options{Off: true}), NoCompile: true,
		NVRTC: cuda.FindOptions{Path: t.TempDir()}, OnWarning: func(err error) { warnings = append(warnings, err) }})
	for _, arch := range []string{dev.Arch(), "sm_80"} { // its own, and the PTX of an older one
		path := filepath.Join(t.TempDir(), "app.fbundle")
		var data bytes.Buffer
		graph := fusec.BundleGraph{Source: source("a", scaled)}
		require.NoError(t, fusec.WriteBundle(context.Background(), &data, runtime.NewCompiler(runtime.Options{}),
			[]fusec.BundleGraph{graph}, fusec.BundleOptions{Archs: []string{arch}, Key: key}))
		require.NoError(t, os.WriteFile(path, data.Bytes(), 0o600))
		b, err := fusec.OpenBundle(path, sign.Public(key))
		require.NoError(t, err)
		f, err := b.Load(context.Background(), dev.Device, "")
		require.NoError(t, err)
		args := arguments(t, 33, 70)
		got, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		p, err := fusec.Compile("a.fuse", scaled, fusec.Options{})
		require.NoError(t, err)
		reference, err := p.Load(context.Background(), openCPU(t).Device)
		require.NoError(t, err)
		want, err := reference.Call(context.Background(), args)
		require.NoError(t, err)
		assert.Equal(t, want["y"].Floats(), got["y"].Floats())
		require.NoError(t, b.Close())
	}
	assert.Empty(t, warnings)
}

const twoKernels = `graph two(x: f32[N, M], w: f32[M]) -> (y: f32[N, M], z: f32[M]) {
    y = softmax(x) * w
    z = sum(y, axis=0)
}`

// TestTuneOnGPU: what is chosen is stored, used by the next load, and computes the same.
func TestTuneOnGPU(t *testing.T) {
	store := cache.Open(cache.Options{Dir: t.TempDir()})
	dev := openGPU(t, runtime.Options{Cache: store})
	src := source("two", twoKernels)
	x, err := tensor.Random(ir.F32, 1, 512, 1000)
	require.NoError(t, err)
	w, err := tensor.Random(ir.F32, 2, 1000)
	require.NoError(t, err)
	call := func() map[string]*tensor.Tensor {
		f, err := fusec.Load(context.Background(), dev.Device, src, fusec.Options{})
		require.NoError(t, err)
		out, err := f.Call(context.Background(), runtime.Args{"x": x, "w": w})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		return out
	}
	want := call()
	o := fusec.TuneOptions{Inputs: map[string]*tensor.Tensor{"x": x, "w": w}, Repeat: 5}
	tuned, err := fusec.Tune(context.Background(), dev.Device, src, fusec.Options{}, o)
	require.NoError(t, err)
	kept := 0
	for _, k := range tuned {
		t.Logf("%+v", k)
		assert.Zero(t, k.Wrong)
		if k.Choice != nil {
			kept++
		}
	}
	assert.Len(t, fusec.Choices(store, dev.Figures()), kept)
	got := call()
	for name := range want {
		diff, err := tensor.Compare(got[name], want[name], tensor.Tolerance{Abs: 1e-4, Rel: 1e-4})
		require.NoError(t, err)
		assert.True(t, diff.OK(), diff)
	}
	_, err = fusec.Replay(context.Background(), dev.Device, src, fusec.Options{}, o)
	assert.NoError(t, err)
}
