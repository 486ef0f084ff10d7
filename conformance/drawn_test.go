package conformance

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// drawnFile holds a line for each twenty drawn programs: their kind, the first seed, and for each of them a short hash of what
// the compiler makes of it.
const drawnFile = "../testdata/drawn.txt"

const drawnHead = `# What the compiler makes of drawn programs: a kind, the first of twenty seeds, and for each of them the first digits of a hash
# of the plan, the kernels and the host program, for one of four devices in turn. Small programs are those of Draw of
# conformance/gen, large ones those of DrawLarge, windows those of DrawTimed; a gradient is that of a large one. A change of the
# generator of programs moves them all. UPDATE=1 go test -run TestDrawnTexts ./conformance writes them anew.
`

// drawnKinds are how many programs there are of each kind.
var drawnKinds = []struct {
	name  string
	count int
	draw  func(seed uint64) *gen.Program
}{{"small", 800, gen.Draw}, {"large", 800, gen.DrawLarge}, {"windows", 1600, gen.DrawTimed}, {"gradient", 400, gen.DrawLarge}}

// drawnGroup is how many programs are a line of the file, and a test.
const drawnGroup = 20

// A drawn is the program of a seed, and what it is planned for.
type drawn struct {
	kind string
	seed int
	arch string
	draw func(seed uint64) *gen.Program
}

func (d drawn) String() string { return fmt.Sprintf("%s %d %s", d.kind, d.seed, d.arch) }

// drawnPrograms are all programs, each for one of four devices in turn.
func drawnPrograms() (out []drawn) {
	for _, k := range drawnKinds {
		for seed := range k.count {
			out = append(out, drawn{k.name, seed, []string{"sm_90a", "sm_80", "sm_86", "sm_75"}[seed%4], k.draw})
		}
	}
	return out
}

// program is the program of the seed.
func (d drawn) program() *gen.Program { return d.draw(uint64(d.seed)) }

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

// drawnDigits of a hash are enough to see nearly every change.
const drawnDigits = 4

// hash is of what the compiler makes of a program. Sizes are baked into the kernels of one in three.
func (d drawn) hash(t *testing.T) string {
	graph, none := d.graph(t)
	if graph == nil {
		return shortHash(none)[:drawnDigits]
	}
	device, err := ir.DeviceNamed(d.arch)
	require.NoError(t, err)
	opts := fuse.Options{Device: device}
	if d.seed%3 == 0 {
		opts.Specialize = d.program().Sizes
	}
	plan, err := fuse.Plan(graph, opts)
	require.NoError(t, err, d)
	cuda := codegen.Generate(plan)
	return shortHash(ir.PrintPlan(plan) + kernelsText(cuda) + hostText(cuda))[:drawnDigits]
}

// drawnHashes are the committed ones, by what drawn programs are called.
func drawnHashes(t *testing.T) map[string]string {
	text, err := os.ReadFile(drawnFile)
	require.NoError(t, err)
	var all []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			all = append(all, strings.Fields(line)[2:]...)
		}
	}
	hashes := map[string]string{}
	programs := drawnPrograms()
	require.Len(t, all, len(programs), "UPDATE=1 writes %s anew", drawnFile)
	for i, d := range programs {
		hashes[d.String()] = all[i]
	}
	return hashes
}

// TestDrawnTexts names the drawn programs of which the compiler makes something else than what the
// committed hashes say. Listed programs (TestTexts) are what somebody thought of; drawn ones put the same
// parts together otherwise, at extents on both sides of where the planner chooses otherwise. It looks at one program in 16,
// and at all of them with FUSEC_TEST_FULL=1.
func TestDrawnTexts(t *testing.T) {
	programs := drawnPrograms()
	if os.Getenv("UPDATE") == "1" {
		writeDrawn(t, programs)
		return
	}
	hashes := drawnHashes(t)
	every := 16
	if inFull() {
		every = 1
	}
	for from := 0; from < len(programs); from += drawnGroup {
		t.Run(programs[from].String(), func(t *testing.T) {
			t.Parallel()
			for i, d := range programs[from : from+drawnGroup] {
				if (i/4+from/drawnGroup)%every != 0 { // four in turn: one for each device
					continue
				}
				assert.Equal(t, hashes[d.String()], d.hash(t), "%s has changed:\n%s", d, d.program().Source())
			}
		})
	}
}

func writeDrawn(t *testing.T, programs []drawn) {
	lines := make([]string, len(programs)/drawnGroup)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range lines {
		group.Go(func() error {
			these := programs[i*drawnGroup : (i+1)*drawnGroup]
			lines[i] = fmt.Sprintf("%s %d", these[0].kind, these[0].seed)
			for _, d := range these {
				lines[i] += " " + d.hash(t)
			}
			return nil
		})
	}
	require.NoError(t, group.Wait())
	require.NoError(t, os.WriteFile(drawnFile, []byte(drawnHead+strings.Join(lines, "\n")+"\n"), 0o644))
}
