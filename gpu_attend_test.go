package fusec

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
)

// attendPrograms is part of the test, which also runs on machines that hold nothing else.
//
//go:embed testdata/attend.fuse
var attendPrograms []byte

var attendSizes = []map[string]int64{
	{"B": 1, "H": 1, "L": 1, "S": 1}, {"B": 2, "H": 3, "L": 5, "S": 130}, {"B": 1, "H": 2, "L": 129, "S": 257},
	{"B": 1, "H": 1, "L": 200, "S": 70}, {"B": 1, "H": 2, "L": 7, "S": 0}, {"B": 2, "H": 1, "L": 2, "S": 700},
}

func TestAttendOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	file, err := parser.Parse("attend.fuse", attendPrograms, parser.Options{})
	require.NoError(t, err)
	for _, g := range file.Graphs {
		t.Run(g.Name, func(t *testing.T) {
			p, err := CompileSource(Source{Name: "attend.fuse", Text: attendPrograms}, Options{Graph: g.Name, Arch: dev.Arch()})
			require.NoError(t, err)
			assert.True(t, slices.ContainsFunc(p.Plan().Kernels, func(k *ir.Kernel) bool { return k.Template == ir.AttendTemplate }))
			f, err := p.Load(context.Background(), dev)
			require.NoError(t, err)
			for _, sizes := range attendSizes {
				own := map[string]int64{}
				for _, s := range p.Graph().Symbols {
					own[s.Name] = sizes[s.Name]
				}
				t.Run(fmt.Sprint(own), func(t *testing.T) {
					compareWithInterpreter(t, p.Graph(), f, own)
					requireSameBits(t, p.Graph(), f, own)
				})
			}
		})
	}
}

// requireSameBits runs a function several times on one input.
func requireSameBits(t *testing.T, g *ir.Graph, f *runtime.Function, sizes map[string]int64) {
	args := drawInputs(t, g, f, sizes)
	first, err := f.Call(context.Background(), args)
	require.NoError(t, err)
	for range repetitions() {
		again, err := f.Call(context.Background(), args)
		require.NoError(t, err)
		for name := range first {
			require.Equal(t, first[name].Data, again[name].Data, name)
		}
	}
}
