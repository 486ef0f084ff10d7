package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// mustEnd ends the process where a test does not end: a kernel that waits for ever
// cannot be taken back, and what else uses the device may wait for it.
func mustEnd(t *testing.T) {
	const limit = 2 * time.Minute
	timer := time.AfterFunc(limit, func() { panic(fmt.Sprintf("%s did not end in %v", t.Name(), limit)) })
	t.Cleanup(func() { timer.Stop() })
}

// compareProduct compares with the interpreter on integers from lo to hi-1, which leave no room for
// rounding but that of the result, and asks for the same bits every time.
func compareProduct(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64, lo, hi int64) {
	t.Helper()
	r := interpreted(t, g, integers(t, g, sizes, lo, hi))
	got, err := f.Call(t.Context(), r.Args)
	require.NoError(t, err)
	require.NoError(t, r.CompareExactly(got, true))
	requireSameBits(t, f, r.Args, got)
}

// compareFilled compares with the interpreter on inputs of a kind.
func compareFilled(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64, fill Fill) {
	t.Helper()
	args, err := InputsBy(g, sizes, fill)
	require.NoError(t, err)
	want, err := Interpret(g, args)
	require.NoError(t, err)
	got, err := f.Call(t.Context(), args)
	require.NoError(t, err)
	assert.NoError(t, want.Compare(got), "at %v", sizes)
}

// loadForAll loads a plan for some sizes, whose kernels then run at all sizes, with all its buffers.
func loadForAll(t *testing.T, dev *Engine, plan *ir.Plan) *runtime.Function {
	t.Helper()
	for i, b := range plan.Buffers {
		b.Index, b.When = i, nil
	}
	require.NoError(t, ir.VerifyPlan(plan))
	f, err := dev.Device.Load(t.Context(), codegen.Generate(plan))
	require.NoError(t, err)
	return f
}

// requireSameBits runs a function again and again.
func requireSameBits(t *testing.T, f *runtime.Function, args runtime.Args, first map[string]*tensor.Tensor) {
	t.Helper()
	for range repetitions() {
		again, err := f.Call(t.Context(), args)
		require.NoError(t, err)
		requireSame(t, first, again)
	}
}

func requireSame(t *testing.T, want, got map[string]*tensor.Tensor) {
	t.Helper()
	for name := range want {
		require.Equal(t, want[name].Data, got[name].Data, "%s: the same bits every time", name)
	}
}

// integers are inputs of integers from lo to hi-1.
func integers(t *testing.T, g *ir.Graph, sizes map[string]int64, lo, hi int64) runtime.Args {
	t.Helper()
	args, err := InputsBy(g, sizes, Integers(lo, hi))
	require.NoError(t, err)
	return args
}

// repetitions is how often a call is repeated whose bits are to be the same every time: seldom
// in short tests, which run under tools that look at each access themselves.
func repetitions() int {
	if testing.Short() {
		return 1
	}
	return 10
}
