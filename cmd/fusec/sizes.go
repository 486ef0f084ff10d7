package main

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// checkSymbols refuses sizes for symbols that no graph has, and negative ones.
func checkSymbols(sizes map[string]int64, graphs []*ir.Graph) error {
	var known []string
	for _, g := range graphs {
		for _, s := range g.Symbols {
			if !slices.Contains(known, s.Name) {
				known = append(known, s.Name)
			}
		}
	}
	for _, name := range sortedNames(sizes) {
		if !slices.Contains(known, name) {
			if known == nil {
				return usagef("--size %s: the program has no symbols", name)
			}
			return usagef("--size %s: the program has no such symbol, it has %s", name, strings.Join(known, ", "))
		}
		if sizes[name] < 0 {
			return usagef("--size %s=%d: sizes are 0 or more", name, sizes[name])
		}
	}
	return nil
}
