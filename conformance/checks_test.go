package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// A checkCase is a strict graph, inputs for it, and what is wrong with them: index at
// places of axis of tensor, which has extent elements; nothing where tensor is "".
type checkCase struct {
	name, graph string
	inputs      map[string]any // slices
	shapes      map[string][]int
	tensor      string
	axis        int
	index       int64
	at          []int64
	extent      int64
}

// Tables that the cases read.
var (
	six     = []float32{0, 1, 2, 3, 4, 5}
	sixRows = map[string][]int{"x": {6, 1}}
)

var checkCases = []checkCase{
	{name: "rows of a table", graph: `(x: f32[V, D], at: i32[N]) -> (y: f32[N, D]) { y = x[at] }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 5, 7, -3, 9}}, shapes: sixRows,
		tensor: "x", index: 7, at: []int64{2}, extent: 6},
	{name: "all inside", graph: `(x: f32[V, D], at: i32[N]) -> (y: f32[N, D]) { y = x[at] }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 5, 1, 3}}, shapes: sixRows},
	{name: "below", graph: `(x: f32[V], at: i64[N]) -> (y: f32[N]) { y = x[at] * 2 }`,
		inputs: map[string]any{"x": six, "at": []int64{0, -1}}, tensor: "x", index: -1, at: []int64{1}, extent: 6},
	{name: "no 32 bits", graph: `(x: f32[V], at: i64[N]) -> (y: f32[N]) { y[i] = x[at[i] + 1] }`,
		inputs: map[string]any{"x": six, "at": []int64{0, 1<<32 + 1}}, tensor: "x", index: 1<<32 + 2, at: []int64{1}, extent: 6},
	{name: "a matrix of indices", graph: `(x: f32[V], at: i32[N, M]) -> (y: f32[M, N]) { y[i, j] = x[at[j, i]] }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 1, 2, 8, 4, 6}}, shapes: map[string][]int{"at": {3, 2}},
		tensor: "x", index: 8, at: []int64{1, 1}, extent: 6}, // in the order of y, not of at
	{name: "a scalar", graph: `(x: f32[V], at: i32[]) -> (y: f32[]) { y = x[at] }`,
		inputs: map[string]any{"x": six, "at": []int32{6}}, shapes: map[string][]int{"at": {}},
		tensor: "x", index: 6, at: []int64{}, extent: 6},
	{name: "another axis", graph: `(x: f32[N, V], at: i32[N]) -> (y: f32[N]) { y[n] = x[n, at[n]] }`,
		inputs: map[string]any{"x": six, "at": []int32{2, 3}}, shapes: map[string][]int{"x": {2, 3}},
		tensor: "x", axis: 1, index: 3, at: []int64{1}, extent: 3},
	{name: "an index of an index", graph: `(x: f32[V], a: i32[M], b: i32[N]) -> (y: f32[N]) { y[n] = x[a[b[n]]] }`,
		inputs: map[string]any{"x": six, "a": []int32{0, 9}, "b": []int32{0, 0, 1}}, tensor: "x", index: 9, at: []int64{2}, extent: 6},
	{name: "an index outside an index", graph: `(x: f32[V], a: i32[M], b: i32[N]) -> (y: f32[N]) { y[n] = x[a[b[n]]] }`,
		inputs: map[string]any{"x": six, "a": []int32{0, 1}, "b": []int32{0, 2, 1}}, tensor: "a", index: 2, at: []int64{1}, extent: 2},
	{name: "with else", graph: `(x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[at] else 0 }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 6}}},
	{name: "affine", graph: `(x: f32[V]) -> (y: f32[V]) { y[i] = x[i - 1] + x[i + 1] }`, inputs: map[string]any{"x": six}},
	{name: "fast", graph: `@fast (x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[at] }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 6}}},
	{name: "a side not taken", graph: `(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[N]) { y = where(m, x[at], 7) }`,
		inputs: map[string]any{"x": six, "at": []int32{-1, 3, 8}, "m": []bool{false, true, false}}},
	{name: "the side taken", graph: `(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[N]) { y = where(m, 7, x[at]) }`,
		inputs: map[string]any{"x": six, "at": []int32{-1, 3, 8}, "m": []bool{true, true, false}},
		tensor: "x", index: 8, at: []int64{2}, extent: 6},
	{name: "a name before where", graph: `(x: f32[V, D], at: i32[N], m: bool[N, D]) -> (y: f32[N, D]) {
    t = exp(x[at])
    y = where(m, t, 0)
}`, inputs: map[string]any{"x": six, "at": []int32{-1, 2, 8}, "m": []bool{false, false, true, true, false, false}},
		shapes: map[string][]int{"x": {3, 2}, "m": {3, 2}}},
	{name: "a name read twice", graph: `(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[N], z: f32[N]) {
    t = exp(x[at])
    y = where(m, t, 0)
    z = where(m, 0, t[::-1])
}`, inputs: map[string]any{"x": six, "at": []int32{9, 3, 8}, "m": []bool{false, true, true}},
		tensor: "x", index: 8, at: []int64{2}, extent: 6}, // z[0] is t[2]; nothing reads t[0]
	{name: "a name read once more", graph: `(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[N], z: f32[]) {
    t = exp(x[at])
    y = where(m, t, 0)
    z = sum(t)
}`, inputs: map[string]any{"x": six, "at": []int32{9, 3, 8}, "m": []bool{false, true, true}},
		tensor: "x", index: 9, at: []int64{0}, extent: 6},
	{name: "and", graph: `(x: f32[V], at: i32[N]) -> (y: bool[N]) { y[n] = at[n] >= 0 && at[n] < V && x[at[n]] > 2 }`,
		inputs: map[string]any{"x": six, "at": []int32{9, 3, -8}}},
	{name: "or", graph: `(x: f32[V], at: i32[N]) -> (y: bool[N]) { y[n] = at[n] < 0 || x[at[n]] > 2 }`,
		inputs: map[string]any{"x": six, "at": []int32{-9, 3, 8}}, tensor: "x", index: 8, at: []int64{2}, extent: 6},
	{name: "a predicate", graph: `(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[]) { y = sum[n: N where m[n]] x[at[n]] }`,
		inputs: map[string]any{"x": six, "at": []int32{-9, 3, 8}, "m": []bool{false, true, false}}},
	{name: "a running sum", graph: `(x: f32[V], at: i32[N]) -> (y: f32[N]) { y = cumsum(x[at]) }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 3, 8}}, tensor: "x", index: 8, at: []int64{2}, extent: 6},
	{name: "a segment's sum", graph: `(x: f32[V], at: i32[N], s: i32[N]) -> (y: f32[V]) { y[v] = sum[n: N where s[n] == v] x[at[n]] }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 3, 8}, "s": []int32{0, 9, 1}}, tensor: "x", index: 8, at: []int64{2}, extent: 6},
	{name: "a segment outside", graph: `(x: f32[V], s: i32[N]) -> (y: f32[V]) { y[v] = sum[n: N where s[n] == v] x[n] }`,
		inputs: map[string]any{"x": six, "s": []int32{0, 9, -1}}},
	{name: "a slice of it", graph: `(x: f32[V], at: i32[4]) -> (y: f32[3]) { t = exp(x[at]); y = t[1:] }`,
		inputs: map[string]any{"x": six, "at": []int32{9, 3, 2, 1}}},
	{name: "an ignored class", graph: `(x: f32[N, V], t: i64[N]) -> (y: f32[]) { y = cross_entropy(x, t) }`,
		inputs: map[string]any{"x": six, "t": []int64{-100, 2}}, shapes: map[string][]int{"x": {2, 3}}},
	{name: "an unknown class", graph: `(x: f32[N, V], t: i64[N], w: f32[V]) -> (y: f32[]) { y = cross_entropy(x, t, weight=w) }`,
		inputs: map[string]any{"x": six, "t": []int64{-100, 3}, "w": []float32{1, 1, 1}}, shapes: map[string][]int{"x": {2, 3}},
		tensor: "x", axis: 1, index: 3, at: []int64{1}, extent: 3},
	{name: "a computed index", graph: `(x: f32[V], a: f32[N, V]) -> (y: f32[N]) { y = x[argmax(a, axis=1) * 2] }`,
		inputs: map[string]any{"x": []float32{1, 2, 3}, "a": []float32{9, 1, 2, 0, 3, 4}}, shapes: map[string][]int{"a": {2, 3}},
		tensor: "x", index: 4, at: []int64{1}, extent: 3},
	{name: "clamped", graph: `(x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[max(min(at, i32(5)), 0)] }`,
		inputs: map[string]any{"x": six, "at": []int32{-9, 3, 8}}},
	{name: "no indices", graph: `(x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[at] }`,
		inputs: map[string]any{"x": six, "at": []int32{}}},
	{name: "nothing to read", graph: `(x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[at] }`,
		inputs: map[string]any{"x": []float32{}, "at": []int32{0}}, tensor: "x", index: 0, at: []int64{0}, extent: 0},
	{name: "one kernel", graph: `@onekernel (x: f32[V], at: i32[N]) -> (y: f32[N]) { y = x[at] + 1 }`,
		inputs: map[string]any{"x": six, "at": []int32{0, 6}}, tensor: "x", index: 6, at: []int64{1}, extent: 6},
}

func (c checkCase) source() string {
	const mark = "@onekernel "
	switch {
	case len(c.graph) > len(mark) && c.graph[:len(mark)] == mark:
		return "@strict @onekernel graph g" + c.graph[len(mark):]
	case c.graph[0] == '@':
		return "@fast graph g" + c.graph[len("@fast "):]
	}
	return "@strict graph g" + c.graph
}

// arguments are the inputs as tensors.
func (c checkCase) arguments(t require.TestingT) runtime.Args {
	out := runtime.Args{}
	for name, values := range c.inputs {
		var x *tensor.Tensor
		var err error
		shape, given := c.shapes[name]
		switch v := values.(type) {
		case []float32:
			x, err = tensor.FromSlice(v, orLength(shape, given, len(v))...)
		case []int32:
			x, err = tensor.FromSlice(v, orLength(shape, given, len(v))...)
		case []int64:
			x, err = tensor.FromSlice(v, orLength(shape, given, len(v))...)
		case []bool:
			x, err = tensor.FromSlice(v, orLength(shape, given, len(v))...)
		}
		require.NoError(t, err)
		out[name] = x
	}
	return out
}

func orLength(shape []int, given bool, n int) []int {
	if given {
		return shape
	}
	return []int{n}
}

// requireFound compares what a run reported with what is wrong.
func (c checkCase) requireFound(t require.TestingT, err error, engine string) {
	if c.tensor == "" {
		require.NoError(t, err, engine)
		return
	}
	var found *ir.IndexError
	require.ErrorAs(t, err, &found, engine)
	assert.Equal(t, "g", found.Graph, engine)
	assert.Equal(t, c.tensor, found.Tensor, engine)
	assert.Equal(t, []int64{int64(c.axis), c.index, c.extent}, []int64{int64(found.Axis), found.Index, found.Extent}, engine)
	assert.Equal(t, c.at, found.At, engine)
	assert.Len(t, found.Names, len(c.at), engine)
	assert.Contains(t, found.Where, "c.fuse:", engine)
}

// interpret runs the graph, and its plan, through the interpreter.
func (c checkCase) interpret(t require.TestingT, p *fusec.Program) {
	var inputs []*interp.Tensor
	args := c.arguments(t)
	for _, v := range p.Graph().Inputs {
		x := args[v.Name].(*tensor.Tensor)
		inputs = append(inputs, interp.FromBytes(v.Type, x.Shape, x.Data))
	}
	_, err := interp.Run(p.Graph(), inputs, interp.Options{})
	c.requireFound(t, err, "interpreter")
	_, err = interp.RunPlan(p.Plan(), inputs, interp.PlanOptions{})
	c.requireFound(t, err, "plan")
}

// TestIndicesOutside: every engine says the same of an index outside, and what is not
// needed is no mistake.
func TestIndicesOutside(t *testing.T) {
	t.Parallel()
	findOutside(t, openCPU(t), "CPU engine", all)
}

// TestIndicesOutsideSimulated runs the checks' kernels: on one of the two devices, which the program draws, unless
// FUSEC_TEST_FULL is set.
func TestIndicesOutsideSimulated(t *testing.T) {
	t.Parallel()
	for i, arch := range []string{"sm_90a", "sm_80"} {
		t.Run(arch, func(t *testing.T) {
			dev := openSimulated(t, simtest.Config{Arch: arch})
			findOutside(t, dev, arch, func(_ int, src string) bool { return inFull() || hashDraws(src, 2) == (i == 0) })
		})
	}
}

// findOutside compares what a device says of indices outside with the interpreter: the
// first run, the run of what is there then, and one more, which may be of a graph. It does so of the programs to take.
func findOutside(t *testing.T, dev *Engine, engine string, takes func(i int, src string) bool) {
	for i, c := range checkCases {
		if !takes(i, c.source()) {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			p, err := fusec.Compile("c.fuse", c.source(), fusec.Options{Arch: dev.Arch()})
			require.NoError(t, err)
			c.interpret(t, p)
			f, err := p.Load(context.Background(), dev.Device)
			require.NoError(t, err)
			for range 3 {
				_, err = f.Call(context.Background(), c.arguments(t))
				c.requireFound(t, err, engine)
			}
		})
	}
}

// TestIndicesOutsideOnGPU: a GPU says what the interpreter says, from launches and from
// graphs, and the run after is as good as any.
func TestIndicesOutsideOnGPU(t *testing.T) {
	mustEnd(t)
	findOutside(t, openGPU(t, runtime.Options{}), "GPU", all)
}

// checkedGraphs have checks of all sizes: of one block, of many, under conditions.
var checkedGraphs = []string{
	`@strict graph g(x: bf16[V, D], at: i64[N]) -> (y: bf16[N, D]) { y = x[at] }`,
	`@strict @bench(N=16777216, V=65536) graph g(x: f32[V], at: i32[N], m: bool[N]) -> (y: f32[N]) { y = where(m, x[at], 0) }`,
	`@strict @bench(N=4096, M=4096) graph g(x: f32[V], at: i64[N, M]) -> (y: f32[M, N], s: f32[N]) {
    y[i, j] = x[at[j, i] + j] * 2
    s = sum(x[abs(at) % 7], axis=1)
}`,
	`@strict @bench(N=8192, V=32000) graph g(x: f32[N, V], t: i64[N], w: f32[V]) -> (y: f32[]) { y = cross_entropy(x, t, weight=w) }`,
	`@strict graph g(x: f32[V], a: i64[M], b: i32[N], q: f32[N, V]) -> (y: f32[N], z: f32[N]) {
    y = x[a[b]]
    z = x[argmax(q, axis=1) + b]
}`,
}

// checkFamilies are the kernels of checks, and those beside them.
func checkFamilies() []family {
	compile := onAll(true, "sm_90a", "sm_80")
	for i := range compile {
		compile[i].short = true
	}
	return []family{{name: "checks", rows: numbered(checkedGraphs), compile: compile}}
}
