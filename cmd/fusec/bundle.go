package main

import (
	"bytes"
	"os"

	"github.com/fusec/fusec"
	fusecrt "github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/sign"
)

type bundleCmd struct {
	Files    []string         `arg:"" name:"file" help:"The programs; all their graphs are taken."`
	Output   string           `short:"o" required:"" placeholder:"FILE" help:"The bundle to write."`
	Key      string           `required:"" placeholder:"FILE" help:"The secret key to sign with: fusec key makes one."`
	Arch     []string         `default:"sm_90a" complete:"archs" help:"Architectures to compile for, as sm_80,sm_90a."`
	Size     map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Take only the kernels that these sizes need."`
	NoSource bool             `help:"Leave out the programs' text: no CPU engine, no run --check."`
}

// Help is the long help text.
func (*bundleCmd) Help() string {
	return `A bundle holds plans, binaries and PTX: an application that opens it (fusec.OpenBundle, or
fusec.EmbeddedBundle with go:embed) needs neither NVRTC nor a cache. Needs no GPU. The same
programs and key give the same bytes.

Code for sm_80 also runs on later chips of its generation, and its PTX on all newer ones.
Code for an architecture with a letter, sm_90a, runs on that one alone.

Examples:

    fusec key app.key
    fusec bundle examples/*.fuse -o app.fbundle --arch sm_80,sm_90a --key app.key
    fusec run app.fbundle --public-key app.key.pub --graph softmax`
}

// Run compiles and writes the bundle, complete or not at all.
func (c *bundleCmd) Run(a *app) error {
	key, err := sign.ReadSecret(c.Key)
	if err != nil {
		return usagef("--key: %w", plainPathError(err))
	}
	graphs, err := c.graphs(a)
	if err != nil {
		return err
	}
	bar := newProgressBar(a, 1<<20) // the number is known once the programs are planned
	defer bar.end()
	var kernels int
	options := fusec.BundleOptions{Archs: c.Arch, Sizes: c.Size, NoSource: c.NoSource, Key: key,
		Progress: func(done, total int) {
			kernels = total
			bar.at(done, total)
		}}
	compiler := fusecrt.NewCompiler(fusecrt.Options{Cache: a.openCache(), SaveSource: os.TempDir()})
	var out bytes.Buffer
	if err := fusec.WriteBundle(a.ctx, &out, compiler, graphs, options); err != nil {
		return err
	}
	bar.end()
	if err := replaceFile(c.Output, out.Bytes()); err != nil {
		return err
	}
	a.ui.printf("%s: %s, %s for %s, %s\n", c.Output, count(len(graphs), "graph"), count(kernels, "kernel"),
		count(len(c.Arch), "architecture"), byteText(int64(out.Len())))
	return nil
}

// graphs lists the graphs of all files.
func (c *bundleCmd) graphs(a *app) ([]fusec.BundleGraph, error) {
	var out []fusec.BundleGraph
	for _, file := range c.Files {
		graphs, err := a.graphs(file, "")
		if err != nil {
			return nil, err
		}
		source, err := a.files.source(file)
		if err != nil {
			return nil, err
		}
		for _, g := range graphs {
			out = append(out, fusec.BundleGraph{Source: source, Options: fusec.Options{Graph: g.Name}})
		}
	}
	return out, nil
}
