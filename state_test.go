package fusec_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

const statePrograms = `
graph adam(state w: f32[N, M], state m: f32[N, M], state v: f32[N, M], g: f32[N, M], lr: f32) -> (norm: f32[]) {
    m_new = 0.9 * m + 0.1 * g
    v_new = 0.999 * v + 0.001 * g * g
    norm = sum(g * g)
    m = m_new
    v = v_new
    w = w - lr * m_new / (sqrt(v_new) + 1e-8)
}

graph swap(state a: f32[N], state b: f32[N]) -> () {
    a2 = a * 1
    a = b * 2
    b = a2 * 3
}

graph turn(state a: f32[N, N]) -> () {
    a = transpose(a, 0, 1)
}

graph shift(state a: f32[N]) -> () {
    a[i] = a[i] + a[i + 1]
}

graph norm(state a: f32[N, M]) -> () {
    a = a / sum(a * a, axis=-1, keep=true)
}

graph step(state w: f32[N, N], x: f32[N, N]) -> (y: f32[N, N]) {
    y = (x @ w) @ w
    w = w - 0.1 * y
}

graph cache(state k: bf16[B, T, D], new: bf16[B, D], q: bf16[B, D], at: i32[]) -> (y: bf16[B, T]) {
    k_new[b, t, d] = where(t == at, new[b, d], k[b, t, d])
    y[b, t] = sum[d] k_new[b, t, d] * q[b, d]
    k = k_new
}

graph apart(state a: f32[N, M], state b: f32[N, M], x: f32[N, M], t: f64[M, N]) -> () {
    a = a + x
    b = f32(b + x + transpose(t))
}

graph count(state n: i32[], state seen: i64[N], x: f32[N]) -> (y: f32[N]) {
    y = x * f32(n)
    n = n + 1
    seen = seen + i64(x > 0)
}
`

// updatesOf says of each state of a graph whether it is updated in place, or why not.
func updatesOf(t *testing.T, graph string) map[string]string {
	p, err := fusec.Compile("state.fuse", statePrograms, fusec.Options{Graph: graph})
	require.NoError(t, err)
	out := map[string]string{}
	for _, b := range p.Plan().Buffers {
		if b.Updates != nil {
			out[b.Updates.Name] = b.Apart
			assert.Equal(t, b.Apart == "", b.InPlace)
		}
	}
	return out
}

// TestStateInPlace: what may be written in place is, and nothing else.
func TestStateInPlace(t *testing.T) {
	t.Parallel()
	assert.Equal(t, map[string]string{"w": "", "m": "", "v": ""}, updatesOf(t, "adam"))
	assert.Equal(t, map[string]string{"a": "kernel swap_b_next still reads a after it has stored the next value", "b": ""}, updatesOf(t, "swap"))
	assert.Contains(t, updatesOf(t, "turn")["a"], "kernel turn_a_next")
	assert.Equal(t, map[string]string{"a": "kernel shift_a_next reads other elements of a than the one it replaces at that point"}, updatesOf(t, "shift"))
	assert.Equal(t, map[string]string{"a": "kernel norm_a_next still reads a after it has stored the next value"}, updatesOf(t, "norm"))
	assert.NotEmpty(t, updatesOf(t, "step")["w"])
	assert.Equal(t, map[string]string{"k": ""}, updatesOf(t, "cache"))
	assert.Equal(t, map[string]string{"a": "", "b": "threads of kernel apart_b_next share what they read of b"}, updatesOf(t, "apart"),
		"what runs along another loop stays in another kernel")
	assert.Empty(t, updatesOf(t, "count")["n"])
}

func ramp(t *testing.T, from float32, shape ...int) *tensor.Tensor {
	x, err := tensor.New(ir.F32, shape...)
	require.NoError(t, err)
	for i := range x.Float32s() {
		x.Float32s()[i] = from + float32(i)
	}
	return x
}

func loadState(t *testing.T, graph string) *runtime.Function {
	d, err := fusec.Open("cpu")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	f, err := fusec.Load(t.Context(), d, fusec.Source{Name: "state.fuse", Text: []byte(statePrograms)}, fusec.Options{Graph: graph})
	require.NoError(t, err)
	return f
}

// TestStateRuns: states get their next values, in place where they may, and by turns of two buffers where not.
func TestStateRuns(t *testing.T) {
	t.Parallel()
	f := loadState(t, "swap")
	s, err := f.NewState(map[string]int64{"N": 4})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Set("a", ramp(t, 1, 4)))
	require.NoError(t, s.Set("b", ramp(t, 10, 4)))
	first, err := s.Buffer("a")
	require.NoError(t, err)
	inPlace, err := s.Buffer("b")
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, s.Run(t.Context(), f, nil))
	}
	a, err := s.Get("a")
	require.NoError(t, err)
	b, err := s.Get("b")
	require.NoError(t, err)
	assert.Equal(t, []float32{6, 12, 18, 24}, a.Float32s())
	assert.Equal(t, []float32{60, 66, 72, 78}, b.Float32s())
	again, err := s.Buffer("a")
	require.NoError(t, err)
	assert.Same(t, first, again, "two buffers take turns")
	again, err = s.Buffer("b")
	require.NoError(t, err)
	assert.Same(t, inPlace, again)

	assert.Equal(t, []string{"a", "b"}, s.Names())
	_, err = s.Get("aa")
	assert.ErrorContains(t, err, "no tensor aa: did you mean a?")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	assert.ErrorIs(t, s.Run(cancelled, f, nil), context.Canceled)
	_, err = s.Get("b")
	assert.NoError(t, err, "nothing was written")
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.Run(t.Context(), f, nil), runtime.ErrClosed)
	assert.ErrorIs(t, new(runtime.State).Set("a", a), runtime.ErrClosed)
}

// TestStateIsQueued: runs that are queued on a stream find what those ahead of them have left.
func TestStateIsQueued(t *testing.T) {
	t.Parallel()
	f := loadState(t, "count")
	s, err := f.NewState(map[string]int64{"N": 3})
	require.NoError(t, err)
	defer s.Close()
	stream, err := f.Device().NewStream()
	require.NoError(t, err)
	defer stream.Close()
	x, err := f.Device().NewBuffer(ir.F32, 3)
	require.NoError(t, err)
	defer x.Close()
	y, err := f.Device().NewBuffer(ir.F32, 3)
	require.NoError(t, err)
	defer y.Close()
	require.NoError(t, x.Upload(ramp(t, 1, 3)))
	args := runtime.Args{"x": x, "y": y}
	for range 3 {
		require.NoError(t, s.Queue(t.Context(), stream, f, args))
	}
	require.NoError(t, stream.Wait(t.Context()))
	seen, err := s.Get("n")
	require.NoError(t, err)
	assert.Equal(t, 3.0, seen.At())
	last, err := y.Tensor()
	require.NoError(t, err)
	assert.Equal(t, []float32{2, 4, 6}, last.Float32s(), "twice x, as two runs were ahead")
	args["y"] = ramp(t, 1, 3)
	assert.ErrorIs(t, s.Queue(t.Context(), stream, f, args), runtime.ErrArgument)
	_, err = s.Get("n")
	assert.NoError(t, err)
}

// TestStateArguments: a plain run takes the memory of a state for its next value where that is right,
// and says why where it is not.
func TestStateArguments(t *testing.T) {
	t.Parallel()
	f := loadState(t, "swap")
	a, b, other := ramp(t, 1, 4), ramp(t, 10, 4), ramp(t, 0, 4)
	require.NoError(t, f.Run(t.Context(), runtime.Args{"a": a, "b": b, "a_next": other, "b_next": b}))
	assert.Equal(t, []float32{3, 6, 9, 12}, b.Float32s())
	err := f.Run(t.Context(), runtime.Args{"a": a, "b": b, "a_next": a, "b_next": b})
	assert.ErrorContains(t, err, "the next value cannot take the place of the present one: kernel swap_b_next still reads a")
	assert.ErrorIs(t, err, runtime.ErrArgument)
	err = f.Run(t.Context(), runtime.Args{"a": a, "b": b, "a_next": b, "b_next": other})
	assert.ErrorContains(t, err, "share memory")
}

// TestStateFiles: what is saved is found again, and what does not fit changes nothing.
func TestStateFiles(t *testing.T) {
	t.Parallel()
	f := loadState(t, "adam")
	s, err := f.NewState(map[string]int64{"N": 3, "M": 5})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, s.Set("w", ramp(t, 1, 3, 5)))
	path := filepath.Join(t.TempDir(), "a.safetensors")
	require.NoError(t, s.Save(path, map[string]string{"step": "3"}))
	rate, err := tensor.Scalar(ir.F32, 0.1)
	require.NoError(t, err)
	norm, err := tensor.New(ir.F32)
	require.NoError(t, err)
	run := func() *tensor.Tensor {
		require.NoError(t, s.Run(t.Context(), f, runtime.Args{"g": ramp(t, -3, 3, 5), "lr": rate, "norm": norm}))
		w, err := s.Get("w")
		require.NoError(t, err)
		return w
	}
	want := run()
	assert.NotEqual(t, ramp(t, 1, 3, 5), want)
	meta, err := s.Load(path)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"step": "3"}, meta)
	assert.Equal(t, want, run(), "the same bits")

	require.NoError(t, s.Set("extra", ramp(t, 0, 2)))
	_, err = s.Load(path)
	assert.ErrorContains(t, err, "it has no tensor extra")
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	data[len(data)-1] ^= 1
	require.NoError(t, os.WriteFile(path, data, 0o600))
	_, err = s.Load(path)
	assert.ErrorIs(t, err, tensor.ErrCorrupt)
}
