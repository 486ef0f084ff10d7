package main

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
)

type cacheWhyCmd struct {
	File   string `arg:"" name:"file" help:"The program."`
	Graph  string `help:"The graph, where the program has several."`
	Device string `default:"H200" complete:"figures" help:"For this GPU: ${devices}."`
}

// Help is the long help text.
func (*cacheWhyCmd) Help() string {
	return `For the plan of a program and each of its kernels: whether it is stored, or in what the
most similar stored entry differs.

Examples:

    fusec cache why examples/softmax.fuse --device A100`
}

// Run looks up what running the program on the device would look up.
func (c *cacheWhyCmd) Run(a *app) error {
	device, err := ir.DeviceNamed(c.Device)
	if err != nil {
		return usagef("%s: there are %s", err, deviceNames())
	}
	source, err := a.files.source(c.File)
	if err != nil {
		return err
	}
	options := fusec.Options{Graph: c.Graph, Arch: c.Device}
	store := a.localCache()
	program, err := fusec.ProgramFor(source, options, device, store)
	if err != nil {
		return err
	}
	options.Arch = "" // a run takes the device's own figures
	plan := runtime.NewPlanCache(store).Key(options.Request(source, device, store))
	rows := [][]string{whyRow(store, "plan of "+program.Name, plan)}
	kernels, err := kernelRows(store, program, device)
	if err != nil {
		return err
	}
	a.ui.table([]column{col("entry"), col("key"), col("state")}, append(rows, kernels...))
	return nil
}

func kernelRows(store *cache.Cache, program *ir.Program, device ir.Device) ([][]string, error) {
	compiler := runtime.NewCompiler(runtime.Options{Cache: store})
	var rows [][]string
	for u := range program.Units {
		key, err := compiler.Key(program, u, device.Arch)
		if err != nil {
			return nil, err
		}
		rows = append(rows, whyRow(store, fmt.Sprintf("%s, variant %d", program.Units[u].Entry, u+1), key))
	}
	return rows, nil
}

func whyRow(store *cache.Cache, name string, key cache.Key) []string {
	nearest, differ, ok, err := store.Why(key)
	state := "stored"
	switch {
	case err != nil:
		state = err.Error()
	case !ok:
		state = "not stored, nor anything like it"
	case len(differ) > 0:
		state = fmt.Sprintf("not stored; %s differs in %s", entryName(nearest), strings.Join(differ, ", "))
	}
	return []string{name, entryName(cache.Info{Key: key}), state}
}
