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
	switch axes {
	case 1:
		return [][]int64{{2, 19}, {3, 64}}
	case 2:
		return [][]int64{{2, 9, 8}, {1, 16, 33}}
	}
	return [][]int64{{2, 5, 4, 7}, {1, 6, 9, 16}}
}

// drawnWritten are convolutions of few channels and many results, whose windows are written out. Axes, taps, strides, dilations,
// borders, and what is computed around them are drawn.
func drawnWritten(count int) (out []row) {
	r := rand.New(rand.NewPCG(28, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		dtype, mode := []string{"bf16", "f32", "f16"}[n%3], []string{"", "@tf32 ", ""}[n%3]
		axes, channels, stride, dilation := 1+n%3, of(5, 14), of(1, 2), of(1, 2)
		columns := (channels + 7) / 8 * 8
		var taps, paddings, extents, sizes []string
		for d := range axes {
			k, p := of(1, 3), of(0, 2)
			if d == axes-1 {
				k = of(3, 4)
			}
			columns *= k
			taps, paddings = append(taps, fmt.Sprint(k)), append(paddings, fmt.Sprint(p))
			name := []string{"H", "W", "D"}[d]
			extents = append(extents, fmt.Sprintf("(%s + %d) / %d + 1", name, 2*p-dilation*(k-1)-1, stride))
			sizes = append(sizes, fmt.Sprintf("%s=%d", name, []int{8192, 60, 20}[axes-1]))
		}
		results := max(2*columns, 65) + of(0, 9)
		input, after := "x", "y"
		if n%4 == 3 {
			input, after = "relu(x)", "max(y, 0) + r"
		}
		text := fmt.Sprintf("@bench(N=16, %s) graph g(x: T[N, %d, %s], w: T[%d, %d, %s], r: T[]) -> (z: T[N, %d, %s]) { y = conv%dd(%s, w, stride=%d, dilation=%d, padding=(%s)); z = %s }",
			strings.Join(sizes, ", "), channels, strings.Join([]string{"H", "W", "D"}[:axes], ", "), results, channels, strings.Join(taps, ", "), results,
			strings.Join(extents, ", "), axes, input, stride, dilation, strings.Join(paddings, ", "), after)
		if axes == 1 {
			text = strings.ReplaceAll(text, fmt.Sprintf("padding=(%s)", paddings[0]), "padding="+paddings[0])
		}
		out = append(out, row{name: fmt.Sprint(n), src: mode + strings.ReplaceAll(text, "T[", dtype+"["), sizes: pointSizes(axes)})
	}
	return out
}

// drawnStrided are convolutions that leave elements out along two or three axes, of channels that are no block of the copy
// engine's, so that copies move one element in so many. Axes, taps, strides, dilations and borders are drawn.
func drawnStrided(count int) (out []row) {
	r := rand.New(rand.NewPCG(29, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		dtype, mode := []string{"bf16", "f32", "f16"}[n%3], []string{"", "@tf32 ", ""}[n%3]
		axes, channels, results, dilation := 2+n/3%2, 8*of(2, 5), of(33, 140), of(1, 2)
		var taps, paddings, strides, extents []string
		for d := range axes {
			k, p, s := of(2, 3), of(0, 2), of(2, 3)
			taps, paddings, strides = append(taps, fmt.Sprint(k)), append(paddings, fmt.Sprint(p)), append(strides, fmt.Sprint(s))
			extents = append(extents, fmt.Sprintf("(%s + %d) / %d + 1", []string{"H", "W", "D"}[d], 2*p-dilation*(k-1)-1, s))
		}
		sizes := map[int]string{2: "H=56, W=58", 3: "H=19, W=20, D=18"}[axes]
		text := fmt.Sprintf("@bench(N=16, %s) graph g(x: T[N, %d, %s], w: T[%d, %d, %s]) -> (y: T[N, %d, %s]) { y = conv%dd(x, w, stride=(%s), dilation=%d, padding=(%s)) }",
			sizes, channels, strings.Join([]string{"H", "W", "D"}[:axes], ", "), results, channels, strings.Join(taps, ", "), results,
			strings.Join(extents, ", "), axes, strings.Join(strides, ", "), dilation, strings.Join(paddings, ", "))
		out = append(out, row{name: fmt.Sprint(n), src: mode + strings.ReplaceAll(text, "T[", dtype+"["), sizes: map[int][][]int64{
			2: {{9, 9, 8}, {2, 16, 33}}, 3: {{9, 5, 6, 7}, {4, 6, 9, 10}}}[axes]})
	}
	return out
}
