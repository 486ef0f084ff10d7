package fusec

import (
	"context"
	"embed"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// examples are part of the test, which also runs on machines that hold nothing else.
//
//go:embed examples/*.fuse
var examples embed.FS

//go:embed testdata/programs/*.fuse
var programs embed.FS

// programSizes leave rests of vectors, warps, blocks and pieces of a row.
var programSizes = [][]int64{{1, 1}, {3, 0}, {0, 5}, {2, 31}, {5, 33}, {33, 128}, {3, 1023}, {130, 1025}, {2, 4099}, {3, 16384}}

// TestProgramsOnGPU compares the programs of testdata with the interpreter.
func TestProgramsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	files, err := programs.ReadDir("testdata/programs")
	require.NoError(t, err)
	for _, file := range files {
		text, err := programs.ReadFile("testdata/programs/" + file.Name())
		require.NoError(t, err)
		p, err := CompileSource(Source{Name: file.Name(), Text: text}, Options{Arch: dev.Arch()})
		require.NoError(t, err)
		f, err := p.Load(context.Background(), dev)
		require.NoError(t, err)
		for _, set := range programSizes {
			sizes, fit := sizesOf(p.Graph(), set)
			if !fit || work(p.Graph(), sizes) > 1<<26 {
				continue
			}
			t.Run(fmt.Sprint(file.Name(), set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	}
}

// forExamples runs test for every graph of the examples.
func forExamples(t *testing.T, test func(t *testing.T, src Source)) {
	files, err := examples.ReadDir("examples")
	require.NoError(t, err)
	for _, file := range files {
		name := "examples/" + file.Name()
		text, err := examples.ReadFile(name)
		require.NoError(t, err)
		t.Run(file.Name(), func(t *testing.T) { test(t, Source{Name: name, Text: text}) })
	}
}

// openGPU opens the first GPU, with a cache of the test's own, or skips. With
// FUSEC_TEST_DEVICE=sm_90a, or sm_80, it is a simulated one: for tests whose sizes allow it.
func openGPU(t testing.TB, opts runtime.Options) *runtime.Device {
	t.Helper()
	if opts.Cache == nil {
		opts.Cache = cache.Open(cache.Options{Dir: t.TempDir()})
	}
	if arch := os.Getenv("FUSEC_TEST_DEVICE"); arch != "" {
		RequireNVRTC(t)
		return simtest.New(t, simtest.Config{Arch: arch}).Open(t, opts)
	}
	dev, err := runtime.Open("cuda", opts)
	if err != nil {
		t.Skipf("no GPU to test on: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	return dev
}

// loaded compiles a program of one graph for a device and loads it there.
func loaded(t testing.TB, dev *runtime.Device, src string) (*Program, *runtime.Function) {
	t.Helper()
	p, err := Compile("g.fuse", src, Options{Arch: dev.Arch()})
	require.NoError(t, err, src)
	f, err := p.Load(context.Background(), dev)
	require.NoError(t, err, src)
	return p, f
}

// sizeSets are sizes for the symbols of a graph, in turn: single elements, rests of
// warps and vectors, more than a block, and nothing.
var sizeSets = [][]int64{{1}, {31, 33}, {3, 70, 33, 130, 2, 17}, {64}, {257, 1025}, {0, 5}}

// compareUpTo compares with the interpreter at those of the sizes, of symbols in order, that
// are no more than so many points of work.
func compareUpTo(t *testing.T, p *Program, f *runtime.Function, list [][]int64, most int64) {
	for _, set := range list {
		if sizes, fit := sizesOf(p.Graph(), set); fit && work(p.Graph(), sizes) <= most {
			t.Run(fmt.Sprint(set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	}
}

func sizesOf(g *ir.Graph, set []int64) (sizes map[string]int64, fit bool) {
	sizes = map[string]int64{}
	for i, s := range g.Symbols {
		sizes[s.Name] = set[i%len(set)]
	}
	for _, c := range g.Constraints {
		if v, ok := ir.EvalSize(c.Cond, sizes); !ok || v == 0 {
			return nil, false
		}
	}
	return sizes, true
}

func TestExamplesOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	forExamples(t, func(t *testing.T, src Source) {
		p, err := CompileSource(src, Options{Arch: dev.Arch()})
		require.NoError(t, err)
		f, err := p.Load(context.Background(), dev)
		require.NoError(t, err)
		for _, set := range sizeSets {
			sizes, fit := sizesOf(p.Graph(), set)
			if !fit || work(p.Graph(), sizes) > 1<<24 {
				continue // of what the interpreter has time for
			}
			t.Run(fmt.Sprint(set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	})
}

// work is how many points the interpreter would visit.
func work(g *ir.Graph, sizes map[string]int64) int64 {
	total := int64(0)
	for _, v := range g.Values {
		points := int64(1)
		ranges := append([]*ir.Range(nil), v.Axes...)
		if v.Reduce != nil {
			ranges = append(ranges, v.Reduce.Ranges...)
		}
		for _, r := range ranges {
			extent, _ := ir.EvalSize(r.Extent, sizes)
			points *= min(extent, 1<<20)
		}
		total += points
	}
	return total
}

// madeInputs are inputs that random numbers are no good for. The pixels of a detector
// are a ruler: with some a metre off axis, its lattice factors are sines of so many
// turns that an f32 holds no digit of them.
var madeInputs = map[string]func(shape []int) (*tensor.Tensor, error){
	"bragg.pixel": func(shape []int) (*tensor.Tensor, error) {
		at := make([]float32, shape[0])
		for i := range at {
			at[i] = float32(i-len(at)/2) * 1e-4
		}
		return tensor.FromSlice(at, shape...)
	},
}

// drawInputs gives every input of a graph numbers that depend on its place alone: random
// ones, or made ones where those are no good.
func drawInputs(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64) runtime.Args {
	t.Helper()
	shapes, err := f.Shapes(sizes)
	require.NoError(t, err)
	args := runtime.Args{}
	for i, v := range g.Inputs {
		x, err := tensor.Random(v.Type, uint64(i+1), shapes[v.Name]...)
		if made := madeInputs[g.Name+"."+v.Name]; made != nil {
			x, err = made(shapes[v.Name])
		}
		if !v.Type.IsFloat() { // indices, more often than not
			x, err = tensor.RandomInts(v.Type, uint64(i+1), 0, 2, shapes[v.Name]...)
		}
		require.NoError(t, err)
		args[v.Name] = x
	}
	return args
}

func compareWithInterpreter(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64) {
	r := interpreted(t, g, drawInputs(t, g, f, sizes))
	got, err := f.Call(context.Background(), r.args)
	require.NoError(t, err)
	for i, o := range g.Outputs {
		diff, err := tensor.Compare(got[o.Name], r.want[i], tolerance(r.want[i], r.gaps[i]))
		require.NoError(t, err)
		assert.True(t, diff.OK(), "%s: %v", o.Name, diff)
	}
}

// A reference is inputs, what the interpreter makes of them, and for each output what
// rounding every operation does to it.
type reference struct {
	args runtime.Args
	want []*tensor.Tensor
	gaps []float64
}

// interpreted is the reference for inputs.
func interpreted(t *testing.T, g *ir.Graph, args runtime.Args) *reference {
	var inputs []*interp.Tensor
	for _, v := range g.Inputs {
		x := args[v.Name].(*tensor.Tensor)
		inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, x.Data))
	}
	want, err := interp.Run(g, inputs, interp.Options{})
	require.NoError(t, err)
	strict, err := interp.Run(g, inputs, interp.Options{Mode: interp.Strict})
	require.NoError(t, err)
	r := &reference{args: args}
	for i := range g.Outputs {
		expected, err := tensor.FromBytes(want[i].Type, want[i].Bytes(), want[i].Shape...)
		require.NoError(t, err)
		r.want, r.gaps = append(r.want, expected), append(r.gaps, largestGap(want[i], strict[i]))
	}
	return r
}

// largestGap is what rounding every operation does to the worst finite element.
func largestGap(exact, strict *interp.Tensor) float64 {
	most := 0.0
	for i := range exact.F {
		if d := math.Abs(exact.F[i] - strict.F[i]); d <= math.MaxFloat64 {
			most = max(most, d)
		}
	}
	return most
}

// tolerance is a few roundings of the type, of the element or of its neighbours,
// and of the program's own operations: a device's functions are good to 2 units in
// the last place, four times the half that one rounding costs.
func tolerance(want *tensor.Tensor, gap float64) tensor.Tolerance {
	if !want.DType.IsFloat() {
		return tensor.Tolerance{}
	}
	sum := 0.0
	for _, v := range want.Floats() {
		if v-v == 0 {
			sum += v * v
		}
	}
	relative := 4*want.DType.Info().Epsilon + 1e-5
	return tensor.Tolerance{Rel: relative, Abs: 4*gap + relative*math.Sqrt(sum/float64(max(want.Len(), 1)))}
}

// TestGPUWarmStart is the promise of the caches: the second time nothing is parsed,
// planned or compiled.
func TestGPUWarmStart(t *testing.T) {
	dir := t.TempDir()
	text, err := examples.ReadFile("examples/softmax.fuse")
	require.NoError(t, err)
	src := Source{Name: "softmax.fuse", Text: text}
	for _, warm := range []bool{false, true} {
		trace := runtime.NewTrace()
		dev := openGPU(t, runtime.Options{Cache: cache.Open(cache.Options{Dir: dir}), Trace: trace})
		f, err := Load(context.Background(), dev, src, Options{})
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
	p, err := Compile("a.fuse", scaled, Options{})
	require.NoError(t, err)
	f, err := p.Load(context.Background(), dev)
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
