package bench

import (
	"fmt"
	"strings"
)

// Layers is a program of n layers over matrices of 256 by 256, each a product with what
// follows it and a softmax: many small kernels, whose launches take longer than their work.
func Layers(n int) []byte {
	var b strings.Builder
	b.WriteString("graph layers(x: f32[256, 256], w: f32[256, 256], r: f32[256, 256]) -> (y: f32[256, 256]) {\n")
	for i, in := 1, "x"; i <= n; i++ {
		out := fmt.Sprintf("h%d", i)
		if i == n {
			out = "y"
		}
		fmt.Fprintf(&b, "    %s = softmax(gelu(%s @ w) + r)\n", out, in)
		in = out
	}
	b.WriteString("}\n")
	return []byte(b.String())
}
