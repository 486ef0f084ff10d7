package conformance

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// networkFamilies are the graphs of examples/networks, each at the sizes that its comment names for that.
func networkFamilies(t testing.TB) []family {
	const small = 1 << 23 // larger ones are for GPUs, whose kernels of large tiles they reach
	f := family{name: "networks", on: []pass{{engine: "cpu", most: small}, {engine: "gpu"}, {engine: "sm_90a", most: small}, {engine: "sm_80", most: small}},
		compile: []compiling{{archs: []string{"sm_90a"}, ends: true, keep: offsetsOf32}}}
	for _, src := range sourceFiles(t, "examples/networks/*.fuse") {
		p, err := bench.Parse(src.Name, string(src.Text))
		require.NoError(t, err)
		for _, c := range p.Cases {
			f.rows = append(f.rows, row{name: c.Graph, src: p.Text, graph: c.Graph, sizes: checkSizes(t, p, c)})
		}
	}
	return []family{f}
}

// checkSizes are the sizes of a case's check, in the order of its graph's symbols.
func checkSizes(t testing.TB, p bench.Program, c bench.Case) (out [][]int64) {
	t.Helper()
	require.NotEmpty(t, c.Sizes[bench.Check], c.Graph)
	file, err := parser.Parse(p.Name, []byte(p.Text), parser.Options{})
	require.NoError(t, err)
	graph, err := file.Graph(c.Graph)
	require.NoError(t, err)
	for _, sizes := range c.Sizes[bench.Check] {
		var set []int64
		for _, s := range graph.Symbols {
			require.Contains(t, sizes, s.Name, c.Graph)
			set = append(set, sizes[s.Name])
		}
		out = append(out, set)
	}
	return out
}

// kernelsOf is how many kernels a network launches on an sm_90a at the sizes of its benchmark: more are a step back.
var kernelsOf = map[string]int{
	"llama_prefill": 11, "llama_decode": 19, "gpt2_block": 7, "bert_layer": 9, "vit_layer": 9, "whisper_layer": 13, "mixture": 7,
	"lstm_step": 3, "kalman_update": 14, "adam_step": 2, "kmeans_step": 7, "black_scholes": 1, "log_mel": 3, "graph_attention": 6,
	"recommendation": 7, "unet_block": 17, "resnet_block": 7, "mobilenet_block": 10, "efficientnet_block": 7, "convnext_block": 4,
	"unet_down": 11, "unet_up": 7, "wavenet_layer": 6, "espcn": 5,
}

// Attention whose operands are projected in the same graph is one kernel, and all products of long rows around it go
// through warpgroups: their biases are added where they are written, and heads lie as the next product reads them. Unless
// FUSEC_TEST_FULL is set, one network in three is looked at, which its text draws.
func TestNetworkPlans(t *testing.T) {
	t.Parallel()
	whole := []string{"llama_prefill", "gpt2_block", "bert_layer", "vit_layer", "whisper_layer"}
	for _, f := range networkFamilies(t) {
		for _, r := range f.rows {
			if !inFull() && !hashDraws(r.graph+r.src+" kernels", 3) {
				continue
			}
			program := planned(t, r, "sm_90a")
			p := program.Plan().At(nil)
			assert.LessOrEqual(t, explain.Explain(program.Graph(), p, explain.Options{}).Fused.Kernels, kernelsOf[r.name], r.name)
			if !slices.Contains(whole, r.name) {
				continue
			}
			attends := 0
			for _, k := range p.Kernels {
				if k.Template == ir.AttendTemplate {
					attends++
					assert.Equal(t, ir.AttendWarpgroup, k.Variants[0].Strategy, r.name)
				}
			}
			assert.Equal(t, 1, attends, r.name)
		}
	}
}
