package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Windows whose sizes are drawn.

// drawnTransposed are transposed convolutions whose strides, dilations, borders and taps are drawn.
func drawnTransposed(count int) (out []row) {
	r := rand.New(rand.NewPCG(11, 0))
	for n := range count {
		stride, dilation, taps := 1+r.IntN(6), 1+r.IntN(6), 1+r.IntN(5)
		padding, more := r.IntN(3), r.IntN(max(stride, dilation)) // of the result, at its end
		src := fmt.Sprintf("@bench(N=64, C=64, O=64, H=1024) graph g(x: f32[N, C, H], w: f32[C, O, %d], b: f32[O]) -> (y: f32[N, O, H * %d + %d]) {"+
			" y = conv_transpose1d(x, w, b, stride=%[2]d, padding=%[4]d, dilation=%[5]d, output_padding=%[6]d) }",
			taps, stride, dilation*(taps-1)+1+more-stride-2*padding, padding, dilation, more)
		out = append(out, row{name: fmt.Sprint(n), src: strings.ReplaceAll(src, "+ -", "- ")})
	}
	return out
}

// drawnWindowGradients are the gradients of convolutions whose strides, dilations, borders and taps are drawn.
func drawnWindowGradients(count int) (out []row) {
	r := rand.New(rand.NewPCG(14, 0))
	for n := range count {
		stride, dilation, taps, padding := 1+r.IntN(5), 1+r.IntN(3), 1+r.IntN(5), r.IntN(3)
		if n%3 == 0 { // windows side by side, and apart
			taps, dilation, padding = max(1, stride-n%2), 1, 0
		}
		src := fmt.Sprintf("graph g(x: f32[N, C, H], w: f32[O, C, %d]) -> (y: f32[N, O, (H + %d - %d) / %d + 1]) {"+
			" y = conv1d(x, w, stride=%[4]d, padding=%[5]d, dilation=%[6]d) }\n@bench(N=64, C=64, O=64, H=1024) graph d = grad(g)",
			taps, 2*padding, dilation*(taps-1)+1, stride, padding, dilation)
		out = append(out, row{name: fmt.Sprint(n), src: src, graph: "d"})
	}
	return out
}

// drawnTransposedGradients are the gradients of transposed convolutions in one or two dimensions, of which those of the weights
// meet the input backwards.
func drawnTransposedGradients(count int) (out []row) {
	r := rand.New(rand.NewPCG(15, 0))
	for n := range count {
		stride, dilation, taps, padding := 1+r.IntN(4), 1+r.IntN(4), 1+r.IntN(5), r.IntN(2)
		dtype := []string{"bf16", "f32", "f16"}[n%3]
		size := stride*(31-1) + dilation*(taps-1) + 1 - 2*padding
		src := fmt.Sprintf("graph g(x: %[1]s[N, 24, 31], w: %[1]s[24, 40, %[2]d]) -> (y: %[1]s[N, 40, %[3]d]) {"+
			" y = conv_transpose1d(x, w, stride=%[4]d, padding=%[5]d, dilation=%[6]d) }\n@bench(N=512) graph d = grad(g)",
			dtype, taps, size, stride, padding, dilation)
		if n%4 == 3 {
			src = fmt.Sprintf("graph g(x: %[1]s[N, 24, 9, 31], w: %[1]s[24, 40, 2, %[2]d]) -> (y: %[1]s[N, 40, 10, %[3]d]) {"+
				" y = conv_transpose2d(x, w, stride=(1, %[4]d), padding=(0, %[5]d), dilation=(1, %[6]d)) }\n@bench(N=512) graph d = grad(g)",
				dtype, taps, size, stride, padding, dilation)
		}
		out = append(out, row{name: fmt.Sprint(n), src: src, graph: "d"})
	}
	return out
}

// drawnHalos are convolutions of few channels, or of few in a group, whose channels, taps, strides, dilations, borders and
// dims are drawn: blocks copy what their windows cover.
func drawnHalos(count int) (out []row) {
	r := rand.New(rand.NewPCG(12, 0))
	for n := range count {
		dims, groups := 1+n%3, 1+r.IntN(2)*(1+r.IntN(3))
		channels, results := 2+r.IntN(15), 4+r.IntN(14)
		if groups > 1 {
			channels = 4 + r.IntN(18)
		}
		dtype, mode := []string{"bf16", "f32", "f16", "f32"}[n/3%4], ""
		if n/3%4 == 1 {
			mode = "@tf32 "
		}
		shape, taps, result, strides, padding, dilation := "", "", "", "", "", ""
		for d := range dims {
			t, s, a, l := 1+r.IntN(4), 1+r.IntN(2), r.IntN(3), 1+r.IntN(2)
			if d == dims-1 {
				t++
			}
			shape += ", " + []string{"D", "H", "W"}[3-dims+d]
			taps += fmt.Sprintf(", %d", t)
			result += fmt.Sprintf(", (%s + %d - %d) / %d + 1", []string{"D", "H", "W"}[3-dims+d], 2*a, l*(t-1)+1, s)
			strides += fmt.Sprintf("%d, ", s)
			padding += fmt.Sprintf("%d, ", a)
			dilation += fmt.Sprintf("%d, ", l)
		}
		src := fmt.Sprintf("%s@bench(N=64, D=%d, H=%d, W=%d) graph g(x: %s[N, %d%s], w: %[5]s[%[8]d, %d%s], b: %[5]s[%[8]d], u: %[5]s[D], v: %[5]s[H]) -> (y: %[5]s[N, %[8]d%[11]s]) {"+
			" y = relu(conv%dd(x, w, b, stride=(%s), padding=(%s), dilation=(%s), groups=%d)) * u[0] * v[0] }",
			mode, 4096>>(4*dims), 56, 57+n, dtype, groups*channels, shape, groups*results, channels, taps, result, dims,
			strings.TrimSuffix(strides, ", "), strings.TrimSuffix(padding, ", "), strings.TrimSuffix(dilation, ", "), groups)
		out = append(out, row{name: fmt.Sprint(n), src: src})
	}
	return append(out, rowsOf(halos, func(_, program string) string { return program })...)
}

// drawnUnfolded are products of weights with windows that a program cuts out itself, whose channels, taps, strides, dilations and
// borders are drawn: one range has the channels and taps, and one the rows and columns of windows.
func drawnUnfolded(count int) (out []row) {
	r := rand.New(rand.NewPCG(13, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		dtype, mode := []string{"bf16", "f32", "f16", "f32"}[n%4], []string{"", "@tf32 ", "", ""}[n%4]
		channels, results := of(2, 40), of(8, 40)
		i, j, a, b, s, t, d := of(1, 4), of(2, 5), of(0, 2), of(0, 2), of(1, 3), of(1, 2), of(1, 2)
		rows := fmt.Sprintf("((H + %d - %d) / %d + 1)", 2*a, d*(i-1)+1, s)
		columns := fmt.Sprintf("((W + %d - %d) / %d + 1)", 2*b, d*(j-1)+1, t)
		windows := fmt.Sprintf("unfold2d(x, (%d, %d), dilation=%d, padding=(%d, %d), stride=(%d, %d))", i, j, d, a, b, s, t)
		form := [][4]string{
			{"O, K", "N, O, L", "w @ U", ""},
			{"K, O", "N, L, O", "relu(transpose(U, 1, 2) @ w)", ""},
			{"O, K", "N, O, L", "relu(w @ U) + r", ", r: T[N, O, L]"},
		}[n%3]
		text := "@bench(N=64, H=56, W=57) graph g(x: T[N, C, H, W], w: T[" + form[0] + "]" + form[3] + ") -> (y: T[" + form[1] + "]) { y = T(" + form[2] + ") }"
		names := strings.NewReplacer("T[", dtype+"[", "T(", dtype+"(", "C,", fmt.Sprintf("%d,", channels), "K", fmt.Sprint(channels*i*j),
			"O", fmt.Sprint(results), "L", rows+" * "+columns, "U", windows)
		out = append(out, row{name: fmt.Sprint(n), src: mode + names.Replace(text)})
	}
	return out
}
