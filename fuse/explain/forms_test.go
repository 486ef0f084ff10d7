package explain_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// drawnForm draws a sum of products of three tensors or four, and its gradient: which ranges each tensor has, and which the result.
func drawnForm(r *rand.Rand) string {
	sizes := map[string]string{"n": "4096", "e": "8", "i": "256", "j": "512", "k": "128"}
	letters := []string{"n", "e", "i", "j", "k"}
	var factors, params []string
	used := map[string]int{}
	for f := range 3 + r.IntN(2) {
		own := slices.DeleteFunc(slices.Clone(letters), func(string) bool { return r.IntN(2) == 0 })
		if slices.Contains(own, "n") && len(own) == 4 { // no tensor is larger than all of what is computed should be
			own = own[:3]
		}
		if len(own) == 0 {
			own = []string{letters[r.IntN(len(letters))]}
		}
		var shape []string
		for _, l := range own {
			shape, used[l] = append(shape, sizes[l]), used[l]+1
		}
		params = append(params, fmt.Sprintf("a%d: bf16[%s]", f, strings.Join(shape, ", ")))
		factors = append(factors, fmt.Sprintf("a%d[%s]", f, strings.Join(own, ", ")))
	}
	var result, summed, shape []string
	for _, l := range letters {
		switch {
		case used[l] == 0:
		case used[l] == 1 || len(result) < 2 && r.IntN(2) == 0: // what one tensor alone has is not summed
			result, shape = append(result, l+": "+sizes[l]), append(shape, sizes[l])
		default:
			summed = append(summed, l+": "+sizes[l])
		}
	}
	if len(result) == 0 || len(result) > 3 || len(summed) == 0 {
		return drawnForm(r)
	}
	of, inputs := strings.Join(shape, ", "), strings.Join(params, ", ")
	sum := fmt.Sprintf("y[%s] = sum[%s] %s", strings.Join(result, ", "), strings.Join(summed, ", "), strings.Join(factors, " * "))
	return fmt.Sprintf("graph f(%s) -> (y: bf16[%s]) {\n    %s\n}\ngraph loss(%s, r: bf16[%s]) -> (l: f32[]) {\n    %s\n    l = sum(f32(y * r))\n}\ngraph d = grad(loss)\n",
		inputs, of, sum, inputs, of, sum)
}

// TestGradientsOfForms: a gradient of a sum of products of several tensors takes time of the order of that of the sum, whichever ranges each
// has. Most take four times as long; sums over all ranges at once would take hundreds of times as long.
func TestGradientsOfForms(t *testing.T) {
	gradientsCost(t, 40, 150, 110, func(seed uint64) string { return drawnForm(rand.New(rand.NewPCG(seed, 6))) })
}
