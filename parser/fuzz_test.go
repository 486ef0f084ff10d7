package parser

import (
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/participle/v2/lexer"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fusec/fusec/internal/fuzztest"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// FuzzParse: no source makes Parse or Format panic or hang; every graph is
// well-formed and means the same after printing; formatting keeps the words of a source.
func FuzzParse(f *testing.F) {
	for _, src := range seedPrograms(f, 1) {
		f.Add(src)
	}
	files, err := filepath.Glob("../testdata/errors/*.txtar")
	require.NoError(f, err)
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		require.NoError(f, err)
		f.Add(string(archive.Files[0].Data))
	}
	f.Fuzz(checkSource)
}

func checkSource(t *testing.T, src string) {
	if _, err := Format("t.fuse", []byte(src)); err == nil {
		checkFormat(t, src)
	}
	var file *File
	var err error
	n := fuzztest.Allocated(func() {
		file, err = Parse("t.fuse", []byte(src), Options{Limits: Limits{Bytes: 1 << 16, Tokens: 5000, Steps: 2000}})
	})
	_, wrong := NewAnalyzer("t.fuse", Options{Limits: Limits{Bytes: 1 << 16, Tokens: 5000, Steps: 2000}}).Analyze([]byte(src))
	require.NoError(t, wrong)
	const most = 256 << 20 // what limits allow: 2000 statements of 100 KiB
	require.Less(t, n, int64(most), "bytes were allocated")
	if err != nil {
		require.NotEmpty(t, diag.All(err))
		require.NotEmpty(t, diag.Render(err, sourceOf(src)))
		return
	}
	for _, g := range file.Graphs {
		checkGraph(t, g)
	}
}

// TestMutations makes the same checks on programs that are wrong in a likely
// way: words of the corpus replaced, removed and doubled.
func TestMutations(t *testing.T) {
	var corpus [][]lexer.Token
	var pool []string
	for _, src := range seedPrograms(t, 30) {
		tokens, err := tokenize("t.fuse", []byte(src), DefaultLimits)
		require.NoError(t, err)
		corpus = append(corpus, tokens)
		for _, tok := range tokens {
			if tok.Type != tokWhitespace {
				pool = append(pool, tok.Value)
			}
		}
	}
	pick := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		tokens := corpus[pick.IntN(len(corpus))]
		words := make([]string, len(tokens))
		for i, tok := range tokens {
			words[i] = tok.Value
		}
		for range 1 + pick.IntN(3) {
			at := pick.IntN(len(words))
			switch pick.IntN(6) {
			case 0:
				words[at] = ""
			case 1:
				words[at] += " " + words[at]
			case 2:
				words[at] += " " + pool[pick.IntN(len(pool))] + " "
			default:
				if strings.TrimSpace(words[at]) != "" {
					words[at] = pool[pick.IntN(len(pool))]
				}
			}
		}
		src := strings.Join(words, "")
		if checkSource(t, src); t.Failed() {
			t.Fatal(src)
		}
	}
}

// seedPrograms are the reference programs, and the programs of this package each
// as often as given.
func seedPrograms(t testing.TB, times int) []string {
	reference := referencePrograms(t)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(reference)) {
		out = append(out, reference[name])
	}
	for range times {
		for _, p := range programs {
			out = append(out, p.src)
		}
	}
	return out
}

// checkGraph verifies a graph, and that its printed text means the same.
func checkGraph(t *testing.T, g *ir.Graph) {
	t.Helper()
	require.NoError(t, ir.Verify(g))
	text := ir.Print(g)
	again, err := Parse("printed.fuse", []byte(text), Options{})
	if err != nil {
		require.FailNow(t, diag.Render(err, sourceOf(text)), text)
	}
	require.NoError(t, ir.Verify(again.Graphs[0]))
	assert.Equal(t, text, ir.Print(again.Graphs[0]))
}
