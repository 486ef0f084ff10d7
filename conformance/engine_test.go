package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// TestEngines opens every engine that is here and compares a program on it.
func TestEngines(t *testing.T) {
	for _, name := range Engines {
		t.Run(name, func(t *testing.T) {
			e := Open(t, name, Options{})
			p, err := e.Load(fusec.Source{Name: "g.fuse", Text: []byte("graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x) }")},
				fusec.Options{})
			require.NoError(t, err)
			sizes, fit := Sizes(p.Graph(), []int64{3, 70})
			require.True(t, fit)
			args, err := Inputs(p.Graph(), sizes)
			require.NoError(t, err)
			require.NoError(t, p.Check(t.Context(), args))
			if e.Sim != nil {
				require.Len(t, e.Sim.Ran(), 1, "the kernel ran in the simulator")
				require.NoError(t, e.Lost())
			}
		})
	}
}

// TestComparisonsFail: a reference refuses what is not its own.
func TestComparisonsFail(t *testing.T) {
	e := Open(t, "cpu", Options{})
	of := func(text string) (*Loaded, *Reference) {
		p, err := e.Load(fusec.Source{Name: "g.fuse", Text: []byte(text)}, fusec.Options{})
		require.NoError(t, err)
		args, err := Inputs(p.Graph(), map[string]int64{"N": 5})
		require.NoError(t, err)
		r, err := Interpret(p.Graph(), args)
		require.NoError(t, err)
		return p, r
	}
	right, reference := of("graph g(x: f32[N]) -> (y: f32[N]) { y = x + 1 }")
	wrong, _ := of("graph g(x: f32[N]) -> (y: f32[N]) { y = x + 1.001 }")
	missing, _ := of("graph g(x: f32[N]) -> (z: f32[N]) { z = x + 1 }")
	require.NoError(t, right.CheckAgainst(t.Context(), reference, nil))
	require.ErrorContains(t, wrong.CheckAgainst(t.Context(), reference, nil), "output y: ")
	require.ErrorContains(t, missing.CheckAgainst(t.Context(), reference, nil), "output y is missing")
}

// TestIndexErrorsAreCompared: a run that finds nothing where the interpreter does is wrong.
func TestIndexErrorsAreCompared(t *testing.T) {
	e := Open(t, "cpu", Options{})
	const text = "graph g(x: f32[3], at: i32[N]) -> (y: f32[N]) { y = x[at + 2] }"
	strict, err := e.Load(fusec.Source{Name: "g.fuse", Text: []byte("@strict " + text)}, fusec.Options{})
	require.NoError(t, err)
	loose, err := e.Load(fusec.Source{Name: "g.fuse", Text: []byte(text)}, fusec.Options{})
	require.NoError(t, err)
	args, err := Inputs(strict.Graph(), map[string]int64{"N": 50})
	require.NoError(t, err)
	require.NoError(t, strict.Check(t.Context(), args))
	require.NoError(t, loose.Check(t.Context(), args))
	r, outside := Interpret(strict.Graph(), args)
	require.ErrorContains(t, outside, "is outside axis 0 of x")
	require.ErrorContains(t, loose.CheckAgainst(t.Context(), r, outside), "is outside axis 0 of x")
}

// TestPTXOfBothCompiles: simulated devices run what is compiled to machine code, whether or not their
// kernels were compiled as far.
func TestPTXOfBothCompiles(t *testing.T) {
	RequireNVRTC(t)
	c := runtime.NewCompiler(runtime.Options{})
	for _, arch := range []string{"sm_80", "sm_90a"} {
		for _, r := range []row{{name: "rows", src: "graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }"},
			{name: "product", src: "graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = a @ b }"}} {
			p, err := planned(t, r, arch).CUDA()
			require.NoError(t, err)
			full, err := c.Compile(t.Context(), p, 0, arch)
			require.NoError(t, err)
			virtual, err := simtest.Virtual{Compiler: c}.Compile(t.Context(), p, 0, arch)
			require.NoError(t, err)
			require.Equal(t, string(full.PTX), string(virtual.PTX), "%s for %s", r.name, arch)
			require.NotEmpty(t, full.Cubin)
			require.Empty(t, virtual.Cubin)
		}
	}
}
