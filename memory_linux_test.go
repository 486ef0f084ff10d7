package fusec

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestRunsLargerThanMemoryAreRefused: what a run allocates, whatever it is for, is refused
// before it is allocated; a run that fits goes on as before.
func TestRunsLargerThanMemoryAreRefused(t *testing.T) {
	dev, err := Open("cpu")
	require.NoError(t, err)
	defer dev.Close()
	ctx := context.Background()
	const small, large = 64, 1 << 22 // whose square in f32 is 64 TiB
	for name, c := range map[string]struct{ source, want string }{
		"an output": {"graph g(x: f32[N]) -> (y: f32[N, N]) { y[i, j] = x[i] + x[j] }",
			"graph g: output y: tensor f32[4194304, 4194304] takes 64.0 TiB: this machine has "},
		"a tensor between kernels": {"graph g(x: f32[N]) -> (y: f32[N]) { y = sum(sort(sort(x[:, none] + x[none, :], axis=1), axis=0), axis=0) }",
			"the memory between kernels, most of it for tensor "},
		"the memory of a kernel": {"graph g(x: f32[N]) -> (y: f32[N]) { y = sum(sort(x[:, none] + x[none, :], axis=1), axis=1) }",
			"graph g: the memory between kernels"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := Load(ctx, dev, Source{Name: "t.fuse", Text: []byte(c.source)}, Options{})
			require.NoError(t, err)
			call := func(n int) error {
				x, err := tensor.New(ir.F32, n)
				require.NoError(t, err)
				_, err = f.Call(ctx, runtime.Args{"x": x})
				return err
			}
			require.NoError(t, call(small))
			err = call(large)
			var refused *ir.MemoryError
			require.ErrorAs(t, err, &refused)
			assert.GreaterOrEqual(t, refused.Bytes, int64(1)<<46)
			assert.True(t, refused.NeverFits())
			assert.ErrorContains(t, err, c.want)
			require.NoError(t, call(small))
		})
	}
	_, err = dev.NewBuffer(ir.F32, large, large)
	var refused *ir.MemoryError
	require.ErrorAs(t, err, &refused)
	assert.ErrorContains(t, err, "tensor f32[4194304, 4194304] takes 64.0 TiB")
	_, err = dev.NewHostBuffer(ir.F32, large, large)
	require.ErrorAs(t, err, &refused)
}
