package lsp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const program = `# half halves.
fn half(x: T[...], by: int = 2) -> T[...] = x / by

@bench(N=1024, M=1024)
graph soft(x: f32[N, M]) -> (y: f32[N, M]) {
    e = exp(x - max(x, axis=-1, keep=true))
    y = half(e / sum(e, axis=-1, keep=true), by=4)
}
`

func start(t *testing.T) (*client, string) {
	dir := t.TempDir()
	c := dial(t, Options{ReadFile: readFile, Find: findPrograms, Wait: time.Millisecond}, dir)
	path := filepath.Join(dir, "soft.fuse")
	require.NoError(t, os.WriteFile(path, []byte(program), 0o644))
	c.open(path, program)
	require.Empty(t, c.mistakes(path))
	return c, path
}

func TestDiagnostics(t *testing.T) {
	c, path := start(t)
	c.change(path, &textRange{position{5, 4}, position{5, 5}}, "é = tahn(x)\n    e")
	got := c.mistakes(path)
	assert.Equal(t, []string{
		`5:4-5:5 unexpected character 'é': names are ASCII letters, digits and _`,
	}, messages(got))
	c.change(path, &textRange{position{5, 4}, position{5, 5}}, "q")
	assert.Equal(t, []string{"5:8-5:12 unknown function tahn: did you mean tanh?"}, messages(c.mistakes(path)))
	c.change(path, nil, strings.Replace(program, "x - max", "x - w + max", 1)+"graph two(x: f32[N]) -> (y: f32[N]) {\n    y = x +\n}\n")
	assert.Equal(t, []string{"5:16-5:17 unknown name w", `10:0-10:1 unexpected "}", expected a value`}, messages(c.mistakes(path)))
	c.change(path, nil, program)
	assert.Empty(t, c.mistakes(path))
}

// TestWarnings: names that nothing reads are warnings, and keep nothing from being planned.
func TestWarnings(t *testing.T) {
	c, path := start(t)
	c.change(path, nil, strings.Replace(program, "    e = ", "    unread = x + 1\n    e = ", 1))
	got := c.mistakes(path)
	require.Equal(t, []string{"5:4-5:10 unread is never read"}, messages(got))
	assert.Equal(t, 2, got[0].Severity)
}

// TestImports: what is open and not saved counts, also for the files that import it.
func TestImports(t *testing.T) {
	c, path := start(t)
	user := filepath.Join(filepath.Dir(path), "user.fuse")
	text := "import \"soft.fuse\"\n\ngraph use(x: f32[N]) -> (y: f32[N]) {\n    y = half(x)\n}\n"
	require.NoError(t, os.WriteFile(user, []byte(text), 0o644))
	c.open(user, text)
	assert.Empty(t, c.mistakes(user))
	c.change(path, nil, strings.ReplaceAll(program, "half(", "third("))
	for {
		p := <-c.notes
		if p.URI == uriOf(user) && len(p.Diagnostics) > 0 {
			assert.Equal(t, "unknown function half", p.Diagnostics[0].Message[:21])
			break
		}
	}
	c.change(path, nil, program)
	var places []location
	c.call("textDocument/definition", at(user, text, "y = ha"), &places)
	require.Len(t, places, 1)
	assert.Equal(t, location{uriOf(path), textRange{position{1, 3}, position{1, 7}}}, places[0])
	var edit workspaceEdit
	params := at(user, text, "y = ha")
	params["newName"] = "less"
	c.call("textDocument/rename", params, &edit)
	assert.Len(t, edit.Changes[uriOf(path)], 2)
	assert.Len(t, edit.Changes[uriOf(user)], 1)
	var h hover
	c.call("textDocument/hover", at(user, text, "y = ha"), &h)
	assert.Contains(t, h.Contents.Value, "fn half(x: T[...], by: int = 2) -> T[...]")
	assert.Contains(t, h.Contents.Value, "half halves.")
	assert.Contains(t, h.Contents.Value, "gives `f32[N]` here")
}

func TestNames(t *testing.T) {
	c, path := start(t)
	var places []location
	params := at(path, program, "    y = half(e")
	params["context"] = map[string]any{"includeDeclaration": true}
	c.call("textDocument/references", params, &places)
	assert.Len(t, places, 3)
	var edit workspaceEdit
	params["newName"] = "weights"
	c.call("textDocument/rename", params, &edit)
	assert.Len(t, edit.Changes[uriOf(path)], 3)
	params["newName"] = "x"
	assert.Contains(t, c.ask("textDocument/rename", params).Error.Message, "x stands for something else here")
	params["newName"] = "2 x"
	assert.NotNil(t, c.ask("textDocument/rename", params).Error)
	params["newName"] = "sum"
	assert.NotNil(t, c.ask("textDocument/rename", params).Error)
	params = at(path, program, "keep=true), b") // the argument by name is the parameter
	params["newName"] = "times"
	edit = workspaceEdit{}
	c.call("textDocument/rename", params, &edit)
	assert.Len(t, edit.Changes[uriOf(path)], 3)
	assert.NotNil(t, c.ask("textDocument/rename", at(path, program, "e / su")).Error)
	var symbols []documentSymbol
	c.call("textDocument/documentSymbol", at(path, program, ""), &symbols)
	require.Len(t, symbols, 2)
	assert.Equal(t, "soft(x: f32[N, M]) -> (y: f32[N, M])", symbols[1].Detail)
	require.Len(t, symbols[1].Children, 1)
	assert.Equal(t, "f32[N, M]", symbols[1].Children[0].Detail)
}

func TestHover(t *testing.T) {
	c, path := start(t)
	for _, hovers := range []struct{ at, want string }{
		{"    e", "e: f32[N, M]"},
		{"e = ex", "exp(x)"},
		{"e / su", "sum(x, axis = none, keep = false) -> tensor"},
		{"x: f32[N", "the size N"},
		{"@ben", "sizes for `fusec run`"},
		{"keep=tru", "`true`: bool"},
		{"keep=true), b", "the integer 4"},
	} {
		var h hover
		c.call("textDocument/hover", at(path, program, hovers.at), &h)
		assert.Contains(t, h.Contents.Value, hovers.want, hovers.at)
	}
}

// TestLibrary: the definition of a function of the library is in its source.
func TestLibrary(t *testing.T) {
	dir := t.TempDir()
	library := func(name, text string) (string, error) {
		path := filepath.Join(dir, filepath.Base(name))
		return path, os.WriteFile(path, []byte(text), 0o644)
	}
	c := dial(t, Options{Library: library}, dir)
	path, text := filepath.Join(dir, "t.fuse"), "graph f(x: f32[N]) -> (y: f32[N]) {\n    y = softmax(exp(x))\n}\n"
	c.open(path, text)
	var places []location
	c.call("textDocument/definition", at(path, text, "y = sof"), &places)
	require.Len(t, places, 1)
	source, err := os.ReadFile(pathOf(places[0].URI))
	require.NoError(t, err)
	assert.Contains(t, newText(string(source), true).line(places[0].Range.Start.Line), "fn softmax(")
	assert.Equal(t, 3, places[0].Range.Start.Character)
	c.call("textDocument/definition", at(path, text, "softmax(e"), &places)
	assert.Empty(t, places)
}

func labels(items []completionItem) string {
	var out []string
	for _, i := range items {
		out = append(out, i.Label)
	}
	return " " + strings.Join(out, " ") + " "
}

func TestCompletion(t *testing.T) {
	c, path := start(t)
	for _, row := range []struct{ typed, with, without string }{
		{"    z = so", " softmax ", " onekernel "},
		{"    z = softmax(x, ", " axis= e x N half ", " keep= "},
		{"    z = sum(x, axis=0, ", " keep= ", " axis= "},
		{"    z = half(", " by= ", " import "},
		{"    z = f", " f32 f16 full ", " M= "},
	} {
		text := strings.Replace(program, "    y = half", row.typed+"\n    y = half", 1)
		c.change(path, nil, text)
		var list struct {
			Items []completionItem `json:"items"`
		}
		c.call("textDocument/completion", at(path, text, row.typed), &list)
		for _, want := range strings.Fields(row.with) {
			assert.Contains(t, labels(list.Items), " "+want+" ", row.typed)
		}
		assert.NotContains(t, labels(list.Items), row.without, row.typed)
	}
	for typed, want := range map[string]string{"@o": " onekernel ", "gr": " graph ", "fn f(x: b": " bf16 ",
		"graph g(x: f32[N]) -> (z: f32[N]) {\n    z = sum(x, ":                                " axis= exp x N ",
		"graph g(x: f32[N]) -> (z: f32[N]) {\n    if N > 2 {\n        a = x\n    }\n    z = ": " exp x N ",
		"fn f(x: T[...]) -> T[...] = ":                                                        " exp ", "const K = 2 * m": " min ",
	} {
		text := program + typed
		c.change(path, nil, text)
		var list struct {
			Items []completionItem `json:"items"`
		}
		c.call("textDocument/completion", at(path, text, program+typed), &list)
		for _, want := range strings.Fields(want) {
			assert.Contains(t, labels(list.Items), " "+want+" ", typed)
		}
	}
}

func TestSignatureHelp(t *testing.T) {
	c, path := start(t)
	for typed, active := range map[string]string{
		"    z = softmax(x, ": "axis: int = -1", "    z = half(x, by=": "by: int = 2",
		"    z = layer_norm(exp(x), (x), ": "bias", "    z = half(softmax(x[0, 1])": "x: T[...]",
	} {
		text := strings.Replace(program, "    y = half", typed+"\n    y = half", 1)
		c.change(path, nil, text)
		var help signatureHelp
		c.call("textDocument/signatureHelp", at(path, text, typed), &help)
		require.NotEmpty(t, help.Signatures, typed)
		params := paramsOf(help.Signatures[help.ActiveSignature].Label)
		assert.Contains(t, params[help.ActiveParameter], active, typed)
	}
}

// TestPlans: code lenses and hints come from plans, which are made in the background.
func TestPlans(t *testing.T) {
	c, path := start(t)
	assert.Equal(t, "workspace/codeLens/refresh", <-c.asked)
	var lenses []codeLens
	c.call("textDocument/codeLens", at(path, program, ""), &lenses)
	require.Len(t, lenses, 1)
	assert.Regexp(t, `^1 kernel, 0\.\d+ ms on H200$`, lenses[0].Command.Title)
	assert.Equal(t, position{4, 6}, lenses[0].Range.Start)
	moved := "# a line more\n" + program
	c.change(path, nil, moved)
	assert.Empty(t, c.mistakes(path))
	var hints []inlayHint
	params := map[string]any{"textDocument": documentID{URI: uriOf(path)}, "range": textRange{position{0, 0}, position{99, 0}}}
	c.call("textDocument/inlayHint", params, &hints)
	var got []string
	for _, h := range hints {
		got = append(got, h.Label)
	}
	assert.Equal(t, []string{": f32[N, M]", "kernel 1", "kernel 1, writes 4.0 MiB"}, got)
	assert.Equal(t, position{7, 50}, hints[2].Position)
	var h hover
	c.call("textDocument/hover", at(path, moved, "graph so"), &h)
	assert.Contains(t, h.Contents.Value, "1 kernel instead of 6; reads 4.0 MiB, writes 4.0 MiB")
}

// TestOneKernel: a graph that cannot keep its @onekernel is marked once it is planned.
func TestOneKernel(t *testing.T) {
	c, path := start(t)
	c.change(path, nil, "@onekernel\ngraph f(x: f32[N, M]) -> (y: f32[N, M]) {\n    a = x / sum(x)\n    y = sort(a, axis=0)\n}\n")
	for range 3 {
		select {
		case p := <-c.notes:
			if p.Version == c.version && len(p.Diagnostics) > 0 {
				assert.Contains(t, p.Diagnostics[0].Message, "kernel")
				return
			}
		case <-time.After(20 * time.Second):
		}
	}
	assert.Fail(t, "no diagnostic")
}

func TestFormattingAndTokens(t *testing.T) {
	c, path := start(t)
	c.change(path, nil, strings.Replace(program, "    e = exp(", "  e=exp( ", 1))
	var edits []textEdit
	c.call("textDocument/formatting", at(path, program, ""), &edits)
	require.Len(t, edits, 1)
	assert.Equal(t, textEdit{textRange{position{5, 0}, position{6, 0}}, strings.Split(program, "\n")[5] + "\n"}, edits[0])
	var tokens struct {
		Data []int `json:"data"`
	}
	c.change(path, nil, program)
	c.call("textDocument/semanticTokens/full", at(path, program, ""), &tokens)
	assert.Equal(t, []int{0, 0, 14, tokenComment, 0, 1, 0, 2, tokenKeyword, 0, 0, 3, 4, tokenFunction, declares}, tokens.Data[:15])
	assert.Zero(t, len(tokens.Data)%5)
}

// applied is the text after the edits of a code action.
func applied(text string, path string, edit *workspaceEdit) string {
	edits := edit.Changes[uriOf(path)]
	sort.Slice(edits, func(i, j int) bool { return edits[i].Range.Start.Line > edits[j].Range.Start.Line })
	t := newText(text, true)
	for _, e := range edits {
		t = t.edited([]change{{&e.Range, e.NewText}})
	}
	return t.src
}

// TestCodeActions: what a code action makes of a program has the mistake no more.
func TestCodeActions(t *testing.T) {
	c, path := start(t)
	for _, row := range []struct{ text, mark, title string }{
		{strings.Replace(program, "exp(", "epx(", 1), "= e", "Change to exp"},
		{"graph f(x: bf16[M, 100], s: bf16[3]) -> (y: bf16[M]) {\n    y[m] = sum[k] x[m, k] * s[k / 32]\n}\n", "k / 3", "Read 0 outside: add else 0"},
		{"graph f(x: f32[N]) -> (y: bf16[N]) {\n    y = x * 2\n}\n", "    ", "Cast with bf16(...)"},
		{"@onekernl\ngraph f(x: f32[N]) -> (y: f32[N]) {\n    y = x * 2\n}\n", "@one", "Change to onekernel"},
		{"graph f(x: f32[N]) -> (y: f32[N]) {\n    y = softmax(x, axs=0)\n}\n", " ax", "Change to axis"},
		{"graph f(x: f32[N]) -> (y: f32[N / 8, 8]) {\n    y = reshape(x, N / 8, 8)\n}\n", "resh", "State it: require("},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = clip(x, 0, 1) + z\n}\n", "clip", "Write clamp(x, 0, 1)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = multiply(x + 1, z)\n}\n", "mult", "Write ((x + 1) * z)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = floor_divide(x, z)\n}\n", "floor_d", "Write floor(x / z)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = z - x.mean(axis=0)\n}\n", "x.", "Write mean(x, axis=0)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = x.contiguous() + z\n}\n", "x.", "Write x"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = z + f32(x.to(bf16))\n}\n", "(x.", "Write bf16(x)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = torch.special.exp(x) + z\n}\n", "torch.", "Leave out torch.special."},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = where(x > 0 and z > 0, x, z)\n}\n", "and", "Write &&"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = x > 0 ? x : z\n}\n", "?", "Write where(x > 0, x, z)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = x + 1 if x > 0 else z # why\n}\n", "1 i", "Write where(x > 0, x + 1, z)"},
		{"graph f(x: f32[N], z: f32[N]) -> (y: f32[N]) {\n    y = x[:, None][:, 0] + z\n}\n", "None", "Change to none"},
		{"graph f(x: f32[N, M]) -> (y: f32[N, M]) {\n    y = x / sum(x, axis=1)\n}\n", "/ su", "Keep the axis"},
		{"graph f(x: f32[N, M]) -> (y: f32[N]) {\n    y = sum(x, dim=1)\n}\n", "dim", "Change to axis"},
		{"graph f(x: f32[N, M]) -> (y: f32[2, 3]) {\n    y = f32(ones(2, 3))\n    _ = x\n}\n", "ones", "Write full(1, 2, 3)"},
	} {
		c.change(path, nil, row.text)
		params := at(path, row.text, row.mark)
		params["range"] = textRange{params["position"].(position), params["position"].(position)}
		var actions []codeAction
		c.call("textDocument/codeAction", params, &actions)
		if !assert.Len(t, actions, 1, row.text) {
			continue
		}
		assert.Contains(t, actions[0].Title, row.title)
		fixed := applied(row.text, path, actions[0].Edit)
		c.change(path, nil, fixed)
		assert.Empty(t, c.mistakes(path), fixed)
		actions = nil
		c.call("textDocument/codeAction", params, &actions)
		assert.Empty(t, actions)
	}
}

// TestExit: the server ends when it is told to, although the stream stays open; without a shutdown before, by an error.
func TestExit(t *testing.T) {
	for _, orderly := range []bool{true, false} {
		c := dial(t, Options{}, t.TempDir())
		if orderly {
			c.call("shutdown", nil, nil)
		}
		c.notify("exit", nil)
		select {
		case err := <-c.done:
			assert.Equal(t, orderly, err == nil, "%v", err)
			c.done <- err // for who cleans up
		case <-time.After(10 * time.Second):
			t.Fatal("the server goes on")
		}
	}
}

func TestUnknownRequests(t *testing.T) {
	c, path := start(t)
	assert.NotNil(t, c.ask("textDocument/nothing", map[string]any{}).Error)
	assert.NotNil(t, c.ask("textDocument/hover", at(path+"x", program, "")).Error)
	c.notify("$/setTrace", map[string]any{"value": "off"})
	c.notify("textDocument/didChange", json.RawMessage(`[1]`))
	c.call("shutdown", nil, nil)
}
