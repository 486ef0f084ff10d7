package codegen

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// namedPrograms are programs beside the examples, so that every mapping is met.
const namedPrograms = `
@bench(M=2)
graph few_rows(x: bf16[M, 1024], q: u8[N, 512], s: bf16[N, 8]) -> (y: f32[M, N]) {
	w[n: N, k: 1024] = (bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 128]
	y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k])
}
@bench(M=64, N=64)
graph row_product(h: f32[M, 67], w: f32[67, N]) -> (y: f32[M, N]) { y = softmax(h) @ w }
graph scatter(at: i32[K], x: f32[K, D], z: bool[V]) -> (y: f32[V, D]) { y[v, d] = sum[k: K where at[k] == v] x[k, d] }
graph turned(x: f32[N, M]) -> (y: f32[M, N]) { y[i, j] = x[j, i] }
graph turned_rows(x: f32[N, C, L]) -> (y: f32[N, L, C]) { y = softmax(transpose(x, 1, 2), axis=-1) }
graph turned_back(x: f32[N, L, C]) -> (y: f32[N, C, L]) { y = transpose(softmax(x, axis=-1), 1, 2) }
graph colours(x: f32[M, 3]) -> (y: f32[3, M]) { y = transpose(x) }
graph pixels(x: f32[3, M]) -> (y: f32[M, 3]) { y = transpose(x) }
graph columns(x: f32[N, M]) -> (s: f32[M], at: i64[M]) {
	s = sum(x, axis=0)
	at = argmax(x, axis=0)
}
@bench(N=16384, M=4096)
graph chained(x: f32[N, M], k: f32[M]) -> (y: f32[M]) { y = sum(x, axis=0) + k }
@bench(B=64, N=1024, M=1024)
graph slabs(x: bf16[B, N, M], k: f32[B]) -> (y: f32[B, M]) { y = sum(f32(x), axis=1) * k[:, none] }
@bench(N=64, C=256, L=3136)
graph channels(x: f32[N, C, L]) -> (y: f32[N, C, L], m: f32[C], v: f32[C]) { y, m, v = batch_norm_train(x) }
@bench(N=512, M=2048)
graph last_blocks(x: f32[N, M]) -> (y: f32[]) { y = max(sum(x, axis=1)) }
graph product_f32(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = gelu(a @ b) }
graph halo(x: f16[32, 64, 28, 28], w: f16[64, 8, 3, 3]) -> (y: f16[32, 64, 28, 28]) { y = conv2d(x, w, padding=1, groups=8) }
@tf32
graph halo_f32(x: f32[32, 16, 28, 28], w: f32[24, 16, 3, 3]) -> (y: f32[32, 24, 28, 28]) { y = conv2d(x, w, padding=1) }
graph product_f64(a: f64[M, K], b: f64[K, N]) -> (y: f64[M, N]) { y = a @ b }
graph product_i8(a: i8[M, K], b: i8[N, K]) -> (y: i32[M, N]) { y = i32(i32(a) @ transpose(i32(b))) }
graph product_f8(a: f8e4m3[M, K], b: f8e4m3[N, K]) -> (y: bf16[M, N]) { y = bf16(f32(a) @ transpose(f32(b))) }
graph select(x: f32[N, M]) -> (y: f32[N, 9], i: i64[N, 9]) { y, i = topk(x, 9) }
`

// ownWords matches what a kernel's text calls things, other than members.
var ownWords = regexp.MustCompile(`(?:^|[^\w.>]|[^-]>)([A-Za-z_]\w*)`)

// TestOwnNamesAreReserved: whatever a kernel's text is made of that does not come from the
// program is a name that no tensor, size or loop gets.
func TestOwnNamesAreReserved(t *testing.T) {
	texts := []string{namedPrograms}
	for _, pattern := range []string{"../testdata/attend.fuse", "../testdata/chains.fuse", "../testdata/programs/*.fuse", "../examples/*.fuse"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files)
		for _, file := range files {
			text, err := os.ReadFile(file)
			require.NoError(t, err)
			texts = append(texts, string(text))
		}
	}
	met := map[ir.Strategy]bool{}
	open := map[string]string{}
	for _, text := range texts {
		f, err := parser.Parse("named.fuse", []byte(text), parser.Options{})
		require.NoError(t, err)
		for _, graph := range f.Graphs {
			for _, arch := range []string{"sm_80", "sm_90a"} {
				d, err := ir.DeviceNamed(arch)
				require.NoError(t, err)
				g, err := f.Graph(graph.Name)
				require.NoError(t, err)
				plan, err := fuse.Plan(g, fuse.Options{Device: d})
				require.NoError(t, err)
				for _, k := range plan.Launched() {
					for _, v := range k.Variants {
						met[v.Strategy] = true
						for _, word := range openWords(t, k, v) {
							open[word] = graph.Name
						}
					}
				}
			}
		}
	}
	assert.Empty(t, open, "names that a program may use too, by a graph whose kernel has them")
	for _, s := range ir.Strategies() {
		assert.True(t, met[s], "no kernel has strategy %s", s)
	}
}

// inner are variables of blocks in which nothing of the program is named.
var inner = map[string]bool{"a": true, "b": true, "i": true, "m": true, "q": true, "s": true, "w": true, "x": true}

// openWords are the words of a variant's text that are neither reserved nor the program's.
func openWords(t *testing.T, k *ir.Kernel, v *ir.Variant) (out []string) {
	e := newKernelText(k, v)
	_, text, _ := strings.Cut(e.kernel(), `extern "C"`)
	known := map[string]bool{"maybe_unused": true, spell.Identifier(k.Name): true}
	if v.Attend != nil { // names that the plan chose to be free
		known[spell.Identifier(v.Attend.Skip.Query)], known[spell.Identifier(v.Attend.Skip.Key)] = true, true
	}
	ours := func(word string) bool {
		return spell.Reserved(word) || e.names[word] > 0 || known[word] || inner[word] || strings.HasPrefix(word, "__")
	}
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		if strings.HasPrefix(strings.TrimSpace(line), "#pragma") {
			continue
		}
		for _, word := range wordsOf(line) {
			if !ours(word) {
				out = append(out, word)
			}
		}
	}
	return out
}

// lineWords are the words of each line that was met: most lines are in many kernels.
var lineWords = map[string][]string{}

// wordsOf are the words of a line of CUDA, but for texts in quotes and what is reached through something else.
func wordsOf(line string) []string {
	words, met := lineWords[line]
	if !met {
		for _, m := range ownWords.FindAllStringSubmatch(quoted.ReplaceAllString(line, ""), -1) {
			words = append(words, m[1])
		}
		lineWords[line] = words
	}
	return words
}

var quoted = regexp.MustCompile(`"[^"]*"`)
