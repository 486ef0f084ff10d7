package conformance

import (
	"fmt"
	"hash/crc32"
	"os"
	goruntime "runtime"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// compiled checks the kernels of a row.
func (f *family) compiled(t *testing.T, i int, known *references) {
	r := f.rows[i]
	for _, c := range f.compile {
		if c.rows != nil && !c.rows(i, r.name) || testing.Short() && !c.short {
			continue
		}
		arch := r.arch
		if arch == "" {
			arch = c.archs[i%len(c.archs)]
		}
		RequireNVRTC(t)
		if !inFull() && !hashDraws(r.graph+r.src+arch, 8) {
			continue
		}
		p := known.program(t, &r, arch)
		program, err := p.CUDA()
		require.NoError(t, err)
		units := unitsOf(p.Plan(), program, c.keep, c.ends)
		if testing.Short() && c.keep != nil {
			units = units[:min(1, len(units))]
		}
		compileAll(t, program, units, arch)
	}
}

// A unit is one kernel to compile.
type unit struct {
	index int // in the program
	label string
}

// oneInUnits is of how many units one is compiled to machine code, of one row in eight: of fewer of them, and of each row, where
// FUSEC_TEST_FULL is set, as in .ci/run, and each where it is "units". Which ones follows from their texts: a change of a kernel
// draws anew, and a text is decided alike everywhere. What a simulator runs is compiled as far as PTX in any case.
func oneInUnits() uint32 {
	switch {
	case inUnits():
		return 1
	case inFull():
		return 10
	}
	return 15
}

// inUnits is whether each size class is compiled and each row simulated on both devices: what a change of many kernels deserves once,
// and a machine with many cores.
func inUnits() bool { return os.Getenv("FUSEC_TEST_FULL") == "units" }

// inFull is whether tests take every program, as in .ci/run, and not what is enough while one works.
func inFull() bool { return os.Getenv("FUSEC_TEST_FULL") != "" }

// hashDraws is whether a text is one of those in so many that its hash draws.
func hashDraws(text string, oneIn uint32) bool { return crc32.ChecksumIEEE([]byte(text))%oneIn == 0 }

// unitsOf lists the units of the variants to keep; with ends, the first and the last of them of each
// kernel.
func unitsOf(plan *ir.Plan, p *ir.Program, keep func(*ir.Variant) bool, ends bool) (out []unit) {
	seen := map[int]bool{}
	for i, launch := range p.Launches {
		var kept []int
		for j := range launch.Variants {
			if keep == nil || keep(plan.Launched()[i].Variants[j]) {
				kept = append(kept, j)
			}
		}
		for n, j := range kept {
			v := &launch.Variants[j]
			if seen[v.Unit] || ends && n > 0 && n < len(kept)-1 {
				continue
			}
			seen[v.Unit] = true
			if !hashDraws(p.Text(v.Unit), oneInUnits()) {
				continue
			}
			out = append(out, unit{v.Unit, fmt.Sprintf("kernel %s, variant %d of %d, %+v", launch.Kernel, j, len(launch.Variants),
				plan.Launched()[i].Variants[j].Schedule)})
		}
	}
	return out
}

// checker is that of all tests, so that they ask for a kernel once.
var checker = sync.OnceValue(func() Checker { return NewChecker(runtime.Options{}) })

// compileAll compiles units on all cores.
func compileAll(t *testing.T, p *ir.Program, units []unit, arch string) {
	t.Helper()
	work := make(chan unit)
	var group sync.WaitGroup
	for range min(goruntime.NumCPU(), len(units)) {
		group.Go(func() {
			for u := range work {
				assert.NoError(t, checker().Check(t.Context(), p, u.index, arch), "%s for %s", u.label, arch)
			}
		})
	}
	for _, u := range units {
		work <- u
	}
	close(work)
	group.Wait()
}

// TestLargeTilesCompile compiles large products in f32 under every tile that tuning may choose.
func TestLargeTilesCompile(t *testing.T) {
	t.Parallel()
	RequireNVRTC(t)
	const src = "@onekernel graph g(a: f32[M, K], b: f32[K, N], c: f32[N]) -> (y: f32[M, N]) { y = relu(a @ b + c) }"
	for _, of := range []struct {
		arch    string
		columns int64
	}{{"sm_90a", 4096}, {"sm_80", 4096}, {"sm_90a", 8192}} {
		t.Run(fmt.Sprint(of), func(t *testing.T) {
			sizes, compiled := map[string]int64{"M": 4096, "N": 4096, "K": of.columns}, 0
			p := planned(t, row{name: "g", src: src}, of.arch)
			device, err := ir.DeviceNamed(of.arch)
			require.NoError(t, err)
			for _, choice := range fuse.Candidates(p.Plan(), p.Plan().Kernels[0], sizes) {
				if choice.Variant != choice.Class {
					continue
				}
				plan, err := fuse.Plan(p.Graph(), fuse.Options{Device: device, Choices: []fuse.Choice{choice}})
				require.NoError(t, err)
				program := codegen.Generate(plan)
				if compiled++; compiled%8 != 1 && !inFull() {
					continue
				}
				at := slices.IndexFunc(plan.Kernels[0].Variants, func(v *ir.Variant) bool { return v.Schedule == choice.Schedule })
				require.GreaterOrEqual(t, at, 0)
				compileAll(t, program, []unit{{program.Launches[0].Variants[at].Unit, fmt.Sprintf("%+v", choice.Schedule)}}, of.arch)
			}
			require.NotZero(t, compiled)
		})
	}
}
