package main

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// checkSymbols is checkSizes for the symbols of several graphs together.
func checkSymbols(sizes map[string]int64, graphs []*ir.Graph) error {
	var known []string
	for _, g := range graphs {
		for _, s := range g.Symbols {
			if !slices.Contains(known, s.Name) {
				known = append(known, s.Name)
			}
		}
	}
	return checkSizes(sizes, known)
}

// checkSizes refuses sizes for symbols that are not there, and negative ones.
func checkSizes(sizes map[string]int64, known []string) error {
	for _, name := range sortedNames(sizes) {
		switch {
		case len(known) == 0:
			return usagef("--size %s: the program has no symbols", name)
		case !slices.Contains(known, name):
			return usagef("--size %s: the program has no such symbol, it has %s", name, strings.Join(known, ", "))
		case sizes[name] < 0:
			return usagef("--size %s=%d: sizes are 0 or more", name, sizes[name])
		}
	}
	return nil
}
