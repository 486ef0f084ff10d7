package cpu_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/ir/interp/plantest"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/cpu"
)

const root = "../.."

// program is a case of testdata/reference: here its inputs matter, not its results.
type program struct {
	Name, Program string
	Inputs        []struct {
		DType string
		Shape []int
		Data  []any
	}
}

func programs(t *testing.T) []program {
	files, err := filepath.Glob(root + "/testdata/reference/*.json")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []program
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []program
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		require.NoError(t, d.Decode(&cases))
		for _, c := range cases {
			c.Name = strings.TrimSuffix(filepath.Base(file), ".json") + "/" + c.Name
			if strings.HasSuffix(c.Program, ".fuse") {
				src, err := os.ReadFile(filepath.Join(root, c.Program))
				require.NoError(t, err)
				c.Program = string(src)
			}
			out = append(out, c)
		}
	}
	return out
}

// inputs decodes the case's tensors; floats of type f64 become wide.
func (p program) inputs(t *testing.T, wide ir.DType) []*interp.Tensor {
	var out []*interp.Tensor
	for _, in := range p.Inputs {
		dtype, ok := ir.DTypeNamed(in.DType)
		require.True(t, ok)
		if dtype == ir.F64 {
			dtype = wide
		}
		x := interp.New(dtype, in.Shape...)
		for i, e := range in.Data {
			var err error
			if dtype.IsFloat() {
				x.F[i], err = strconv.ParseFloat(fmt.Sprint(e), 64)
			} else {
				x.I[i], err = strconv.ParseInt(fmt.Sprint(e), 10, 64)
			}
			require.NoError(t, err)
		}
		out = append(out, interp.FromBytes(dtype, in.Shape, x.Bytes()))
	}
	return out
}

// Every program of the library, in f64 and f32: the engine computes it on any number of cores. That its plan for a GPU is its
// graph is tested in fuse.
func TestLibrary(t *testing.T) {
	for _, p := range programs(t) {
		for _, wide := range []ir.DType{ir.F64, ir.F32} {
			if wide == ir.F32 && strings.HasSuffix(p.Name, "far from 0") {
				continue // f32 cannot: the case is about f64
			}
			if wide == ir.F64 && testing.Short() {
				continue
			}
			src := strings.ReplaceAll(p.Program, "f64", wide.String())
			t.Run(p.Name+"/"+wide.String(), func(t *testing.T) {
				file, err := parser.Parse("case.fuse", []byte(src), parser.Options{})
				require.NoError(t, err)
				g, err := file.Graph("")
				require.NoError(t, err)
				check(t, g, p.inputs(t, wide))
				if t.Failed() {
					t.Log("\n" + src)
				}
			})
		}
	}
}

// tester is what testing.T and rapid.T share.
type tester interface {
	require.TestingT
	Helper()
}

// checkBoth compares the engine, and the plan for a GPU in all variants that take the sizes, with the interpreter. The engine
// is no part of the plan: short tests, which run under the race detector, leave that out.
func checkBoth(t tester, g *ir.Graph, in []*interp.Tensor) {
	want := check(t, g, in)
	if !testing.Short() {
		checkPlan(t, g, in, bind(t, g, in), want)
	}
}

// check compares the engine with the interpreter, and returns what that gives.
func check(t tester, g *ir.Graph, in []*interp.Tensor) []*interp.Tensor {
	want, err := interp.Run(g, in, interp.Options{})
	require.NoError(t, err)
	symbols := bind(t, g, in)
	plan := planForCPU(t, g)
	one := execute(t, plan, symbols, in, 1)
	compare(t, "engine", g, want, one)
	for i, many := range execute(t, plan, symbols, in, 3) {
		assert.Equal(t, one[i].Bytes(), many.Bytes(), "the number of cores must not matter")
	}
	return want
}

func checkPlan(t tester, g *ir.Graph, in []*interp.Tensor, symbols map[string]int64, want []*interp.Tensor) {
	plan, err := fuse.Plan(g, fuse.Options{})
	require.NoError(t, err)
	for _, k := range plan.Kernels {
		for n, v := range k.Variants {
			if yes := v.When == nil; !yes {
				holds, _ := ir.EvalSize(v.When, symbols)
				if holds == 0 {
					continue
				}
			}
			opts := interp.PlanOptions{Force: map[string]int{k.Name: n}}
			have, err := interp.RunPlan(plan, in, opts)
			if assert.NoError(t, err, "plan, variant %d of %s", n, k.Name) {
				compare(t, fmt.Sprintf("plan, variant %d of %s", n, k.Name), g, want, have)
			}
		}
	}
}

// planForCPU plans as runtime.Open("cpu") has it: without tensor cores.
func planForCPU(t tester, g *ir.Graph) *ir.Plan {
	device := ir.Devices()[0]
	device.Name, device.Arch = "CPU", ""
	plan, err := fuse.Plan(g, fuse.Options{Device: device})
	require.NoError(t, err)
	return plan
}

func bind(t tester, g *ir.Graph, in []*interp.Tensor) map[string]int64 {
	shapes := make([][]int, len(in))
	for i, x := range in {
		shapes[i] = x.Shape
	}
	symbols, err := ir.BindGraph(g, shapes)
	require.NoError(t, err)
	return symbols
}

// execute runs the engine; results are in the order of the graph's outputs.
func execute(
	t tester, plan *ir.Plan, symbols map[string]int64, in []*interp.Tensor, threads int,
) []*interp.Tensor {
	inputs, results := map[string][]byte{}, map[*ir.Value][]byte{}
	for i, v := range plan.Graph.Inputs {
		inputs[v.Name] = in[i].Bytes()
	}
	shapes := map[*ir.Value][]int{}
	var buffers [][]byte
	for _, b := range plan.Buffers {
		if b.Kind == ir.InputBuffer {
			buffers = append(buffers, inputs[b.Value.Name])
		}
		if b.Kind != ir.OutputBuffer {
			continue
		}
		size, shape := b.Type.Size(), []int{}
		for _, e := range b.Shape {
			n, ok := ir.EvalSize(e, symbols)
			require.True(t, ok)
			size, shape = size*int(n), append(shape, int(n))
		}
		results[b.Value], shapes[b.Value] = make([]byte, size), shape
		buffers = append(buffers, results[b.Value])
	}
	require.NoError(t, cpu.New(plan, cpu.Options{Threads: threads}).Run(context.Background(), symbols, buffers))
	var out []*interp.Tensor
	for _, o := range plan.Graph.Outputs {
		out = append(out, interp.FromBytes(o.Value.Type, shapes[o.Value], results[o.Value]))
	}
	return out
}

// tolerance allows for the roundings of the narrowest float in g.
func tolerance(g *ir.Graph) float64 {
	tol := 1e-12
	for _, v := range g.Values {
		if v.Type.IsFloat() && v.Type != ir.F64 {
			tol = max(tol, 1e-4+4*v.Type.Info().Epsilon)
		}
	}
	return tol
}

func compare(t tester, what string, g *ir.Graph, want, have []*interp.Tensor) {
	t.Helper()
	require.Len(t, have, len(want))
	for k, w := range want {
		h := have[k]
		require.Equal(t, append([]int{}, w.Shape...), append([]int{}, h.Shape...))
		assert.Equal(t, w.I, h.I, "%s: %s", what, g.Outputs[k].Name)
		tol := tolerance(g)
		scale := 1.0
		for _, v := range w.F {
			if !math.IsInf(v, 0) && v == v {
				scale = max(scale, math.Abs(v))
			}
		}
		for i, a := range w.F {
			if b := h.F[i]; !(a == b || a != a && b != b || math.Abs(a-b) <= tol*scale) {
				assert.Failf(t, what, "%s: element %d: want %v, have %v", g.Outputs[k].Name, i, a, b)
				break
			}
		}
	}
}

// Random graphs through the planner.
func TestRandomPlans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := plantest.RandomGraph(t)
		n := rapid.SampledFrom([]int64{1, 2, 7, 40}).Draw(t, "n")
		m := rapid.SampledFrom([]int64{1, 3, 8, 33}).Draw(t, "m")
		checkBoth(t, g, waves(t, g, map[string]int64{"N": n, "M": m}))
	})
}

// The examples at sizes that leave rests everywhere, against samples.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(root + "/examples/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.Parse(name, src, parser.Options{})
		require.NoError(t, err)
		for _, g := range file.Graphs {
			t.Run(g.Name, func(t *testing.T) { checkSamples(t, g) })
		}
	}
}

// The programs of testdata at sizes about those of a tile, whole.
func TestPrograms(t *testing.T) {
	files, err := filepath.Glob(root + "/testdata/programs/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.Parse(name, src, parser.Options{})
		require.NoError(t, err)
		all := [][2]int64{{1, 1}, {3, 0}, {2, 33}, {5, 1025}, {70, 31}, {1, 2500}, {0, 7}}
		if testing.Short() {
			all = [][2]int64{{5, 33}, {3, 130}}
		}
		for n, sizes := range all {
			t.Run(fmt.Sprintf("%s/%v", filepath.Base(name), sizes), func(t *testing.T) {
				symbols := map[string]int64{}
				for i, s := range file.Graphs[0].Symbols {
					symbols[s.Name] = sizes[i%2]
				}
				in := waves(t, file.Graphs[0], symbols)
				if n%2 == 0 { // that plans are right at any size is tested in fuse
					checkBoth(t, file.Graphs[0], in)
				} else {
					check(t, file.Graphs[0], in)
				}
			})
		}
	}
}

func checkSamples(t *testing.T, g *ir.Graph) {
	symbols := map[string]int64{}
	for i, s := range g.Symbols {
		symbols[s.Name] = []int64{3, 70, 33, 130, 2, 17}[i%6]
	}
	for _, c := range g.Constraints {
		if v, ok := ir.EvalSize(c.Cond, symbols); !ok || v == 0 {
			for name := range symbols {
				symbols[name] = 64 // a size for programs that need divisible ones
			}
		}
	}
	in := waves(t, g, symbols)
	plan := planForCPU(t, g)
	for o, have := range execute(t, plan, symbols, in, 2) {
		var points []interp.Point
		var at []int
		for n := range 25 {
			flat := (n * 7919) % max(have.Len(), 1)
			at = append(at, flat)
			points = append(points, interp.Point{Output: o, Index: unflatten(flat, have.Shape)})
		}
		want, err := interp.Sample(g, in, points, interp.Options{})
		require.NoError(t, err)
		for n, w := range want {
			if have.I != nil {
				assert.Equal(t, w.I, have.I[at[n]], "%v", points[n])
			} else {
				assert.InDelta(t, w.F, have.F[at[n]], tolerance(g)*(1+math.Abs(w.F)), "%v", points[n])
			}
		}
	}
}

// waves makes inputs.
func waves(t require.TestingT, g *ir.Graph, symbols map[string]int64) []*interp.Tensor {
	var in []*interp.Tensor
	for k, v := range g.Inputs {
		shape := []int{}
		for _, e := range v.Shape() {
			n, ok := ir.EvalSize(e, symbols)
			require.True(t, ok)
			shape = append(shape, int(n))
		}
		x := interp.New(v.Type, shape...)
		for i := range x.F {
			x.F[i] = math.Sin(float64(i)*0.37+float64(k)) * 2
		}
		for i := range x.I {
			x.I[i] = int64(i*7+k) % 3
		}
		in = append(in, interp.FromBytes(v.Type, shape, x.Bytes()))
	}
	return in
}

// The examples at a quarter of their sizes on all cores, beside the interpreter
// at an eighth of that; elements are those of the outputs.
func BenchmarkExamples(b *testing.B) {
	files, err := filepath.Glob(root + "/examples/*.fuse")
	require.NoError(b, err)
	for _, name := range files {
		src, err := os.ReadFile(name)
		require.NoError(b, err)
		file, err := parser.Parse(name, src, parser.Options{})
		require.NoError(b, err)
		for _, g := range file.Graphs {
			b.Run(g.Name, func(b *testing.B) { benchEngine(b, g, 4) })
			b.Run(g.Name+"/interp", func(b *testing.B) { benchInterp(b, g, 32) })
		}
	}
}

func scaled(g *ir.Graph, by int64) map[string]int64 {
	symbols := map[string]int64{}
	for _, s := range g.Symbols {
		symbols[s.Name] = s.Default
		if s.Default > 256 {
			symbols[s.Name] = s.Default / by
		}
	}
	return symbols
}

func benchEngine(b *testing.B, g *ir.Graph, by int64) {
	symbols := scaled(g, by)
	plan, err := fuse.Plan(g, fuse.Options{})
	require.NoError(b, err)
	var buffers [][]byte
	elements := 0
	for _, x := range waves(b, plan.Graph, symbols) {
		buffers = append(buffers, x.Bytes())
	}
	for _, buf := range plan.Buffers {
		if buf.Kind != ir.OutputBuffer {
			continue
		}
		size := 1
		for _, e := range buf.Shape {
			n, _ := ir.EvalSize(e, symbols)
			size *= int(n)
		}
		elements += size
		buffers = append(buffers, make([]byte, size*buf.Type.Size()))
	}
	p := cpu.New(plan, cpu.Options{})
	for b.Loop() {
		require.NoError(b, p.Run(context.Background(), symbols, buffers))
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(elements), "ns/elem")
}

func benchInterp(b *testing.B, g *ir.Graph, by int64) {
	symbols := scaled(g, by)
	in := waves(b, g, symbols)
	if interp.Cost(g, symbols) > 3e7 {
		b.Skip("takes seconds")
	}
	elements := 0
	for b.Loop() {
		out, err := interp.Run(g, in, interp.Options{})
		require.NoError(b, err)
		elements = 0
		for _, o := range out {
			elements += o.Len()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(elements), "ns/elem")
}

func unflatten(n int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d], n = n%shape[d], n/shape[d]
	}
	return out
}
