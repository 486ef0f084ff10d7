package conformance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/fuse/explain"
)

const (
	strategiesFile = "../testdata/strategies.txt"
	strategiesHead = "# Which strategies the kernels of each measured row have at its largest sizes, on an H200:\n" +
		"# template/mapping for each kernel.\n" +
		"# UPDATE=1 go test -run TestStrategies ./conformance writes this file. Read what moved: a row that leaves\n" +
		"# the tensor cores or gains a kernel is slower, and no other test says so.\n"
)

// TestStrategies: no row that is measured takes another strategy unnoticed. Texts of kernels change often, and
// with them their hashes; what a row is computed by does not, and a reviewer can read it. It looks at one row in six, which
// the row's line draws, and at all of them with FUSEC_TEST_FULL=1.
func TestStrategies(t *testing.T) {
	update := os.Getenv("UPDATE") == "1"
	text, err := os.ReadFile(strategiesFile)
	if !update {
		require.NoError(t, err)
	}
	known := slices.Collect(strings.Lines(strings.TrimPrefix(string(text), strategiesHead)))
	lines := []string{}
	for _, p := range measuredPrograms(t) {
		for _, c := range p.Cases {
			if n := len(lines); !update && !inFull() && n < len(known) && strings.HasPrefix(known[n], strategyName(p, c)+":") && !hashDraws(known[n], 6) {
				lines = append(lines, known[n])
				continue
			}
			lines = append(lines, strategyLine(t, p, c)+"\n")
		}
	}
	got := strategiesHead + strings.Join(lines, "")
	if update {
		require.NoError(t, os.WriteFile(strategiesFile, []byte(got), 0o644))
		return
	}
	assert.Equal(t, string(text), got)
}

// measuredPrograms are the built-in suites and the drawn programs.
func measuredPrograms(t *testing.T) (out []bench.Program) {
	for _, name := range bench.Suites() {
		programs, err := bench.Suite(name)
		require.NoError(t, err)
		out = append(out, programs...)
	}
	paths, err := filepath.Glob("../bench/drawn/*.fuse")
	require.NoError(t, err)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		p, err := bench.Parse("drawn/"+filepath.Base(path), string(text))
		require.NoError(t, err)
		out = append(out, p)
	}
	return out
}

func strategyLine(t *testing.T, p bench.Program, c bench.Case) string {
	t.Helper()
	compiled, err := fusec.CompileSource(source(p.Name, p.Text), fusec.Options{Graph: c.Graph, Arch: "sm_90a"})
	require.NoError(t, err, c.Graph)
	sizes := map[string]int64{}
	if large := c.Sizes[bench.Large]; len(large) > 0 {
		maps.Copy(sizes, large[len(large)-1])
	}
	x := explain.Explain(compiled.Graph(), compiled.Plan(), explain.Options{Sizes: sizes})
	var kernels []string
	for _, k := range x.Kernels {
		kernels = append(kernels, fmt.Sprintf("%s/%s", k.Template, strings.ReplaceAll(k.Mapping, " ", "-")))
	}
	return fmt.Sprintf("%s: %s", strategyName(p, c), strings.Join(kernels, " "))
}

func strategyName(p bench.Program, c bench.Case) string {
	name := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(p.Name), ".fuse"), ".txt")
	if strings.HasPrefix(p.Name, "drawn/") {
		name = "drawn/" + name
	}
	return fmt.Sprintf("%s/%s", name, c.Graph)
}
