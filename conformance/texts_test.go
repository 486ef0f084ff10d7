package conformance

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/bench"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// textsFile holds a line for each program and device: hashes of its plan, of its CUDA text, and of what
// the host does with that (launches, grids, temporary tensors).
const textsFile = "../testdata/texts.txt"

const textsHead = `# What the compiler makes of each program, as hashes: program, device, plan, CUDA text, host program.
# UPDATE=1 go test -run TestTexts ./conformance writes them anew.
`

// textDevices are what programs are planned for: warpgroups and the tensor copy engine, and neither.
var textDevices = []string{"sm_90a", "sm_80"}

// TestTexts names the programs whose plan, CUDA or launches are not those of the committed hashes. A
// change of the compiler that is meant to move nothing shows here that it moves nothing; another one
// shows what it moves. It looks at one program in eight, and at all of them with FUSEC_TEST_FULL=1. Of these it also asks that
// equal plans have equal texts.
func TestTexts(t *testing.T) {
	t.Parallel()
	update := os.Getenv("UPDATE") == "1"
	rows := textRows(t)
	all, every := len(rows), 8
	if update || inFull() {
		every = 1
	}
	equal := equalTexts{met: map[string][2]string{}}
	lines := make([]string, (all+every-1)/every*len(textDevices))
	t.Run("programs", func(t *testing.T) { // ends when all of them have
		for n := range lines {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				lines[n] = textLine(t, rows[n/len(textDevices)*every], textDevices[n%len(textDevices)], &equal)
			})
		}
	})
	got := strings.Join(lines, "\n") + "\n"
	if update {
		require.NoError(t, os.WriteFile(textsFile, []byte(textsHead+got), 0o644))
		return
	}
	want, err := os.ReadFile(textsFile)
	require.NoError(t, err)
	before, now := textTable(string(want)), textTable(got)
	require.Greater(t, len(now), 150*len(textDevices))
	assert.Equal(t, all*len(textDevices), len(before), "programs in %s", textsFile)
	if every > 1 {
		maps.DeleteFunc(before, func(name string, _ [3]string) bool { return now[name] == [3]string{} })
	}
	for _, moved := range textsMoved(before, now) {
		t.Error(moved)
	}
}

// textLine is the line of a program for a device.
func textLine(t *testing.T, r row, arch string, equal *equalTexts) string {
	t.Helper()
	p, err := fusec.CompileSource(source(r.name, r.src), fusec.Options{Graph: r.graph, Arch: arch})
	if err != nil { // of the programs that once went wrong, some are refused since
		return fmt.Sprintf("%s %s %s refused refused", r.name, arch, shortHash(err.Error()))
	}
	cuda, err := p.CUDA()
	require.NoError(t, err, r.name)
	equal.compare(t, r.name+" for "+arch, p.Plan(), cuda)
	return fmt.Sprintf("%s %s %s %s %s", r.name, arch, shortHash(ir.PrintPlan(p.Plan())), shortHash(kernelsText(cuda)), shortHash(hostText(cuda)))
}

// kernelsText is the text of all kernels of a program, with what each is compiled with. Comments are left out, so that
// better ones move no hash.
func kernelsText(p *ir.Program) string {
	var text strings.Builder
	sources := make([]string, len(p.Sources))
	for i, source := range p.Sources {
		sources[i] = uncommented(source)
	}
	for _, u := range p.Units {
		fmt.Fprintf(&text, "%s %q %s %d\n", u.Entry, u.Defines, sources[u.Source], u.Shared)
	}
	return text.String()
}

// hostText is what the host does with the kernels of a program.
func hostText(p *ir.Program) string {
	without := *p
	without.Sources = nil
	return string(runtime.EncodeProgram(&without))
}

// shortHash is enough of a hash to tell some thousand texts apart.
func shortHash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return fmt.Sprintf("%x", sum[:5])
}

// textsMoved says which programs have other hashes now, and of what.
func textsMoved(before, after map[string][3]string) (out []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if _, ok := before[name]; !ok {
			out = append(out, name+": new")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		now, ok := after[name]
		if !ok {
			out = append(out, name+": gone")
			continue
		}
		var parts []string
		for i, part := range []string{"plan", "CUDA", "host program"} {
			if before[name][i] != now[i] {
				parts = append(parts, part)
			}
		}
		if len(parts) > 0 {
			out = append(out, name+": another "+strings.Join(parts, ", "))
		}
	}
	return out
}

// textTable maps a program and its device to its hashes.
func textTable(text string) map[string][3]string {
	out := map[string][3]string{}
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 5 && f[0] != "#" {
			out[f[0]+" for "+f[1]] = [3]string{f[2], f[3], f[4]}
		}
	}
	return out
}

// textRows are the programs of the table, of the suites, of the golden files, and those that went wrong
// once, each text once.
func textRows(t *testing.T) (out []row) {
	for _, f := range families(t) {
		for i, r := range f.rows {
			r.name = fmt.Sprintf("%s/%s", f.name, cmp.Or(r.name, fmt.Sprint(i)))
			out = append(out, r)
		}
	}
	for _, r := range fileRows(t, "testdata/found/*.fuse") {
		r.name = "found/" + r.name
		out = append(out, r)
	}
	out = append(append(out, suiteRows(t)...), goldenRows(t)...)
	seen := map[string]bool{}
	out = slices.DeleteFunc(out, func(r row) bool {
		text := r.graph + "\n" + r.src
		before := seen[text]
		seen[text] = true
		return before
	})
	names := map[string]int{}
	for i := range out {
		out[i].name = strings.ReplaceAll(out[i].name, " ", "_")
		names[out[i].name]++
		if n := names[out[i].name]; n > 1 {
			out[i].name += fmt.Sprintf("#%d", n)
		}
	}
	return out
}

// suiteRows are the graphs of the suites of `fusec bench`.
func suiteRows(t *testing.T) (out []row) {
	for _, name := range bench.Suites() {
		programs, err := bench.Suite(name)
		require.NoError(t, err)
		for _, p := range programs {
			for _, c := range p.Cases {
				out = append(out, row{name: "suite/" + c.Graph, src: p.Text, graph: c.Graph})
			}
		}
	}
	return out
}

// goldenRows are the programs of testdata/plans.
func goldenRows(t *testing.T) (out []row) {
	files, err := filepath.Glob("../testdata/plans/*.txtar")
	require.NoError(t, err)
	for _, file := range files {
		a, err := txtar.ParseFile(file)
		require.NoError(t, err)
		out = append(out, row{name: "golden/" + strings.TrimSuffix(filepath.Base(file), ".txtar"), src: string(a.Files[0].Data)})
	}
	return out
}

// equalTexts asks that variants which print alike, and know alike of the sizes that they are for, have one CUDA text, but
// for its comments. So what was measured for a kernel, which is found by its print, is true of its text.
type equalTexts struct {
	mu  sync.Mutex
	met map[string][2]string // the hash of the print of a variant to that of its text, and where it is from
}

func (e *equalTexts) compare(t *testing.T, from string, plan *ir.Plan, cuda *ir.Program) {
	texts := make([]string, len(cuda.Sources))
	for i, text := range cuda.Sources {
		texts[i] = uncommented(text)
	}
	for at, k := range plan.Launched() {
		for n, v := range k.Variants {
			print := shortHash(printAlone(plan.Graph, k, v))
			u := cuda.Units[cuda.Launches[at].Variants[n].Unit]
			text := shortHash(u.Defines + texts[u.Source])
			e.mu.Lock()
			before, ok := e.met[print]
			e.met[print] = [2]string{text, fmt.Sprintf("%s, kernel %s, variant %d", from, k.Name, n+1)}
			if ok && before[0] != text {
				t.Errorf("%s prints as %s, but has another text", e.met[print][1], before[1])
			}
			e.mu.Unlock()
		}
	}
}

// printAlone prints a variant of a kernel without its condition, but with what that promises.
func printAlone(g *ir.Graph, k *ir.Kernel, v *ir.Variant) string {
	alone, body := *k, *v
	body.When = nil
	alone.Like, alone.Variants = nil, []*ir.Variant{&body}
	text := ir.PrintKernel(g, &alone) + fmt.Sprint(v.Facts.Divisible)
	for _, m := range v.Facts.Multiples {
		text += fmt.Sprintf(" %s %d", m.Size, m.By)
	}
	return text
}

// uncommented is a text without comments: those of whole lines go with the line, others with the blanks ahead of them.
func uncommented(text string) string {
	var out strings.Builder
	out.Grow(len(text))
	for line := range strings.Lines(text) {
		code, _, comment := strings.Cut(line, "//")
		if !comment {
			out.WriteString(line)
		} else if code = strings.TrimRight(code, " \t"); code != "" {
			out.WriteString(code + "\n")
		}
	}
	return out.String()
}

func TestUncommented(t *testing.T) {
	assert.Equal(t, "a;\nb;\n\nc;\n", uncommented("// head\na; // one // two\n  \t// whole\nb;\n\n//\nc; //\n"))
}

func TestTextsMoved(t *testing.T) {
	want := textTable("# head\na sm_80 1 2 3\nb sm_80 4 5 6\nc sm_80 7 8 9\n")
	got := textTable("# head\na sm_80 1 2 3\nb sm_80 4 x y\nd sm_80 7 8 9\n")
	assert.Equal(t, []string{"d for sm_80: new", "b for sm_80: another CUDA, host program", "c for sm_80: gone"}, textsMoved(want, got))
	assert.Empty(t, textsMoved(got, got))
}
