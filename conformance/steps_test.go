package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/parser"
)

// stepSizes are N and V, of which a graph takes those that it has.
var stepSizes = [][]int64{{37, 333}, {128, 72}, {1, 1}, {300, 130}}

// stepFamilies are the steps of training in testdata.
func stepFamilies(t testing.TB) []family {
	text := sourceFiles(t, "testdata/steps.fuse")[0].Text
	file, err := parser.Parse("steps.fuse", text, parser.Options{})
	require.NoError(t, err)
	// Sums over columns spill four bytes where offsets have 64 bits.
	compiled := []compiling{{archs: []string{"sm_90a", "sm_80"}, ends: true, keep: offsetsOf32}}
	f := family{name: "steps", symbols: []string{"N", "V"}, sizes: stepSizes, compile: compiled,
		on: []pass{{engine: "cpu"}, {engine: "gpu"}, {engine: "sm_90a", most: 1 << 22}, {engine: "sm_80", most: 1 << 22}}}
	spills := f // the gradient of squares sums columns by groups of threads, which spill four bytes for one of its sizes
	spills.name, spills.compile = "steps_that_spill", nil
	for _, g := range file.Graphs {
		switch r := (row{name: g.Name, src: string(text), graph: g.Name}); {
		case g.Name == "squares_back":
			spills.rows = append(spills.rows, r)
		case strings.HasSuffix(g.Name, "_back") || strings.HasPrefix(g.Name, "parts_"):
			f.rows = append(f.rows, r)
		}
	}
	return []family{f, spills}
}

// TestParts: results of products that are split into several axes are stored where these are, by the product's kernel.
func TestParts(t *testing.T) {
	t.Parallel()
	for _, r := range stepFamilies(t)[0].rows {
		if strings.HasPrefix(r.name, "parts_") {
			assert.Len(t, planned(t, r, "sm_90a").Plan().At(nil).Launched(), 1, r.name)
		}
	}
}
