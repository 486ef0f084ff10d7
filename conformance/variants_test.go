package conformance

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// forcedExtents are the extents at which variants are tried, by the number of symbols of a
// program: rests of everything first, then whole vectors in parts of tiles, then what only
// few variants ask for. The last is for any number.
var forcedExtents = [][]int64{
	1: {67, 1032, 1, 8, 264, 2055, 4104, 8200, 16392, 32776, 65544},
	2: {33, 72, 130, 3, 1032, 8, 1, 520, 4104, 8200, 16392, 32776},
	3: {33, 72, 136, 17, 264, 1, 8, 1032, 2056, 4104, 8208},
	4: {33, 8, 72, 17, 1, 264, 1032},
}

// A force is how much is run: all programs, or one in so many, which their texts draw; the points of a program
// that a variant is tried at, and the threads of its launch, at most; each variant at one
// place only, or at two.
type force struct {
	oneIn         uint32
	work, threads int64
	once          bool
}

// forceOf is what plain tests run, what short ones do, more where FUSEC_TEST_FULL is set, as in .ci/run, and everything where
// it is "units".
func forceOf() force {
	switch {
	case inUnits():
		return force{oneIn: 1, work: 1 << 19, threads: 1 << 17}
	case inFull():
		return force{oneIn: 60, work: 1 << 17, threads: 1 << 17, once: true}
	case testing.Short():
		return force{oneIn: 80, work: 1 << 16, threads: 1 << 15, once: true}
	}
	return force{oneIn: 150, work: 1 << 17, threads: 1 << 17, once: true}
}

// A forcing runs every variant of every launch of a program at sizes that its guard holds
// for, whether an earlier variant would run there or not.
type forcing struct {
	force
	fill    Fill
	graph   *ir.Graph
	plan    *ir.Plan
	program *ir.Program
	sizes   [][]int64 // candidates, the preferred ones first
	known   references
}

// newForcing lists the sizes that a program takes.
func newForcing(t *testing.T, much force, fill Fill, p *fusec.Program) *forcing {
	program, err := p.CUDA()
	require.NoError(t, err)
	f := &forcing{force: much, fill: fill, graph: p.Graph(), plan: p.Plan(), program: program}
	extents := forcedExtents[min(max(1, len(program.Symbols)), len(forcedExtents)-1)]
	each(len(program.Symbols), extents, func(values []int64) {
		if f.takes(values) {
			f.sizes = append(f.sizes, slices.Clone(values))
		}
	})
	rank := func(values []int64) (most, sum int) {
		for _, v := range values {
			at := slices.Index(extents, v)
			most, sum = max(most, at), sum+at
		}
		return most, sum
	}
	slices.SortStableFunc(f.sizes, func(a, b []int64) int {
		mostA, sumA := rank(a)
		mostB, sumB := rank(b)
		return cmp.Or(cmp.Compare(mostA, mostB), cmp.Compare(sumA, sumB))
	})
	return f
}

// each calls try with all values for so many symbols.
func each(symbols int, extents []int64, try func([]int64)) {
	values := make([]int64, symbols)
	var next func(i int)
	next = func(i int) {
		if i == symbols {
			try(values)
			return
		}
		for _, v := range extents {
			values[i] = v
			next(i + 1)
		}
	}
	next(0)
}

func (f *forcing) takes(values []int64) bool {
	for _, c := range f.program.Constraints {
		if v, ok := c.Cond.Eval(values); !ok || v == 0 {
			return false
		}
	}
	return Work(f.graph, f.named(values)) <= f.work
}

func (f *forcing) named(values []int64) map[string]int64 {
	out := map[string]int64{}
	for i, s := range f.program.Symbols {
		out[s] = values[i]
	}
	return out
}

// allowing is a part of a variant's guard without what only says where it pays: conditions on
// numbers of tiles and on costs, which divide. Least is what its text relies on; so are the columns
// that fit into a persistent row, which divide where they are whole accesses, and that an extent which is a
// quotient is a multiple of a vector.
func allowing(v *ir.Variant, when *ir.Expr) []*ir.Expr {
	switch {
	case when == nil:
		return nil
	case when.Op == ir.OpAnd:
		return slices.Concat(allowing(v, when.Args[0]), allowing(v, when.Args[1]))
	case v.Least > 0 && when.Op == ir.OpLt && when.Args[0].IsConst(float64(v.Least)):
		return []*ir.Expr{when}
	case when.Op == ir.OpEq && when.Args[0].Op == ir.OpMod && when.Args[1].IsConst(0):
		return []*ir.Expr{when}
	case ir.Has(when, ir.OpFloorDiv) && v.Schedule.Mapping != ir.RowMapping:
		return nil
	}
	return []*ir.Expr{when}
}

// places are the first sizes that a variant runs at and, where others do too, the last.
func (f *forcing) places(k *ir.Kernel, v *ir.Variant, launched *ir.LaunchVariant) (out [][]int64) {
	conditions := allowing(v, v.When)
	holds := func(values []int64) bool {
		alone := k.Alone(f.named(values))
		if f.launched(launched, values) > f.threads || alone != nil && alone != v {
			return false
		}
		for _, c := range conditions {
			if v, ok := ir.EvalSize(c, f.named(values)); !ok || v == 0 {
				return false
			}
		}
		return true
	}
	first := slices.IndexFunc(f.sizes, holds)
	if first < 0 {
		return nil
	}
	out = append(out, f.sizes[first])
	for i := len(f.sizes) - 1; i > first && !f.once; i-- {
		if holds(f.sizes[i]) {
			return append(out, f.sizes[i])
		}
	}
	return out
}

// launched is how many threads a launch has.
func (f *forcing) launched(v *ir.LaunchVariant, values []int64) int64 {
	n := int64(1)
	for axis, size := range v.Grid {
		blocks, _ := size.Eval(values)
		n *= blocks * int64(f.program.Units[v.Unit].Block[axis])
	}
	return n
}

// forced is the program with one variant of a launch in place of all.
func (f *forcing) forced(launch, variant int) *ir.Program {
	out := *f.program
	out.Launches = slices.Clone(out.Launches)
	v := out.Launches[launch].Variants[variant]
	v.When = nil
	out.Launches[launch].Variants = []ir.LaunchVariant{v}
	return &out
}

// reference gives inputs for sizes, and the results, made once.
func (f *forcing) reference(t *testing.T, values []int64) *Reference {
	return f.known.at(t, f.fill, f.graph, f.named(values))
}

// compare runs a variant at sizes.
func (f *forcing) compare(t *testing.T, dev *Engine, launch, variant int, values []int64) error {
	fn, err := dev.Device.Load(context.Background(), f.forced(launch, variant))
	if err != nil {
		return err
	}
	r := f.reference(t, values)
	got, err := fn.Call(context.Background(), r.Args)
	if err != nil {
		return err
	}
	return errors.Join(r.Compare(got), fn.Close())
}

// forcedOrders are how launches run, in turn.
var forcedOrders = []simtest.Order{{}, {Early: true, Backwards: true}, {Backwards: true, Races: true}, {Early: true}}

// run runs all variants of a program on an architecture.
func (f *forcing) run(t *testing.T, arch string) {
	open := func() *Engine {
		return openSimulated(t, simtest.Config{Arch: arch, Limit: 1 << 27, BlocksPerMultiprocessor: 2})
	}
	dev := open()
	turn, start := 0, time.Now()
	defer func() { t.Logf("%d runs in %v", turn, time.Since(start)) }()
	for i, k := range f.plan.Launched() {
		for j, v := range k.Variants {
			for _, values := range f.places(k, v, &f.program.Launches[i].Variants[j]) {
				turn++
				order := forcedOrders[turn%len(forcedOrders)]
				dev.Sim.SetOrder(order)
				err := f.compare(t, dev, i, j, values)
				assert.NoError(t, err, "kernel %s, variant %d of %d, at %v, %+v\n%+v", k.Name, j, len(k.Variants), values,
					order, v.Schedule)
				if dev.Lost() != nil {
					dev = open()
				}
			}
		}
	}
}

// TestVariantsSimulated runs variants of the kernels of the table's programs on simulated devices, and
// compares with the interpreter: all of them where FUSEC_TEST_FULL is "units".
func TestVariantsSimulated(t *testing.T) {
	RequireNVRTC(t)
	much := forceOf()
	for _, f := range families(t) {
		if f.variants == nil {
			continue
		}
		for i, r := range f.rows {
			if !f.variants(i, r.name) {
				continue
			}
			for _, arch := range []string{"sm_90a", "sm_80"} {
				if !hashDraws(r.graph+r.src+arch+" variants", much.oneIn) {
					continue
				}
				t.Run(arch+"/"+f.name+"/"+r.name, func(t *testing.T) {
					t.Parallel()
					newForcing(t, much, f.fill, planned(t, r, arch)).run(t, arch)
				})
			}
		}
	}
}
