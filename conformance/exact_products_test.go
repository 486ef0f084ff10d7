package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/fusec/fusec/ir"
)

// drawnExact are products and windows of elements that no tensor core of 16 bits takes: f64, integers, and floats whose every
// operation rounds as written. Orders of axes, batches, what is computed of operands, what follows the sums, strides, borders and
// groups are drawn.
func drawnExact(count int) (out []row) {
	r := rand.New(rand.NewPCG(26, 0))
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	kinds := [][3]string{{"", "f64", "f64"}, {"", "i32", "i64"}, {"@strict ", "f32", "f32"}, {"", "i64", "i64"}, {"@strict ", "f64", "f64"}, {"", "u32", "i64"}}
	for n := range count {
		mode, dtype, sum := kinds[n%len(kinds)][0], kinds[n%len(kinds)][1], kinds[n%len(kinds)][2]
		var text string
		if n/len(kinds)%2 == 0 {
			batch, at := pick("", "3, "), ""
			if batch != "" {
				at = "z, "
			}
			a, b := pick("m, k", "k, m"), pick("k, n", "n, k")
			shape := func(order string) string { return "T[" + batch + strings.ToUpper(order) + "]" }
			left, right := pick("a[Z"+a+"]", "(a[Z"+a+"] + 1)"), "b[Z"+b+"]"
			y, after := pick("m, n", "n, m"), pick("X", "X + r[m]", "X * 2 + r[m]")
			text = fmt.Sprintf("graph g(a: %s, b: %s, r: R[M]) -> (y: %s) { y[Z%s] = %s }", shape(a), shape(b), strings.Replace(shape(y), "T", "R", 1), y,
				strings.ReplaceAll(after, "X", "(sum[k] "+left+" * "+right+")"))
			text = strings.ReplaceAll(text, "Z", at)
		} else {
			channels, i, j, s, p, groups := of(12, 20), of(2, 3), of(1, 4), of(1, 2), of(0, 2), of(1, 2)
			extents := fmt.Sprintf("(M + %d) / %d + 1, (K + %d) / %d + 1", 2*p-i, s, 2*p-j, s)
			text = fmt.Sprintf("graph g(x: T[2, %d, M, K], w: T[%d * N, %d, %d, %d]) -> (y: T[2, %d * N, %s]) { y = conv2d(x, w, stride=%d, padding=%d, groups=%d) }",
				channels*groups, groups, channels, i, j, groups, extents, s, p, groups)
		}
		text = strings.NewReplacer("T[", dtype+"[", "R[", sum+"[").Replace(text)
		out = append(out, row{name: fmt.Sprint(n), src: mode + "@bench(M=512, N=512, K=512) " + text})
	}
	return out
}

// exactFamilies are products that threads multiply and add in the types of the program, and those of f64 on tensor cores.
func exactFamilies() []family {
	const points = 4e6
	return []family{{
		name: "exact products", rows: drawnExact(24), symbols: mnk, exact: identical, repeat: true, variants: all,
		sizes:   [][]int64{{9, 70, 40}, {70, 130, 33}, {16, 36, 7}, {140, 12, 68}, {3, 1, 5}},
		fill:    Integers(math.MinInt32, math.MaxInt32),
		on:      []pass{{engine: "cpu", most: points}, {engine: "sm_80", most: points}, {engine: "sm_90a", most: points}, {engine: "gpu"}},
		compile: []compiling{{archs: []string{"sm_90a", "sm_80"}, ends: true, keep: func(v *ir.Variant) bool { return v.Contract != nil && offsetsOf32(v) }}},
	}}
}
