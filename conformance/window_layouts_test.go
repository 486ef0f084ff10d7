package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Orders in which the axes of a convolution's images and weights may lie; conv2d takes the first of each.
var (
	imageOrders  = []string{"N, C, H, W", "N, H, W, C"}
	weightOrders = []string{"O, C, I, J", "O, I, J, C", "I, J, C, O"}
)

// drawnLayouts are convolutions of literal sizes whose images, weights and results lie in all orders that frameworks use. The
// operands of some lie as tensor cores read them, so that nothing is copied; channels are whole accesses or not.
func drawnLayouts() (out []row) {
	r := rand.New(rand.NewPCG(64, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	n := 0
	for _, image := range imageOrders {
		for _, weight := range weightOrders {
			for _, result := range imageOrders {
				dtype, mode := []string{"bf16", "f32", "f16", "f32"}[n%4], []string{"", "@tf32 ", "", ""}[n%4]
				taps, stride, dilation, padding := of(2, 3), of(1, 2), of(1, 2), of(0, 2)
				channels, results, height, width := []int{8, 16, 24, 32, 13}[of(0, 4)], of(5, 40), of(9, 20), of(9, 20)
				size := func(in int) int { return (in+2*padding-dilation*(taps-1)-1)/stride + 1 }
				sizes := map[string]int{"C": channels, "O": results, "H": height, "W": width, "I": taps, "J": taps}
				places := map[string]int{"C": results, "H": size(height), "W": size(width)}
				src := fmt.Sprintf("%sgraph g(x: T[%s], w: T[%s], b: T[%d]) -> (y: T[%s]) { y = %s }", mode, literal(image, sizes), literal(weight, sizes),
					results, literal(result, places), turned("N, C, H, W", result, fmt.Sprintf("relu(conv2d(%s, %s, b, stride=%d, dilation=%d, padding=%d))",
						turned(image, "N, C, H, W", "x"), turned(weight, "O, C, I, J", "w"), stride, dilation, padding)))
				out = append(out, row{name: fmt.Sprintf("%s to %s, %s", image, result, weight), src: strings.ReplaceAll(src, "T[", dtype+"[")})
				n++
			}
		}
	}
	return out
}

// literal is a shape with numbers for the axes that have one.
func literal(order string, sizes map[string]int) string {
	axes := strings.Split(order, ", ")
	for i, a := range axes {
		if n, ok := sizes[a]; ok {
			axes[i] = fmt.Sprint(n)
		}
	}
	return strings.Join(axes, ", ")
}

// turned is an expression whose axes lie in one order, with its axes in another.
func turned(from, to, e string) string {
	if from == to {
		return e
	}
	places, axes := map[string]int{}, strings.Split(to, ", ")
	for i, a := range strings.Split(from, ", ") {
		places[a] = i
	}
	for i, a := range axes {
		axes[i] = fmt.Sprint(places[a])
	}
	return fmt.Sprintf("permute(%s, (%s))", e, strings.Join(axes, ", "))
}
