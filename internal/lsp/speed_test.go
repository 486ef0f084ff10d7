//go:build unix

package lsp

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// programs are those of the tree, by path.
func programs(t *testing.T) map[string]string {
	out := map[string]string{}
	for _, pattern := range []string{"../../examples/*.fuse", "../../examples/*/*.fuse", "../../parser/std/*.fuse",
		"../../testdata/*.fuse", "../../testdata/*/*.fuse", "../../conformance/*/*.fuse", "../../bench/*.fuse", "../../bench/*/*.fuse"} {
		paths, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			out[path] = string(text)
		}
	}
	require.Greater(t, len(out), 50)
	return out
}

// long is a file of about the given number of lines: the examples again and again.
func long(t *testing.T, lines int) string {
	var b strings.Builder
	texts := programs(t)
	for n := 0; strings.Count(b.String(), "\n") < lines; n++ {
		for _, name := range []string{"softmax", "ffn", "attention", "layer_norm", "cross_entropy", "swiglu"} {
			text := texts["../../examples/"+name+".fuse"]
			require.NotEmpty(t, text)
			b.WriteString(strings.ReplaceAll(text, "graph ", fmt.Sprintf("graph g%d_", n)) + "\n")
		}
	}
	return b.String()
}

// TestLatency types into a file of 2,000 lines, and measures how long mistakes and
// completions take to come. What counts is the time of the processor, client included, as
// other work on the machine is none of the server's; the fastest of three rounds is taken.
func TestLatency(t *testing.T) {
	path := filepath.Join(t.TempDir(), "long.fuse")
	text := long(t, 2000)
	c := dial(t, Options{}, filepath.Dir(path))
	c.open(path, text)
	require.Empty(t, c.mistakes(path))
	const limit = 50 * time.Millisecond
	best := map[string]time.Duration{}
	for range 3 {
		for what, took := range round(t, c, path, text) {
			p95 := func(of func(sample) time.Duration) time.Duration {
				var all []time.Duration
				for _, s := range took {
					all = append(all, of(s))
				}
				slices.Sort(all)
				return all[len(all)*95/100].Round(time.Microsecond)
			}
			used := p95(func(s sample) time.Duration { return s.used })
			t.Logf("%-12s p95 %v, %v of the processor", what, p95(func(s sample) time.Duration { return s.took }), used)
			if old, ok := best[what]; !ok || used < old {
				best[what] = used
			}
		}
	}
	for what, p95 := range best {
		assert.Less(t, p95, limit, what)
	}
}

type sample struct{ took, used time.Duration }

// used is the processor's time of this process so far.
func used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// round types a statement into a graph in the middle, letter by letter, and takes it out again.
func round(t *testing.T, c *client, path, text string) map[string][]sample {
	took := map[string][]sample{}
	measure := func(what string, f func()) {
		begin, before := time.Now(), used()
		f()
		took[what] = append(took[what], sample{time.Since(begin), used() - before})
	}
	lines := strings.Split(text, "\n")
	line := len(lines) / 2
	for !strings.HasSuffix(lines[line], "{") || !strings.HasPrefix(lines[line], "graph") {
		line++
	}
	const typed = "\n    zz = softmax(exp(x_unknown) * 2, axis=-1)"
	row, column := line, len(lines[line])
	for i := range typed {
		at := textRange{position{row, column}, position{row, column}}
		measure("diagnostics", func() {
			c.change(path, &at, typed[i:i+1])
			c.mistakes(path)
		})
		column++
		if typed[i] == '\n' {
			row, column = row+1, 0
		}
		if i%8 == 7 {
			place := map[string]any{"textDocument": documentID{URI: uriOf(path)}, "position": position{row, column}}
			measure("completion", func() { c.call("textDocument/completion", place, nil) })
			measure("hover", func() { c.call("textDocument/hover", place, nil) })
			measure("tokens", func() { c.call("textDocument/semanticTokens/full", place, nil) })
		}
	}
	c.change(path, &textRange{position{line, len(lines[line])}, position{row, column}}, "")
	require.Empty(t, c.mistakes(path))
	return took
}

// TestMaltreated cuts and changes every program of the tree at random, and asks
// everything at random places: no session ends, and no request fails inside.
func TestMaltreated(t *testing.T) {
	pick := rand.New(rand.NewPCG(7, 8))
	dir := t.TempDir()
	c := dial(t, Options{ReadFile: readFile, Find: findPrograms, Wait: 20 * time.Millisecond}, dir)
	texts := programs(t)
	names := slices.Sorted(maps.Keys(texts))
	methods := slices.Sorted(maps.Keys(handlers))
	pool := strings.Fields("graph fn ( ) [ ] { } , : = \" # @ -> for if else return import const é sum[k] x N f32 \x00 \xff 1e400 ...")
	for n, name := range names {
		path := filepath.Join(dir, fmt.Sprintf("f%d.fuse", n))
		c.open(path, texts[name])
		size := len(texts[name])
		for range 6 {
			from, to := pick.IntN(size+1), pick.IntN(size+1)
			var at *textRange
			word := pool[pick.IntN(len(pool))]
			switch pick.IntN(3) {
			case 0: // truncated
				word = texts[name][:from]
			case 1:
				at = &textRange{position{from % 40, from % 30}, position{from % 40, from%30 + to%9}}
			default:
				at = &textRange{position{from % 40, 0}, position{to % 40, 5}}
			}
			c.change(path, at, word)
			place := map[string]any{"textDocument": documentID{URI: uriOf(path)}, "position": position{pick.IntN(40), pick.IntN(40)},
				"range": textRange{position{0, 0}, position{50, 0}}, "newName": "other"}
			method := methods[pick.IntN(len(methods))]
			if r := c.ask(method, place); r.Error != nil {
				require.NotContains(t, r.Error.Message, "internal error", "%s of %s", method, name)
			}
		}
		c.mistakes(path)
		c.notify("textDocument/didClose", place(path))
	}
}

func place(path string) map[string]any {
	return map[string]any{"textDocument": documentID{URI: uriOf(path)}}
}
