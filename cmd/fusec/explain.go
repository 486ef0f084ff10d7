package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime"
)

type explainCmd struct {
	File          string   `arg:"" name:"file" help:"The program."`
	Graph         string   `help:"One graph of the program; all by default."`
	Size          sizeFlag `placeholder:"N=8192" help:"Sizes, or small or large for those of a comment above each graph; by default those of @bench."`
	DeviceFigures string   `default:"H200" aliases:"arch" complete:"figures" help:"Estimate for this GPU, by name or by architecture, as --arch sm_90a: ${devices}."`
	Verbose       bool     `short:"v" help:"Show every kernel's loops, schedule, operations and tensors, and every merge that was refused."`
	Classes       bool     `help:"As --verbose, and also list the classes of sizes that each kernel is compiled for."`
	CUDA          bool     `name:"cuda" help:"Print the CUDA C text that runs at the sizes instead."`
	JSON          bool     `name:"json" help:"Print data instead of text."`
}

// Help is the long help text.
func (*explainCmd) Help() string {
	return `For every kernel: about how long it takes, how much of that the roof it is under takes alone
(memory, arithmetic, special functions, products, or its launch), and the lines it computes. Then
the merge that was refused at the greatest cost, with the reason and what could be written
instead; then what the program would cost with a kernel for each operation as written. Times are
estimates; fusec profile measures.

Examples:

    fusec explain examples/softmax.fuse
    fusec explain examples/ffn.fuse --size N=64 --device-figures A100 --verbose
    fusec explain bench/suite/softmax.fuse --arch sm_80 --size large
    fusec explain examples/softmax.fuse --cuda
    fusec explain examples/cross_entropy.fuse --json | jq '.graphs[].refused'`
}

// Run explains the graphs. One that cannot keep its @onekernel is explained too,
// before that is reported.
func (c *explainCmd) Run(a *app) error {
	device, err := ir.DeviceNamed(c.DeviceFigures)
	if err != nil {
		return usagef("%s: there are %s; of an architecture, %s", err, deviceNames(), strings.Join(knownArchs(), ", "))
	}
	graphs, err := a.graphs(c.File, c.Graph)
	if err != nil {
		return err
	}
	if err := checkSymbols(c.Size.sizes, graphs); err != nil {
		return err
	}
	var explained []explain.Explanation
	var plans []*ir.Plan
	var broken error
	text, _ := a.files.text(c.File)
	for _, g := range graphs {
		sizes, err := c.Size.of(c.File, text, g.Name)
		if err != nil {
			return err
		}
		plan, err := fuse.Plan(g, fuse.Options{Device: device})
		if plan == nil {
			return err
		}
		plan = plan.At(explain.Sizes(g, sizes))
		if err != nil {
			broken = err
		}
		plans = append(plans, plan)
		explained = append(explained, explain.Explain(g, plan, explain.Options{Device: device, Sizes: sizes}))
	}
	switch {
	case c.CUDA:
		err = a.explainCUDA(plans, explained)
	case c.JSON:
		err = a.explainJSON(explained)
	case c.Verbose || c.Classes:
		a.explainText(explained, c.Classes)
		a.explainCompiling(plans, explained, device)
	default:
		a.explainPages(explained)
		a.explainCompiling(plans, explained, device)
		a.askForSizes(plans, explained)
	}
	if broken != nil {
		return broken
	}
	return err
}

// askForSizes says how to get times where sizes are not known.
func (a *app) askForSizes(plans []*ir.Plan, explained []explain.Explanation) {
	var missing []string
	for i, plan := range plans {
		for _, s := range plan.Graph.Symbols {
			_, known := explained[i].Sizes[s.Name]
			if size := s.Name + "=1024"; !known && !slices.Contains(missing, size) {
				missing = append(missing, size)
			}
		}
	}
	if len(missing) > 0 {
		list := strings.Join(missing, ",")
		a.ui.notef("times are for known sizes: --size %s gives them, as @bench(%s) above the graph does", list,
			strings.Join(missing, ", "))
	}
}

// explainCompiling names the kernels that took long in NVRTC, as far as the cache has them.
func (a *app) explainCompiling(plans []*ir.Plan, explained []explain.Explanation, device ir.Device) {
	compiler := runtime.NewCompiler(runtime.Options{Cache: a.localCache()})
	var slow []string
	for i, plan := range plans {
		program := codegen.Generate(plan)
		for _, v := range chosenVariants(program, explained[i].Sizes) {
			if k, ok := compiler.Stored(program, v.Unit, device.Arch); ok && k.CompileTook >= slowCompile {
				slow = append(slow, fmt.Sprintf("%s (%.1f s)", k.Entry, k.CompileTook.Seconds()))
			}
		}
	}
	if len(slow) > 0 {
		a.ui.printf("took more than %v in NVRTC: %s\n", slowCompile, diag.Names(slow))
	}
}

// chosenVariants are those that sizes choose, of each launch; the first where they are not known.
func chosenVariants(program *ir.Program, known map[string]int64) []*ir.LaunchVariant {
	sizes, all := make([]int64, len(program.Symbols)), true
	for s, name := range program.Symbols {
		n, ok := known[name]
		sizes[s], all = n, all && ok
	}
	var out []*ir.LaunchVariant
	for i := range program.Launches {
		l := &program.Launches[i]
		v := &l.Variants[0]
		if all {
			v = l.Choose(sizes)
		}
		out = append(out, v)
	}
	return out
}

// explainCUDA prints the text of each kernel for the class of sizes that is chosen, or for the
// first where that is unknown. It needs no compiler.
func (a *app) explainCUDA(plans []*ir.Plan, explained []explain.Explanation) error {
	for i, plan := range plans {
		program := codegen.Generate(plan)
		for _, v := range chosenVariants(program, explained[i].Sizes) {
			a.ui.printf("%s", program.Text(v.Unit))
		}
	}
	return nil
}

func (a *app) explainJSON(graphs []explain.Explanation) error {
	e := json.NewEncoder(a.ui.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"graphs": graphs})
}
