package conformance

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestLongSumsOnGPU: sums of few tiles whose columns the blocks of a cluster share are those
// of loops, bit by bit where the operands are small integers.
func TestLongSumsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	load := func(src string) (*fusec.Program, *runtime.Function) {
		p, f := loaded(t, dev, src)
		return p, f
	}
	for name, text := range LongSums {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := load("graph g" + text)
			_, loops := load("@strict graph g" + text)
			for _, n := range [][3]int64{{24, 4360, 4104}, {136, 1544, 4160}, {64, 8192, 4096}, {24, 1160, 4104}, {200, 392, 4168},
				{72, 72, 16392}, {128, 128, 16384}, {24, 24, 20488}, {256, 256, 4096}, {17, 64, 65536}} {
				args := integers(t, p.Graph(), map[string]int64{"M": n[0], "N": n[1], "K": n[2]}, -2, 3)
				want, err := loops.Call(context.Background(), args)
				require.NoError(t, err)
				for range 5 {
					got, err := f.Call(context.Background(), args)
					require.NoError(t, err)
					require.Equal(t, want["y"].Data, got["y"].Data, "%v", n)
				}
			}
		})
	}
}

// TestLongSumsInRunsOnGPU: products of f32 add up columns in slices and runs, so that the
// error of long sums is that of blocked summation, bit by bit.
func TestLongSumsInRunsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openHopper(t, "an sm_90 has clusters, and shared memory for totals beside large tiles")
	requireBlockedSums(t, dev, [][3]int{
		{500, 3400, 9001}, {511, 4096, 8192}, {1024, 1024, 9000}, {520, 500, 8192}, {16, 8192, 8192}, {100, 1000, 4100},
		{256, 256, 65536}, {70, 130, 70000}, {16, 16, 60000}, {33, 40, 9001},
	})
}

// TestSlicesSimulated: slices of a product's sums that pass through memory are added up in their order, bit by bit.
func TestSlicesSimulated(t *testing.T) {
	RequireNVRTC(t)
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Limit: 1 << 27, BlocksPerMultiprocessor: 2})
	dev.Sim.SetOrder(simtest.Order{Early: true, Backwards: true})
	requireBlockedSums(t, dev, [][3]int{{16, 20, 8200}, {20, 16, 8201}, {33, 40, 2101}})
}

// requireBlockedSums checks products of some M, N and K against sums in the slices and runs that the plan says, bit by
// bit, and that they err less than sums of one column after the other. One kernel has no parts of numbers to multiply.
func requireBlockedSums(t *testing.T, dev *Engine, sizes [][3]int) {
	p, f := loaded(t, dev, "@onekernel graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }")
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(rows, cols int) ([]float32, *tensor.Tensor) {
		data := make([]float32, rows*cols)
		for i := range data {
			data[i] = float32(rng.NormFloat64())
		}
		x, err := tensor.FromSlice(data, rows, cols)
		require.NoError(t, err)
		return data, x
	}
	for _, size := range sizes {
		m, n, k := size[0], size[1], size[2] // rests of tiles, vectors, steps and runs
		a, left := normal(m, k)
		b, right := normal(k, n)
		got, err := f.Call(context.Background(), runtime.Args{"a": left, "b": right})
		require.NoError(t, err)
		y := got["y"].Float32s()
		named := map[string]int64{"M": int64(m), "N": int64(n), "K": int64(k)}
		v := chosenAt(t, p, named)
		var inRuns, atOnce float64 // squares of errors
		for range 500 {
			i, j := rng.IntN(m), rng.IntN(n)
			exact, blocked, plain := sums(func(l int) (x, y float32) { return a[i*k+l], b[l*n+j] }, k, v, named)
			assert.Equal(t, blocked, y[i*n+j], "%v [%d, %d]", size, i, j)
			inRuns += (float64(blocked) - exact) * (float64(blocked) - exact)
			atOnce += (float64(plain) - exact) * (float64(plain) - exact)
		}
		assert.Less(t, inRuns, atOnce/4, "%v: half the error, at least", size)
	}
}

// chosenAt is what the only kernel of a program runs as at some sizes.
func chosenAt(t *testing.T, p *fusec.Program, sizes map[string]int64) *ir.Variant {
	for _, v := range p.Plan().Launched()[0].Variants {
		if v.When == nil {
			return v
		}
		if holds, ok := ir.EvalSize(v.When, sizes); ok && holds != 0 {
			return v
		}
	}
	require.Fail(t, "no variant", "%v", sizes)
	return nil
}

// scheduleAt is the schedule of that.
func scheduleAt(t *testing.T, p *fusec.Program, sizes map[string]int64) ir.Schedule {
	return chosenAt(t, p, sizes).Schedule
}

// sums adds up n products: in f64, in f32 by the slices and runs of a variant, and in f32
// one after the other.
func sums(at func(int) (x, y float32), n int, v *ir.Variant, sizes map[string]int64) (exact float64, blocked, plain float32) {
	add := func(sum float32, l int) float32 {
		x, y := at(l)
		return float32(math.FMA(float64(x), float64(y), float64(sum)))
	}
	for l := range n {
		x, y := at(l)
		exact += float64(x) * float64(y)
		plain = add(plain, l)
	}
	s, steps := v.Schedule, (n+v.Schedule.TileK-1)/v.Schedule.TileK
	slice := func(begin, end int) (total float32) {
		for l := begin * s.TileK; l < min(end*s.TileK, n); {
			part := float32(0)
			for runEnd := min(l+s.Run, end*s.TileK, n); l < runEnd; l++ {
				part = add(part, l)
			}
			total += part
		}
		return total
	}
	var totals []float32
	if v.Contract.Slices == nil {
		splits := max(1, s.Cluster)
		for i := range splits {
			totals = append(totals, slice(steps*i/splits, steps*(i+1)/splits))
		}
		return exact, addedUp(totals), plain
	}
	count, _ := ir.EvalSize(v.Contract.Slices, sizes)
	even, odd := steps/int(count), steps%int(count)
	for i := range int(count) {
		totals = append(totals, slice(even*i+min(i, odd), even*(i+1)+min(i+1, odd)))
	}
	together := 8
	for together*together < int(count) {
		together++
	}
	var groups []float32
	for group := range slices.Chunk(totals, together) {
		groups = append(groups, addedUp(group))
	}
	return exact, addedUp(groups), plain
}

func addedUp(x []float32) (total float32) {
	for _, v := range x {
		total += v
	}
	return total
}
