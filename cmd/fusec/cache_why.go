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
	File    string `arg:"" name:"file" help:"The program."`
	Graph   string `help:"The graph, where the program has several."`
	Verbose bool   `short:"v" help:"Show every variant of every kernel, and every field that differs."`
	Device  string `default:"H200" complete:"figures" help:"For this GPU: ${devices}."`
}

// Help is the long help text.
func (*cacheWhyCmd) Help() string {
	return `For the plan of a program and each of its kernels: whether it is stored, or in what the
most similar stored entry differs. Variants that fare alike stand in one line, but for --verbose.

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
	list := []whyEntry{c.why(store, "plan of "+program.Name, 0, plan)}
	compiler := runtime.NewCompiler(runtime.Options{Cache: store})
	for u := range program.Units {
		key, err := compiler.Key(program, u, device.Arch)
		if err != nil {
			return err
		}
		list = append(list, c.why(store, program.Units[u].Entry, u+1, key))
	}
	c.print(a, list)
	return nil
}

// whyEntry is what is known of one entry.
type whyEntry struct {
	name    string
	variant int // 0 for none
	key     cache.Key
	state   string
	nearest string // "" where there is none, or it is stored
}

func (c *cacheWhyCmd) why(store *cache.Cache, name string, variant int, key cache.Key) whyEntry {
	nearest, differ, ok, err := store.Why(key)
	e := whyEntry{name: name, variant: variant, key: key, state: "stored"}
	switch {
	case err != nil:
		e.state = err.Error()
	case !ok:
		e.state = "not stored, nor anything like it"
	case len(differ) > 0:
		e.nearest = entryName(nearest)
		e.state = "differs in " + c.fields(differ)
	}
	return e
}

// fields names what differs, the first few.
func (c *cacheWhyCmd) fields(differ []string) string {
	const most = 3
	if c.Verbose || len(differ) <= most {
		return strings.Join(differ, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(differ[:most], ", "), len(differ)-most)
}

// print lists the entries, or those that fare alike together.
func (c *cacheWhyCmd) print(a *app, list []whyEntry) {
	var rows [][]string
	if c.Verbose {
		for _, e := range list {
			name, state := e.name, e.state
			if e.variant > 0 {
				name = fmt.Sprintf("%s, variant %d", name, e.variant)
			}
			if e.nearest != "" {
				state = fmt.Sprintf("not stored; %s %s", e.nearest, state)
			}
			rows = append(rows, []string{name, entryName(cache.Info{Key: e.key}), state})
		}
		a.ui.table([]column{col("entry"), col("key"), col("state")}, rows)
		return
	}
	type group struct{ name, state string }
	var order []group
	counts := map[group]int{}
	for _, e := range list {
		g := group{e.name, e.state}
		if e.nearest != "" {
			g.state = "not stored; the nearest entry " + g.state
		}
		if counts[g] == 0 {
			order = append(order, g)
		}
		counts[g]++
	}
	for _, g := range order {
		variants := ""
		if counts[g] > 1 || !strings.HasPrefix(g.name, "plan of ") {
			variants = count(counts[g], "variant")
		}
		rows = append(rows, []string{g.name, variants, g.state})
	}
	a.ui.table([]column{col("entry"), col(""), col("state")}, rows)
}
