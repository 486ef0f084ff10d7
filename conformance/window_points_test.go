package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// drawnPoints are convolutions whose windows have one place along some axes, of which they leave elements out: the input is laid
// out without those. Axes, strides, dilations, borders, channels and results are drawn.
func drawnPoints(count int) (out []row) {
	r := rand.New(rand.NewPCG(27, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		dtype, mode := []string{"bf16", "f32", "f16"}[n%3], []string{"", "@tf32 ", ""}[n%3]
		axes, channels, results := 2+n%2, of(5, 20), of(8, 40)
		stride, dilation, reflected := of(2, 3), of(1, 2), n%4 == 3
		var taps, paddings, extents []string
		for d := range axes {
			k, p := 1, of(0, 1)
			if d == of(0, 2*axes) {
				k = 2
			}
			taps, paddings = append(taps, fmt.Sprint(k)), append(paddings, fmt.Sprint(p))
			extents = append(extents, fmt.Sprintf("(%s + %d) / %d + 1", []string{"H", "W", "D"}[d], 2*p-dilation*(k-1)-1, stride))
		}
		bench := "@bench(N=16, H=56, W=57, D=9) "
		shape := strings.Join([]string{"H", "W", "D"}[:axes], ", ")
		if axes == 2 {
			bench = "@bench(N=16, H=56, W=57) "
		}
		input, after := "x", "y"
		if reflected {
			input, after = "relu(x)", "y + r"
		}
		text := fmt.Sprintf("graph g(x: T[N, %d, %s], w: T[%d, %d, %s], r: T[]) -> (z: T[N, %d, %s]) { y = conv%dd(%s, w, stride=%d, dilation=%d, padding=(%s)); z = %s }",
			channels, shape, results, channels, strings.Join(taps, ", "), results, strings.Join(extents, ", "), axes, input, stride, dilation, strings.Join(paddings, ", "), after)
		out = append(out, row{name: fmt.Sprint(n), src: mode + bench + strings.ReplaceAll(text, "T[", dtype+"["), sizes: pointSizes(axes)})
	}
	return out
}

func pointSizes(axes int) [][]int64 {
	if axes == 2 {
		return [][]int64{{2, 9, 8}, {1, 16, 33}}
	}
	return [][]int64{{2, 5, 4, 7}, {1, 6, 9, 16}}
}
