package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	fusecrt "github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
)

type compileCmd struct {
	File     string           `arg:"" name:"file" help:"The program."`
	Graph    string           `help:"One graph of the program; all by default."`
	Arch     []string         `default:"sm_90a" complete:"archs" help:"Architectures to compile for, as sm_90a,sm_80."`
	Emit     []string         `enum:"cuda,ptx,cubin" help:"Also write these (cuda,ptx,cubin) to -o."`
	Output   string           `short:"o" default:"." placeholder:"DIR" help:"Folder for what --emit writes."`
	Size     map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Compile only what these sizes need."`
	LineInfo bool             `help:"Keep in the kernels which lines of the program they are from, for Nsight Compute and debuggers; the code is the same."`
	Werror   bool             `help:"Exit with 1 where the compiler warns, or a kernel spills registers."`
}

// Help is the long help text.
func (*compileCmd) Help() string {
	return `Compiles through NVRTC, into the cache. Needs no GPU; with --emit cuda alone nothing is
compiled, and no NVRTC needed.

Examples:

    fusec compile examples/softmax.fuse --arch sm_90a,sm_80
    fusec compile examples/softmax.fuse --emit cuda,ptx -o out --size N=8192,M=8192`
}

// build is one unit to compile for one architecture.
type build struct {
	program *ir.Program
	unit    int
	arch    string
	kernel  fusecrt.Kernel
}

// Run compiles the units and prints a line for each.
func (c *compileCmd) Run(a *app) error {
	graphs, err := a.graphs(c.File, c.Graph)
	if err != nil {
		return err
	}
	if err := checkSymbols(c.Size, graphs); err != nil {
		return err
	}
	store := a.openCache()
	var builds []*build
	for _, g := range graphs {
		more, err := c.builds(g, store)
		if err != nil {
			return err
		}
		builds = append(builds, more...)
	}
	if slices.Equal(c.Emit, []string{"cuda"}) { // text needs no compiler
		return c.emit(a, builds)
	}
	compiler := fusecrt.NewCompiler(fusecrt.Options{Cache: store, SaveSource: os.TempDir()})
	bar := newProgressBar(a, len(builds))
	err = compileAll(a.ctx, compiler, builds, bar)
	bar.end()
	if err != nil {
		return err
	}
	a.printBuilds(builds)
	a.noteSlow(builds)
	if err := c.emit(a, builds); err != nil {
		return err
	}
	if a.warnings(builds) && c.Werror {
		return errFailed
	}
	return nil
}

// builds plans a graph for each architecture and lists the units to compile.
func (c *compileCmd) builds(g *ir.Graph, store *cache.Cache) ([]*build, error) {
	var out []*build
	for _, arch := range c.Arch {
		device, err := ir.DeviceNamed(arch)
		if err != nil {
			device = ir.Devices()[0] // its schedules are right for any chip, if not the best
			device.Name, device.Arch = arch, arch
		}
		plan, err := fuse.Plan(g, fuse.Options{Device: device, Choices: measured(store, device)})
		if err != nil {
			return nil, err
		}
		program := codegen.Generate(plan)
		if c.LineInfo {
			program = program.WithLineInfo()
		}
		units, err := c.units(g, program)
		if err != nil {
			return nil, err
		}
		for _, u := range units {
			out = append(out, &build{program: program, unit: u, arch: arch})
		}
	}
	return out, nil
}

// measured is what fusec tune has stored for a device.
func measured(store *cache.Cache, device ir.Device) (out []fuse.Choice) {
	for _, s := range fusec.Choices(store, device) {
		out = append(out, s.Choice)
	}
	return out
}

// units lists the units of a program, or those that the given sizes choose.
func (c *compileCmd) units(g *ir.Graph, p *ir.Program) ([]int, error) {
	if len(c.Size) == 0 {
		var all []int
		for u := range p.Units {
			all = append(all, u)
		}
		return all, nil
	}
	sizes := inputSpec{sizes: c.Size}.chooseSizes(signature{symbols: p.Symbols, defaults: defaultSizes(g)}, nil)
	symbols := make([]int64, len(p.Symbols))
	for i, name := range p.Symbols {
		symbols[i] = sizes[name]
	}
	var out []int
	for _, l := range p.Launches {
		if !l.Runs(symbols) {
			continue
		}
		v := l.Choose(symbols)
		if v == nil {
			return nil, fmt.Errorf("kernel %s has no variant for these sizes", l.Kernel)
		}
		if !slices.Contains(out, v.Unit) {
			out = append(out, v.Unit)
		}
	}
	return out, nil
}

func defaultSizes(g *ir.Graph) map[string]int64 {
	out := map[string]int64{}
	for _, s := range g.Symbols {
		if s.Default > 0 {
			out[s.Name] = s.Default
		}
	}
	return out
}

// compileAll compiles on all cores. The first failure ends it.
func compileAll(ctx context.Context, compiler *fusecrt.Compiler, builds []*build, bar *progressBar) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.NumCPU())
	for _, b := range builds {
		group.Go(func() (err error) {
			b.kernel, err = compiler.Compile(ctx, b.program, b.unit, b.arch)
			bar.done()
			return err
		})
	}
	return group.Wait()
}

func (a *app) printBuilds(builds []*build) {
	var rows [][]string
	for _, b := range builds {
		k := b.kernel
		registers := "-"
		if k.Registers > 0 {
			registers = fmt.Sprint(k.Registers)
		}
		rows = append(rows, []string{k.Entry, fmt.Sprint(b.unit + 1), b.arch, registers, fmt.Sprint(k.Spills),
			fmt.Sprint(k.Stack), milliseconds(k.Took), hitText(k)})
	}
	a.ui.table([]column{col("kernel"), number("variant"), col("arch"), number("registers"), number("spills"),
		number("stack"), number("ms"), col("cache")}, rows)
}

// slowCompile is how long a kernel may take in NVRTC without being named for it.
const slowCompile = time.Second

// noteSlow names the kernels that took long to compile, the slowest variant of each.
func (a *app) noteSlow(builds []*build) {
	worst, order := map[string]time.Duration{}, []string{}
	for _, b := range builds {
		k := b.kernel
		if k.Outcome.IsHit() || k.Took < slowCompile {
			continue
		}
		if worst[k.Entry] == 0 {
			order = append(order, k.Entry)
		}
		worst[k.Entry] = max(worst[k.Entry], k.Took)
	}
	if len(order) == 0 {
		return
	}
	slices.SortStableFunc(order, func(x, y string) int { return cmp.Compare(worst[y], worst[x]) })
	var parts []string
	for _, name := range order {
		parts = append(parts, fmt.Sprintf("%s (%.1f s)", name, worst[name].Seconds()))
	}
	hint := ""
	if slices.ContainsFunc(builds, func(b *build) bool { return worst[b.kernel.Entry] > 0 && len(b.program.Symbols) > 0 }) {
		hint = "; --size compiles only what those sizes need"
	}
	a.ui.notef("more than %v in NVRTC: %s%s", slowCompile, diag.Names(parts), hint)
}

func hitText(k fusecrt.Kernel) string {
	if k.Outcome.IsHit() {
		return "hit"
	}
	return "miss"
}

// warnings prints what the compiler had to say, each text once, and reports whether
// it had anything.
func (a *app) warnings(builds []*build) bool {
	times, order := map[string]int{}, []string{}
	for _, b := range builds {
		text := b.warning()
		if text == "" {
			continue
		}
		text = b.kernel.Entry + ": " + text
		if times[text] == 0 {
			order = append(order, text)
		}
		times[text]++
	}
	for _, text := range order {
		a.ui.notef("in %s of %s", count(times[text], "variant"), text)
	}
	return len(order) > 0
}

// warning is what is wrong with a kernel that compiled; "" for nothing.
func (b *build) warning() string {
	switch k := b.kernel; {
	case k.Log != "":
		return k.Log
	case k.Spills > 0:
		return fmt.Sprintf("%d bytes of registers spill to memory", k.Spills)
	case k.Stack > 0:
		return fmt.Sprintf("%d bytes of local memory", k.Stack)
	}
	return ""
}

// emit writes the texts and binaries asked for.
func (c *compileCmd) emit(a *app, builds []*build) error {
	if len(c.Emit) == 0 {
		return nil
	}
	if err := os.MkdirAll(c.Output, 0o777); err != nil {
		return plainPathError(err)
	}
	for _, b := range builds {
		for _, kind := range c.Emit {
			content, suffix := b.content(kind)
			name := strings.Join([]string{b.program.Units[b.unit].Entry, fmt.Sprint(b.unit + 1), b.arch, suffix}, ".")
			if err := os.WriteFile(filepath.Join(c.Output, name), content, 0o666); err != nil {
				return plainPathError(err)
			}
		}
	}
	a.ui.printf("%s written to %s\n", count(len(builds)*len(c.Emit), "file"), c.Output)
	return nil
}

func (b *build) content(kind string) (content []byte, suffix string) {
	switch kind {
	case "cuda":
		return []byte(b.program.Text(b.unit)), "cu"
	case "ptx":
		return b.kernel.PTX, "ptx"
	}
	return b.kernel.Cubin, "cubin"
}
