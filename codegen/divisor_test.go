package codegen

import (
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestFactorsAreArguments: a kernel that divides positions by sizes takes a factor for each, that
// of the size which its text divides by; constants, and kernels without divisions, have none.
func TestFactorsAreArguments(t *testing.T) {
	sizes := map[string]int64{"N": 8, "C": 64, "H": 6, "W": 8, "M": 100}
	for _, c := range []struct {
		name, src string
		want      []int64 // sizes that the variants divide by, at those above
	}{
		{"columns of two ranges", `graph g(x: f32[N, C, H, W]) -> (y: f32[C]) { y = sum(x, axis=(0, 2, 3)) }`, []int64{48}},
		{"rows of vectors", `graph g(x: bf16[N, M], b: bf16[M]) -> (y: bf16[N, M]) { y = x + b }`, []int64{13, 100}},
		{"tiles", `graph g(x: f32[N, M]) -> (y: f32[M, N]) { y = transpose(x, 0, 1) }`, []int64{1, 2, 8}},
		{"constants", `graph g(x: f32[N, 4, 32]) -> (y: f32[4]) { y = sum(x, axis=(0, 2)) }`, nil},
		{"a row", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(x, axis=1) }`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, p := generate(t, c.src)
			var symbols []int64
			for _, name := range p.Symbols {
				symbols = append(symbols, sizes[name])
			}
			found := map[int64]bool{}
			for _, v := range p.Launches[0].Variants {
				text := p.Text(v.Unit)
				head := regexp.MustCompile(`extern "C" __global__ [^\n]*`).FindString(text)
				factors := regexp.MustCompile(`Factor (\w+)`).FindAllStringSubmatch(head, -1)
				first := len(v.Args) - len(factors)
				for i, a := range v.Args {
					require.Equal(t, i >= first, a.Kind == ir.ArgFactor, head)
				}
				for i, f := range factors {
					assert.Regexp(t, `const Divisor<INDEX> \w+\(.*, `+f[1]+`\);`, text)
					n, ok := p.Divisors[v.Args[first+i].Index].Eval(symbols)
					require.True(t, ok)
					found[n] = true
				}
			}
			assert.Equal(t, c.want, slices.Sorted(maps.Keys(found)))
		})
	}
}
