//go:build linux && !nocuda

package runtime

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
)

// steps are the names of a trace's steps.
func steps(trace *Trace) []string {
	var names []string
	for _, s := range trace.Steps() {
		names = append(names, s.Name)
	}
	return names
}

// TestSecondStartOpensNoNVRTC is the promise of the cache: of two devices, as of two
// processes, the second finds the kernels on disk.
func TestSecondStartOpensNoNVRTC(t *testing.T) {
	requireNVRTC(t)
	f, dir := fakeDriver(t), t.TempDir()
	for _, warm := range []bool{false, true} {
		trace := NewTrace()
		d := f.open(t, Options{Cache: newCache(t, dir), Trace: trace})
		fn, err := d.Load(context.Background(), tripleProgram())
		require.NoError(t, err)
		x, y := ramp(t, 100), ramp(t, 100)
		r, err := fn.Measure(context.Background(), Args{"x": x, "y": y}, Measure{})
		require.NoError(t, err)
		requireTripled(t, x, y)
		require.Len(t, r.Loaded, 2)
		names := steps(trace)
		if warm {
			assert.NotContains(t, names, "nvrtc open")
			assert.Equal(t, cache.Hit, r.Loaded[0].Outcome)
			assert.Equal(t, "NVRTC", compilerName(t, dir)[:5])
		} else {
			assert.Contains(t, names, "nvrtc open")
			assert.Equal(t, cache.Created, r.Loaded[0].Outcome)
		}
		assert.Subset(t, names, []string{"driver open", "context", "kernel", "module load"})
	}
}

// TestLoadingIsTold, kernel by kernel.
func TestLoadingIsTold(t *testing.T) {
	requireNVRTC(t)
	var told [][2]int
	d := fakeDriver(t).open(t, Options{OnLoad: func(done, needed int) { told = append(told, [2]int{done, needed}) }})
	fn, err := d.Load(context.Background(), tripleProgram())
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, fn.Run(context.Background(), Args{"x": ramp(t, 4), "y": ramp(t, 4)}))
	}
	assert.Equal(t, [][2]int{{1, 2}, {2, 2}}, told, "once, for sizes that are new")
}

// compilerName is what the cache says made a kernel.
func compilerName(t *testing.T, dir string) string {
	c := NewCompiler(Options{Cache: newCache(t, dir)})
	k, err := c.Compile(context.Background(), tripleProgram(), 0, "sm_90a")
	require.NoError(t, err)
	return k.Compiler
}

func TestCodeThatTheDriverRefusesIsReplaced(t *testing.T) {
	requireNVRTC(t)
	junk, good := []byte("junk"), []byte(".version 8.4")
	for name, test := range map[string]struct {
		ptx      []byte
		warnings int
	}{"by its PTX": {good, 1}, "by a fresh compile": {junk, 2}} {
		t.Run(name, func(t *testing.T) {
			store, at := newCache(t, t.TempDir()), nvrtcLocation(t)
			require.True(t, store.Put(Key(tripleProgram(), 0, "sm_90a", at.Identity()), cache.Entry{
				Sections: []cache.Section{{Name: cache.Cubin, Data: junk}, {Name: cache.PTX, Data: test.ptx}}}))
			var warnings []error
			_, fn := loadTriple(t, Options{Cache: store,
				OnWarning: func(err error) { warnings = append(warnings, err) }})
			x, y := ramp(t, 3), ramp(t, 3)
			require.NoError(t, fn.Run(context.Background(), Args{"x": x, "y": y}))
			requireTripled(t, x, y)
			require.Len(t, warnings, test.warnings)
			assert.ErrorContains(t, warnings[0], "kernel twice: the driver refused the code")
		})
	}
}

// nvrtcLocation is where a device of the fake driver finds NVRTC: any will do.
func nvrtcLocation(t *testing.T) cuda.Location {
	at, err := cuda.Locate(cuda.FindOptions{})
	require.NoError(t, err)
	return at
}

func TestKeysDependOnAllThatDecidesTheCode(t *testing.T) {
	p := tripleProgram()
	base := Key(p, 1, "sm_90a", "nvrtc 1")
	assert.Equal(t, base, Key(tripleProgram(), 1, "sm_90a", "nvrtc 1"))
	assert.NotEqual(t, base.Sum, Key(p, 2, "sm_90a", "nvrtc 1").Sum, "unit")
	assert.NotEqual(t, base.Sum, Key(p, 1, "sm_80", "nvrtc 1").Sum, "arch")
	assert.NotEqual(t, base.Sum, Key(p, 1, "sm_90a", "nvrtc 2").Sum, "compiler")
	p.Units[1].Strict = false
	assert.Equal(t, []string{"option"}, base.Differ(Key(p, 1, "sm_90a", "nvrtc 1"))[:1], "rounding")
}

func TestTextThatDoesNotCompile(t *testing.T) {
	requireNVRTC(t)
	p, folder := tripleProgram(), t.TempDir()
	p.Sources[0] = "this is no CUDA"
	c := NewCompiler(Options{Cache: newCache(t, t.TempDir()), SaveSource: folder})
	_, err := c.Compile(context.Background(), p, 0, "sm_80")
	var failed *CompileError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "twice", failed.Kernel)
	assert.ErrorContains(t, err, "twice.cu")
	text, err := os.ReadFile(failed.Source)
	require.NoError(t, err)
	assert.Equal(t, p.Text(0), string(text))
	assert.Equal(t, folder, filepath.Dir(failed.Source))
}

func TestCompileWithoutNVRTC(t *testing.T) {
	c := NewCompiler(Options{Cache: newCache(t, t.TempDir()), NVRTC: cuda.FindOptions{Path: t.TempDir()}})
	_, err := c.Compile(context.Background(), tripleProgram(), 0, "sm_80")
	assert.ErrorIs(t, err, cuda.ErrNoNVRTC)
}

// TestKernelsOutliveTheirCompiler runs from the cache on a machine that has lost its
// NVRTC.
func TestKernelsOutliveTheirCompiler(t *testing.T) {
	requireNVRTC(t)
	dir, p := t.TempDir(), tripleProgram()
	_, err := NewCompiler(Options{Cache: newCache(t, dir)}).Compile(context.Background(), p, 0, "sm_80")
	require.NoError(t, err)
	bare := NewCompiler(Options{Cache: newCache(t, dir), NVRTC: cuda.FindOptions{Path: t.TempDir()}})
	k, err := bare.Compile(context.Background(), p, 0, "sm_80")
	require.NoError(t, err)
	assert.Equal(t, cache.Hit, k.Outcome)
	_, err = bare.Compile(context.Background(), p, 1, "sm_80")
	assert.ErrorIs(t, err, cuda.ErrNoNVRTC, "what is not there cannot be made")
}

func TestCompileForAnUnknownArch(t *testing.T) {
	requireNVRTC(t)
	_, err := NewCompiler(Options{Cache: newCache(t, t.TempDir())}).
		Compile(context.Background(), tripleProgram(), 0, "sm_999")
	assert.ErrorIs(t, err, cuda.ErrUnsupportedArch)
}

func TestFactsOfTheLog(t *testing.T) {
	f := factsOf(`ptxas warning : Local memory used for function 'k', size of stack frame: 256 bytes
ptxas info    : 0 bytes gmem
ptxas info    : Function properties for k
ptxas         .     256 bytes stack frame, 12 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 32 registers, 256 bytes cumulative stack size`)
	assert.Equal(t, KernelFacts{Log: "ptxas warning : Local memory used for function 'k', size of stack frame: 256 bytes",
		Registers: 32, Stack: 256, Spills: 12}, f)
}

// TestFactsKeepAdvice: what ptxas calls information is left out, but for what it says
// costs speed.
func TestFactsKeepAdvice(t *testing.T) {
	const advice = "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async instructions are serialized " +
		"due to ill formed pipeline stage in the function 'k'\n" +
		"ptxas info    : Potential Performance Loss: 'setmaxnreg' ignored to maintain minimum register requirements."
	f := factsOf("ptxas info    : 0 bytes gmem\nptxas info    : Compiling entry function 'k' for 'sm_90a'\n" + advice +
		"\nptxas info    : Used 168 registers, used 1 barriers\nptxas info    : Compile time = 1.5 ms")
	assert.Equal(t, KernelFacts{Log: advice, Registers: 168}, f)
}

// serialized multiplies twice into sums that it changes in between, for which the
// second product waits for the first.
const serialized = `
#define PRODUCT asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;" \
    : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(a), "l"(b))
extern "C" __global__ void serialized(float *y, unsigned long long a, unsigned long long b) {
    float d[4] = {};
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    PRODUCT;
    BETWEEN;
    PRODUCT;
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; ++i) y[threadIdx.x * 4 + i] = d[i];
}
`

// TestSerializedProductsAreTold: the same products are told of only where they wait for
// each other, from the cache too.
func TestSerializedProductsAreTold(t *testing.T) {
	requireNVRTC(t)
	p := &ir.Program{Sources: []string{serialized}, Units: []ir.Unit{
		{Entry: "serialized", Defines: "#define BETWEEN\n"},
		{Entry: "serialized", Defines: "#define BETWEEN d[0] += 1\n"},
	}}
	c := NewCompiler(Options{Cache: newCache(t, t.TempDir())})
	for range 2 {
		k, err := c.Compile(context.Background(), p, 0, "sm_90a")
		require.NoError(t, err)
		assert.Empty(t, k.Log)
		k, err = c.Compile(context.Background(), p, 1, "sm_90a")
		require.NoError(t, err)
		assert.Contains(t, k.Log, "wgmma.mma_async instructions are serialized")
	}
}

// What the compiler took stands beside the code, and not among the facts, which do not change
// from one time to the next.
func TestStoredKernelsKnowWhatTheyTook(t *testing.T) {
	requireNVRTC(t)
	store := cache.Open(cache.Options{Dir: t.TempDir()})
	c := NewCompiler(Options{Cache: store})
	p := &ir.Program{Sources: []string{"text"}, Units: []ir.Unit{{Entry: "k", Block: [3]int{32, 1, 1}}}}
	key, err := c.Key(p, 0, "sm_80")
	require.NoError(t, err)
	_, ok := c.Stored(p, 0, "sm_80")
	assert.False(t, ok)
	meta, err := json.Marshal(kernelMeta{KernelFacts{Registers: 3}, 2 * time.Second})
	require.NoError(t, err)
	require.True(t, store.Put(key, cache.Entry{Sections: []cache.Section{{Name: cache.Meta, Data: meta}}}))
	k, ok := c.Stored(p, 0, "sm_80")
	require.True(t, ok)
	assert.Equal(t, 2*time.Second, k.CompileTook)
	assert.Equal(t, KernelFacts{Registers: 3}, k.KernelFacts)
	assert.Equal(t, "k sm_80 hit", fmt.Sprint(k.Entry, " ", k.Arch, " ", k.Outcome))
	facts, err := json.Marshal(k.KernelFacts)
	require.NoError(t, err)
	assert.NotContains(t, string(facts), "Took")
}

// TestLinesOfTheSource: code that keeps its lines names the source's and is cached apart; without, no code does.
func TestLinesOfTheSource(t *testing.T) {
	requireNVRTC(t)
	p := tripleProgram()
	p.Sources[0] = strings.Replace(p.Sources[0], ";\n", "; // my/twice.fuse:17:5\n", 1)
	require.Contains(t, p.Sources[0], "twice.fuse")
	folder := t.TempDir()
	c := NewCompiler(Options{Cache: newCache(t, t.TempDir()), SaveSource: folder})
	plain, err := c.Compile(context.Background(), p, 0, "sm_80")
	require.NoError(t, err)
	assert.NotContains(t, string(plain.PTX), "twice.fuse")
	traced, err := c.Compile(context.Background(), p.WithLineInfo(), 0, "sm_80")
	require.NoError(t, err)
	assert.False(t, traced.Outcome.IsHit())
	assert.Regexp(t, `\.file\s+\d+ ".*my/twice\.fuse"`, string(traced.PTX))
	assert.Regexp(t, `\.loc\s+\d+ 17 `, string(traced.PTX))
	assert.Contains(t, string(traced.Cubin), "debug_line")

	saved, err := filepath.Glob(filepath.Join(folder, "twice.*.cu"))
	require.NoError(t, err)
	require.Len(t, saved, 1, "the text that all other lines are of")
	assert.Contains(t, string(traced.PTX), saved[0])
	text, err := os.ReadFile(saved[0])
	require.NoError(t, err)
	assert.Contains(t, string(text), fmt.Sprintf("#line 6 %q", saved[0]))
}
