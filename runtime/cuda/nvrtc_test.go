package cuda

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// requireNVRTC skips where there is no NVRTC, except in continuous integration,
// where a test that never runs must not look like one that passes.
func requireNVRTC(t testing.TB) *NVRTC {
	t.Helper()
	n, err := FindNVRTC(FindOptions{})
	if err == nil {
		return n
	}
	if os.Getenv("CI") == "true" && noLoader == "" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	return nil
}

const scaleSource = `extern "C" __global__ void scale(float* x, float by, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}`

func TestCompileGivesCubinAndPTXAtOnce(t *testing.T) {
	n := requireNVRTC(t)
	for _, arch := range []string{"sm_80", "sm_90a"} {
		start := time.Now()
		result, err := n.Compile(t.Context(), Request{
			Name: "scale.cu", Source: scaleSource, Options: []string{"--gpu-architecture=" + arch},
		})
		require.NoError(t, err)
		t.Logf("%s: cubin %d bytes, PTX %d bytes, %v", arch, len(result.CUBIN), len(result.PTX), time.Since(start))
		assert.True(t, bytes.HasPrefix(result.CUBIN, []byte(elfMagic)))
		assert.Contains(t, string(result.PTX), ".target "+arch)
		assert.Contains(t, string(result.PTX), ".entry scale")
		assert.NotContains(t, string(result.PTX), "\x00")
		assert.Empty(t, result.Log)
		_, err = loadable(result.CUBIN)
		assert.NoError(t, err, "a whole cubin passes the check for truncation")
	}
}

func TestCompileForVirtualArchGivesPTXOnly(t *testing.T) {
	n := requireNVRTC(t)
	result, err := n.Compile(t.Context(), Request{
		Source: scaleSource, Options: []string{"--gpu-architecture=compute_80"},
	})
	require.NoError(t, err)
	assert.Nil(t, result.CUBIN)
	assert.Contains(t, string(result.PTX), ".target sm_80")
}

func TestCompileErrorHoldsTheLog(t *testing.T) {
	n := requireNVRTC(t)
	_, err := n.Compile(t.Context(), Request{Name: "bad.cu", Source: "int f() { return nowhere; }"})
	var failed *CompileError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "NVRTC_ERROR_COMPILATION", failed.Reason)
	assert.Contains(t, failed.Log, "bad.cu(1): error")
	assert.Contains(t, err.Error(), `identifier "nowhere" is undefined`)
}

func TestCompileKeepsWarnings(t *testing.T) {
	n := requireNVRTC(t)
	result, err := n.Compile(t.Context(), Request{
		Source: `extern "C" __global__ void k() { int unused; }`, Options: []string{"--gpu-architecture=sm_80"},
	})
	require.NoError(t, err)
	assert.Contains(t, result.Log, `variable "unused" was declared but never referenced`)
}

func TestCompileRefusesWhatNVRTCWouldMisread(t *testing.T) {
	n := requireNVRTC(t)
	_, err := n.Compile(t.Context(), Request{Source: scaleSource, Options: []string{"--no-such-option"}})
	var failed *CompileError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, "NVRTC_ERROR_INVALID_OPTION", failed.Reason)

	_, err = n.Compile(t.Context(), Request{Source: scaleSource + "\x00 junk"})
	assert.ErrorContains(t, err, "NUL")

	_, err = n.Compile(t.Context(), Request{Source: scaleSource, Options: []string{"-arch=sm_30"}})
	assert.ErrorIs(t, err, ErrUnsupportedArch)
	assert.ErrorContains(t, err, "sm_30")
}

// TestCompileRefusesTextThatCEndsEarly: a NUL byte at any place of any text is found before NVRTC sees it.
func TestCompileRefusesTextThatCEndsEarly(t *testing.T) {
	n := &NVRTC{} // that is not asked
	for _, text := range []string{"\x00", "\x00text", "te\x00xt", "text\x00"} {
		for of, r := range map[string]Request{
			"name": {Name: text}, "source": {Source: text}, "first option": {Options: []string{text, "-w"}}, "last option": {Options: []string{"-w", text}},
		} {
			var failed *CompileError
			if err := n.check(r); assert.ErrorAs(t, err, &failed, "%s %q", of, text) {
				assert.Contains(t, failed.Log, "NUL byte")
			}
		}
	}
}

func TestCompileStopsWaitingWhenTheContextEnds(t *testing.T) {
	n := requireNVRTC(t)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := n.Compile(ended, Request{Source: scaleSource})
	assert.ErrorIs(t, err, context.Canceled)

	// A source that takes NVRTC far longer than the context lasts.
	var long strings.Builder
	for i := range 400 {
		fmt.Fprintf(&long, "extern \"C\" __global__ void k%d(float* x) { x[0] = __sinf(x[%d]); }\n", i, i)
	}
	brief, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err = n.Compile(brief, Request{Source: long.String(), Options: []string{"--gpu-architecture=sm_80"}})
	assert.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestCompileFromManyGoroutines(t *testing.T) {
	n := requireNVRTC(t)
	var group sync.WaitGroup
	start := time.Now()
	for i := range 8 {
		group.Go(func() {
			name := fmt.Sprintf("kernel_%d", i)
			result, err := n.Compile(t.Context(), Request{
				Source:  strings.ReplaceAll(scaleSource, "scale", name),
				Options: []string{"--gpu-architecture=sm_80"},
			})
			if assert.NoError(t, err) {
				assert.Contains(t, string(result.PTX), name)
			}
		})
	}
	group.Wait()
	t.Logf("8 compiles side by side: %v", time.Since(start))
}

func TestCompileIsDeterministic(t *testing.T) {
	n := requireNVRTC(t)
	request := Request{Source: scaleSource, Options: []string{"--gpu-architecture=sm_90a"}}
	first, err := n.Compile(t.Context(), request)
	require.NoError(t, err)
	second, err := n.Compile(t.Context(), request)
	require.NoError(t, err)
	assert.Equal(t, first, second)
}

func TestNVRTCDescribesItself(t *testing.T) {
	n := requireNVRTC(t)
	major, minor := n.Version()
	t.Logf("NVRTC %d.%d at %s, architectures %v", major, minor, n.Location().Path, n.Archs())
	assert.GreaterOrEqual(t, major, 11)
	assert.Contains(t, n.Archs(), 80)
	located, err := Locate(FindOptions{})
	require.NoError(t, err)
	assert.Equal(t, n.Location().Identity(), located.Identity(), "the same file, opened or not")
}

func TestSupportsArch(t *testing.T) {
	old := &NVRTC{major: 12, minor: 4, archs: []int{75, 80, 90}}
	recent := &NVRTC{major: 12, minor: 9, archs: []int{80, 90, 100}}
	for _, row := range []struct {
		n    *NVRTC
		arch string
		want bool
	}{
		{old, "sm_80", true}, {old, "compute_80", true}, {old, "sm_90a", true}, {old, "sm_80a", false},
		{old, "sm_100", false}, {old, "sm_90f", false}, {old, "sm_", false}, {old, "native", false},
		{recent, "sm_100f", true}, {recent, "sm_100a", true}, {recent, "sm_90f", false},
		{recent, "sm_100af", false},
	} {
		assert.Equal(t, row.want, row.n.SupportsArch(row.arch), "%d.%d %s", row.n.major, row.n.minor, row.arch)
	}
}

func TestSupportedOptionsFollowTheVersion(t *testing.T) {
	all := []string{"--gpu-architecture=sm_80", "--minimal", "--pch", "--Ofast-compile=max"}
	for _, row := range []struct {
		major, minor, want int
	}{{11, 8, 1}, {12, 3, 1}, {12, 4, 2}, {12, 8, 3}, {12, 9, 4}, {13, 0, 4}} {
		n := &NVRTC{major: row.major, minor: row.minor}
		assert.Equal(t, all[:row.want], n.SupportedOptions(all...), "%d.%d", row.major, row.minor)
	}
}

// TestOptionTableAgreesWithNVRTC asks the NVRTC at hand about every option listed.
func TestOptionTableAgreesWithNVRTC(t *testing.T) {
	n := requireNVRTC(t)
	for option := range optionSince {
		spelled := option
		if option == "--Ofast-compile" {
			spelled += "=max"
		}
		_, err := n.Compile(t.Context(), Request{Source: scaleSource,
			Options: []string{"--gpu-architecture=sm_80", spelled}})
		if n.SupportsOption(option) {
			assert.NoError(t, err, option)
		} else {
			assert.ErrorContains(t, err, "unrecognized option", option)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	n := requireNVRTC(b)
	for b.Loop() {
		_, err := n.Compile(b.Context(), Request{Source: scaleSource,
			Options: n.SupportedOptions("--gpu-architecture=sm_90a", "--minimal")})
		require.NoError(b, err)
	}
}
