// Mutate measures how much the tests notice. It draws small mistakes (mutants) in the packages that it
// is given, builds test binaries that hold all of them, and runs the tests once for each mutant, with
// that one switched on. A mutant is killed by the first step that fails or takes far too long. What
// survives is either the same program in other words, or something that no test looks at.
//
//	go run ./internal/mutate build -n 100 -seed 1 -out build/mutants -tests ./fuse,./conformance ./fuse ./codegen
//	go run ./internal/mutate judge -in conformance -out build/mutants -only fuse/,codegen/
//	go run ./internal/mutate run -out build/mutants -only fuse/ -steps 'fuse; conformance -test.run ^TestStrategies$'
//
// A mutant runs only in tests that reach its place; one of a bound, only in those that reach it with equal sides. judge
// goes from mutant to mutant in one process: in conformance it asks which change the plan, text or host program of a listed program (those
// of TestTexts, all of them), in fuse which change a plan that TestBoundaries looks at, in runtime/cpu with which of them the
// engine is wrong. Those of an earlier draw that lived are made again, also of a tree that has changed since, with -again its mutants.json (and -n 0
// for no others).
//
// All mutants are in one binary, because compiling takes longer than most tests: the packages are built
// with an overlay in which each mutant asks whether it is the one in the environment. The folder holds
// the binaries, so that run also works on a machine without Go, from the root of the same tree.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := command(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func command(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("mutate build|judge|run, see go doc ./internal/mutate")
	}
	flags := flag.NewFlagSet(args[0], flag.ContinueOnError)
	out := flags.String("out", "build/mutants", "folder of the binaries and of the results")
	switch args[0] {
	case "build":
		n := flags.Int("n", 100, "mutants of each argument: a package, or several with commas")
		seed := flags.Uint64("seed", 1, "of the draw")
		kinds := flags.String("kinds", "", "of mutants, with commas; all without it")
		tests := flags.String("tests", "", "packages whose tests are built, with commas")
		again := flags.String("again", "", "a list (mutants.json) of which those that lived are made again, before those drawn")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		var earlier []Mutant
		if *again != "" {
			var err error
			if earlier, err = readList(*again); err != nil {
				return err
			}
		}
		choose := func(sites []site) []site { return draw(lived(sites, earlier), ofKinds(sites, *kinds), *n, *seed) }
		return build(*out, flags.Args(), strings.Split(*tests, ","), choose)
	case "run":
		steps := flags.String("steps", "", "folders whose tests run, each with flags, in turn, with semicolons")
		jobs := flags.Int("jobs", 2, "mutants at a time")
		most := flags.Duration("most", time.Hour, "leave tests out that take longer without a mutant")
		limit := flags.Duration("for", time.Hour, "begin no mutant after this time")
		only := flags.String("only", "", "numbers of mutants, or the starts of their paths, with commas; of these, those that none has killed yet")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return run(*out, plan{steps: parseSteps(*steps), jobs: *jobs, limit: *limit, most: *most, only: *only})
	case "judge":
		in := flags.String("in", "conformance", "the folder of the tests that judge")
		jobs := flags.Int("jobs", 2, "processes")
		limit := flags.Duration("for", time.Hour, "how long at most")
		only := flags.String("only", "", "as of run")
		if err := flags.Parse(args[1:]); err != nil {
			return err
		}
		return judge(*out, *in, plan{jobs: *jobs, limit: *limit, only: *only})
	}
	return fmt.Errorf("mutate has no command %q", args[0])
}

// build makes mutants of the sites that are chosen of the packages that patterns match, and builds the tests with them.
func build(out string, patterns, tests []string, choose func([]site) []site) error {
	out, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o777); err != nil {
		return err
	}
	journals, err := filepath.Glob(filepath.Join(out, "journal*"))
	if err != nil {
		return err
	}
	for _, j := range journals { // of another draw
		if err := os.Remove(j); err != nil {
			return err
		}
	}
	var all []Mutant
	edits := map[string][]edit{}
	var in module
	for _, pattern := range patterns {
		sites, err := sitesOf(pattern)
		if err != nil {
			return err
		}
		for _, s := range choose(sites) {
			in = s.module
			s.ID = len(all) + 1
			all = append(all, s.Mutant)
			edits[s.path] = append(edits[s.path], s.edits(s.ID)...)
		}
	}
	overlay, err := writeOverlay(filepath.Join(out, "overlay"), in, edits)
	if err != nil {
		return err
	}
	for _, pkg := range tests {
		if err := buildTest(pkg, overlay, filepath.Join(out, binary(pkg))); err != nil {
			return err
		}
	}
	fmt.Printf("%d mutants in %d files\n", len(all), len(edits))
	return writeMutants(out, all)
}
