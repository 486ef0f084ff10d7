package docs

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

var update = flag.Bool("update", false, "rewrite messages and generated sections")

// fuseBlock matches a program, and the message that follows where it is wrong.
var fuseBlock = regexp.MustCompile("(?ms)^```fuse( error)?\n(.*?)^```\n(\n```text\n.*?^```\n)?")

func TestPrograms(t *testing.T) {
	for _, name := range []string{"language.md", "gradients.md", "cookbook.md"} {
		programs(t, name)
	}
}

// programs compiles the programs of a page.
func programs(t *testing.T, name string) {
	t.Helper()
	page := readPage(t, name)
	blocks := 0
	got := fuseBlock.ReplaceAllStringFunc(page, func(block string) string {
		m := fuseBlock.FindStringSubmatch(block)
		blocks++
		wrong, src := m[1] != "", formatted(t, m[2])
		message := compile(src)
		if !wrong {
			assert.Empty(t, message, "program:\n%s", src)
			return "```fuse\n" + src + "```\n" + m[3]
		}
		assert.NotEmpty(t, message, "a block marked error compiles:\n%s", src)
		return "```fuse error\n" + src + "```\n\n```text\n" + message + "```\n"
	})
	require.NotZero(t, blocks)
	check(t, name, page, got)
}

// formatted returns a program in the canonical layout.
func formatted(t *testing.T, src string) string {
	t.Helper()
	out, err := parser.Format("example.fuse", []byte(src))
	require.NoError(t, err, "program:\n%s", src)
	return string(out)
}

// compile returns the rendered diagnostics of a program, "" where it is right.
func compile(src string) string {
	const name = "example.fuse"
	_, err := parser.Parse(name, []byte(src), parser.Options{})
	if err == nil {
		return ""
	}
	return diag.Render(err, func(file string) (string, bool) {
		if file == name {
			return src, true
		}
		return parser.Source(file)
	})
}

func TestGrammar(t *testing.T) {
	page := readPage(t, "language.md")
	const start, end = "<!-- grammar -->\n", "<!-- /grammar -->"
	before, rest, ok := strings.Cut(page, start)
	require.True(t, ok, "language.md has no %s", start)
	_, after, ok := strings.Cut(rest, end)
	require.True(t, ok, "language.md has no %s", end)
	grammar := "```ebnf\n" + strings.TrimSpace(parser.Grammar()) + "\n```\n"
	check(t, "language.md", page, before+start+grammar+end+after)
}

// sections are the library's files in reading order, with their titles.
var sections = []struct{ file, title string }{
	{"activations", "Activations and pointwise functions"},
	{"softmax", "Softmax"},
	{"norm", "Normalisation"},
	{"reduce", "Reductions"},
	{"loss", "Losses"},
	{"linear", "Products"},
	{"attention", "Attention and positions"},
	{"conv", "Convolutions"},
	{"patches", "Padding and patches"},
	{"pool", "Pooling and resizing"},
	{"sample", "Images at other sizes and points"},
	{"shape", "Shapes"},
	{"index", "Reading and writing by index"},
	{"scan", "Scans"},
	{"sort", "Sorting"},
	{"random", "Random numbers"},
	{"optim", "Optimizers and training"},
}

const libraryIntro = "# The standard library\n\n" +
	"Written in the language itself ([sources](../parser/std)), generated from the comments there by\n" +
	"`go test ./docs -update`. The scalar operations, reductions and shape functions that are built in are\n" +
	"listed by `fusec ops`.\n"

func TestLibrary(t *testing.T) {
	docs, err := parser.Library()
	require.NoError(t, err)
	byFile := map[string][]parser.FuncDoc{}
	for _, d := range docs {
		file := strings.TrimSuffix(strings.TrimPrefix(d.File, "std/"), ".fuse")
		byFile[file] = append(byFile[file], d)
	}
	var b strings.Builder
	b.WriteString(libraryIntro)
	for _, s := range sections {
		require.NotEmpty(t, byFile[s.file], "no functions in std/%s.fuse", s.file)
		fmt.Fprintf(&b, "\n## %s\n", s.title)
		for _, d := range byFile[s.file] {
			fmt.Fprintf(&b, "\n```\nfn %s\n```\n\n%s\n", d.Signature, escaped(d.Doc))
		}
		delete(byFile, s.file)
	}
	assert.Empty(t, byFile, "library files that no section shows")
	check(t, "library.md", readPage(t, "library.md"), b.String())
}

// escaped keeps Markdown from reading operators as marks.
func escaped(doc string) string {
	return strings.NewReplacer("*", `\*`, "<", "&lt;").Replace(doc)
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if os.IsNotExist(err) && *update {
		return ""
	}
	require.NoError(t, err)
	return string(text)
}

// check compares a page with what it ought to be, or rewrites it.
func check(t *testing.T, name, have, want string) {
	t.Helper()
	if *update && !t.Failed() {
		require.NoError(t, os.WriteFile(name, []byte(want), 0o666))
		return
	}
	assert.Equal(t, want, have, "%s is out of date: run go test ./docs -update", name)
}
