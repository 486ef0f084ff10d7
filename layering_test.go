package fusec

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const module = "github.com/fusec/fusec"

// layers says what each package may import, of this module (by folder) and of
// others. ir and what is below it know nobody; the stages know ir and not each
// other; the root package knows the stages, and the command line all.
var layers = map[string]struct{ own, others []string }{
	"ir/diag":            {},
	"ir":                 {own: []string{"ir/diag"}},
	"ir/grad":            {own: []string{"ir", "ir/diag"}},
	"ir/num":             {own: []string{"ir"}},
	"ir/interp":          {own: []string{"ir", "ir/diag", "ir/num"}},
	"ir/interp/plantest": {own: []string{"ir", "ir/diag"}, others: []string{"pgregory.net/rapid"}},
	"parser":             {own: []string{"ir", "ir/diag", "ir/grad"}, others: []string{"github.com/alecthomas/participle/v2"}},
	"fuse": {own: []string{"fuse/algebra", "fuse/forecast", "fuse/form", "fuse/packed", "fuse/passes",
		"ir", "ir/diag", "ir/num"}},
	"fuse/algebra":     {own: []string{"ir"}},
	"fuse/explain":     {own: []string{"fuse/algebra", "fuse/forecast", "fuse/form", "fuse/passes", "ir", "ir/diag"}},
	"fuse/forecast":    {own: []string{"fuse/algebra", "fuse/form", "ir"}},
	"fuse/form":        {own: []string{"fuse/algebra", "ir", "ir/diag"}},
	"fuse/packed":      {own: []string{"fuse/algebra", "ir", "ir/num"}},
	"fuse/passes":      {own: []string{"fuse/algebra", "fuse/forecast", "fuse/form", "ir", "ir/num"}},
	"codegen":          {own: []string{"codegen/skeleton", "codegen/spell", "ir", "ir/diag"}},
	"codegen/skeleton": {},
	"codegen/spell":    {own: []string{"codegen/skeleton", "ir"}},
	"runtime": {own: []string{"internal/hostmem", "ir", "ir/diag", "runtime/cache", "runtime/cpu", "runtime/cuda", "runtime/tensor"},
		others: []string{"golang.org/x/sync"}},
	"runtime/bundle":          {own: []string{"internal/regular", "runtime/sign"}},
	"runtime/gorgonia":        {},
	"runtime/internal/gocu":   {},
	"runtime/sign":            {own: []string{"internal/regular"}},
	"runtime/cache":           {own: []string{"runtime/sign"}, others: []string{"golang.org/x/sys"}},
	"runtime/cache/httpstore": {own: []string{"runtime/cache", "runtime/sign"}},
	"runtime/cpu":             {own: []string{"internal/hostmem", "ir", "ir/num"}, others: []string{"github.com/klauspost/cpuid/v2"}},
	"runtime/cuda":            {others: []string{"github.com/ebitengine/purego"}},
	"runtime/tensor":          {own: []string{"internal/hostmem", "internal/regular", "ir", "ir/num"}},
	"": {own: []string{"internal/regular", "ir", "ir/diag", "parser", "fuse", "codegen", "runtime", "runtime/bundle", "runtime/cache",
		"runtime/tensor"},
		others: []string{"golang.org/x/sync"}},
	"docs":              {},
	"examples":          {},
	"internal/site":     {others: []string{"github.com/yuin/goldmark"}},
	"internal/browser":  {},
	"internal/fuzztest": {},
	"internal/shrink":   {own: []string{"ir", "parser"}},
	"internal/view":     {own: []string{"fuse/explain", "ir", "ir/diag"}},
	"internal/lsp": {own: []string{"fuse", "fuse/explain", "ir", "ir/diag", "parser"},
		others: []string{"go.lsp.dev/jsonrpc2"}},
	"editors/pack":     {},
	"internal/mutate":  {others: []string{"golang.org/x/sync", "golang.org/x/tools"}},
	"internal/sbom":    {},
	"internal/regular": {},
	"internal/hostmem": {own: []string{"ir"}},
	"bench":            {own: []string{"parser"}},
	"conformance/gen":  {own: []string{"internal/shrink", "ir", "ir/diag", "ir/interp", "parser"}},
	"conformance": {own: []string{"", "ir", "ir/interp", "runtime", "runtime/cache", "runtime/cuda", "runtime/simtest",
		"runtime/tensor"}, others: []string{"github.com/stretchr/testify"}},
	"conformance/hunt": {own: []string{"", "conformance/gen", "fuse", "fuse/algebra", "fuse/explain", "ir", "ir/interp", "parser", "runtime",
		"runtime/tensor"}},
	"cmd/playground": {own: []string{"", "codegen", "fuse", "fuse/explain", "internal/view", "ir", "ir/diag", "parser", "runtime",
		"runtime/cache", "runtime/tensor"}},
	"cmd/playground/examples":  {own: []string{"examples"}},
	"cmd/fusec/gen":            {own: []string{"ir"}, others: []string{"golang.org/x/tools"}},
	"examples/norms":           {own: []string{"", "ir", "runtime", "runtime/tensor"}},
	"examples/train":           {own: []string{"", "ir", "runtime", "runtime/tensor"}},
	"examples/train/traintest": {own: []string{"", "examples/train"}, others: []string{"github.com/stretchr/testify"}},
	"examples/train/spiral":    {own: []string{"", "examples/train", "ir", "runtime", "runtime/tensor"}},
	"examples/train/gpt":       {own: []string{"", "examples/train", "ir", "runtime", "runtime/tensor"}},
	"examples/train/gpt2":      {own: []string{"", "examples/train", "ir", "runtime", "runtime/tensor"}},
	"cmd/fusec": {
		own: []string{"", "bench", "cmd/fusec/gen", "docs", "examples", "internal/lsp", "internal/regular", "internal/shrink", "internal/site", "internal/view", "ir", "ir/diag", "ir/interp", "ir/num", "parser", "fuse", "fuse/explain", "fuse/passes", "codegen", "runtime",
			"runtime/cache", "runtime/cache/httpstore", "runtime/cuda", "runtime/sign", "runtime/tensor"},
		others: []string{"github.com/alecthomas/kong", "github.com/jedib0t/go-pretty/v6",
			"github.com/rogpeppe/go-internal", "golang.org/x/sync", "golang.org/x/term"}},
	"runtime/internal/fakecuda":  {others: []string{"github.com/ebitengine/purego", "github.com/stretchr/testify"}},
	"runtime/internal/fakecupti": {others: []string{"github.com/stretchr/testify"}},
	"runtime/internal/faketool":  {others: []string{"github.com/stretchr/testify"}},
	"runtime/internal/ptxsim":    {own: []string{"ir", "ir/num"}},
	"runtime/simtest": {own: []string{"ir", "runtime", "runtime/internal/fakecuda", "runtime/internal/fakecupti", "runtime/internal/ptxsim"},
		others: []string{"github.com/stretchr/testify"}},
}

// TestLayering compares what packages import with the table.
func TestLayering(t *testing.T) {
	for _, line := range strings.Split(strings.TrimSpace(listImports(t)), "\n") {
		path, imports, _ := strings.Cut(line, " ")
		folder := folderOf(path)
		allowed, known := layers[folder]
		require.True(t, known, "package %q is not in the table of layers", folder)
		for _, name := range strings.Fields(imports) {
			switch {
			case name == module || strings.HasPrefix(name, module+"/"):
				assert.Contains(t, allowed.own, folderOf(name), "imported by %q", folder)
			case isThirdParty(name):
				assert.True(t, slices.ContainsFunc(allowed.others, func(root string) bool {
					return name == root || strings.HasPrefix(name, root+"/")
				}), "%q imports %s", folder, name)
			}
		}
	}
}

func listImports(t *testing.T) string {
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("no go command here")
	}
	const format = `{{if .GoFiles}}{{.ImportPath}} {{join .Imports " "}}{{end}}` // not those of tests alone
	out, err := exec.Command("go", "list", "-f", format, "./...").CombinedOutput()
	if err != nil && strings.Contains(string(out), "go.mod file not found") {
		t.Skip("the test runs away from its sources")
	}
	require.NoError(t, err, string(out))
	return string(out)
}

// folderOf is a package's folder in the module.
func folderOf(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, module), "/")
}

// isThirdParty tells modules from the standard library: the first element of their
// paths has a dot.
func isThirdParty(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return strings.Contains(first, ".")
}
