package conformance

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime/simtest"
)

// attendSizes are B, H, L and S.
var attendSizes = [][]int64{{1, 1, 1, 1}, {2, 3, 5, 130}, {1, 2, 129, 257}, {1, 1, 200, 70}, {1, 2, 7, 0}, {2, 1, 2, 700}}

// keyless are attention of few queries, whose keys the warps of a block share: without a mask,
// and under one that leaves no key.
var keyless = map[string]string{
	"all keys": "graph g(q: bf16[B, 4, 64], k: bf16[B, S, 64], v: bf16[B, S, 64]) -> (y: bf16[B, 4, 64]) {\n" +
		"    y = bf16(softmax(f32(q @ transpose(k, -1, -2)) * 0.125)) @ v\n}",
	"long heads": "graph g(q: f16[B, 1, 192], k: f16[B, S, 192], v: f16[B, S, 192]) -> (y: f16[B, 1, 192]) { y = attention(q, k, v) }",
	"no key": "graph g(q: bf16[B, 4, 64], k: bf16[B, S, 64], v: bf16[B, S, 64], n: i32[B]) -> (y: bf16[B, 4, 64], " +
		"lse: f32[B, 4]) {\n" +
		"    s = where(iota(S) < 0 - n[:, none, none] * n[:, none, none], f32(q @ transpose(k, -1, -2)) * 0.125, -inf)\n" +
		"    y = bf16(softmax(s)) @ v\n    lse = logsumexp(s, axis=-1)\n}",
}

// inChunks are attention of few tiles of queries over many keys, which come in chunks: the last one has few keys,
// and under a mask some query sees none of them.
var inChunks = map[string]string{
	"all keys": "@bench(L=600, S=20000)\ngraph g(q: f16[L, 64], k: f16[S, 64], v: f16[S, 64]) -> (y: f16[L, 64]) {\n" +
		"    y = attention(q, k, v)\n}",
	"masked": "@bench(L=600, S=20000)\ngraph g(q: bf16[L, 64], k: bf16[S, 64], v: bf16[S, 64]) -> (y: bf16[L, 64]) {\n" +
		"    y = attention(q, k, v, mask=iota(S) <= 300 * iota(L)[:, none])\n}",
}

// attendFamilies are streams of keys: every form of attention in testdata, and queries that see no key.
// Blocks that pass no keys still have their queries' copies under way when the warps' states go to
// where those land.
func attendFamilies(t testing.TB) []family {
	text := sourceFiles(t, "testdata/attend.fuse")[0].Text
	file, err := parser.Parse("attend.fuse", text, parser.Options{})
	require.NoError(t, err)
	streams := family{name: "attend", symbols: []string{"B", "H", "L", "S"}, sizes: attendSizes, repeat: true, variants: all,
		plan: func(p *ir.Plan) bool { return slices.ContainsFunc(p.Kernels, isAttend) }, planned: []string{"sm_90a", "sm_80", "sm_89"},
		on:      []pass{{engine: "gpu"}},
		compile: onAll(true, "sm_90a", "sm_80", "sm_89")}
	for j := range streams.compile {
		streams.compile[j].rows = func(i int, _ string) bool {
			return (j == 0 && (i%2 == 0 || inFull()) || j > 0 && i%5 == j) && (!testing.Short() || i%6 == 0)
		}
		streams.compile[j].short = true
	}
	for _, g := range file.Graphs {
		streams.rows = append(streams.rows, row{name: g.Name, src: string(text), graph: g.Name})
	}
	none := family{name: "attend to no keys", rows: rowsOf(keyless, verbatim), sizes: [][]int64{{1, 0}, {2, 1}, {1, 130}},
		planned: []string{"sm_90a", "sm_80"},
		plan:    func(p *ir.Plan) bool { launched := p.Launched(); return isAttend(launched[len(launched)-1]) }}
	for _, arch := range []string{"sm_90a", "sm_80"} {
		for _, order := range []simtest.Order{{Races: true}, {Backwards: true}} {
			none.on = append(none.on, pass{engine: arch, sim: simtest.Config{Order: order}})
		}
	}
	chunked := family{name: "attend in chunks", rows: rowsOf(inChunks, verbatim), sizes: [][]int64{{3, 2900}, {70, 2817}}, symbols: []string{"L", "S"},
		planned: []string{"sm_90a", "sm_80"}, plan: func(p *ir.Plan) bool { return isAttend(p.Launched()[0]) && len(p.Launched()) > 1 },
		on: []pass{{engine: "gpu"}, {engine: "sm_90a"}, {engine: "sm_80"}}, compile: onAll(true, "sm_90a", "sm_80")}
	return []family{streams, none, chunked, wideStreams(t, string(text)), joinedFamily()}
}

// wideStreams are attention of f32, whose elements tensor cores multiply as sums of bf16: exact, and of two parts
// under @tf32.
func wideStreams(t testing.TB, text string) family {
	text = regexp.MustCompile(`\b(bf16|f16)\b`).ReplaceAllString(text, "f32")
	wide := family{name: "attend f32", symbols: []string{"B", "H", "L", "S"}, sizes: [][]int64{{1, 1, 1, 1}, {2, 1, 5, 130}, {1, 2, 33, 70}, {1, 1, 7, 0}},
		plan: func(p *ir.Plan) bool { return slices.ContainsFunc(p.Kernels, isAttend) }, planned: []string{"sm_90a", "sm_80"},
		on: []pass{{engine: "gpu"}}, compile: onAll(true, "sm_90a", "sm_80")}
	for _, arch := range []string{"sm_90a", "sm_80"} {
		wide.on = append(wide.on, pass{engine: arch, sim: simtest.Config{Order: simtest.Order{Races: true}}})
	}
	for j := range wide.compile {
		wide.compile[j].rows = func(i int, _ string) bool { return i%2 == j || inFull() }
	}
	for i, name := range []string{"d32", "d64_causal", "d96_values_of_40", "d33", "d128_sum_of_weights", "window", "mask_and_bias"} {
		src := text
		if i%3 == 1 {
			src = strings.ReplaceAll(text, "graph "+name+"(", "@tf32\ngraph "+name+"(")
		}
		wide.rows = append(wide.rows, row{name: name, src: src, graph: name})
	}
	return wide
}

func isAttend(k *ir.Kernel) bool { return k.Template == ir.AttendTemplate }
