package fuse

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// drawBackwardScans draws scans from the last element of an axis to the first, one after the other, each of which is one in that direction or
// stands between two reversals.
func drawBackwardScans(rng *rand.Rand) string {
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	axis := rng.IntN(2)
	reversed := func(e string) string {
		if rng.IntN(2) == 0 {
			return fmt.Sprintf("flip(%s, %d)", e, axis)
		}
		return fmt.Sprintf("(%s)%s", e, [...]string{"[::-1]", "[:, ::-1]"}[axis])
	}
	e := "x"
	for range 1 + rng.IntN(2) {
		scan, exclusive := pick("cumsum", "cummax", "cumprod"), ""
		if scan != "cummax" && rng.IntN(3) == 0 {
			exclusive = ", exclusive=true"
		}
		e = fmt.Sprintf(pick("%s", "%s * 0.5", "tanh(%s)", "%s + r[:, none]", "exp(-abs(%s))"), e)
		if rng.IntN(4) == 0 {
			e = fmt.Sprintf("%s(%s, %d%s, reverse=true)", scan, e, axis, exclusive)
		} else {
			e = reversed(fmt.Sprintf("%s(%s, %d%s)", scan, reversed(e), axis, exclusive))
		}
	}
	return fmt.Sprintf(`graph g(x: %s[N, M], r: %[1]s[N]) -> (y: %[1]s[N, M]) {
		y = %s
	}`, pick("f32", "bf16"), e)
}

// TestReversalsAroundScans: a scan between two reversals is a scan in the other direction, and one kernel.
func TestReversalsAroundScans(t *testing.T) {
	for seed := range uint64(60) {
		src := drawBackwardScans(rand.New(rand.NewPCG(seed, 3)))
		p := planOf(t, src)
		require.Len(t, p.Kernels, 1, src)
		assert.Equal(t, ir.ScanTemplate, p.Kernels[0].Template, src)
		if seed%4 == 0 {
			compareAtSizes(t, src)
		}
	}
}

// TestScansThatStay: a scan that is also read forwards, or is a result, keeps its direction, and so do those of strict graphs.
func TestScansThatStay(t *testing.T) {
	for _, src := range []string{
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) {
			s = cumsum(x[:, ::-1], 1)
			y = s[:, ::-1] + s }`,
		`graph g(x: f32[N, M]) -> (s: f32[N, M], y: f32[N, M]) {
			s = cumsum(x[:, ::-1], 1)
			y = s[:, ::-1] * 2 }`,
		`@strict graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = flip(cumsum(flip(x, 1), 1), 1) }`,
		`graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = cumsum(x, 1)[i, i + j] }`,
	} {
		assert.Len(t, planOf(t, src).Kernels, 2, src)
		compareAtSizes(t, src)
	}
}
