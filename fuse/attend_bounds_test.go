package fuse

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// TestBoundedMasks are programs with the kernels they take: one that bounds what a mask
// reads serves all that read it alike; none where there is little to skip.
func TestBoundedMasks(t *testing.T) {
	const attend = `
		t_%[1]d = where(d[:, none, :, none] == d[:, none, none, :], f32(%[2]s) * 0.5, -inf)
		y_%[1]d = bf16(softmax(t_%[1]d)) @ v`
	const inputs = "q: bf16[B, H, S, 8], k: bf16[B, H, S, 8], v: bf16[B, H, S, 8], d: i32[B, S]"
	one, two := fmt.Sprintf(attend, 1, "q @ transpose(k, -1, -2)"), fmt.Sprintf(attend, 2, "k @ transpose(q, -1, -2)")
	for _, c := range []struct {
		name, src string
		kernels   []ir.Template
	}{
		{"one", "@bench(B=1, H=8, S=4096) graph g(" + inputs + ") -> (y_1: bf16[B, H, S, 8]) {" + one + "}",
			[]ir.Template{ir.LoopTemplate, ir.AttendTemplate}},
		{"two", "@bench(B=1, H=8, S=4096) graph g(" + inputs + ") -> (y_1: bf16[B, H, S, 8], y_2: bf16[B, H, S, 8]) {" + one + two + "}",
			[]ir.Template{ir.LoopTemplate, ir.AttendTemplate, ir.AttendTemplate}},
		{"short", "@bench(B=8, H=64, S=256) graph g(" + inputs + ") -> (y_1: bf16[B, H, S, 8]) {" + one + "}",
			[]ir.Template{ir.AttendTemplate}},
		{"few", "@bench(B=1, H=1, S=2048) graph g(" + inputs + ") -> (y_1: bf16[B, H, S, 8]) {" + one + "}",
			[]ir.Template{ir.AttendTemplate}},
		{"one kernel", "@onekernel @bench(B=1, H=1, S=4096) graph g(" + inputs + ") -> (y_1: bf16[B, H, S, 8]) {" + one + "}",
			[]ir.Template{ir.AttendTemplate}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			var got []ir.Template
			for _, k := range p.Kernels {
				got = append(got, k.Template)
			}
			assert.Equal(t, c.kernels, got)
			last := p.Kernels[len(p.Kernels)-1]
			for _, a := range last.Args {
				if a.Buffer.Kind == ir.TempBuffer {
					assert.Equal(t, algebra.Bytes(a.Buffer.Value), explain.Touched(a.Buffer.Value, last.Members), a.Name)
				}
			}
		})
	}
}

// dataMasks are masks of m[i, j] over data of the queries (x, i32), of the keys (y, i32;
// p, bool), and of all (n, i64).
var dataMasks = []string{
	"x[:, none] == y", "x[:, none] == y && iota(S) <= iota(L)[:, none]", "x[:, none] != y", "!(x[:, none] != y) || iota(S) < 16",
	"x[:, none] + 1 >= y && y * -3 < 40 - x[:, none]", "iota(S) >= x[:, none] - 3", "x[:, none] + 1 == y + 1", "y / 3 == x[:, none] / 3",
	"p", "p && x[:, none] == y", "!p || iota(S) == iota(L)[:, none]", "min(x[:, none], y) >= 2 || max(x[:, none], y) < 0",
	"iota(S) < n", "i64(x)[:, none] < n && iota(S) < n + 7", "x[:, none] == y && y % 3 == 1", "(x[:, none] == y) != p",
	"i8(x[:, none] - y) < 5", "u8(x)[:, none] + u8(y) <= 9", "x[:, none] - y < 7 && -(y + x[:, none]) < 7", "x[:, none] > y", "x[:, none] >= y", "x[:, none] - y > -5 && y - x[:, none] >= -6",
}

// TestDataMasks evaluates what is said of tiles where masks follow data, and compares it
// with the mask point by point: for ids in order, as of packed sequences, for others, and
// for numbers that arithmetic wraps.
func TestDataMasks(t *testing.T) {
	const l, s = 300, 280
	draws := map[string]func(i, n int, r *rand.Rand) int64{
		"in order": func(i, n int, r *rand.Rand) int64 { return int64(i * 7 / n) },
		"any":      func(i, n int, r *rand.Rand) int64 { return r.Int64N(40) - 5 },
		"one":      func(i, n int, r *rand.Rand) int64 { return 3 },
		"extremes": func(i, n int, r *rand.Rand) int64 {
			return []int64{math.MinInt32, math.MaxInt32}[i*5/n%2] - int64(i*5/n%2)
		},
		"positions": func(i, n int, r *rand.Rand) int64 { return int64(i / 50 * 50) },
	}
	for _, mask := range dataMasks {
		plan := planOf(t, fmt.Sprintf(`graph g(q: bf16[L, 8], k: bf16[S, 8], v: bf16[S, 8], %s) -> (o: bf16[L, 8]) {
			o = bf16(softmax(where(%s, f32(q @ transpose(k, -1, -2)), -inf))) @ v }`, dataInputs, mask))
		g := parse(t, fmt.Sprintf("graph m(%s) -> (m: bool[L, S]) { m = broadcast(%s, L, S) }", dataInputs, mask))
		for name, draw := range draws {
			t.Run(mask+", "+name, func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 2))
				x, y := interp.New(ir.I32, l), interp.New(ir.I32, s)
				p, n := interp.New(ir.Bool, s), interp.New(ir.I64)
				for i := range x.I {
					x.I[i] = draw(i, l, r)
				}
				for j := range y.I {
					y.I[j], p.I[j] = draw(j, s, r), int64(j/90%2)
				}
				n.I[0] = 170
				data := []*interp.Tensor{x, y, p, n}
				out, err := interp.Run(g, data, interp.Options{})
				require.NoError(t, err)
				tiles := newMaskTiles(t, plan, data, out[0])
				assert.Equal(t, mask == "(x[:, none] == y) != p", tiles.variant.Attend.Skip.Any == nil)
				skipped, empty := tiles.check(t)
				if name == "in order" && mask == dataMasks[1] {
					assert.Positive(t, skipped)
					assert.Equal(t, empty, skipped)
				}
			})
		}
	}
}

// dataInputs is what the masks are over.
const dataInputs = "x: i32[L], y: i32[S], p: bool[S], n: i64[]"

// maskTiles is a plan of attention with a mask, and the mask at given data.
type maskTiles struct {
	*expressions
	l, s    int
	kept    []int64 // l x s
	variant *ir.Variant
	col     *ir.Range
}

func newMaskTiles(t *testing.T, plan *ir.Plan, data []*interp.Tensor, mask *interp.Tensor) *maskTiles {
	last := plan.Kernels[len(plan.Kernels)-1]
	require.Equal(t, ir.AttendTemplate, last.Template)
	l, s := mask.Shape[0], mask.Shape[1]
	all := []*interp.Tensor{interp.New(ir.BF16, l, 8), interp.New(ir.BF16, s, 8), interp.New(ir.BF16, s, 8)}
	return &maskTiles{l: l, s: s, kept: mask.I, variant: last.Variants[0], col: last.Cols[0],
		expressions: &expressions{graph: plan.Graph, inputs: append(all, data...), sizes: map[string]int64{"L": int64(l), "S": int64(s)},
			tensors: map[*ir.Value][]int64{}, ranges: map[*ir.Range]int64{}}}
}

// check compares tiles with the mask, and returns how many are skipped and how many could be.
func (m *maskTiles) check(t *testing.T) (skipped, empty int) {
	skip, s := m.variant.Attend.Skip, m.variant.Schedule
	for q := 0; q < m.l; q += s.TileM {
		for k := 0; k < m.s; k += s.TileN {
			m.sizes[skip.Query], m.sizes[skip.Key] = int64(q), int64(k)
			any := skip.Any == nil || m.eval(t, skip.Any) != 0
			all := skip.All != nil && m.eval(t, skip.All) != 0
			settled := skip.Settled != nil && m.eval(t, skip.Settled) != 0
			kept, points := 0, 0
			for i := q; i < min(m.l, q+s.TileM); i++ {
				for j := k; j < min(m.s, k+s.TileN); j++ {
					want := m.kept[i*m.s+j]
					kept, points = kept+int(want), points+1
					if (i+7*j)%31 != 0 {
						continue
					}
					m.ranges[m.variant.Attend.M[0]], m.ranges[m.col] = int64(i), int64(j)
					if skip.Table && skip.Kept != nil && m.eval(t, skip.Kept) == 0 {
						require.Zero(t, want, "query %d, key %d", i, j)
					}
					if settled {
						require.Equal(t, m.eval(t, skip.Kept), m.eval(t, skip.Placed), "query %d, key %d", i, j)
					}
				}
			}
			if !any {
				skipped++
				assert.Zero(t, kept, "tile %d, %d", q, k)
			}
			if kept == 0 {
				empty++
			}
			if all && decidesAll(skip, m.variant.Attend.Score) {
				assert.Equal(t, points, kept, "tile %d, %d", q, k)
			}
		}
	}
	return skipped, empty
}

// decidesAll reports whether nothing of the mask is left in a tile's logits.
func decidesAll(skip ir.TileMask, score *ir.Local) bool {
	return skip.Clear.Op == ir.OpLocal && skip.Clear.Local == score
}

// expressions evaluates lowered integers.
type expressions struct {
	graph   *ir.Graph
	inputs  []*interp.Tensor
	sizes   map[string]int64
	tensors map[*ir.Value][]int64
	ranges  map[*ir.Range]int64
}

// read returns what a value of the graph holds.
func (x *expressions) read(t *testing.T, v *ir.Value) []int64 {
	if i := slices.Index(x.graph.Inputs, v); i >= 0 {
		return x.inputs[i].I
	}
	if x.tensors[v] == nil {
		g := *x.graph
		g.Outputs, g.Values = []ir.Output{{Name: "of", Value: v}}, slices.Clone(g.Values)
		passes.DropDead(&g)
		out, err := interp.Run(&g, x.inputs, interp.Options{})
		require.NoError(t, err)
		x.tensors[v] = out[0].I
	}
	return x.tensors[v]
}

func (x *expressions) eval(t *testing.T, e *ir.Expr) int64 {
	truth := func(b bool) int64 {
		if b {
			return 1
		}
		return 0
	}
	switch e.Op {
	case ir.OpConst:
		return e.Int
	case ir.OpSym:
		return x.sizes[e.Name]
	case ir.OpRange:
		return x.ranges[e.Range]
	case ir.OpLocal:
		return x.eval(t, e.Local.Def)
	case ir.OpRead:
		if e.Guard != nil && x.eval(t, e.Guard) == 0 {
			return e.Fill.Int
		}
		return x.read(t, e.Arg.Buffer.Value)[x.eval(t, e.Args[0])]
	}
	var a, b int64
	a = x.eval(t, e.Args[0])
	if len(e.Args) > 1 {
		b = x.eval(t, e.Args[1])
	}
	switch e.Op {
	case ir.OpCast:
		return wrapped(a, e.Type)
	case ir.OpAdd:
		return wrapped(a+b, e.Type)
	case ir.OpSub:
		return wrapped(a-b, e.Type)
	case ir.OpMul:
		return wrapped(a*b, e.Type)
	case ir.OpNeg:
		return wrapped(-a, e.Type)
	case ir.OpFloorDiv:
		return ir.FloorDiv(a, b)
	case ir.OpMod:
		return a - b*ir.FloorDiv(a, b)
	case ir.OpMin:
		return min(a, b)
	case ir.OpMax:
		return max(a, b)
	case ir.OpLt:
		return truth(a < b)
	case ir.OpLe:
		return truth(a <= b)
	case ir.OpGt:
		return truth(a > b)
	case ir.OpGe:
		return truth(a >= b)
	case ir.OpEq:
		return truth(a == b)
	case ir.OpNe:
		return truth(a != b)
	case ir.OpAnd:
		return a & b
	case ir.OpOr:
		return a | b
	case ir.OpNot:
		return 1 - a
	}
	require.Fail(t, "no evaluation", "%s", e)
	return 0
}

// wrapped is what an integer type holds of a number.
func wrapped(n int64, t ir.DType) int64 {
	switch t {
	case ir.Bool:
		return min(n&math.MaxInt64|n>>63&1, 1)
	case ir.U8:
		return int64(uint8(n))
	case ir.I8:
		return int64(int8(n))
	case ir.I32:
		return int64(int32(n))
	case ir.U32:
		return int64(uint32(n))
	}
	return n
}
