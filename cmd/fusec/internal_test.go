package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
)

// plansNothing are the commands that make no plan, or only where there is a GPU.
var plansNothing = []string{"check", "fmt", "gen", "key", "ops", "docs", "lsp", "cache", "doctor", "passes", "version", "completion", "repro", "start", "tune"}

// TestBrokenInvariantsEndCommands: where a pass panics, or what it leaves has no plan that is right, every command that plans ends
// with an error that says so, and writes no result.
func TestBrokenInvariantsEndCommands(t *testing.T) {
	dir := t.TempDir()
	program := filepath.Join(dir, "g.fuse")
	require.NoError(t, os.WriteFile(program, []byte("@bench(N=8)\ngraph g(x: f32[N]) -> (y: f32[N]) { y = x + 1 }\n"), 0o644))
	key, result := filepath.Join(dir, "key"), filepath.Join(dir, "result")
	getenv := func(name string) string {
		return map[string]string{"FUSEC_CACHE": filepath.Join(dir, "cache"), "PATH": os.Getenv("PATH")}[name]
	}
	fusec := func(args ...string) (int, string) {
		var stdout, stderr bytes.Buffer
		code := run(args, &stdout, &stderr, getenv)
		return code, stdout.String() + stderr.String()
	}
	code, said := fusec("key", key)
	require.Zero(t, code, said)
	commands := map[string][]string{
		"run":     {"run", program, "--device", "cpu", "--out", "y=" + result},
		"compile": {"compile", program, "--arch", "sm_80"},
		"bundle":  {"bundle", program, "-o", result, "--key", key, "--arch", "sm_80"},
		"explain": {"explain", program},
		"profile": {"profile", program, "--device", "cpu"},
		"view":    {"view", program, "-o", result},
		"bench":   {"bench", program, "--device", "cpu"},
	}
	requireEveryCommand(t, commands)
	all := passes.All
	t.Cleanup(func() { passes.All = all })
	for what, broken := range map[string]func(g *ir.Graph){
		"an invariant of the test": func(*ir.Graph) { panic("BUG: an invariant of the test") },
		"it touches element": func(g *ir.Graph) { // it reads behind the end of x
			y := g.Outputs[0].Value
			y.Body = ir.Load(g.Inputs[0], []*ir.Expr{ir.Apply(ir.OpAdd, y.Axes[0].At(), ir.IntConst(1))}, nil)
		},
	} {
		passes.All = append(all[:len(all):len(all)], passes.Pass{Name: "broken", Run: broken})
		for command, args := range commands {
			code, said := fusec(args...)
			assert.Equal(t, exitDiagnostics, code, "%s: %s", command, said)
			assert.Contains(t, said, "internal error", command)
			assert.Contains(t, said, what, command)
			assert.NoFileExists(t, result, command)
		}
	}
}

// requireEveryCommand fails where a command is neither among those that plan nor among the others.
func requireEveryCommand(t *testing.T, planning map[string][]string) {
	t.Helper()
	var help bytes.Buffer
	require.Zero(t, run([]string{"--help"}, &help, &help, func(string) string { return "" }))
	for line := range strings.Lines(help.String()) {
		word, _, _ := strings.Cut(strings.TrimPrefix(line, "  "), " ")
		if !strings.HasPrefix(line, "  ") || !strings.ContainsAny(line[2:3], "abcdefghijklmnopqrstuvwxyz") {
			continue
		}
		_, plans := planning[word]
		require.True(t, plans != strings.Contains(" "+strings.Join(plansNothing, " ")+" ", " "+word+" "), "does %q plan?", word)
	}
}
