package conformance

import (
	"testing"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
)

// wholeNumberPrograms have products of f32 whose operands are small whole numbers, which are multiplied in bf16 where they are large.
var wholeNumberPrograms = map[string]string{
	"masks": `@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], b: bool[N, K]) -> (y: f32[M, N]) {
		y = f32(a > 0.1) @ transpose(1 - f32(b))
	}`,
	"keys": `@bench(K=4096) graph g(p: i32[K], q: i64[K]) -> (y: f32[300, 520]) {
		y[i: 300, j: 520] = sum[k] f32(p[k] == i) * f32(q[k] <= j)
	}`,
	"itself": `@bench(M=4096, K=4096, N=4096) graph g(a: f32[M, K], n: f32[N]) -> (y: f32[M, M], s: f32[M]) {
		m = f32(a > 0)
		s = sum(m, axis=1)
		y = m @ transpose(m) / max(s[:, none] + s + n[0], 1)
	}`,
	"bytes": `@bench(M=4096, N=4096) graph g(a: i8[M, 600], b: u8[600, N], c: bool[600, N]) -> (y: f32[M, N]) {
		y = f32(a) @ (where(c, 10, 0.0) - f32(c))
	}`,
	"batch": `@bench(M=4096, K=4096, N=4096) graph g(a: f32[2, K, M], b: f32[2, K, N]) -> (y: f32[2, M, N]) {
		y = transpose(where(a < 0, -1.0, 1.0)) @ f32(b > a[:, :, 0:1])
	}`,
}

// TestWholeNumbersSimulated: products of small whole numbers are what they are in f32.
func TestWholeNumbersSimulated(t *testing.T) {
	RequireNVRTC(t)
	t.Parallel()
	for name, src := range wholeNumberPrograms {
		if !inFull() && !hashDraws(src, 3) {
			continue
		}
		for _, arch := range []string{"sm_80", "sm_90a"} {
			t.Run(name+" "+arch, func(t *testing.T) {
				t.Parallel()
				compareWholeNumbers(t, openSimulated(t, simtest.Config{Arch: arch, Limit: 1 << 28}), src)
			})
		}
	}
}

func compareWholeNumbers(t *testing.T, dev *Engine, src string) {
	g, f := asForLarge(t, dev, src, func(v *ir.Variant) bool { return v.Contract != nil && v.Contract.Type == ir.BF16 })
	for _, sizes := range partSizes {
		compareFilled(t, g, f, sizes, Random)
	}
}
