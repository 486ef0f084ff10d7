package fusec

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/bundle"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/sign"
)

// requireNVRTC skips where there is no NVRTC, except in continuous integration.
func requireNVRTC(t testing.TB) {
	t.Helper()
	_, err := cuda.FindNVRTC(cuda.FindOptions{})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if err != nil {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	}
}

func bundleKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

var bundlePublic = sign.Public(bundleKey(1))

// makeBundle bundles graphs, through a cache of the test's own where it has none.
func makeBundle(t *testing.T, c *runtime.Compiler, o BundleOptions, graphs ...BundleGraph) []byte {
	t.Helper()
	requireNVRTC(t)
	if c == nil {
		c = newCompiler(t)
	}
	o.Key = bundleKey(1)
	var out bytes.Buffer
	require.NoError(t, WriteBundle(context.Background(), &out, c, graphs, o))
	return out.Bytes()
}

func newCompiler(t *testing.T) *runtime.Compiler {
	return runtime.NewCompiler(runtime.Options{Cache: cache.Open(cache.Options{Dir: t.TempDir()})})
}

func scaledGraph() BundleGraph {
	return BundleGraph{Source: Source{Name: "a.fuse", Text: []byte(scaled)}}
}

func TestBundleIsDeterministicAndRunsOnTheCPU(t *testing.T) {
	importing := BundleGraph{Source: Source{Name: "b.fuse",
		Text:     []byte("import \"c.fuse\"\ngraph other(x: f32[N]) -> (y: f32[N]) { y = twice(x) }"),
		ReadFile: func(string) ([]byte, error) { return []byte("fn twice(x: T[...S]) = x + x"), nil }}}
	c, done := newCompiler(t), 0
	o := BundleOptions{Archs: []string{"sm_80", "sm_90a"}, Sizes: map[string]int64{"N": 64, "M": 64},
		Progress: func(n, _ int) { done = n }}
	data := makeBundle(t, c, o, scaledGraph(), importing)
	assert.Equal(t, 4, done, "a kernel for each graph and architecture")
	assert.Equal(t, data, makeBundle(t, newCompiler(t), o, scaledGraph(), importing), "same in, same out")

	b, err := EmbeddedBundle(data, bundlePublic)
	require.NoError(t, err)
	assert.Equal(t, []string{"other", "scaled"}, b.Graphs())
	assert.Equal(t, []string{"sm_80", "sm_90a"}, b.Archs("scaled"))
	dev := openCPU(t)
	f, err := b.Load(context.Background(), dev, "scaled")
	require.NoError(t, err)
	out, err := f.Call(context.Background(), arguments(t, 2, 3))
	require.NoError(t, err)
	assert.Len(t, out["y"].Floats(), 6)
	_, err = b.Load(context.Background(), dev, "other")
	require.NoError(t, err, "imports come along")
	_, err = b.Load(context.Background(), dev, "")
	assert.ErrorContains(t, err, "the bundle holds 2 graphs: name one of other, scaled")
}

// The kernels of a bundle are those that the compiler gave, and their CUDA text stays
// at home.
func TestBundledKernels(t *testing.T) {
	c := newCompiler(t)
	data := makeBundle(t, c, BundleOptions{Archs: []string{"sm_80", "sm_90a"}}, scaledGraph())
	assert.NotContains(t, string(data), "__global__")
	b, err := EmbeddedBundle(data, bundlePublic)
	require.NoError(t, err)
	for _, row := range []struct {
		chip, arch string
		jit        bool
	}{{"sm_90a", "sm_90a", false}, {"sm_86", "sm_80", false}, {"sm_120a", "sm_80", true}} {
		program, kernels, err := b.compiled("scaled", row.chip)
		require.NoError(t, err)
		plan, err := Compile("a.fuse", scaled, Options{Arch: row.arch})
		require.NoError(t, err)
		whole, err := plan.CUDA()
		require.NoError(t, err)
		assert.Equal(t, withoutText(whole), program)
		for u := range program.Units {
			want, err := c.Compile(context.Background(), whole, u, row.arch)
			require.NoError(t, err)
			got, err := kernels.Compile(context.Background(), program, u, row.chip)
			require.NoError(t, err)
			assert.Equal(t, want.Registers, got.Registers)
			assert.Equal(t, cache.Shipped, got.Outcome)
			if row.jit {
				assert.Equal(t, want.PTX, got.PTX)
				assert.Empty(t, got.Cubin, "the driver compiles the PTX")
			} else {
				assert.Equal(t, want.Cubin, got.Cubin)
				assert.Empty(t, got.PTX, "which would take time to unpack")
			}
		}
	}
	_, _, err = b.compiled("scaled", "sm_75")
	assert.ErrorContains(t, err, "holds code for sm_80, sm_90a, which does not run on sm_75: make it with --arch")
}

func TestNearestArch(t *testing.T) {
	for _, row := range []struct {
		chip, want string
		jit        bool
		compiled   []string
	}{
		{"sm_90a", "sm_90a", false, []string{"sm_80", "sm_90", "sm_90a"}},
		{"sm_90a", "sm_90", false, []string{"sm_80", "sm_90"}},
		{"sm_89", "sm_86", false, []string{"sm_75", "sm_80", "sm_86", "sm_90"}},
		{"sm_80", "sm_75", true, []string{"sm_75", "sm_86"}},
		{"sm_100a", "sm_90", true, []string{"sm_80", "sm_90", "sm_90a"}},
		{"sm_103a", "sm_100", false, []string{"sm_90", "sm_100", "sm_100a"}},
		{"sm_75", "", false, []string{"sm_80"}},
		{"sm_100a", "", false, []string{"sm_90a"}},
		{"nonsense", "", false, []string{"sm_80"}},
		{"sm_80", "", false, []string{"nonsense"}},
	} {
		arch, jit, ok := nearestArch(row.compiled, row.chip)
		assert.Equal(t, row.want, arch, "%s from %v", row.chip, row.compiled)
		assert.Equal(t, row.want != "", ok)
		assert.Equal(t, row.jit, jit, "%s from %v", row.chip, row.compiled)
	}
}

func TestBundleOfSomeSizes(t *testing.T) {
	graph := BundleGraph{Source: Source{Name: "m.fuse",
		Text: []byte("graph m(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=-1) }")}}
	b, err := EmbeddedBundle(makeBundle(t, nil, BundleOptions{Archs: []string{"sm_80"}, NoSource: true,
		Sizes: map[string]int64{"N": 8, "M": 64}}, graph), bundlePublic)
	require.NoError(t, err)
	program, kernels, err := b.compiled("m", "sm_80")
	require.NoError(t, err)
	chosen := program.Launches[0].Choose([]int64{8, 64}).Unit
	for u := range program.Units {
		_, err := kernels.Compile(context.Background(), program, u, "sm_80")
		if u == chosen {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, "made for some sizes only")
		}
	}
	_, err = b.Load(context.Background(), openCPU(t), "m")
	assert.ErrorContains(t, err, "made without the text")
}

func TestBundlesThatCannotBeMade(t *testing.T) {
	c := newCompiler(t)
	write := func(o BundleOptions, graphs ...BundleGraph) error {
		return WriteBundle(context.Background(), new(bytes.Buffer), c, graphs, o)
	}
	assert.ErrorContains(t, write(BundleOptions{}, scaledGraph()), "must be signed")
	signed := BundleOptions{Key: bundleKey(1)}
	assert.ErrorContains(t, write(signed, scaledGraph(), scaledGraph()), "two graphs of the bundle are called scaled")
	signed.Sizes = map[string]int64{"N": 3}
	assert.ErrorContains(t, write(signed, scaledGraph()), "no size for M")
	signed.Archs = []string{"gpu"}
	assert.ErrorContains(t, write(signed, scaledGraph()), "expected an architecture")
}

func TestBundlesThatAreRefused(t *testing.T) {
	data := makeBundle(t, nil, BundleOptions{Archs: []string{"sm_80"}, Sizes: map[string]int64{"N": 8, "M": 8}},
		scaledGraph())
	_, err := EmbeddedBundle(data, sign.Public(bundleKey(2)))
	assert.ErrorIs(t, err, sign.ErrForeignKey)
	path := filepath.Join(t.TempDir(), "app.fbundle")
	require.NoError(t, os.WriteFile(path, data[:len(data)-1], 0o600))
	_, err = OpenBundle(path, bundlePublic)
	assert.ErrorIs(t, err, bundle.ErrDamaged)
	assert.ErrorContains(t, err, path)

	var foreign bytes.Buffer
	other := []bundle.Section{{Name: formatSection, Data: []byte("other")}}
	require.NoError(t, bundle.Write(&foreign, other, bundleKey(1)))
	_, err = EmbeddedBundle(foreign.Bytes(), bundlePublic)
	assert.ErrorContains(t, err, "made by another version of fusec (programs of form other")
}
