package form_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// TestKeptExpansions: after each pass over drawn programs, the expansions that the graph keeps are those that are computed where
// nothing is kept. All programs share what is proved about indices, which depends on no graph.
func TestKeptExpansions(t *testing.T) {
	programs, expansions := uint64(60), 0
	if os.Getenv("FUSEC_TEST_FULL") != "" {
		programs = 600
	}
	proofs := ir.NewGraph("proofs")
	for seed := range programs {
		for name, g := range drawnGraphs(t, seed) {
			_, err := fuse.Normalize(g, fuse.Options{Observe: func(pass string, now *ir.Graph) error {
				form.ShareProofs(proofs, now)
				expansions += requireFresh(t, now, name+" after "+pass)
				return nil
			}})
			require.NoError(t, err, name)
		}
	}
	assert.Greater(t, expansions, int(100*programs), "expansions compared")
}

// changes are of one value of floats, each of one thing that an expansion may depend on. What they leave need not be a program.
var changes = map[string]func(g *ir.Graph, v *ir.Value){
	"a product no longer":  func(_ *ir.Graph, v *ir.Value) { v.Again = true },
	"not reduced":          func(_ *ir.Graph, v *ir.Value) { v.Reduce = nil },
	"reduced":              func(_ *ir.Graph, v *ir.Value) { v.Reduce = &ir.Reduction{Op: ir.Max} },
	"another body":         func(_ *ir.Graph, v *ir.Value) { v.Body = ir.Apply(ir.OpAdd, v.Body, v.Body) },
	"an exponential":       func(_ *ir.Graph, v *ir.Value) { v.Body = ir.Apply(ir.OpExp, v.Body) },
	"a constant":           func(_ *ir.Graph, v *ir.Value) { v.Body = ir.Num(v.Body.Type, 1) },
	"axes turned in place": func(_ *ir.Graph, v *ir.Value) { slices.Reverse(v.Axes) },
	"other axes":           func(g *ir.Graph, v *ir.Value) { v.Axes = g.NewAxes(v.Shape()) },
	"a result":             func(g *ir.Graph, v *ir.Value) { g.Outputs = append(slices.Clip(g.Outputs), ir.Output{Value: v}) },
}

// TestKeptExpansionsOfChangedValues: whatever changes of one value, and where the change is undone, the expansions are those that
// are computed where nothing is kept.
func TestKeptExpansionsOfChangedValues(t *testing.T) {
	programs, expansions := uint64(40), 0
	if os.Getenv("FUSEC_TEST_FULL") != "" {
		programs = 300
	}
	for seed := range programs {
		for name, g := range drawnGraphs(t, seed) {
			draw := rand.New(rand.NewPCG(seed, uint64(len(g.Values))))
			requireFresh(t, g, name)
			for _, what := range slices.Sorted(maps.Keys(changes)) {
				v := g.Values[draw.IntN(len(g.Values))]
				if v.IsInput() || !v.Body.Type.IsFloat() {
					continue
				}
				before, axes, outputs := *v, slices.Clone(v.Axes), g.Outputs
				changes[what](g, v)
				expansions += requireFresh(t, g, fmt.Sprintf("%s, %s: %s", name, v.Name, what))
				*v, g.Outputs = before, outputs
				copy(v.Axes, axes)
				requireFresh(t, g, fmt.Sprintf("%s, %s: %s, undone", name, v.Name, what))
			}
		}
	}
	assert.Greater(t, expansions, int(50*programs), "expansions compared")
}

// requireFresh compares the expansions that a graph keeps with those that are computed where nothing is kept. It returns their
// number.
func requireFresh(t *testing.T, g *ir.Graph, about string) int {
	t.Helper()
	got := form.Expansions(g)
	fresh := *g
	fresh.Forget()
	want := form.Expansions(&fresh)
	require.Len(t, got, len(want), about)
	for i := range want {
		require.True(t, ir.Equal(want[i], got[i]), about)
	}
	return len(want)
}

// drawnGraphs are the programs of a seed, by name: a large one, its gradient, and one with windows.
func drawnGraphs(t *testing.T, seed uint64) map[string]*ir.Graph {
	t.Helper()
	graphs := map[string]*ir.Graph{}
	for kind, p := range map[string]*gen.Program{"large": gen.DrawLarge(seed), "windows": gen.DrawTimed(seed)} {
		file, err := parser.Parse("drawn.fuse", []byte(p.Source()), parser.Options{})
		require.NoError(t, err)
		graphs[fmt.Sprint(kind, " ", seed)] = file.Graphs[len(file.Graphs)-1]
		if grad, err := file.Grad("", parser.GradOptions{}); err == nil { // an error where nothing depends on a float
			graphs[fmt.Sprint("gradient of ", kind, " ", seed)] = grad.Graphs[len(grad.Graphs)-1]
		}
	}
	return graphs
}
