package main

import (
	"github.com/fusec/fusec/bench"
)

// listOps prints the graphs, with what PyTorch computes instead.
func listOps(a *app, programs []bench.Program) error {
	var rows [][]string
	for _, p := range programs {
		for _, k := range p.Cases {
			note := k.Torch
			if k.Skip != "" {
				note = a.ui.style(yellow, "not run: ") + k.Skip
			}
			rows = append(rows, []string{k.Graph, p.Name, note})
		}
	}
	a.ui.table([]column{col("op"), col("program"), col("in PyTorch")}, rows)
	return nil
}

// listSizes prints the sizes of the graphs.
func listSizes(a *app, programs []bench.Program) error {
	var rows [][]string
	for _, p := range programs {
		for _, k := range p.Cases {
			for _, class := range bench.Classes() {
				if class == bench.Medium {
					sizes, err := benchDefaults(a, p, k)
					if err != nil {
						return err
					}
					rows = append(rows, []string{k.Graph, class, sizes.String()})
				}
				for _, s := range k.Sizes[class] {
					rows = append(rows, []string{k.Graph, class, s.String()})
				}
			}
		}
	}
	a.ui.table([]column{col("op"), col("class"), col("sizes")}, rows)
	return nil
}

// benchDefaults are the sizes of a graph's @bench, or what it is measured at in their place.
func benchDefaults(a *app, p bench.Program, k bench.Case) (bench.Sizes, error) {
	g, err := a.benchGraph(p.Name, p.Text, k.Graph)
	if err != nil {
		return nil, err
	}
	var symbols []string
	for _, s := range g.Symbols {
		symbols = append(symbols, s.Name)
	}
	return inputSpec{}.chooseSizes(signature{symbols: symbols, defaults: defaultSizes(g)}, nil), nil
}
