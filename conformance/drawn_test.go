package conformance

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// drawnFile holds a line for each drawn program: its kind and seed, the device that it is planned for, and a
// hash of what the compiler makes of it.
const drawnFile = "../testdata/drawn.txt"

const drawnHead = `# What the compiler makes of drawn programs, as hashes: kind, seed, device, a hash of the plan, the kernels
# and the host program. Small and large programs are those of Draw and DrawLarge of conformance/gen, a
# gradient is that of a large one. A change of the generator of programs moves them all.
# UPDATE=1 go test -run TestDrawnTexts ./conformance writes them anew.
`

// drawnKinds are how many programs there are of each kind.
var drawnKinds = []struct {
	name  string
	count int
}{{"small", 140}, {"large", 280}, {"gradient", 60}}

// drawnGroup is how many programs are a test.
const drawnGroup = 20

// A drawn is the program of a seed, and what it is planned for.
type drawn struct {
	kind string
	seed int
	arch string
}

func (d drawn) String() string { return fmt.Sprintf("%s %d %s", d.kind, d.seed, d.arch) }

// drawnPrograms are all programs, each for one of four devices in turn.
func drawnPrograms() (out []drawn) {
	for _, k := range drawnKinds {
		for seed := range k.count {
			out = append(out, drawn{k.name, seed, []string{"sm_90a", "sm_80", "sm_86", "sm_75"}[seed%4]})
		}
	}
	return out
}

// program is the program of the seed.
func (d drawn) program() *gen.Program {
	if d.kind == "small" {
		return gen.Draw(uint64(d.seed))
	}
	return gen.DrawLarge(uint64(d.seed))
}

// graph is what is planned, nil with the reason where there is none.
func (d drawn) graph(t *testing.T) (g *ir.Graph, none string) {
	file, err := parser.Parse("drawn.fuse", []byte(d.program().Source()), parser.Options{})
	require.NoError(t, err, d)
	if d.kind == "gradient" {
		if file, err = file.Grad("", parser.GradOptions{}); err != nil {
			return nil, err.Error() // nothing depends on a float
		}
	}
	return file.Graphs[len(file.Graphs)-1], ""
}

// hash is of what the compiler makes of a program. Sizes are baked into the kernels of one in three.
func (d drawn) hash(t *testing.T) string {
	graph, none := d.graph(t)
	if graph == nil {
		return shortHash(none)
	}
	device, err := ir.DeviceNamed(d.arch)
	require.NoError(t, err)
	opts := fuse.Options{Device: device}
	if d.seed%3 == 0 {
		opts.Specialize = d.program().Sizes
	}
	plan, err := fuse.Plan(graph, opts)
	require.NoError(t, err, d)
	cuda, err := codegen.Generate(plan)
	require.NoError(t, err, d)
	return shortHash(ir.PrintPlan(plan) + kernelsText(cuda) + hostText(cuda))
}

// TestDrawnTexts names the drawn programs of which the compiler makes something else than what the
// committed hashes say. Listed programs (TestTexts) are what somebody thought of; drawn ones put the same
// parts together otherwise, at extents on both sides of where the planner chooses otherwise. It looks at one program in two,
// and at all of them with FUSEC_TEST_FULL=1.
func TestDrawnTexts(t *testing.T) {
	programs := drawnPrograms()
	if os.Getenv("UPDATE") == "1" {
		text := drawnHead
		for _, d := range programs {
			text += fmt.Sprintf("%s %s\n", d, d.hash(t))
		}
		require.NoError(t, os.WriteFile(drawnFile, []byte(text), 0o644))
		return
	}
	text, err := os.ReadFile(drawnFile)
	require.NoError(t, err)
	hashes := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if name, hash, ok := cutLast(strings.TrimSpace(line)); ok {
			hashes[name] = hash
		}
	}
	every := 2
	if inFull() {
		every = 1
	}
	for from := 0; from < len(programs); from += drawnGroup {
		t.Run(programs[from].String(), func(t *testing.T) {
			t.Parallel()
			for i, d := range programs[from:min(from+drawnGroup, len(programs))] {
				if (i/4+from/drawnGroup)%every != 0 { // four in turn: one for each device
					continue
				}
				assert.Equal(t, hashes[d.String()], d.hash(t), "%s has changed:\n%s", d, d.program().Source())
			}
		})
	}
}

// cutLast splits a line before its last word; ok is false for comments.
func cutLast(line string) (before, last string, ok bool) {
	i := strings.LastIndex(line, " ")
	if i < 0 || strings.HasPrefix(line, "#") {
		return "", "", false
	}
	return line[:i], line[i+1:], true
}
