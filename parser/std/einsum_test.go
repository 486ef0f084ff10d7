package std

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// TestEinsumInSteps draws einsums of one to five tensors: each is the sum over all letters that are not in the result.
func TestEinsumInSteps(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 0))
	const letters = "abcdef"
	for range 400 {
		var terms, names, inputs, factors []string
		var shapes [][]int
		used := map[byte]bool{}
		for n := range 1 + r.IntN(5) {
			name, term := fmt.Sprintf("x%d", n), ""
			var shape []int
			var axes []string
			for range 1 + r.IntN(3) {
				letter := letters[r.IntN(len(letters))] // now and then twice in a term
				used[letter], term = true, term+string(letter)
				shape, axes = append(shape, 2+int(letter-'a')%4), append(axes, string(letter))
			}
			terms, names, shapes = append(terms, term), append(names, name), append(shapes, shape)
			inputs = append(inputs, fmt.Sprintf("%s: f64%s", name, strings.ReplaceAll(fmt.Sprint(shape), " ", ", ")))
			factors = append(factors, fmt.Sprintf("%s[%s]", name, strings.Join(axes, ", ")))
		}
		var kept, summed, sizes []string
		for i := range len(letters) {
			switch letter := letters[i]; {
			case used[letter] && r.IntN(2) == 0:
				kept, sizes = append(kept, string(letter)), append(sizes, fmt.Sprint(2+i%4))
			case used[letter]:
				summed = append(summed, string(letter))
			}
		}
		order := r.Perm(len(kept))
		at := func(of []string) string {
			out := make([]string, len(of))
			for i, j := range order {
				out[i] = of[j]
			}
			return strings.Join(out, ", ")
		}
		body := strings.Join(factors, " * ")
		if len(summed) > 0 {
			body = fmt.Sprintf("sum[%s] %s", strings.Join(summed, ", "), body)
		}
		left := "z"
		if len(kept) > 0 {
			left = fmt.Sprintf("z[%s]", at(kept))
		}
		src := fmt.Sprintf("graph g(%s) -> (y: f64[%s], z: f64[%[2]s]) {\n y = einsum(\"%s->%s\", %s)\n %s = %s\n}", strings.Join(inputs, ", "), at(sizes),
			strings.Join(terms, ","), strings.ReplaceAll(at(kept), ", ", ""), strings.Join(names, ", "), left, body)
		file, err := parser.Parse("einsum.fuse", []byte(src), parser.Options{})
		require.NoError(t, err, src)
		var tensors []*interp.Tensor
		for _, shape := range shapes {
			x := interp.New(ir.F64, shape...)
			for i := range x.F {
				x.F[i] = r.NormFloat64()
			}
			tensors = append(tensors, x)
		}
		outputs, err := interp.Run(file.Graphs[0], tensors, interp.Options{})
		require.NoError(t, err, src)
		require.Equal(t, len(outputs[0].F), len(outputs[1].F))
		scale := 1 + math.Abs(slices.MaxFunc(outputs[1].F, func(a, b float64) int { return int(math.Copysign(1, math.Abs(a)-math.Abs(b))) }))
		for i, y := range outputs[0].F {
			require.InDelta(t, outputs[1].F[i], y, 1e-10*scale, src)
		}
	}
}
