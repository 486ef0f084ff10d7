package conformance

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/simtest"
)

// chainSizes are B, H, L and S, of which a graph takes those that it has.
var chainSizes = [][]int64{{1, 1, 2, 3}, {2, 1, 5, 130}, {1, 2, 129, 200}, {1, 1, 200, 70}, {1, 2, 7, 0}}

// chainFamilies are the gradients of attention in testdata: no product and no weight of them goes through memory.
func chainFamilies(t testing.TB) []family {
	text := sourceFiles(t, "testdata/chains.fuse")[0].Text
	file, err := parser.Parse("chains.fuse", text, parser.Options{})
	require.NoError(t, err)
	f := family{name: "attend backward", symbols: []string{"B", "H", "L", "S"}, sizes: chainSizes, repeat: true, variants: named("keys_back"),
		plan: streamsBackward, planned: []string{"sm_90a", "sm_80", "sm_89"},
		compile: onAll(true, "sm_90a", "sm_80")}
	for _, arch := range []string{"sm_90a", "sm_80"} {
		f.on = append(f.on, pass{engine: arch, sim: simtest.Config{Order: simtest.Order{Races: true}}})
	}
	for _, g := range file.Graphs {
		if strings.HasSuffix(g.Name, "back") {
			f.rows = append(f.rows, row{name: g.Name, src: string(text), graph: g.Name})
		}
	}
	return []family{f}
}

// streamsBackward reports whether all products of a plan are parts of streams, of at least three sums.
func streamsBackward(p *ir.Plan) bool {
	chains := 0
	for _, k := range p.Kernels {
		if k.Template == ir.ContractTemplate {
			return false
		}
		if v := k.Variants[0]; v.Attend != nil && v.Attend.Max == nil {
			chains++
			if v.Attend.Also != nil {
				chains++
			}
		}
	}
	return chains >= 3
}
