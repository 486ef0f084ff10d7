package main

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

type opsCmd struct {
	Name string `arg:"" optional:"" complete:"ops" help:"One operator or function."`
}

// Help is the long help text.
func (*opsCmd) Help() string {
	return `Without a name, lists everything a program can call. The list is read from the
tables and the library that the compiler itself uses.

Examples:

    fusec ops
    fusec ops softmax`
}

// Run prints the reference, or one entry of it with its source.
func (c *opsCmd) Run(a *app) error {
	library, err := parser.Library()
	if err != nil {
		return err
	}
	builtins := parser.Builtins()
	if c.Name != "" {
		return a.describe(c.Name, builtins, library)
	}
	a.section("built in", builtins)
	for len(library) > 0 {
		file, n := library[0].File, 0
		for n < len(library) && library[n].File == file {
			n++
		}
		a.section(file, library[:n])
		library = library[n:]
	}
	a.ui.printf("%s\n  %s\n", a.ui.style(bold, "dtypes"), dtypeList())
	return nil
}

func (a *app) section(title string, docs []parser.FuncDoc) {
	a.ui.printf("%s\n", a.ui.style(bold, title))
	var rows [][]string
	for _, d := range docs {
		summary, _, _ := strings.Cut(d.Doc, "\n")
		rows = append(rows, []string{"  " + d.Signature, summary})
	}
	a.ui.table([]column{col(""), col("")}, rows)
	a.ui.printf("\n")
}

func dtypeList() string {
	var names []string
	for _, t := range ir.DTypes() {
		names = append(names, t.String())
	}
	return strings.Join(names, " ")
}

// describe prints every entry of one name: max is an operation and a reduction.
func (a *app) describe(name string, lists ...[]parser.FuncDoc) error {
	var names []string
	found := false
	for _, list := range lists {
		for _, d := range list {
			names = append(names, d.Name)
			if d.Name != name {
				continue
			}
			found = true
			a.ui.printf("%s\n", a.ui.style(bold, d.Signature))
			for line := range strings.Lines(d.Doc) {
				a.ui.printf("    %s\n", strings.TrimSuffix(line, "\n"))
			}
			if d.File != "" {
				a.ui.printf("    %s\n", a.ui.style(faint, "defined in "+d.File))
			}
		}
	}
	if found {
		return nil
	}
	near := alike(name, names)
	if best := diag.Nearest(name, names); best != "" {
		near = append([]string{best}, slices.DeleteFunc(near, func(n string) bool { return n == best })...)
	}
	if near != nil {
		return usagef("there is no %s; there is %s", name, strings.Join(near, ", "))
	}
	return usagef("there is no %s: fusec ops lists what there is", name)
}

// alike returns the names that hold name, or begin as it does.
func alike(name string, names []string) []string {
	const prefix = 3
	var out []string
	for _, n := range names {
		if strings.Contains(n, name) || len(name) >= prefix && strings.HasPrefix(n, name[:prefix]) {
			out = append(out, n)
		}
	}
	return out
}
