package main

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/internal/shrink"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

const (
	shrinkRuns = 400
	shrinkTime = 3 * time.Minute
)

// shrunk looks for smaller sizes and a shorter program that fail in the same way, and returns
// what to run in place of c, and what it came to. The text is read in place of the file's.
func (a *app) shrunk(c runCmd, found outcome) (runCmd, outcome) {
	start := a.shrinkable(c, found)
	if start == nil {
		return c, found // the program itself is wrong: its text is all that there is
	}
	runs, end, seen := 0, time.Now().Add(shrinkTime), map[string]bool{}
	bar := newProgressBar(a, shrinkRuns)
	bar.begin("shrinking")
	defer bar.end()
	fails := func(p *shrink.Program) bool {
		key := fmt.Sprint(p.Sizes, p.Text)
		if seen[key] || time.Now().After(end) {
			return false
		}
		seen[key] = true
		runs++
		bar.at(runs, shrinkRuns)
		return failsAlike(a.attemptOn(c, p), found)
	}
	small := shrink.Search(start, shrinkRuns, func(p *shrink.Program) iter.Seq[*shrink.Program] { return p.Simpler }, fails)
	if text, err := parser.Format(small.Name, []byte(small.Text)); err == nil {
		small.Text = string(text)
	}
	a.files.texts = map[string]string{} // imports that are no longer needed stay behind
	now := a.attemptOn(c, small)
	a.files.instead = map[string]string{c.File: small.Text}
	bar.end()
	a.ui.notef("shrunk from %s to %d, in %s", countOf(strings.Count(start.Text, "\n"), "line"), strings.Count(small.Text, "\n"),
		countOf(runs, "run"))
	return on(c, small), now
}

// shrinkable is the program as it stands, with the sizes that it ran at and can be run at again;
// nil where the parser finds a mistake in it.
func (a *app) shrinkable(c runCmd, found outcome) *shrink.Program {
	source, err := a.files.source(c.File)
	if err != nil {
		return nil
	}
	file, err := parser.Parse(c.File, source.Text, parser.Options{ReadFile: source.ReadFile})
	if err != nil {
		return nil
	}
	g, err := file.Graph(c.Graph)
	if err != nil {
		return nil
	}
	p := &shrink.Program{Name: c.File, Text: string(source.Text), Graph: c.Graph, Sizes: map[string]int64{}, ReadFile: source.ReadFile}
	for _, s := range g.Symbols {
		p.Sizes[s.Name] = cmp.Or(c.Size[s.Name], s.Default, unknownSize)
	}
	if failsAlike(a.attemptOn(c, p), found) {
		return p
	}
	p.Sizes = c.Size // the others are those of input files
	return p
}

// on is a run of another program in place of the file's: without the inputs that are gone.
func on(c runCmd, p *shrink.Program) runCmd {
	c.Size = p.Sizes
	file, err := parser.Parse(p.Name, []byte(p.Text), parser.Options{ReadFile: p.ReadFile})
	if err != nil {
		return c
	}
	g, err := file.Graph(p.Graph)
	if err != nil {
		return c
	}
	c.In = slices.DeleteFunc(slices.Clone(c.In), func(in string) bool {
		name, _, named := strings.Cut(in, "=")
		return named && !slices.ContainsFunc(g.Inputs, func(v *ir.Value) bool { return v.Name == name })
	})
	return c
}

// attemptOn runs and checks a program in place of the file's.
func (a *app) attemptOn(c runCmd, p *shrink.Program) outcome {
	before := a.files.instead
	defer func() { a.files.instead = before }()
	a.files.instead = map[string]string{c.File: p.Text}
	return a.attempt(on(c, p))
}

// failsAlike is same for programs that differ: the output that is wrong may have another name.
func failsAlike(x, y outcome) bool {
	x.Text, y.Text = outputName.ReplaceAllString(x.Text, "output _"), outputName.ReplaceAllString(y.Text, "output _")
	return x.same(y)
}

var outputName = regexp.MustCompile(`\boutput \w+`)

// original is the text of a file where another is read in place of it.
func (a *app) original(file string) (text string, is bool) {
	if _, is := a.files.instead[file]; !is {
		return "", false
	}
	b, err := regular.ReadFile(file, int64(parser.DefaultLimits.Bytes))
	return string(b), err == nil
}
