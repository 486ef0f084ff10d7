package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fusec/fusec/bench"
)

// sizeFlag is --size: sizes of symbols, or a class of sizes that a comment above the graph lists, as bench takes it.
type sizeFlag struct {
	class string
	sizes map[string]int64
}

// expectedSizes says what --size takes.
const expectedSizes = "expected NAME=NUMBER, as N=8192,M=64"

// Decode reads --size N=8192,M=64 and --size small.
func (f *sizeFlag) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("size", &text); err != nil {
		return err
	}
	for field := range strings.SplitSeq(text, ",") {
		name, value, isSize := strings.Cut(field, "=")
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case !isSize && slices.Contains(oneSize(), field) && f.class == "":
			f.class = field
			continue
		case err != nil || name == "":
			return fmt.Errorf("%s, or one of %s: found %q", expectedSizes, strings.Join(oneSize(), ", "), field)
		}
		if f.sizes == nil {
			f.sizes = map[string]int64{}
		}
		f.sizes[name] = n
	}
	return nil
}

// oneSize are the classes that are one size each; batch is many.
func oneSize() []string { return []string{bench.Small, bench.Medium, bench.Large} }

// of are the sizes for a graph of a program: those of the class, the first of several, and over them those that are given.
func (f *sizeFlag) of(name, text, graph string) (map[string]int64, error) {
	if f.class == "" || f.class == bench.Medium { // @bench, which is the default
		return f.sizes, nil
	}
	p, err := bench.Parse(name, text)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(p.Cases, func(c bench.Case) bool { return c.Graph == graph })
	if i < 0 || len(p.Cases[i].Sizes[f.class]) == 0 {
		return nil, usagef("--size %s: graph %s has no comment # %s: N=8192 M=64 above it; --size N=8192,M=64 gives sizes", f.class, graph, f.class)
	}
	sizes := map[string]int64{}
	maps.Copy(sizes, p.Cases[i].Sizes[f.class][0])
	maps.Copy(sizes, f.sizes)
	return sizes, nil
}
