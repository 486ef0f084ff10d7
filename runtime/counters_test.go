//go:build linux && !nocuda

package runtime

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// countedProgram computes y = x + c, with c one of two arrays of N+k counters: as floats
// they are zeros.
func countedProgram() *ir.Program {
	p := tripleProgram()
	counters := func(k int64) ir.Size { return apply(ir.OpAdd, symbol(0), constant(k)) }
	p.Counters = []ir.Size{counters(1000), counters(1), counters(3)}
	plus := p.Launches[1]
	for i := range plus.Variants {
		args := append([]ir.LaunchArg(nil), plus.Variants[i].Args...)
		args[0] = ir.LaunchArg{Kind: ir.ArgCounters, Index: 1 + i, Write: true}
		plus.Variants[i].Args = args
	}
	p.Launches = []ir.Launch{plus}
	return p
}

// TestCounters: a stream sets its counters to zero once, and again where they grow.
func TestCounters(t *testing.T) {
	requireNVRTC(t)
	f := fakeDriver(t)
	d := f.open(t, Options{})
	fn, err := d.Load(context.Background(), countedProgram())
	require.NoError(t, err)
	x, y := uploaded(t, d, ramp(t, 100)), newBuffer(t, d, 100)
	run := func(s *Stream, x, y *Buffer) {
		require.NoError(t, fn.Queue(context.Background(), s, Args{"x": x, "y": y}))
		require.NoError(t, s.Wait(context.Background()))
		assert.Equal(t, downloaded(t, x).Floats(), downloaded(t, y).Floats())
	}
	before := f.Calls("cuMemsetD8Async")
	for n := range 2 {
		s, err := d.NewStream()
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		for range 3 {
			run(s, x, y)
		}
		assert.Equal(t, before+n+1, f.Calls("cuMemsetD8Async"), "once a stream")
		if n == 0 {
			run(s, uploaded(t, d, ramp(t, 5000)), newBuffer(t, d, 5000))
			before++
			run(s, x, y)
		}
	}
}

// TestTensorsOfARun: each is one of a parameter, a temporary, counters and the result of a check, in this order; counters have no place in the
// arena.
func TestTensorsOfARun(t *testing.T) {
	x := &gpuProgram{program: &ir.Program{Params: make([]ir.Param, 3), Counters: make([]ir.Size, 2), Checks: make([]ir.IndexCheck, 2)}}
	w := &gpuWork{program: x, binding: &binding{bytes: []int64{10, 20, 30}}, temps: []int64{40}, counterAt: []int64{0, 8}}
	want := []int64{10, 20, 30, 40, 0, 0, ir.CheckBytes / 2, ir.CheckBytes / 2, ir.CheckBytes / 2, ir.CheckBytes / 2}
	require.Equal(t, len(want), w.tensors())
	for item, bytes := range want {
		assert.Equal(t, bytes, w.bytesOf(item), item)
		assert.Equal(t, bytes == 0, w.counts(item), item)
	}
}
