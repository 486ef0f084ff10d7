package fusec

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fusec/fusec/runtime"
)

// rowScaledProducts are products whose operands' rows are multiplied by what follows from
// reductions of them: their sums are instead.
var rowScaledProducts = map[string]string{
	"rms norm":     `(x: T[M, K], w: T[K, N]) -> (y: T[M, N]) { y = rms_norm(x) @ w }`,
	"on the right": `(x: T[M, K], w: T[N, K]) -> (y: T[M, N]) { y = x @ transpose(rms_norm(w)) }`,
	"two":          `(x: T[M, K], v: T[K, N], w: T[K, N]) -> (y: T[M, N]) { n = rms_norm(x); y = silu(n @ v) * (n @ w) }`,
	"batch": `(x: T[3, M, K], w: T[3, K, N], r: T[3, M, N]) -> (y: T[3, M, N]) {
		y = T(f32(x) / (1 + max(abs(f32(x)), axis=-1, keep=true))) @ w + r }`,
}

// TestRowScaledProductsOnGPU compares with the interpreter, which rounds the operand.
func TestRowScaledProductsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name, text := range rowScaledProducts {
		for _, dtype := range []string{"bf16", "f16"} {
			t.Run(name+" "+dtype, func(t *testing.T) {
				t.Parallel()
				p, f := loaded(t, dev, "graph product"+strings.NewReplacer("T[", dtype+"[", "T(", dtype+"(").Replace(text))
				for _, s := range [][3]int64{{300, 264, 520}, {129, 136, 64}, {7, 48, 72}, {65, 33, 35}} {
					sizes := map[string]int64{"M": s[0], "N": s[1], "K": s[2]}
					t.Run(fmt.Sprint(s), func(t *testing.T) { compareProduct(t, p.Graph(), f, sizes, -8, 8) })
				}
			})
		}
	}
}
