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
	file := filepath.Join(t.TempDir(), "p.fuse")
	require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
	getenv := func(name string) string { return map[string]string{"FUSEC_CACHE": "off"}[name] }
	var stdout, stderr bytes.Buffer
	a := &app{ctx: t.Context(), ui: newUI(&stdout, &stderr, "never", getenv), getenv: getenv, files: newSources(nil),
		openDevice: runtime.Open}
	if device == "cuda" {
		s := simtest.New(t, simtest.Config{})
		a.openDevice = func(spec string, opts runtime.Options) (*runtime.Device, error) {
			opts.Driver, opts.Kernels = s.Path, ptx{nothing}
			return runtime.Open(spec, opts)
		}
	}
	c := &profileCmd{File: file, Device: device, Size: size, Seed: 1, Repeat: 4, JSON: true}
	require.Zero(t, a.report(c.Run(a)), stderr.String())
	p := &profile{}
	require.NoError(t, json.Unmarshal(stdout.Bytes(), p))
	return p
}

// On either device the shares of kernels, and those of lines, add up to the whole; each kernel
// has bytes, a roof and what is live, and lines have all of the kernels' time.
func TestProfilesAddUp(t *testing.T) {
	const text = `graph p(x: f32[N, N]) -> (t: f32[N], c: f32[N]) {
    s = cumsum(x, axis=0)
    t = sum(cumsum(s * s, axis=1), axis=1)
    c = s[0]
}
`
	for _, device := range []string{"cpu", "cuda"} {
		p := profileOf(t, text, device, map[string]int64{"N": 64})
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
