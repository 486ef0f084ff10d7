package fusec

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rooms says which files of a package may refer to which. Layers stand over each other, the lowest first; a layer has
// rooms, and a room files, by the first words of their names: the longest that fits counts. A file may refer to files
// of its own room and of lower layers. So one strategy is read without the others, and without what chooses among them.
var rooms = map[string][][]string{
	"fuse": {
		{"options", "schedule", "program"}, // what planning is given, measured figures, what it knows of a graph
		{"region dependence"},              // values in one nest of loops, and how values depend on each other
		{"kernel lower_expr", // loops over reads at flat offsets, of which variants are made
			"flow merging partition region_align region_refine merge_limits refusals checks encoding"}, // what regions have while they merge
		{"row", "column", "contract", "attend", "scatter", "sort", "last_block", // strategies, by family
			"attend_region attend_pair", "contract_region", "contract_fold_region", "scan_region", "scatter_region", "sort_region"}, // kinds of regions
		{"strategies reduction", "region_kinds"}, // their tables
		{"lower", "merge"},
		{"alike", "merge_last_block"},
		{"plan state tune"},
		{"fuse alternatives"},
	},
	"codegen": {
		{"emit sizes writer"}, // names, values, accesses, conditions, folds
		{"lanes"},             // threads with neighbours of the innermost range
		{"row"},               // whose text is in products of folded rows too
		{"pointwise", "column", "contract", "attend", "sort", "scatter"}, // other families of strategies
		{"strategies"}, // their table
		{"codegen kernel last_block"},
	},
}

// TestRooms compares what files refer to with the table.
func TestRooms(t *testing.T) {
	for folder, layers := range rooms {
		layerOf, roomOf := map[string]int{}, map[string]string{}
		for i, layer := range layers {
			for _, room := range layer {
				for _, word := range strings.Fields(room) {
					layerOf[word], roomOf[word] = i, room
				}
			}
		}
		wordOf := func(file string) string {
			word := strings.TrimSuffix(file, ".go")
			for word != "" && roomOf[word] == "" {
				word = word[:max(0, strings.LastIndex(word, "_"))]
			}
			assert.NotEmpty(t, word, "%s/%s is in no room", folder, file)
			return word
		}
		eachReference(t, folder, func(from, to, name string) {
			a, b := wordOf(from), wordOf(to)
			assert.True(t, roomOf[a] == roomOf[b] || layerOf[a] > layerOf[b],
				"%s/%s refers to %s, which is in %s: not a lower layer", folder, from, name, to)
		})
	}
}

// eachReference calls do for what the files of a package refer to in others of its files.
func eachReference(t *testing.T, folder string, do func(from, to, name string)) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	if _, err := os.Stat("go.mod"); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the test runs away from its sources")
	}
	require.NotEmpty(t, paths, folder)
	set := token.NewFileSet()
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		text, err := os.ReadFile(p)
		require.NoError(t, err)
		f, err := parser.ParseFile(set, p, text, parser.SkipObjectResolution)
		require.NoError(t, err)
		files = append(files, f)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Importer: empty{}, Error: func(error) {}} // what other packages declare is not known, and need not be
	pkg, _ := config.Check(folder, set, files, info)
	file := func(at token.Pos) string { return filepath.Base(set.Position(at).Filename) }
	for id, o := range info.Uses {
		v, isVar := o.(*types.Var)
		local := isVar && !v.IsField() && v.Parent() != pkg.Scope()
		if from, to := file(id.Pos()), file(o.Pos()); o.Pkg() == pkg && !local && from != to {
			do(from, to, id.Name)
		}
	}
}

// empty imports packages as if they declared nothing.
type empty struct{}

func (empty) Import(name string) (*types.Package, error) {
	p := types.NewPackage(name, path.Base(name))
	p.MarkComplete()
	return p, nil
}
