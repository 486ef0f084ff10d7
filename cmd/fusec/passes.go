package main

import "github.com/fusec/fusec/fuse/passes"

type passesCmd struct{}

// Run lists the passes.
func (*passesCmd) Run(a *app) error {
	var rows [][]string
	for _, p := range passes.All {
		rows = append(rows, []string{p.Name, p.Doc})
	}
	a.ui.table([]column{col("pass"), col("what it does")}, rows)
	return nil
}
