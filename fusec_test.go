package fusec

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	goruntime "runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
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

// TestNumericsDecideChecks: options count as annotations do.
func TestNumericsDecideChecks(t *testing.T) {
	text := `(x: f32[V], at: i64[N]) -> (y: f32[N]) { y = x[at] }`
	for numerics, checks := range map[Numerics][2]int{AsWritten: {0, 1}, Fast: {0, 0}, Strict: {1, 1}} {
		for i, annotation := range []string{"", "@strict "} {
			p, err := Compile("c.fuse", annotation+"graph g"+text, Options{Numerics: numerics})
			require.NoError(t, err)
			assert.Len(t, p.Plan().Graph.Checks, checks[i])
		}
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

// A kernel of 8 billion rows that have no columns has nothing to write, and takes no time.
func TestRowsOfNoColumns(t *testing.T) {
	p, err := Compile("a.fuse", "graph g(x: i16[K, 2049, 2049, 2049]) -> (y: i64[K, 2049, 2049, 2049]) { y = argsort(x, axis=0) }", Options{})
	require.NoError(t, err)
	x, err := tensor.Random(ir.I16, 1, 0, 2049, 2049, 2049)
	require.NoError(t, err)
	for _, dev := range []*runtime.Device{openCPU(t), simtest.New(t, simtest.Config{Arch: "sm_90a"}).Open(t, runtime.Options{})} {
		f, err := p.Load(t.Context(), dev)
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		out, err := f.Call(ctx, runtime.Args{"x": x})
		require.NoError(t, err)
		assert.Equal(t, []int{0, 2049, 2049, 2049}, out["y"].Shape)
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
	require.NoError(t, os.WriteFile(filepath.Join(folder, "lib.fuse"),
		[]byte("fn half(x: T[...]) -> T[...] = x / 2\n"), 0o600))
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

// TestDeviceTensorsOfTheProcessor holds the engines to one behaviour.
func TestDeviceTensorsOfTheProcessor(t *testing.T) {
	dev, other := openCPU(t), openCPU(t)
	f, err := MustCompile("a.fuse", scaled, Options{}).Load(context.Background(), dev)
	require.NoError(t, err)
	args := arguments(t, 5, 6)
	want, err := f.Call(context.Background(), args)
	require.NoError(t, err)
	for name, shape := range map[string][]int{"x": {5, 6}, "w": {6}, "y": {5, 6}} {
		b, err := dev.NewBuffer(ir.F32, shape...)
		require.NoError(t, err)
		if x, ok := args[name].(*tensor.Tensor); ok {
			require.NoError(t, b.Upload(x))
		}
		args[name] = b
	}
	report, err := f.Measure(context.Background(), args, runtime.Measure{Warmup: 1, Repeat: 4})
	require.NoError(t, err)
	assert.Len(t, report.Total, 4)
	got, err := args["y"].(*runtime.Buffer).Tensor()
	require.NoError(t, err)
	assert.True(t, tensor.Equal(want["y"], got))

	foreign, err := other.NewBuffer(ir.F32, 5, 6)
	require.NoError(t, err)
	args["y"] = foreign
	err = f.Run(context.Background(), args)
	assert.ErrorContains(t, err, "output y: the buffer is in the memory of another device")
	args["y"] = args["x"]
	assert.ErrorContains(t, f.Run(context.Background(), args), "output y and input x share memory")
	_, err = dev.NewBuffer(ir.F32, 1<<31, 1<<31)
	assert.Error(t, err, "more than any machine has")
	_, err = dev.Load(context.Background(), &ir.Program{})
	assert.ErrorContains(t, err, "use LoadPlan")
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

// TestLoadEndsWithItsContext: planning cannot be interrupted; who waits for it can leave.
func TestLoadEndsWithItsContext(t *testing.T) {
	dev, err := Open("cpu")
	require.NoError(t, err)
	defer dev.Close()
	reading, let := make(chan struct{}), make(chan struct{})
	src := Source{Name: "a.fuse", Text: []byte("import \"b.fuse\"\ngraph a(x: f32[N]) -> (y: f32[N]) { y = x }\n"),
		ReadFile: func(string) ([]byte, error) {
			reading <- struct{}{}
			<-let
			return []byte("fn twice(x) = x + x\n"), nil
		}}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		_, err := Load(ctx, dev, src, Options{})
		ended <- err
	}()
	<-reading
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)
	close(let)

	p := MustCompile("b.fuse", "graph b(x: f32[N]) -> (y: f32[N]) { y = x + 1 }", Options{})
	_, err = p.Load(ctx, dev)
	require.ErrorIs(t, err, context.Canceled)
	p.mu.Lock() // as one who plans for another device has it
	ctx, cancel = context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	_, err = p.Load(ctx, dev)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	p.mu.Unlock()
	f, err := p.Load(context.Background(), dev)
	require.NoError(t, err)
	require.NoError(t, f.Close())
}

func TestAwaitGivesPanicsToTheCaller(t *testing.T) {
	require.PanicsWithValue(t, "inside", func() {
		_, _ = await(context.Background(), func() (int, error) { panic("inside") })
	})
	_, err := await(context.Background(), func() (int, error) { goruntime.Goexit(); return 0, nil })
	require.ErrorIs(t, err, errEnded)
	n, err := await(context.Background(), func() (int, error) { return 3, nil })
	require.NoError(t, err)
	require.Equal(t, 3, n)
}

// The CPU engine tells an observer what a GPU does: kernels, bytes, and in measured runs the
// time of each kernel.
func TestCountersOfTheCPUEngine(t *testing.T) {
	var counters runtime.Counters
	dev, err := runtime.Open("cpu", runtime.Options{Observer: &counters})
	require.NoError(t, err)
	defer dev.Close()
	const src = "graph f(x: f32[N]) -> (y: f32[N], s: f32[]) {\n    y = cumsum(x)\n    s = sum(cumsum(y * 2))\n}"
	f, err := Load(t.Context(), dev, Source{Name: "f.fuse", Text: []byte(src)}, Options{})
	require.NoError(t, err)
	x, err := tensor.New(ir.F32, 100)
	require.NoError(t, err)
	y, err := tensor.New(ir.F32, 100)
	require.NoError(t, err)
	s, err := tensor.New(ir.F32)
	require.NoError(t, err)
	args := runtime.Args{"x": x, "y": y, "s": s}
	require.NoError(t, f.Run(t.Context(), args))
	total := counters.Totals()
	assert.Equal(t, int64(1), total.Runs)
	assert.Positive(t, total.Kernels)
	assert.GreaterOrEqual(t, total.Bytes, int64(2*400+4))
	report, err := f.Measure(t.Context(), args, runtime.Measure{Repeat: 3})
	require.NoError(t, err)
	require.Equal(t, int(total.Kernels), report.Launches(), "those that other sizes need do not count")
	for _, k := range report.Kernels {
		if k.Skipped {
			continue
		}
		assert.Len(t, k.Times, 3, k.Name)
		assert.Equal(t, int64(3), counters.Totals().Timed["f/"+k.Name].Count)
	}
	assert.Equal(t, "f(x: f32[N]) -> (y: f32[N], s: f32[])", f.String())
	const sizes = "graph g(x: f32[N, 3 * M + 1], y: f32[M]) -> (z: f32[2 * N, 1]) { z[i: 2 * N, j: 1] = x[i / 2, j] + y[0] }"
	g, err := Load(t.Context(), dev, Source{Name: "g.fuse", Text: []byte(sizes)}, Options{})
	require.NoError(t, err)
	assert.Equal(t, "g(x: f32[N, M * 3 + 1], y: f32[M]) -> (z: f32[N * 2, 1])", g.String())
}

func TestMisuseOfTheLibraryIsAnError(t *testing.T) {
	var p Program
	_, err := p.CUDA()
	assert.ErrorIs(t, err, ErrNotCompiled)
	dev, err := Open("cpu")
	require.NoError(t, err)
	defer dev.Close()
	_, err = p.Load(t.Context(), dev)
	assert.ErrorIs(t, err, ErrNotCompiled)
	assert.Equal(t, "no program ", p.String()+" "+p.Name())
	_, err = Compile("f.fuse", "graph f(x: f32[N]) -> (y: f32[N]) { y = x }", Options{Graph: "g"})
	assert.ErrorIs(t, err, ErrNoGraph)
	var b Bundle
	_, err = b.Load(t.Context(), dev, "g")
	assert.ErrorIs(t, err, ErrNoGraph)
	assert.NoError(t, b.Close())
}

// TestKernelsThatDoNotRun: a kernel that other sizes need is reported as skipped, and neither timed nor counted.
func TestKernelsThatDoNotRun(t *testing.T) {
	const scores = `graph scores(table: f32[N, D], query: f32[D]) -> (p: f32[N]) {
    p = softmax(table @ query / sqrt(sum(table * table, axis=1)))
}`
	dev, err := Open("cpu")
	require.NoError(t, err)
	defer func() { require.NoError(t, dev.Close()) }()
	f, err := Load(t.Context(), dev, Source{Name: "scores.fuse", Text: []byte(scores)}, Options{})
	require.NoError(t, err)
	args := runtime.Args{}
	for name, shape := range map[string][]int{"table": {3, 4}, "query": {4}, "p": {3}} {
		args[name], err = tensor.New(ir.F32, shape...)
		require.NoError(t, err)
	}
	r, err := f.Measure(t.Context(), args, runtime.Measure{Repeat: 2})
	require.NoError(t, err)
	ran := 0
	for _, k := range r.Kernels {
		if k.Skipped {
			assert.Empty(t, k.Times, k.Name)
			assert.Zero(t, k.Reads+k.Writes, k.Name)
			continue
		}
		ran++
		assert.Len(t, k.Times, 2, k.Name)
	}
	assert.Less(t, ran, len(r.Kernels))
	assert.Equal(t, ran, r.Launches())
}
