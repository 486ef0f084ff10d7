//go:build linux && !nocuda

package runtime

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
)

// storedKernel is an entry that the fake driver takes.
func storedKernel() cache.Entry {
	return cache.Entry{Sections: []cache.Section{{Name: cache.PTX, Data: []byte(".version 8.4")}}}
}

func TestNoCompileNamesTheKernelAndTheNearestEntry(t *testing.T) {
	store, p := newCache(t, t.TempDir()), tripleProgram()
	c := NewCompiler(Options{Cache: store, NoCompile: true, NVRTC: cuda.FindOptions{Path: t.TempDir()}})
	_, err := c.Compile(context.Background(), p, 0, "sm_90a")
	assert.ErrorContains(t, err, "kernel twice for sm_90a is not compiled (kernel/")
	assert.ErrorContains(t, err, "no kernel is stored")

	other := Key(p, 0, "sm_80", "")
	require.True(t, store.Put(other, storedKernel()))
	_, err = c.Compile(context.Background(), p, 0, "sm_90a")
	var missing *NotCompiledError
	require.ErrorAs(t, err, &missing)
	assert.Equal(t, "twice", missing.Kernel)
	assert.Equal(t, Key(p, 0, "sm_90a", ""), missing.Key)
	require.NotNil(t, missing.Nearest)
	assert.Equal(t, other, missing.Nearest.Key)
	assert.Equal(t, []string{"option", "arch"}, missing.Differ)
	assert.ErrorContains(t, err, "the nearest entry, "+other.String()[:23]+", differs in option, arch")

	k, err := c.Compile(context.Background(), p, 0, "sm_80")
	require.NoError(t, err)
	assert.Equal(t, cache.Hit, k.Outcome, "what is stored is no compilation")
}

func TestNoCompileByTheEnvironment(t *testing.T) {
	for value, never := range map[string]bool{"": false, "0": false, "false": false, "1": true, "true": true} {
		t.Setenv(NoCompileEnv, value)
		c := NewCompiler(Options{Cache: newCache(t, t.TempDir()), NVRTC: cuda.FindOptions{Path: t.TempDir()}})
		_, err := c.Compile(context.Background(), tripleProgram(), 0, "sm_90a")
		var missing *NotCompiledError
		assert.Equal(t, never, errors.As(err, &missing), "%q", value)
	}
}

// compiled is a KernelSource that knows nothing but PTX.
type compiled struct{ ptx []byte }

func (c compiled) Compile(_ context.Context, p *ir.Program, unit int, _ string) (Kernel, error) {
	return Kernel{Entry: p.Units[unit].Entry, PTX: c.ptx}, nil
}

func TestCompiledKernelsNeedNoCompiler(t *testing.T) {
	f := fakeDriver(t)
	var warnings []error
	d := f.open(t, Options{NoCompile: true, NVRTC: cuda.FindOptions{Path: t.TempDir()},
		OnWarning: func(err error) { warnings = append(warnings, err) }})
	fn, err := d.LoadCompiled(context.Background(), tripleProgram(), compiled{[]byte(".version 8.4")})
	require.NoError(t, err)
	x, y := ramp(t, 100), ramp(t, 100)
	require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
	requireTripled(t, x, y)
	assert.Empty(t, warnings, "PTX is what there is: nothing was refused")

	bad, err := d.LoadCompiled(context.Background(), tripleProgram(), compiled{[]byte("junk")})
	require.NoError(t, err)
	err = bad.Run(context.Background(), Args{"x": x, "y": y})
	assert.ErrorIs(t, err, cuda.ErrInvalidImage, "no compiler comes to the rescue")
}

func TestCompiledKernelsAreForGPUs(t *testing.T) {
	d, err := Open("cpu", Options{Cache: newCache(t, t.TempDir())})
	require.NoError(t, err)
	defer d.Close()
	_, err = d.LoadCompiled(context.Background(), tripleProgram(), compiled{})
	assert.ErrorContains(t, err, "runs plans")
}

func TestProgramFormatFollowsTheTypes(t *testing.T) {
	spelled := func(v any) string {
		var b strings.Builder
		describeType(&b, reflect.TypeOf(v))
		return b.String()
	}
	type inner struct{ A int }
	base := spelled(struct{ X []inner }{})
	for _, other := range []any{struct{ Y []inner }{}, struct{ X [2]inner }{}, struct{ X []struct{ B int } }{},
		struct{ X []struct{ A bool } }{}, struct {
			X []inner
			Y int
		}{}} {
		assert.NotEqual(t, base, spelled(other))
	}
	assert.Equal(t, ProgramFormat(), ProgramFormat())
	assert.Len(t, ProgramFormat(), 16)
}
