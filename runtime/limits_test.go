//go:build linux && !nocuda

package runtime

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestMemoryOfStreamsGrowsInUnits: it is what was asked for, rounded up, and stays while it is enough.
func TestMemoryOfStreamsGrowsInUnits(t *testing.T) {
	_, fn := loadTriple(t, Options{Kernels: stored})
	s := newStream(t, fn.Device())
	m, gs := &fn.Device().engine.(*gpu).memory, s.queue.(*gpuStream)
	for name, of := range map[string]struct {
		reserve func(context.Context, *gpuStream, int64) error
		have    *block
		unit    int64
	}{
		"arena":    {m.reserve, &gs.arena, 2 << 20},
		"counters": {m.reserveCounters, &gs.counters, 4096},
	} {
		most := int64(0)
		for _, bytes := range []int64{0, of.unit, 1, of.unit, of.unit + 1, 2 * of.unit, 4*of.unit - 1, 4 * of.unit, 5 * of.unit, 2, 7 * of.unit} {
			before := *of.have
			require.NoError(t, of.reserve(t.Context(), gs, bytes))
			if bytes <= before.bytes {
				assert.Equal(t, before, *of.have, "%s: there is enough for %d", name, bytes)
			}
			most = max(most, (bytes+of.unit-1)/of.unit*of.unit)
			assert.Equal(t, most, of.have.bytes, "%s for %d", name, bytes)
		}
	}
}

// TestShapesOfLaunches: along each axis from one block to as many as CUDA has; none along one is no launch.
func TestShapesOfLaunches(t *testing.T) {
	_, fn := loadTriple(t, Options{Kernels: stored})
	x := &gpuProgram{gpu: fn.Device().engine.(*gpu), program: &ir.Program{Units: []ir.Unit{{Entry: "k", Block: [3]int{32, 1, 1}}}}}
	limits := [3]int64{math.MaxInt32, math.MaxUint16, math.MaxUint16}
	assert.Equal(t, limits, maxGrid)
	for axis, most := range limits {
		for blocks, ok := range map[int64]bool{-1: false, 0: true, 1: true, 2: true, most - 1: true, most: true, most + 1: false} {
			v := &ir.LaunchVariant{Grid: [3]ir.Size{constant(3), constant(5), constant(7)}}
			v.Grid[axis] = constant(blocks)
			want := [3]uint32{3, 5, 7}
			if want[axis] = uint32(blocks); blocks == 0 {
				want = [3]uint32{}
			}
			r, err := x.shape(&ir.Launch{Kernel: "k"}, v, nil)
			assert.Equal(t, ok, err == nil, "%d blocks along axis %d", blocks, axis)
			if ok {
				assert.Equal(t, want, r.Grid, "%d blocks along axis %d", blocks, axis)
			} else {
				assert.ErrorContains(t, err, fmt.Sprintf("kernel k needs %d blocks along axis %d", blocks, axis))
			}
			r, err = x.shape(&ir.Launch{Kernel: "k", Writes: constant(0)}, v, nil)
			assert.NoError(t, err)
			assert.Zero(t, r.Grid, "a kernel that writes nothing")
		}
	}
}

// TestFirstPiecesOfMemoryArePlain: a program that needs few does not wait until the driver's pool is set up.
func TestFirstPiecesOfMemoryArePlain(t *testing.T) {
	f := fakeDriver(t)
	d := f.open(t, Options{})
	for n := range 2 * firstPlain {
		newBuffer(t, d, 100)
		plain := min(n+1, firstPlain)
		assert.Equal(t, plain, f.Calls("cuMemAlloc_v2"), "of %d", n+1)
		assert.Equal(t, n+1-plain, f.Calls("cuMemAllocAsync"), "of %d", n+1)
	}
}

// TestBytesOfTensors: the exact product of all dims where it fits in 64 bits, and an error where it does not.
func TestBytesOfTensors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dtype := rapid.SampledFrom([]ir.DType{ir.Bool, ir.F16, ir.F32, ir.I64}).Draw(t, "dtype")
		shape := rapid.SliceOfN(rapid.IntRange(1, 1<<20), 0, 2).Draw(t, "shape")
		rest := math.MaxInt64 / dtype.Size()
		for _, d := range shape {
			rest /= d
		}
		last := max(rest, 1) // the largest that fits beside the others
		if last < math.MaxInt64 {
			last += rapid.IntRange(0, 1).Draw(t, "more")
		}
		shape = append(shape, last)
		want := big.NewInt(int64(dtype.Size()))
		for _, d := range shape {
			want.Mul(want, big.NewInt(int64(d)))
		}
		got, err := byteSize(dtype, shape)
		if want.IsInt64() {
			require.NoError(t, err)
			require.Equal(t, want.Int64(), got)
		} else {
			require.ErrorContains(t, err, "does not fit in 64 bits")
		}
		got, err = byteSize(dtype, append(shape, 0))
		require.NoError(t, err)
		require.Zero(t, got)
	})
}

// TestWhichCopiesAreStaged: those of as many bytes as are worth it, and no smaller ones; either way all bytes arrive.
func TestWhichCopiesAreStaged(t *testing.T) {
	_, fn := loadTriple(t, Options{Kernels: stored})
	d := fn.Device()
	g := d.engine.(*gpu)
	for _, bytes := range []int{stagedCopy - 4, stagedCopy, stagedCopy + 4} {
		x, got := ramp(t, bytes/4), ramp(t, bytes/4)
		clear(got.Data)
		b := newBuffer(t, d, bytes/4)
		for name, copies := range map[string]func() error{"in": func() error { return b.Upload(x) }, "out": func() error { return b.Download(got) }} {
			if name == "out" {
				require.NoError(t, b.Upload(x))
			}
			for _, s := range g.stages.drain() {
				require.NoError(t, s.close())
			}
			require.NoError(t, copies())
			stages := g.stages.drain()
			assert.Equal(t, bytes >= stagedCopy, len(stages) > 0, "%d bytes %s", bytes, name)
			for _, s := range stages {
				g.stages.put(s)
			}
		}
		assert.Equal(t, x.Data, got.Data, bytes)
		require.NoError(t, b.Close())
	}
}

// TestSizesThatAreForgottenWarn where what they hold cannot be given back.
func TestSizesThatAreForgottenWarn(t *testing.T) {
	var warned []error
	f, fn := loadTriple(t, Options{Kernels: stored, OnWarning: func(err error) { warned = append(warned, err) }})
	run := func(n int) {
		for range 3 { // of which the last makes a graph
			require.NoError(t, fn.Run(t.Context(), Args{"x": ramp(t, n), "y": ramp(t, n)}))
		}
	}
	run(1)
	f.Fail("cuGraphExecDestroy", 1, 0)
	f.leaked = 1
	for n := range maxBindings {
		run(20 + n)
	}
	require.Len(t, warned, 1)
	assert.ErrorContains(t, warned[0], "graph triple: ")
}
