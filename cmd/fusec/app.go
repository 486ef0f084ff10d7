package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
)

// commands is the command line: kong reads it, help and completion follow from it.
type commands struct {
	Color string `enum:"auto,always,never" default:"auto" help:"Colours: auto, always or never."`

	ImportRoot []string `placeholder:"DIR" help:"Let programs import files below DIR too, not only below their own folder."`

	Run        runCmd        `cmd:"" help:"Run a graph and print what it took."`
	Compile    compileCmd    `cmd:"" help:"Compile a program's kernels into the cache; needs no GPU."`
	Bundle     bundleCmd     `cmd:"" help:"Compile programs into one signed file to ship with an application."`
	Key        keyCmd        `cmd:"" help:"Make the pair of keys that bundles and shared kernels are signed with."`
	Gen        genCmd        `cmd:"" help:"Write Go code that calls the graphs of a program."`
	Explain    explainCmd    `cmd:"" help:"Show a program's kernels, and why they are not fewer."`
	Profile    profileCmd    `cmd:"" help:"Run a graph and say where the time goes, kernel by kernel and line by line."`
	Repro      reproCmd      `cmd:"" help:"Put a failure into a folder that runs elsewhere, or run one again."`
	View       viewCmd       `cmd:"" help:"Make a page of a program's kernels, to be looked at in a browser."`
	Docs       docsCmd       `cmd:"" help:"Show the documentation in a browser; needs no network."`
	Bench      benchCmd      `cmd:"" help:"Measure graphs, beside a plain copy and PyTorch."`
	Tune       tuneCmd       `cmd:"" help:"Measure what else kernels could run as, and keep what is fastest."`
	Start      startCmd      `cmd:"" help:"Measure the start of a process on the GPU, beside a bare CUDA context."`
	Check      checkCmd      `cmd:"" help:"Report the mistakes in programs."`
	Fmt        fmtCmd        `cmd:"" help:"Lay programs out in the canonical way."`
	Ops        opsCmd        `cmd:"" help:"Describe operators, reductions and library functions."`
	LSP        lspCmd        `cmd:"" name:"lsp" help:"Serve an editor: mistakes while typing, types, kernels."`
	Cache      cacheCmd      `cmd:"" help:"Look after the kernels kept on disk."`
	Doctor     doctorCmd     `cmd:"" help:"Say what was found on this machine and what is missing."`
	Passes     passesCmd     `cmd:"" help:"List the passes over a graph, in order."`
	Version    versionCmd    `cmd:"" help:"Print the version."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

// app is what every command works with.
type app struct {
	ctx    context.Context
	ui     *ui
	getenv func(string) string
	model  *kong.Application
	files  *sources
	caches []*cache.Cache // that were opened: to be flushed in the end

	openDevice func(spec string, opts runtime.Options) (*runtime.Device, error) // runtime.Open, but for tests
}

// run parses the arguments, runs the command and returns the exit code.
func run(args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var c commands
	ended := false // by --help, which kong answers while it parses
	parser, err := kong.New(&c,
		kong.Name("fusec"),
		kong.Description("fusec turns .fuse programs into few GPU kernels, and runs them."),
		kong.Writers(stdout, stderr),
		kong.Exit(func(int) { ended = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, Tree: true, WrapUpperBound: 100}),
		kong.Vars{"devices": deviceNames()},
	)
	if err != nil {
		panic("BUG: " + err.Error())
	}
	parsed, err := parser.Parse(helpFirst(args))
	if ended && len(args) == 0 {
		return exitUsage
	}
	if ended {
		return exitOK
	}
	a := &app{ctx: ctx, ui: newUI(stdout, stderr, c.Color, getenv), getenv: getenv, model: parser.Model,
		files: newSources(c.ImportRoot), openDevice: runtime.Open}
	if err != nil {
		a.ui.errorf("%s", plainUsage(err))
		fmt.Fprintln(stderr, helpFor(err))
		return exitUsage
	}
	err = a.run(parsed, args)
	code := a.report(err)
	var internal *fusec.InternalError
	if errors.As(err, &internal) || errors.Is(err, errWrongResult) {
		a.offerRepro(args)
	}
	a.flushCaches()
	return code
}

// plainUsage words what kong says of a flag with sizes that are no numbers.
func plainUsage(err error) string {
	const flag = "--size: "
	text, ok := strings.CutPrefix(err.Error(), flag)
	if !ok || strings.HasPrefix(text, expectedSizes) {
		return err.Error()
	}
	text = strings.Replace(text, `expected "<key>=<value>" but got`, "found", 1)
	text = flag + expectedSizes + ": " + strings.Replace(text, "invalid map value", "found", 1)
	if slices.ContainsFunc(oneSize(), func(class string) bool { return strings.HasSuffix(text, strconv.Quote(class)) }) {
		text += "; run, explain and bench take classes of sizes"
	}
	return text
}

// helpFor says where to read on: of the command whose arguments are wrong, or of all.
func helpFor(err error) string {
	var wrong *kong.ParseError
	if errors.As(err, &wrong) && wrong.Context != nil && wrong.Context.Selected() != nil {
		return fmt.Sprintf("Run %q for its flags.", wrong.Context.Selected().FullPath()+" --help")
	}
	return `Run "fusec --help" for the commands.`
}

// helpFirst are the arguments with fusec help COMMAND, and fusec alone, as kong knows them.
func helpFirst(args []string) []string {
	switch {
	case len(args) == 0:
		return []string{"--help"}
	case args[0] == "--version" || args[0] == "-V": // as other programs are asked
		args = []string{"version"}
	case args[0] == "help":
		return append(args[1:len(args):len(args)], "--help")
	}
	return args
}

// run runs a command. A broken invariant becomes an error, whose stack is written for the report.
func (a *app) run(parsed *kong.Context, args []string) (err error) {
	defer func() {
		if v := recover(); v != nil {
			internal := &fusec.InternalError{Stage: "fusec " + parsed.Command(), Input: strings.Join(args, " "), Value: v,
				Stack: string(debug.Stack())}
			fmt.Fprintln(a.ui.err, internal.Stack)
			err = internal
		}
	}()
	return parsed.Run(a)
}
