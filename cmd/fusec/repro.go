package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/internal/regular"
)

type reproCmd struct {
	Program string           `arg:"" name:"file" help:"The program, or what this command has made: then it is run again."`
	Graph   string           `help:"The graph to run, where the program has several."`
	In      []string         `placeholder:"NAME=FILE" sep:"none" help:"Read an input from a file, or set it to a number: as fusec run does. The files are copied."`
	Size    map[string]int64 `placeholder:"N=8192" mapsep:"," help:"Sizes; by default those of @bench."`
	Device  string           `default:"auto" complete:"devices" help:"auto, cuda, cuda:1 or cpu."`
	Seed    uint64           `default:"1" help:"Seed of the random inputs."`
	Scale   bool             `default:"true" negatable:"" help:"Scale random inputs as fusec run does."`
	Output  string           `short:"o" default:"repro" placeholder:"DIR" help:"The folder to make, or a Go file, name.go: ${default}. It must not exist."`
	Shrink  bool             `help:"Take sizes and parts of the program away while the failure stays the same."`
}

// Help is the long help text.
func (*reproCmd) Help() string {
	return `Runs a graph and checks its outputs, and puts all that this takes into one folder: the program
with its imports, inputs that came from files, sizes and seed, the machine's versions and figures,
what happened, and where there are any the plan and the CUDA text. The folder needs nothing outside
it. Run again, here or elsewhere, it says whether the failure is still there: the exit code is 1
where it is. -o wrong.go makes one Go file of it, which go run and fusec repro run.

--shrink looks for smaller sizes and a shorter program of which the check says the same, with some
hundred runs and for a few minutes at most; the folder holds what it came to, and the program as it
was in original.fuse.

Examples:

    fusec repro layer.fuse --size N=64 -o wrong-sum
    fusec repro wrong-sum
    fusec repro layer.fuse --size N=64 -o wrong.go && go run wrong.go
    fusec repro layer.fuse --shrink`
}

// reproFile is what a folder says of itself: repro.json.
type reproFile struct {
	Format  int              `json:"format"` // 1
	Version string           `json:"version"`
	Machine []string         `json:"machine"`
	Program string           `json:"program"` // below files
	Graph   string           `json:"graph,omitempty"`
	In      []string         `json:"in,omitempty"` // files are below the folder
	Sizes   map[string]int64 `json:"sizes,omitempty"`
	Device  string           `json:"device"` // as asked for
	Seed    uint64           `json:"seed"`
	Scale   bool             `json:"scale"`
	Found   outcome          `json:"found"`
}

const (
	reproName   = "repro.json"
	reproFormat = 1
)

// outcome is what a run with a check came to.
type outcome struct {
	Kind   string `json:"kind"` // right, error, internal, or check where outputs are wrong
	Text   string `json:"text"` // what was wrong
	Output string `json:"output,omitempty"`
}

func (o outcome) failed() bool { return o.Kind != "right" }

// same reports whether two failures are of a kind and begin with the same words: numbers and
// places of elements may differ from machine to machine.
func (o outcome) same(other outcome) bool {
	return o.Kind == other.Kind && firstWords(o.Text) == firstWords(other.Text)
}

func firstWords(text string) string {
	const words = 4
	fields := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n[]0123456789", r) })
	return strings.Join(fields[:min(len(fields), words)], " ")
}

// Run makes a folder, or runs one again.
func (c *reproCmd) Run(a *app) error {
	if info, err := os.Stat(c.Program); err == nil && info.IsDir() {
		return a.runRepro(c.Program)
	}
	if isGoFile(c.Program) {
		return a.runReproGo(c.Program)
	}
	if _, err := a.files.read(c.Program); err != nil {
		return err
	}
	if _, err := os.Stat(c.Output); err == nil {
		return usagef("-o %s: it exists", c.Output)
	}
	asked := runCmd{File: c.Program, Graph: c.Graph, In: c.In, Size: c.Size, Device: c.Device, Seed: c.Seed, Scale: c.Scale,
		Check: true, Repeat: 1}
	found := a.attempt(asked)
	if c.Shrink && found.failed() {
		asked, found = a.shrunk(asked, found)
	}
	write := a.writeRepro
	if isGoFile(c.Output) {
		write = a.writeReproGo
	}
	if err := write(c.Output, asked, found); err != nil {
		return err
	}
	if !found.failed() {
		a.ui.printf("nothing failed: the run went well and its outputs are right\n")
	} else {
		a.ui.printf("%s: %s\n", found.Kind, firstLine(found.Text))
	}
	a.ui.printf("%s holds all of it: fusec repro %s runs it again\n", c.Output, c.Output)
	return nil
}

// attempt runs and checks a graph. Whatever happens is the outcome.
func (a *app) attempt(c runCmd) (o outcome) {
	var out, errs bytes.Buffer
	quiet := *a
	quiet.ui = newUI(&out, &errs, "never", a.getenv)
	quiet.files = newSources(a.files.roots)
	quiet.files.instead = a.files.instead
	defer func() {
		if v := recover(); v != nil {
			o = outcome{Kind: "internal", Text: fmt.Sprint(v), Output: string(debug.Stack())}
		}
		for name, text := range quiet.files.texts { // what was read, imports included
			a.files.texts[name] = text
		}
		o.Output = out.String() + errs.String() + o.Output
	}()
	err := c.Run(&quiet)
	var internal *fusec.InternalError
	switch {
	case err == nil:
		return outcome{Kind: "right"}
	case errors.As(err, &internal):
		return outcome{Kind: "internal", Text: internal.Error(), Output: internal.Stack}
	case errors.Is(err, errFailed):
		return outcome{Kind: "check", Text: strings.TrimPrefix(firstError(errs.String()), "error: ")}
	}
	return outcome{Kind: "error", Text: err.Error()}
}

// firstError is the first line that tells of a mistake.
func firstError(text string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "error:") {
			return strings.TrimSpace(line)
		}
	}
	return firstLine(text)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// runRepro runs what a folder holds and says whether it fails as it did.
func (a *app) runRepro(dir string) error {
	const most = 16 << 20
	text, err := regular.ReadFile(filepath.Join(dir, reproName), most)
	if err != nil {
		return plainPathError(err)
	}
	var r reproFile
	if err := json.Unmarshal(text, &r); err != nil || r.Format != reproFormat {
		return fmt.Errorf("%s: expected what fusec repro writes, of format %d", filepath.Join(dir, reproName), reproFormat)
	}
	a.files.roots = append(a.files.roots, filepath.Join(dir, "files"))
	now := a.attempt(runCmd{File: filepath.Join(dir, "files", filepath.FromSlash(r.Program)), Graph: r.Graph, In: inputsAt(dir, r.In), Size: r.Sizes,
		Device: r.Device, Seed: r.Seed, Scale: r.Scale, Check: true, Repeat: 1})
	switch {
	case !r.Found.failed() && !now.failed():
		a.ui.printf("it went well, as it did with fusec %s\n", r.Version)
	case !now.failed():
		a.ui.printf("no longer fails: with fusec %s it was %s: %s\n", r.Version, r.Found.Kind, firstLine(r.Found.Text))
	case now.same(r.Found):
		a.ui.errorf("still fails: %s: %s", now.Kind, firstLine(now.Text))
		return errFailed
	default:
		a.ui.errorf("fails otherwise: %s: %s; it was %s: %s", now.Kind, firstLine(now.Text), r.Found.Kind, firstLine(r.Found.Text))
		return errFailed
	}
	return nil
}

// offerRepro says how to make a folder of what has just failed.
func (a *app) offerRepro(args []string) {
	if command := reproCommand(args); command != "" {
		a.ui.notef("%s puts all that a report needs into a folder", command)
	}
}

// reproCommand is the repro command for the arguments of another one that runs or compiles a
// program; "" where there is no program.
func reproCommand(args []string) string {
	out, program := []string{"fusec", "repro"}, false
	for i := 1; i < len(args); i++ {
		name, _, joined := strings.Cut(args[i], "=")
		switch name {
		case "--graph", "--in", "--size", "--device", "--seed", "--no-scale":
			out = append(out, args[i])
			if !joined && name != "--no-scale" && i+1 < len(args) {
				i++
				out = append(out, args[i])
			}
		default:
			if strings.HasSuffix(args[i], ".fuse") && !strings.HasPrefix(args[i], "-") {
				out, program = append(out, args[i]), true
			}
		}
	}
	if !program {
		return ""
	}
	return strings.Join(out, " ")
}
