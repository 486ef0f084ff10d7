package main

import (
	"encoding/json"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
)

type explainCmd struct {
	File          string           `arg:"" name:"file" help:"The program."`
	Graph         string           `help:"One graph of the program; all by default."`
	Size          map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes; by default those of @bench."`
	DeviceFigures string           `default:"H200" help:"Estimate for this GPU: ${devices}."`
	Classes       bool             `help:"Also list the classes of sizes that each kernel is compiled for."`
	JSON          bool             `name:"json" help:"Print data instead of text."`
}

// Help is the long help text.
func (*explainCmd) Help() string {
	return `For every kernel: its iteration space and schedule, the operations inside with their
places in the program, and the bytes it moves; then the merges that were refused, with the
reason; then what the program would cost with a kernel for each operation as written.

Examples:

    fusec explain examples/softmax.fuse
    fusec explain examples/ffn.fuse --size N=64 --device-figures A100
    fusec explain examples/cross_entropy.fuse --json | jq '.graphs[].refused'`
}

// Run explains the graphs. One that cannot keep its @onekernel is explained too,
// before that is reported.
func (c *explainCmd) Run(a *app) error {
	device, err := ir.DeviceNamed(c.DeviceFigures)
	if err != nil {
		return usagef("%s: there are %s", err, deviceNames())
	}
	graphs, err := a.graphs(c.File, c.Graph)
	if err != nil {
		return err
	}
	if err := checkSymbols(c.Size, graphs); err != nil {
		return err
	}
	var explained []explain.Explanation
	var broken error
	for _, g := range graphs {
		plan, err := fuse.Plan(g, fuse.Options{Device: device})
		if plan == nil {
			return err
		}
		if err != nil {
			broken = err
		}
		explained = append(explained, explain.Explain(g, plan, explain.Options{Device: device, Sizes: c.Size}))
	}
	if c.JSON {
		err = a.explainJSON(explained)
	} else {
		a.explainText(explained, c.Classes)
	}
	if broken != nil {
		return broken
	}
	return err
}

func (a *app) explainJSON(graphs []explain.Explanation) error {
	e := json.NewEncoder(a.ui.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(map[string]any{"graphs": graphs})
}
