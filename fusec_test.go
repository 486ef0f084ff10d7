package fusec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

const scaled = "graph scaled(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = x * w }"

func TestCompileErrorsAreDiagnostics(t *testing.T) {
	_, err := Compile("a.fuse", "graph g(x: f32[N]) -> (y: f32[N]) { y = undefined(x) }", Options{})
	var list diag.List
	require.ErrorAs(t, err, &list)
	_, err = Compile("a.fuse", []byte(scaled), Options{Graph: "other"})
	assert.ErrorContains(t, err, "no graph other")
	_, err = Compile("a.fuse", scaled, Options{Arch: "sm90"})
	assert.ErrorContains(t, err, "expected an architecture like sm_90a, or one of H200")
	_, err = Compile("a.fuse", `import "b.fuse"`, Options{})
	assert.Error(t, err, "nothing may be imported")
	assert.Panics(t, func() { MustCompile("a.fuse", "graph", Options{}) })
}

func TestCompileForAnyArch(t *testing.T) {
	for _, arch := range []string{"", "H200", "A100", "sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a"} {
		p, err := Compile("a.fuse", scaled, Options{Arch: arch})
		require.NoError(t, err, arch)
		program, err := p.CUDA()
		require.NoError(t, err, arch)
		assert.NotEmpty(t, program.Units)
	}
}

func TestNumericsOverrideTheSource(t *testing.T) {
	for numerics, strict := range map[Numerics]bool{AsWritten: true, Strict: true, Fast: false} {
		p, err := Compile("a.fuse", "@strict "+scaled, Options{Numerics: numerics})
		require.NoError(t, err)
		program, err := p.CUDA()
		require.NoError(t, err)
		assert.Equal(t, strict, program.Units[0].Strict)
	}
}

func TestSpecializedSizes(t *testing.T) {
	p, err := Compile("a.fuse", scaled, Options{Specialize: "N=2, M=3"})
	require.NoError(t, err)
	dev := openCPU(t)
	f, err := p.Load(context.Background(), dev)
	require.NoError(t, err)
	_, err = f.Call(context.Background(), arguments(t, 2, 3))
	require.NoError(t, err)
	_, err = f.Call(context.Background(), arguments(t, 2, 4))
	assert.ErrorContains(t, err, "dimension 1")
	for _, wrong := range []string{"N", "N=x", "N=-1", "K=3"} {
		_, err = Compile("a.fuse", scaled, Options{Specialize: wrong})
		assert.ErrorContains(t, err, "cannot specialize", wrong)
	}
}

func openCPU(t *testing.T) *runtime.Device {
	dev, err := Open("cpu")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

func arguments(t *testing.T, n, m int) runtime.Args {
	x, err := tensor.Random(ir.F32, 1, n, m)
	require.NoError(t, err)
	w, err := tensor.Random(ir.F32, 2, m)
	require.NoError(t, err)
	return runtime.Args{"x": x, "w": w}
}

func TestLoadWithImports(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "lib.fuse"), []byte("fn half(x: T[...]) -> T[...] = x / 2\n"), 0o600))
	path := filepath.Join(folder, "main.fuse")
	require.NoError(t, os.WriteFile(path, []byte("import \"lib.fuse\"\n"+
		"@bench(N=8) graph g(x: f32[N]) -> (y: f32[N]) { y = half(x) }\n"), 0o600))
	src, err := ReadSource(path)
	require.NoError(t, err)
	f, err := Load(context.Background(), openCPU(t), src, Options{})
	require.NoError(t, err)
	assert.Equal(t, map[string]int64{"N": 8}, f.Defaults())
	x, err := tensor.FromSlice([]float32{3})
	require.NoError(t, err)
	out, err := f.Call(context.Background(), runtime.Args{"x": x})
	require.NoError(t, err)
	assert.Equal(t, []float64{1.5}, out["y"].Floats())
}

func TestPanicsBecomeErrors(t *testing.T) {
	compile := func() (err error) {
		stage := "fuse"
		defer guard(&stage, "a.fuse", &err)
		panic("BUG: something")
	}
	var internal *InternalError
	require.True(t, errors.As(compile(), &internal))
	assert.Equal(t, "internal error in fuse while compiling a.fuse: BUG: something", internal.Error())
	assert.Contains(t, internal.Stack, "TestPanicsBecomeErrors")
}
