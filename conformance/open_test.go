package conformance

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

func openCPU(t testing.TB) *Engine { return Open(t, "cpu", Options{}) }

func openGPU(t testing.TB, o runtime.Options) *Engine {
	t.Helper()
	return Open(t, "gpu", Options{Runtime: o})
}

// openHopper opens a GPU, and skips a test where that is no sm_90a, which needs one for a reason.
func openHopper(t testing.TB, reason string) *Engine {
	t.Helper()
	dev := openGPU(t, runtime.Options{})
	if dev.Arch() != "sm_90a" {
		t.Skip(reason + "; this is " + dev.Arch())
	}
	return dev
}

// openSimulated opens a simulated device, an sm_90a where nothing else is said.
func openSimulated(t testing.TB, c simtest.Config) *Engine {
	t.Helper()
	if c.Arch == "" {
		c.Arch = "sm_90a"
	}
	return Open(t, c.Arch, Options{Sim: c})
}

// loaded compiles a program of one graph for an engine and loads it there.
func loaded(t testing.TB, e *Engine, src string) (*fusec.Program, *runtime.Function) {
	t.Helper()
	p, err := e.Load(source("g", src), fusec.Options{})
	require.NoError(t, err, src)
	return p.Program, p.Function
}

// source is a text as a file.
func source(name, text string) fusec.Source {
	return fusec.Source{Name: name + ".fuse", Text: []byte(text)}
}

// sourceFiles reads the files that a pattern names, from the module's root.
func sourceFiles(t testing.TB, pattern string) []fusec.Source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var out []fusec.Source
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		out = append(out, fusec.Source{Name: filepath.Base(file), Text: text})
	}
	return out
}

// drawInputs is Inputs without errors.
func drawInputs(t testing.TB, g *ir.Graph, sizes map[string]int64) runtime.Args {
	t.Helper()
	args, err := Inputs(g, sizes)
	require.NoError(t, err)
	return args
}

// interpreted is the reference for inputs.
func interpreted(t testing.TB, g *ir.Graph, args runtime.Args) *Reference {
	t.Helper()
	r, err := Interpret(g, args)
	require.NoError(t, err)
	return r
}

// compareWithInterpreter runs a function on random numbers.
func compareWithInterpreter(t testing.TB, g *ir.Graph, f *runtime.Function, sizes map[string]int64) {
	t.Helper()
	r := interpreted(t, g, drawInputs(t, g, sizes))
	got, err := f.Call(t.Context(), r.Args)
	require.NoError(t, err)
	require.NoError(t, r.Compare(got))
}
