package parser

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const head = "graph f(x: f32[N]) -> (y: f32[N]) {\n"

// TestHostile feeds sources made to exhaust time, stack or memory. Each must be
// answered quickly, with the given message or, where that is empty, without mistake.
func TestHostile(t *testing.T) {
	rep := strings.Repeat
	many := func(n int, f func(i int) string) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(f(i))
		}
		return b.String()
	}
	for _, c := range []struct{ name, src, want string }{
		{"parentheses", head + "y = " + rep("(", 10_000) + "x" + rep(")", 10_000) + "\n}", "nested more than 200 deep"},
		{"open parentheses", head + "y = " + rep("(", 400_000), "nested more than"},
		{"brackets", head + "y = x" + rep("[x", 10_000), "nested more than"},
		{"calls", head + "y = " + rep("exp(", 10_000) + "x" + rep(")", 10_000) + "\n}", "nested more than"},
		{"reductions", head + "y[i] = " + rep("sum[k: 2] ", 10_000) + "x[i]\n}", "nested more than"},
		{"else if", head + rep("if false { y = x } else ", 10_000) + "{ y = x }\n}", "nested more than"},
		{"else", head + "y = x" + rep("[0] else x", 10_000) + "\n}", "nested more than"},
		{"blocks", head + rep("if true {\n", 10_000) + rep("}\n", 10_000) + "}", "nested more than"},
		{"prefixes", head + "y = " + rep("-", 100_000) + "x\n}", "more than 10000 operators"},
		{"powers", head + "y = x" + rep(" ** x", 100_000) + "\n}", "more than 10000 operators"},
		{"long sum", head + "y = x" + rep(" + x", 9_000) + "\n}", ""},
		{"powers in range", head + "y = x" + rep(" ** x", 9_000) + "\n}", ""},
		{"prefixes in range", head + "y = " + rep("-", 9_000) + "x\n}", ""},
		{"index sum", head + "y[i] = x[i" + rep(" + i", 9_000) + "]\n}", "more than 2000 terms"},
		{"product of sizes", "graph f(x: f32[" + rep("9999999999, ", 10) + "2]) -> (y: f32[]) {\ny = sum(x)\n}", "more than 2^63 elements"},
		{"literal", head + "y = x * " + rep("9", 1_000_000) + "\n}", "does not fit in 64 bits"},
		{"float literal", head + "y = x * 1." + rep("9", 1_000_000) + "\n}", ""},
		{"name", head + "y = " + rep("q", 1_000_000) + "\n}", "unknown name"},
		{"many unknown names", head + many(5_000, func(i int) string { return fmt.Sprintf("a%d = b%d\n", i, i) }) + "}", "unknown name"},
		{"loop", head + "for k in 0..1000000000 {\ny = x\n}\n}", "loop runs 1000000000 times"},
		{"loop of the whole range", head + "for k in -9223372036854775807..9223372036854775807 {\n}\ny = x\n}", "loop runs"},
		{"nested loops", head + "y = x\nfor a in 0..1000 {\nfor b in 0..1000 {\nfor c in 0..1000 {\nz = c\n}\n}\n}\n}", "more than 50000 steps"},
		{"long sums in a loop", head + "a = x\nfor k in 0..40000 {\na = a" + rep(" + x", 9_000) + "\n}\ny = a\n}", "more than 250000 operands"},
		{"long sums in functions", "fn f(x: T[...]) = x" + rep(" + x", 5_000) + "\n" + head + "a = x\nfor k in 0..4000 {\na = f(f(a))\n}\ny = a\n}",
			"more than 250000 operands"},
		{"gradients of gradients", "fn g0(x: T[]) -> T[] = sin(x) * exp(x * x) / (1 + x)\n" + many(40, func(i int) string {
			return fmt.Sprintf("fn g%d(x: T[]) -> T[] = grad(g%d, x)\n", i+1, i)
		}) + head + "y[i] = grad(g40, x[i])\n}", "more than 250000 operands"},
		{"doubling functions", many(60, func(i int) string {
			if i == 0 {
				return "fn f0(x: T[...]) -> T[...] = x * x\n"
			}
			return fmt.Sprintf("fn f%d(x: T[...]) -> T[...] = f%d(x) + f%d(x)\n", i, i-1, i-1)
		}) + head + "y = f59(x)\n}", "more than 50000 steps"},
		{"nested functions", many(5000, func(i int) string {
			if i == 0 {
				return "fn f0(x: T[...]) -> T[...] = x\n"
			}
			return fmt.Sprintf("fn f%d(x: T[...]) -> T[...] = f%d(x)\n", i, i-1)
		}) + head + "y = f4999(x)\n}", "more than 100 deep"},
		{"squaring", head + "y = x\nfor k in 0..5000 {\ny = y * y\n}\n}", ""},
		{"doubling size", head + "n = N\nfor k in 0..200 {\nn = n * n\n}\ny = x\n}", "more than 2000 terms"},
		{"reshapes", "graph f(x: f32[N, M]) -> (y: f32[N, M]) {\ny = x\nfor k in 0..500 {\ny = reshape(reshape(y, M, N), N, M)\n}\n}", ""},
		{"views", head + "y = x\nfor k in 0..2000 {\ny = flip(y)\n}\n}", ""},
		{"concatenation", head + "z = x\nfor k in 0..200 {\nz = concat(z, z)\n}\ny = x\n}", ""},
		{"parameters", "fn f(" + many(20_000, func(i int) string { return fmt.Sprintf("a%d: int = 0, ", i) }) + "z: int) -> T[...] = z\n", ""},
		{"dims", "graph f(x: f32[" + rep("N, ", 20_000) + "N]) -> (y: f32[N]) {\ny = x\n}", "x has 20001 axes, more than 32"},
		{"new axes", head + "z = x\nfor k in 0..100 {\nz = z[:, none] + 1\n}\ny = x\n}", "more than 32"},
		{"comments", rep("# c\n", 200_000), ""},
		{"empty lines", rep("\n", 490_000), ""},
		{"semicolons", head + rep(";", 490_000) + "y = x\n}", ""},
		{"zero bytes", rep("\x00", 1000), "unexpected character"},
		{"invalid UTF-8", head + "y = \xff\n}", "not valid UTF-8"},
		{"invalid UTF-8 in a comment", "# \xff\n", "not valid UTF-8"},
		{"invalid UTF-8 in a text", "import \"\xff\"\n", "not valid UTF-8"},
		{"byte order mark", "\xef\xbb\xbf" + head + "y = x\n}", ""},
		{"carriage returns", strings.ReplaceAll(head+"y = x +\n x\n}\n", "\n", "\r\n"), ""},
		{"too many tokens", rep("x ", 2_000_000), "tokens"},
		{"too large", rep(" ", 17<<20), "larger than 16777216 bytes"},
		{"self import", "import \"t.fuse\"\n", "files must not import each other: t.fuse -> t.fuse"},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := time.Now()
			_, err := Parse("t.fuse", []byte(c.src), Options{})
			if c.want == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.want)
			}
			assert.Less(t, time.Since(start), quick)
			assert.Less(t, heap(), uint64(600<<20), "bytes of heap, garbage included")
		})
	}
}

// quick is an answer within a second, with room for a machine that does something
// else as well.
const quick = 5 * time.Second

// heap is the most memory the heap has had so far.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapSys
}

// TestManyImports reads a chain and a diamond of files once each.
func TestManyImports(t *testing.T) {
	reads := 0
	read := func(name string) ([]byte, error) {
		reads++
		var i int
		_, err := fmt.Sscanf(name, "f%d.fuse", &i)
		require.NoError(t, err)
		if i == 50 {
			return []byte("fn last(x: T[...]) -> T[...] = x\n"), nil
		}
		return fmt.Appendf(nil, "import \"f%d.fuse\"\nimport \"f%d.fuse\"\n", i+1, min(i+2, 50)), nil
	}
	_, err := Parse("t.fuse", []byte("import \"f0.fuse\"\n"), Options{ReadFile: read})
	require.NoError(t, err)
	assert.Equal(t, 51, reads)
	_, err = Parse("t.fuse", []byte("import \"f0.fuse\"\n"), Options{ReadFile: func(name string) ([]byte, error) {
		return []byte("import \"f" + name + "\"\n"), nil
	}})
	assert.ErrorContains(t, err, "more than 100 deep")
}
