package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// profileOf profiles a program, on a simulated GPU whose kernels do nothing or on the CPU.
func profileOf(t *testing.T, text, device string, size map[string]int64) *profile {
	t.Helper()
	code, stdout, stderr := runProfile(t, text, &profileCmd{Device: device, Size: size, JSON: true})
	require.Zero(t, code, stderr)
	p := &profile{}
	require.NoError(t, json.Unmarshal([]byte(stdout), p))
	return p
}

// runProfile runs the command on a program, on the same devices.
func runProfile(t *testing.T, text string, c *profileCmd) (code int, out, errs string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "p.fuse")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	getenv := func(name string) string { return map[string]string{"FUSEC_CACHE": "off"}[name] }
	var stdout, stderr bytes.Buffer
	a := &app{ctx: t.Context(), ui: newUI(&stdout, &stderr, "never", getenv), getenv: getenv, files: newSources(nil),
		openDevice: runtime.Open}
	if c.Device == "cuda" {
		s := simtest.New(t, simtest.Config{})
		a.openDevice = func(spec string, opts runtime.Options) (*runtime.Device, error) {
			opts.Driver, opts.Kernels = s.Path, ptx{nothing}
			return runtime.Open(spec, opts)
		}
	}
	c.File, c.Seed, c.Repeat = file, 1, 4
	return a.report(c.Run(a)), stdout.String(), stderr.String()
}

const twoKernels = `graph p(x: f32[N, N]) -> (t: f32[N], c: f32[N]) {
    s = cumsum(x, axis=0)
    t = sum(cumsum(s * s, axis=1), axis=1)
    c = s[0]
}
`

// On either device the shares of kernels, and those of lines, add up to the whole; each kernel
// has bytes, a roof and what is live, and lines have all of the kernels' time.
func TestProfilesAddUp(t *testing.T) {
	for _, device := range []string{"cpu", "cuda"} {
		p := profileOf(t, twoKernels, device, map[string]int64{"N": 64})
		require.NotEmpty(t, p.Kernels, device)
		shares, times, lines, lineShares := 0.0, 0.0, 0.0, 0.0
		for _, k := range p.Kernels {
			shares, times = shares+k.Share, times+k.Time.Median
			assert.Positive(t, k.Bytes, k.Name)
			assert.NotEmpty(t, k.Roof, k.Name)
			assert.Positive(t, k.OfRoof, k.Name)
			assert.GreaterOrEqual(t, k.Live, p.Inputs+p.Outputs, k.Name)
			assert.NotEmpty(t, k.Lines, k.Name)
			assert.Positive(t, k.Time.Count, k.Name)
			assert.LessOrEqual(t, k.Time.Min, k.Time.Median, k.Name)
		}
		for _, l := range p.Lines {
			lines, lineShares = lines+l.Seconds, lineShares+l.Share
			assert.NotEmpty(t, l.Text)
		}
		assert.InDelta(t, 1, shares, 1e-6, device)
		assert.InDelta(t, 1, lineShares, 1e-6, device)
		assert.InEpsilon(t, times, lines, 1e-6, device)
		assert.Equal(t, int64(64*64*4), p.Inputs)
		assert.Equal(t, int64(2*64*4), p.Outputs)
		assert.Equal(t, 4, p.Run.Count)
		end := 0.0
		for _, e := range p.events() {
			if e.Phase == "X" && e.TID == deviceTrack {
				assert.GreaterOrEqual(t, e.Start, end-1e-6, "kernels of a timeline do not overlap")
				end = e.Start + e.Took
			}
		}
	}
}

// TestProfilesWithCounters: of each kernel, as data, as text and on the page; what the chip does not count is left out.
func TestProfilesWithCounters(t *testing.T) {
	simtest.CUPTI(t, false)
	sizes := map[string]int64{"N": 64}
	code, out, errs := runProfile(t, twoKernels, &profileCmd{Device: "cuda", Size: sizes, Counters: true, Cold: true, JSON: true})
	require.Zero(t, code, errs)
	var p profile
	require.NoError(t, json.Unmarshal([]byte(out), &p))
	require.Greater(t, len(p.Kernels), 1)
	for i, k := range p.Kernels {
		of := func(metric string) float64 { return float64(1000*i + len(metric)) }
		assert.Equal(t, map[string]float64{"dram_read": of("dram__bytes_read.sum"), "dram_written": of("dram__bytes_write.sum"),
			"occupancy": of("sm__warps_active.avg.pct_of_peak_sustained_active") / 100,
			"tensor":    of("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active") / 100,
			"issue":     of("sm__inst_issued.avg.pct_of_peak_sustained_active") / 100}, k.Counters)
	}
	assert.Equal(t, []string{"20 B read from memory", "21 B written to memory", "49% of the warps that a multiprocessor holds",
		"62% of the tensor pipes' cycles busy", "48% of issue slots used"}, p.Kernels[0].countersWords())
	found := 0
	for _, e := range p.events() {
		if _, ok := e.Args["counted_dram_read"]; ok {
			found++
		}
	}
	assert.Equal(t, len(p.Kernels), found, "in the timeline")

	code, out, errs = runProfile(t, twoKernels, &profileCmd{Device: "cuda", Size: sizes, Counters: true})
	require.Zero(t, code, errs)
	assert.Regexp(t, `(?m)^ +read +written +L2 hits +occupancy +tensor pipes +issue slots +computes$`, out)
	assert.Regexp(t, `(?m)^ *1 +20 B +21 B +- +49% +62% +48% `, out)
	assert.Empty(t, profileOf(t, twoKernels, "cuda", sizes).Kernels[0].Counters, "only where they are asked for")
}

// TestCountersThatCannotBeHad: the error says what is missing, and what to do.
func TestCountersThatCannotBeHad(t *testing.T) {
	sizes := map[string]int64{"N": 64}
	code, _, errs := runProfile(t, twoKernels, &profileCmd{Device: "cpu", Size: sizes, Counters: true})
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "--counters: only GPUs are counted, by CUPTI")
	simtest.CUPTI(t, true)
	code, _, errs = runProfile(t, twoKernels, &profileCmd{Device: "cuda", Size: sizes, Counters: true})
	assert.Equal(t, exitDevice, code)
	assert.Contains(t, errs, "reading the hardware's counters is not permitted: run as root, or have the driver loaded with")
	nowhere := t.TempDir()
	t.Setenv("FUSEC_CUPTI", nowhere)
	code, _, errs = runProfile(t, twoKernels, &profileCmd{Device: "cuda", Size: sizes, Counters: true})
	assert.Equal(t, exitDevice, code)
	assert.Contains(t, errs, "no CUPTI: libcupti.so.1")
	assert.Contains(t, errs, "is not in "+nowhere)
}
