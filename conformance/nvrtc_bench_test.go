//go:build unix

package conformance

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/cuda"
)

// BenchmarkNVRTC compiles the kernels that the programs of bench need for their own
// sizes, each on its own: NVRTC/sm_90a/MAPPING/KERNEL. It reports the least processor
// time of b.N compiles in milliseconds, that of the front end and the optimiser, which
// make PTX, and what the assembler adds. On a machine with other work to do the
// processor's time is that of the compile still, if somewhat longer.
func BenchmarkNVRTC(b *testing.B) {
	n := openNVRTC(b)
	var files []string
	for _, pattern := range []string{"../bench/*.fuse", "../bench/suite/*.fuse"} {
		more, err := filepath.Glob(pattern)
		require.NoError(b, err)
		files = append(files, more...)
	}
	require.NotEmpty(b, files)
	for _, arch := range []string{"sm_90a", "sm_80"} {
		b.Run(arch, func(b *testing.B) {
			done := map[string]bool{}
			for _, file := range files {
				for _, s := range skeletons(b, file, arch) {
					if !done[s.source] {
						done[s.source] = true
						b.Run(s.label, func(b *testing.B) { timeCompiles(b, n, s) })
					}
				}
			}
		})
	}
}

// A skeleton is a kernel to compile by itself.
type skeleton struct {
	label, source, arch string
	strict              bool
}

// openNVRTC opens the compiler.
func openNVRTC(b *testing.B) *cuda.NVRTC {
	b.Helper()
	RequireNVRTC(b)
	n, err := cuda.FindNVRTC(cuda.FindOptions{})
	require.NoError(b, err)
	return n
}

// skeletons are the units that each graph of a file needs for its default sizes,
// labelled with their mapping and their name.
func skeletons(b *testing.B, file, arch string) (out []skeleton) {
	text, err := os.ReadFile(file)
	require.NoError(b, err)
	f, err := parser.Parse(file, text, parser.Options{})
	require.NoError(b, err)
	d, err := ir.DeviceNamed(arch)
	require.NoError(b, err)
	for _, g := range f.Graphs {
		plan, err := fuse.Plan(g, fuse.Options{Device: d})
		require.NoError(b, err)
		p := codegen.Generate(plan)
		for i := range p.Launches {
			launch := &p.Launches[i]
			chosen := launch.Choose(p.Defaults)
			for j := range launch.Variants {
				if v := &launch.Variants[j]; v == chosen {
					mapping := plan.Launched()[i].Variants[j].Schedule.Mapping
					out = append(out, skeleton{label: mapping.String() + "/" + launch.Kernel,
						source: p.Text(v.Unit), arch: arch, strict: p.Units[v.Unit].Strict})
				}
			}
		}
	}
	return out
}

// timeCompiles compiles a unit b.N times to PTX and b.N times to machine code.
func timeCompiles(b *testing.B, n *cuda.NVRTC, u skeleton) {
	virtual := strings.Replace(u.arch, "sm_", "compute_", 1)
	ptx, all := math.Inf(1), math.Inf(1)
	for range b.N {
		ptx = min(ptx, compileTime(b, n, u, virtual))
		all = min(all, compileTime(b, n, u, u.arch))
	}
	b.ReportMetric(0, "ns/op") // of both, with the waits for other work
	b.ReportMetric(all, "cpu-ms")
	b.ReportMetric(ptx, "ptx-ms")
	b.ReportMetric(all-ptx, "ptxas-ms")
}

// compileTime is the processor time of one compile, in milliseconds.
func compileTime(b *testing.B, n *cuda.NVRTC, u skeleton, arch string) float64 {
	options := n.SupportedOptions("--gpu-architecture="+arch, "--std=c++17", "--minimal", "--no-cache")
	if u.strict {
		options = append(options, "--fmad=false")
	}
	start := processorTime(b)
	_, err := n.Compile(b.Context(), cuda.Request{Source: u.source, Options: options})
	spent := processorTime(b) - start
	require.NoError(b, err, u.label)
	return spent.Seconds() * 1000
}

// processorTime is what the process has taken of processors so far.
func processorTime(b *testing.B) time.Duration {
	var use syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &use))
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}
