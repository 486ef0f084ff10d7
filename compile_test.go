package fusec_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/cuda"
	"github.com/fusec/fusec/runtime/simtest"
)

// program takes .fuse text through every stage, for a device or an architecture.
func program(t testing.TB, name, src, device string) (*ir.Graph, *ir.Plan, *ir.Program) {
	t.Helper()
	f, err := parser.Parse(name, []byte(src), parser.Options{})
	if err != nil {
		t.Fatalf("%s\n%s", src, diag.Render(err, func(n string) (string, bool) { return src, n == name }))
	}
	g, err := f.Graph("")
	require.NoError(t, err)
	d, err := ir.DeviceNamed(device)
	require.NoError(t, err)
	plan, err := fuse.Plan(g, fuse.Options{Device: d})
	require.NoError(t, err, src)
	p, err := codegen.Generate(plan)
	require.NoError(t, err, src)
	return g, plan, p
}

// unit is one kernel to compile for one architecture.
type unit struct {
	label, source, arch string
	strict              bool
}

// TestExamplesCompile compiles every size class of every example.
func TestExamplesCompile(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	files, err := filepath.Glob("examples/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	archs := []string{"sm_90a", "sm_80", "sm_89", "sm_75"}
	if testing.Short() {
		archs = archs[:1]
	}
	var units []unit
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for i, arch := range archs {
			_, plan, p := program(t, file, string(text), arch)
			units = append(units, unitsOf(file, plan, p, arch, i > 0)...)
		}
	}
	compileAll(t, n, units)
}

// TestProgramsCompile compiles the first and the last size class of every program
// of testdata, in turn for one architecture and the other.
func TestProgramsCompile(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	files, err := filepath.Glob("testdata/programs/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var units []unit
	for i, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		arch := []string{"sm_90a", "sm_80"}[i%2]
		_, plan, p := program(t, file, string(text), arch)
		units = append(units, unitsOf(file, plan, p, arch, true)...)
	}
	compileAll(t, n, units)
}

// TestAttendCompiles compiles streams of keys for the architectures whose tiles differ.
func TestAttendCompiles(t *testing.T) {
	n := fusec.RequireNVRTC(t)
	text, err := os.ReadFile("testdata/attend.fuse")
	require.NoError(t, err)
	f, err := parser.Parse("attend.fuse", text, parser.Options{})
	require.NoError(t, err)
	var units []unit
	for i, g := range f.Graphs {
		for j, arch := range []string{"sm_90a", "sm_80", "sm_89"} {
			if j > 0 && i%5 != j || testing.Short() && i%6 != 0 {
				continue
			}
			d, err := ir.DeviceNamed(arch)
			require.NoError(t, err)
			plan, err := fuse.Plan(g, fuse.Options{Device: d})
			require.NoError(t, err)
			require.True(t, slices.ContainsFunc(plan.Kernels, func(k *ir.Kernel) bool { return k.Template == ir.AttendTemplate }), g.Name)
			p, err := codegen.Generate(plan)
			require.NoError(t, err)
			units = append(units, unitsOf(g.Name, plan, p, arch, true)...)
		}
	}
	compileAll(t, n, units)
}

// unitsOf lists the units of a program; with ends, the first and the last size
// class of each kernel.
func unitsOf(label string, plan *ir.Plan, p *ir.Program, arch string, ends bool) []unit {
	var out []unit
	seen := map[int]bool{}
	for i, launch := range p.Launches {
		for j, v := range launch.Variants {
			if seen[v.Unit] || ends && j > 0 && j < len(launch.Variants)-1 {
				continue
			}
			seen[v.Unit] = true
			s := plan.Launched()[i].Variants[j].Schedule
			out = append(out, unit{
				label:  fmt.Sprintf("%s, kernel %s, variant %d of %d, %+v", label, launch.Kernel, j, len(launch.Variants), s),
				source: codegen.CUDA(p, v.Unit), arch: arch, strict: p.Units[v.Unit].Strict,
			})
		}
	}
	return out
}

// compileAll compiles units on all cores and reports what does not compile, warns,
// spills or needs local memory, and instructions that tests on the CPU could not run.
func compileAll(t *testing.T, n *cuda.NVRTC, units []unit) {
	t.Helper()
	work := make(chan unit)
	var group sync.WaitGroup
	var unknown sync.Map // forms of instructions, with a unit that has them
	for range runtime.NumCPU() {
		group.Go(func() {
			for u := range work {
				compileOne(t, n, u, &unknown)
			}
		})
	}
	for _, u := range units {
		work <- u
	}
	close(work)
	group.Wait()
	unknown.Range(func(form, label any) bool {
		t.Errorf("the simulator does not know %s, of %s", form, label)
		return true
	})
	t.Logf("%d units", len(units))
}

var memoryUse = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads`)

func compileOne(t *testing.T, n *cuda.NVRTC, u unit, unknown *sync.Map) {
	options := []string{"--gpu-architecture=" + u.arch, "--ptxas-options=-v"}
	if u.strict {
		options = append(options, "--fmad=false")
	}
	r, err := n.Compile(t.Context(), cuda.Request{Name: "kernel.cu", Source: u.source, Options: options})
	if !assert.NoError(t, err, "%s for %s\n%s", u.label, u.arch, body(u.source)) {
		return
	}
	for _, complaint := range []string{"warning", "Potential Performance Loss"} { // the second is of wgmma
		assert.NotContains(t, r.Log, complaint, "%s for %s", u.label, u.arch)
	}
	forms, err := simtest.Unknown(string(r.PTX))
	assert.NoError(t, err, "%s for %s", u.label, u.arch)
	for _, form := range forms {
		unknown.LoadOrStore(form, fmt.Sprintf("%s for %s", u.label, u.arch))
	}
	use := memoryUse.FindStringSubmatch(r.Log)
	if assert.NotNil(t, use, "no report of memory in %q", r.Log) {
		assert.Equal(t, []string{"0", "0", "0"}, use[1:], "%s for %s: stack, spill stores, spill loads", u.label, u.arch)
	}
}

// body is a source without the prelude, for messages.
func body(source string) string {
	if at := strings.Index(source, "extern \"C\""); at >= 0 {
		return source[at:]
	}
	return source
}

// TestLibraryCompiles compiles the first reference program of every library
// function, in f32.
func TestLibraryCompiles(t *testing.T) {
	if testing.Short() {
		t.Skip("the examples do")
	}
	n := fusec.RequireNVRTC(t)
	docs, err := parser.Library()
	require.NoError(t, err)
	programs := referencePrograms(t)
	var units []unit
	covered := 0
	for i, d := range docs {
		at := slices.IndexFunc(programs, func(src string) bool { return strings.Contains(src, " "+d.Name+"(") })
		if at < 0 {
			continue // part of another function
		}
		covered++
		src := strings.ReplaceAll(programs[at], "f64", "f32")
		arch := []string{"sm_80", "sm_89", "sm_90a", "sm_75"}[i%4]
		_, plan, p := program(t, d.Name+".fuse", src, arch)
		units = append(units, unitsOf(d.Name, plan, p, arch, true)...)
	}
	assert.Greater(t, covered, len(docs)*9/10, "functions with a program")
	compileAll(t, n, units)
}

// referencePrograms returns the programs of testdata/reference.
func referencePrograms(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/reference/*.json")
	require.NoError(t, err)
	var out []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var cases []struct{ Program string }
		require.NoError(t, json.Unmarshal(text, &cases))
		for _, c := range cases {
			if !strings.HasSuffix(c.Program, ".fuse") {
				out = append(out, c.Program)
			}
		}
	}
	return out
}

// TestProductsCompile compiles every size class of the products that the GPU tests
// run: tensor cores of both kinds, and the loops behind them.
func TestProductsCompile(t *testing.T) {
	if testing.Short() {
		t.Skip("the examples do")
	}
	n := fusec.RequireNVRTC(t)
	var units []unit
	for name, text := range fusec.Products {
		_, plan, p := program(t, name, "graph product"+strings.ReplaceAll(text, "T[", "bf16["), "sm_90a")
		units = append(units, unitsOf(name, plan, p, "sm_90a", false)...)
	}
	for name, text := range fusec.LongSums {
		_, plan, p := program(t, name, "graph product"+text, "sm_90a")
		units = append(units, unitsOf(name, plan, p, "sm_90a", true)...) // the first of which is sliced
	}
	compileAll(t, n, units)
}
