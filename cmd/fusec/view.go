package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/internal/view"
	"github.com/fusec/fusec/ir"
	fusecrt "github.com/fusec/fusec/runtime"
)

type viewCmd struct {
	File          string           `arg:"" name:"file" help:"The program."`
	Graph         string           `help:"One graph of the program; all by default."`
	Output        string           `short:"o" placeholder:"FILE" help:"Write the page here, or a picture of one graph's kernels where the name ends in .svg; by default the program's name with .html."`
	Size          map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes; by default those of @bench."`
	DeviceFigures string           `default:"H200" help:"Estimate for this GPU: ${devices}."`
	PTX           bool             `name:"ptx" help:"Compile what the sizes choose, for registers, PTX and, where nvdisasm is, SASS."`
	Profile       string           `placeholder:"FILE" help:"Show what fusec profile --json has measured: times, timeline, memory."`
	Serve         string           `placeholder:"ADDRESS" help:"Serve the page, at localhost:8080 for example, and show each change of the program."`

	profile *profile // of Profile
}

// Help is the long help text.
func (*viewCmd) Help() string {
	return `Makes one HTML page that needs no network: the graph as written and as kernels, and
for each kernel its lines, plan, classes of sizes, CUDA text and the merges that were refused.

Examples:

    fusec view examples/softmax.fuse
    fusec view examples/networks/llama.fuse -o llama.html --device-figures A100
    fusec view examples/softmax.fuse -o softmax.svg
    fusec view examples/softmax.fuse --ptx
    fusec view examples/softmax.fuse --profile softmax.json
    fusec view examples/ffn.fuse --serve localhost:8080`
}

// Run writes the page, or serves it.
func (c *viewCmd) Run(a *app) error {
	if err := c.takeProfile(); err != nil {
		return err
	}
	if _, err := ir.DeviceNamed(c.DeviceFigures); err != nil {
		return usagef("%s: there are %s", err, deviceNames())
	}
	if c.Serve != "" {
		return c.serve(a)
	}
	if kind := filepath.Ext(c.Output); !slices.Contains([]string{"", ".html", ".htm", ".svg"}, kind) {
		return usagef("-o %s: expected a page, .html, or a picture, .svg", c.Output)
	}
	var page bytes.Buffer
	if err := c.page(a, &page); err != nil {
		return err
	}
	out := c.Output
	if out == "" {
		out = strings.TrimSuffix(filepath.Base(c.File), ".fuse") + ".html"
	}
	if err := replaceFile(out, page.Bytes()); err != nil {
		return err
	}
	a.ui.printf("%s: %s\n", out, byteText(int64(page.Len())))
	return nil
}

// page writes the page of the program as it is on disk.
func (c *viewCmd) page(a *app, w io.Writer) error {
	graphs, err := a.graphs(c.File, c.Graph)
	if err != nil {
		return err
	}
	return c.pageOf(a, graphs, w)
}

// pageOf writes the page of graphs. One that cannot keep its @onekernel is shown too.
func (c *viewCmd) pageOf(a *app, graphs []*ir.Graph, w io.Writer) error {
	if err := checkSymbols(c.Size, graphs); err != nil {
		return err
	}
	device, err := c.device()
	if err != nil {
		return err
	}
	estimated := estimatedFor(device)
	in := view.Input{Title: filepath.Base(c.File), Device: estimated, Source: a.files.text, CPU: c.onCPU(), Live: c.Serve != ""}
	for _, g := range graphs {
		plan, err := fuse.Plan(g, fuse.Options{Device: device, Choices: c.choices(a)})
		if plan == nil {
			return err
		}
		plan = plan.At(explain.Sizes(g, c.Size))
		var program *ir.Program
		if !c.onCPU() {
			program = codegen.Generate(plan)
		}
		compiled, err := c.compiled(a, g, program, device)
		if err != nil {
			return err
		}
		in.Graphs = append(in.Graphs, view.Graph{Graph: g, Plan: plan, Program: program, Compiled: compiled, Profile: c.profileOf(a, plan),
			Explain: explain.Explain(g, plan, explain.Options{Device: estimated, Sizes: c.Size})})
	}
	if c.picture() {
		if len(in.Graphs) != 1 {
			return usagef("-o %s: a picture is of one graph: choose one with --graph", c.Output)
		}
		return view.WriteSVG(w, in.Graphs[0], device)
	}
	return view.Write(w, in)
}

// picture reports whether a picture is asked for, and not a page.
func (c *viewCmd) picture() bool { return c.Serve == "" && strings.HasSuffix(c.Output, ".svg") }

// compiled compiles what the sizes choose, where that is asked for.
func (c *viewCmd) compiled(a *app, g *ir.Graph, program *ir.Program, device ir.Device) (map[int]view.Compiled, error) {
	if !c.PTX {
		return nil, nil
	}
	sizes := map[string]int64{}
	for _, s := range g.Symbols {
		sizes[s.Name] = s.Default
		if s.Default == 0 {
			sizes[s.Name] = view.SomeSize
		}
		if given, ok := c.Size[s.Name]; ok {
			sizes[s.Name] = given
		}
	}
	chosen := compileCmd{Size: sizes}
	units, err := chosen.units(g, program)
	if err != nil {
		return nil, err
	}
	var builds []*build
	for _, u := range units {
		builds = append(builds, &build{program: program, unit: u, arch: device.Arch})
	}
	compiler := fusecrt.NewCompiler(fusecrt.Options{Cache: a.openCache()})
	bar := newProgressBar(a, len(builds))
	err = compileAll(a.ctx, compiler, builds, bar)
	bar.end()
	if err != nil {
		return nil, err
	}
	out := map[int]view.Compiled{}
	for _, b := range builds {
		out[b.unit] = view.Compiled{Registers: b.kernel.Registers, Spills: b.kernel.Spills, PTX: string(b.kernel.PTX),
			SASS: disassembled(a, b.kernel.Cubin)}
	}
	return out, nil
}

// disassembled is the text of a cubin by NVIDIA's nvdisasm; "" where that is missing or fails.
func disassembled(a *app, cubin []byte) string {
	tool, err := exec.LookPath("nvdisasm")
	if err != nil || len(cubin) == 0 {
		return ""
	}
	f, err := os.CreateTemp("", "fusec-*.cubin")
	if err != nil {
		return ""
	}
	defer os.Remove(f.Name())
	_, err = f.Write(cubin)
	if closed := f.Close(); err != nil || closed != nil {
		return ""
	}
	out, err := exec.CommandContext(a.ctx, tool, "-c", f.Name()).Output()
	if err != nil {
		return ""
	}
	return string(out)
}
