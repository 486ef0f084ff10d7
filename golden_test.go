package fusec_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

// stages write what a program is after each stage, as the golden files show it.
var stages = map[string]func(*ir.Graph, *ir.Plan, *ir.Program) string{
	"graph": func(g *ir.Graph, _ *ir.Plan, _ *ir.Program) string { return ir.Print(g) },
	"plan":  func(_ *ir.Graph, p *ir.Plan, _ *ir.Program) string { return ir.PrintPlan(p) },
	"cuda":  func(_ *ir.Graph, _ *ir.Plan, p *ir.Program) string { return kernels(p) },
}

// TestGolden compares every stage of the programs in testdata/plans with the text
// in the same file. The sections that are there are the ones compared. UPDATE=1
// writes them anew.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/plans/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { checkGolden(t, file) })
	}
}

func checkGolden(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	require.NoError(t, err)
	require.NotEmpty(t, archive.Files)
	require.Equal(t, "in.fuse", archive.Files[0].Name, "the program comes first")
	g, plan, p := program(t, "in.fuse", string(archive.Files[0].Data), "H200")
	for i := range archive.Files[1:] {
		section := &archive.Files[i+1]
		stage := stages[section.Name]
		require.NotNil(t, stage, "%s: no stage is called %s", file, section.Name)
		got := strings.TrimRight(stage(g, plan, p), "\n") + "\n"
		if os.Getenv("UPDATE") == "1" {
			section.Data = []byte(got)
			continue
		}
		assert.Equal(t, string(section.Data), got, "%s, section %s: UPDATE=1 go test -run Golden . accepts it", file, section.Name)
	}
	if os.Getenv("UPDATE") == "1" {
		require.NoError(t, os.WriteFile(file, txtar.Format(archive), 0o644))
	}
}

// kernels lists the first unit of every source, without the prelude.
func kernels(p *ir.Program) string {
	var b strings.Builder
	seen := map[int]bool{}
	for _, u := range p.Units {
		if seen[u.Source] {
			continue
		}
		seen[u.Source] = true
		fmt.Fprintf(&b, "// source %d\n%s%s\n", u.Source, u.Defines, body(p.Sources[u.Source]))
	}
	return b.String()
}

// program takes .fuse text through every stage, for a device or an architecture.
func program(t *testing.T, name, src, device string) (*ir.Graph, *ir.Plan, *ir.Program) {
	t.Helper()
	f, err := parser.Parse(name, []byte(src), parser.Options{})
	if err != nil {
		t.Fatalf("%s\n%s", src, diag.Render(err, func(n string) (string, bool) { return src, n == name }))
	}
	g, err := f.Graph("")
	require.NoError(t, err)
	d, err := ir.DeviceNamed(device)
	require.NoError(t, err)
	plan, err := fuse.Plan(g, fuse.Options{Device: d})
	require.NoError(t, err, src)
	p := codegen.Generate(plan)
	return g, plan, p
}

// body is a source without the prelude, for messages.
func body(source string) string {
	if at := strings.Index(source, "extern \"C\""); at >= 0 {
		return source[at:]
	}
	return source
}
