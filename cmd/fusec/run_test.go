package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// ptx is a source of kernels that do one thing, whatever they should.
type ptx struct{ body string }

func (k ptx) Compile(_ context.Context, p *ir.Program, unit int, arch string) (runtime.Kernel, error) {
	var params []string
	for _, l := range p.Launches {
		for _, v := range l.Variants {
			if v.Unit == unit && params == nil {
				for i := range v.Args {
					params = append(params, fmt.Sprintf(".param .u64 p%d", i))
				}
			}
		}
	}
	entry := p.Units[unit].Entry
	return runtime.Kernel{Entry: entry, Arch: arch, PTX: fmt.Appendf(nil,
		".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry %s(%s) {\n%s\nret;\n}\n", entry,
		strings.Join(params, ", "), k.body)}, nil
}

const (
	nothing = ""
	faults  = ".reg .b64 %rd<3>;\nmov.u64 %rd1, 64;\nld.global.u64 %rd2, [%rd1];"
)

// runAuto runs a program on `auto`, whose GPU is simulated and has kernels of that body; harm is
// done to it first.
func runAuto(t *testing.T, body string, harm func(*simtest.Simulator)) (code int, out, errs string) {
	s := simtest.New(t, simtest.Config{})
	harm(s)
	file := filepath.Join(t.TempDir(), "p.fuse")
	require.NoError(t, os.WriteFile(file, []byte("graph p(x: f32[N]) -> (y: f32[N]) { y = x + 1 }\n"), 0o666))
	getenv := func(name string) string {
		if name == "FUSEC_CACHE" {
			return t.TempDir()
		}
		return ""
	}
	var stdout, stderr bytes.Buffer
	a := &app{ctx: t.Context(), ui: newUI(&stdout, &stderr, "never", getenv), getenv: getenv, files: newSources(nil),
		openDevice: func(spec string, opts runtime.Options) (*runtime.Device, error) {
			opts.Driver, opts.Kernels = s.Path, ptx{body}
			return runtime.Open(spec, opts)
		}}
	c := &runCmd{File: file, Device: "auto", Size: map[string]int64{"N": 100}, Seed: 1}
	return a.report(c.Run(a)), stdout.String(), stderr.String()
}

// TestFaultsEndTheRun: a GPU that fails while it runs is never made up for on the CPU; one that
// cannot run the program is.
func TestFaultsEndTheRun(t *testing.T) {
	const outOfMemory, unavailable, noDevice = 2, 46, 100
	code, out, errs := runAuto(t, nothing, func(*simtest.Simulator) {})
	require.Zero(t, code, errs)
	assert.Contains(t, out, "simulated")

	code, out, errs = runAuto(t, faults, func(*simtest.Simulator) {})
	assert.Equal(t, exitDevice, code)
	assert.Empty(t, out)
	assert.Contains(t, errs, "is lost")
	assert.NotContains(t, errs, "running on the CPU")

	for _, c := range []struct {
		call   string
		status int32
	}{{"cuDevicePrimaryCtxRetain", unavailable}, {"cuDevicePrimaryCtxRetain", outOfMemory}, {"cuInit", noDevice}} {
		code, out, errs = runAuto(t, faults, func(s *simtest.Simulator) { s.Fail(c.call, c.status, 0) })
		assert.Zero(t, code, c.call)
		assert.Contains(t, errs, "running on the CPU", c.call)
		assert.Contains(t, out, "CPU", c.call)
	}
}
