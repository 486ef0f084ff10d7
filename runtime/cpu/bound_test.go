package cpu

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp/plantest"
)

func sizeKey(n int) []byte { return binary.AppendVarint(nil, int64(n)) }

// A number of sizes a little above what fits costs little: most are still found.
func TestSizesThatDoNotFitAreForgottenByAndBy(t *testing.T) {
	for _, kernels := range []int{1, 4, 100, maxKernels, 2 * maxKernels} {
		fit := max(minBounds, maxKernels/kernels)
		for _, sizes := range []int{fit, fit + 1, fit + fit/10 + 1} {
			c, found, asked := boundCache{}, 0, 0
			rounds := max(6, 2000/sizes) // chance has less to say about many
			for round := range rounds {
				for n := range sizes {
					e := c.get(sizeKey(n), kernels)
					if e.bound != nil && round > 0 {
						found++
					}
					if round > 0 {
						asked++
					}
					e.bound = &bound{}
					require.LessOrEqual(t, len(c.list), fit)
				}
			}
			if sizes == fit {
				assert.Equal(t, asked, found, "%d kernels: all fit", kernels)
			}
			assert.Greater(t, float64(found), 0.6*float64(asked), "%d kernels, %d sizes in turns", kernels, sizes)
			require.Len(t, c.at, len(c.list))
			assert.Equal(t, len(c.list)*kernels, c.kernels)
			for at, e := range c.list {
				require.Equal(t, at, c.at[e.key])
			}
		}
	}
}

// Sizes that are used often stay where many are used once.
func TestSizesInUseStay(t *testing.T) {
	c, missed := boundCache{}, 0
	for n := range 20 * maxKernels {
		e := c.get(sizeKey(-1-n%8), 1)
		if e.bound == nil {
			missed++
		}
		e.bound = &bound{}
		c.get(sizeKey(n), 1)
	}
	assert.Less(t, missed, 8*20)
}

// TestManyShapesSideBySide runs many shapes from many goroutines: each compiled once.
func TestManyShapesSideBySide(t *testing.T) {
	p := New(softmaxPlan(), Options{Threads: 2})
	const shapes = 100
	var first [shapes]*bound
	for n := range shapes {
		b, err := p.bind(map[string]int64{"N": 2, "M": int64(n + 1)})
		require.NoError(t, err)
		first[n] = b
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 200 {
				n := rand.IntN(shapes)
				symbols := map[string]int64{"N": 2, "M": int64(n + 1)}
				b, err := p.bind(symbols)
				assert.NoError(t, err)
				assert.Same(t, first[n], b)
				x, y := make([]byte, 8*(n+1)), make([]byte, 8*(n+1))
				assert.NoError(t, p.Run(context.Background(), symbols, [][]byte{x, y}))
				for at := 0; at < len(y); at += 4 {
					if got := math.Float32frombits(binary.LittleEndian.Uint32(y[at:])); math.Abs(float64(got)*float64(n+1)-1) > 1e-5 {
						t.Errorf("row of %d: found %v", n+1, got)
						return
					}
				}
			}
		})
	}
	group.Wait()
}

// vast is a plan whose value between two kernels is larger than any memory, where its
// input and its output are small.
func vast() *ir.Plan {
	g := ir.NewGraph("vast")
	g.Symbols = []ir.Symbol{{Name: "N"}}
	n := ir.Sym("N")
	x := g.Input("x", ir.F32, []*ir.Expr{n}, diag.Span{})
	axes := g.NewAxes([]*ir.Expr{n, n})
	sum := ir.Apply(ir.OpAdd, ir.Load(x, []*ir.Expr{axes[0].At()}, nil), ir.Load(x, []*ir.Expr{axes[1].At()}, nil))
	table := g.Define("table", axes, sum, ir.Origin{})
	axes, r := g.NewAxes([]*ir.Expr{n}), g.NewRange("j", n)
	g.Output("y", g.Define("y", axes, ir.Reduce(&ir.Reduction{Op: ir.Max, Ranges: []*ir.Range{r}},
		ir.Load(table, []*ir.Expr{axes[0].At(), r.At()}, nil)), ir.Origin{}), diag.Span{})
	return plantest.Unfused(g)
}

func TestTemporariesLargerThanMemoryAreRefused(t *testing.T) {
	p := New(vast(), Options{})
	call := func(n int64) error {
		memory := make([]byte, 4*n)
		return p.Run(context.Background(), map[string]int64{"N": n}, [][]byte{memory, make([]byte, 4*n)})
	}
	require.NoError(t, call(64))
	err := call(1 << 23) // table has 2^46 elements
	var refused *ir.MemoryError
	require.ErrorAs(t, err, &refused)
	assert.GreaterOrEqual(t, refused.Bytes, int64(1)<<48)
	assert.ErrorContains(t, err, "the memory between kernels, most of it for tensor table (281474976710656 bytes), takes 256.0 TiB")
	require.NoError(t, call(64), "nothing else has changed")
}

// TestRefusalsNameTheLargestTensor between the kernels; of several the first. Inputs and results are not between them.
func TestRefusalsNameTheLargestTensor(t *testing.T) {
	const much = 1 << 50
	for _, sizes := range [][]int64{{much}, {much, much}, {1, much, much}, {much, 2 * much, 1, 2 * much}, {2 * much, much}} {
		p := &Program{plan: &ir.Plan{}}
		b := &bound{}
		add := func(name string, bytes, at int64) {
			p.plan.Buffers = append(p.plan.Buffers, &ir.Buffer{Name: name})
			b.bytes, b.at = append(b.bytes, bytes), append(b.at, at)
		}
		add("x", 100*much, -1)
		largest, total := 0, int64(0)
		for i, bytes := range sizes {
			add(fmt.Sprint("t", i), bytes, total)
			total += bytes
			if bytes > sizes[largest] {
				largest = i
			}
		}
		add("y", 100*much, -1)
		assert.ErrorContains(t, p.admit(b, total), fmt.Sprintf("most of it for tensor t%d (%d bytes)", largest, sizes[largest]), sizes)
	}
}

func TestSizesAreNotMultipliedPast64Bits(t *testing.T) {
	p := New(vast(), Options{})
	for _, n := range []int64{1 << 27, 1 << 31, 1 << 32, math.MaxInt64} {
		_, err := p.bind(map[string]int64{"N": n})
		require.Error(t, err, "%d", n)
	}
	assert.Equal(t, int64(math.MaxInt64), plus(math.MaxInt64, 1))
	assert.Equal(t, int64(math.MaxInt64), times(1<<32, 1<<32))
	assert.Equal(t, int64(0), times(1<<32, 1<<32, 0))
	assert.Equal(t, int64(6), times(1, 2, 3))
}

// softmaxPlan is the plan of softmax over rows, as several kernels.
func softmaxPlan() *ir.Plan {
	g := ir.NewGraph("softmax")
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	n, m := ir.Sym("N"), ir.Sym("M")
	x := g.Input("x", ir.F32, []*ir.Expr{n, m}, diag.Span{})
	fold := func(name string, op ir.Monoid, of func(i, j *ir.Expr) *ir.Expr) *ir.Value {
		axes, r := g.NewAxes([]*ir.Expr{n}), g.NewRange("j", m)
		return g.Define(name, axes, ir.Reduce(&ir.Reduction{Op: op, Ranges: []*ir.Range{r}}, of(axes[0].At(), r.At())), ir.Origin{})
	}
	at := func(v *ir.Value, i ...*ir.Expr) *ir.Expr { return ir.Load(v, i, nil) }
	most := fold("m", ir.Max, func(i, j *ir.Expr) *ir.Expr { return at(x, i, j) })
	axes := g.NewAxes([]*ir.Expr{n, m})
	i, j := axes[0].At(), axes[1].At()
	e := g.Define("e", axes, ir.Apply(ir.OpExp, ir.Apply(ir.OpSub, at(x, i, j), at(most, i))), ir.Origin{})
	total := fold("s", ir.Sum, func(i, j *ir.Expr) *ir.Expr { return at(e, i, j) })
	axes = g.NewAxes([]*ir.Expr{n, m})
	i, j = axes[0].At(), axes[1].At()
	g.Output("y", g.Define("y", axes, ir.Apply(ir.OpDiv, at(e, i, j), at(total, i)), ir.Origin{}), diag.Span{})
	return plantest.Unfused(g)
}
