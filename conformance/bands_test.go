package conformance

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
)

// Short sums whose operands have rows that are no whole number of accesses, and are copied as they lie in memory.

// drawnBands are such products: the sum along both operands or across one, rows that begin inside of others, batches, two products of one operand, results
// that lie across, and something behind them.
func drawnBands(count int) (out []row) {
	r := rand.New(rand.NewPCG(53, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		k, columns, kind := of(17, 127), of(8, 140), n%8
		if k%8 == 0 {
			k--
		}
		wide := k + of(0, 5)
		text := ""
		behind := []string{"p", "relu(p + b)", "f32(p) * 2", "p * sigmoid(p)"}[of(0, 3)]
		switch kind {
		case 0, 1:
			text = fmt.Sprintf("graph g(x: T[N, %d], w: T[%d, %d], b: T[%d]) -> (y: R[N, %d]) {\np = linear(x[:, %d:], w)\ny = %s }", wide, columns, k, columns, columns, wide-k, behind)
		case 2, 3:
			text = fmt.Sprintf("graph g(x: T[N, %d], w: T[%d, %d], b: T[%d]) -> (y: R[N, %d]) {\np = x @ w\ny = %s }", k, k, columns, columns, columns, behind)
		case 4:
			text = fmt.Sprintf("graph g(x: T[2, N, 3, %d], w: T[%d, %d], b: T[%d]) -> (y: R[2, N, 3, %d]) {\np = linear(x, w)\ny = %s }", k, columns, k, columns, columns, behind)
		case 5:
			text = fmt.Sprintf("graph g(x: T[N, %d], w: T[%d, %d], b: T[N]) -> (y: R[%d, N]) {\np = w @ transpose(x)\ny = %s }", k, columns, k, columns, behind)
		case 6:
			text = fmt.Sprintf("graph g(x: T[N, %d], w: T[%d, %d], v: T[%d, %d], b: T[%d]) -> (y: R[N, %d]) {\np = silu(linear(x, w)) * linear(x, v)\ny = %s }", k, columns, k, columns, k, columns, columns, behind)
		case 7:
			text = fmt.Sprintf("graph g(x: T[N, 3, %d], w: T[%d, %d], b: T[%d]) -> (y: R[N, 3, %d]) {\np = glu(x @ w)\ny = %s }", k, k, 2*columns, columns, columns, behind)
		}
		dtype := []string{"bf16", "f16"}[of(0, 1)]
		result := dtype
		if behind == "f32(p) * 2" {
			result = "f32"
		}
		text = strings.NewReplacer("T[", dtype+"[", "R[", result+"[").Replace("@bench(N=100000) " + text)
		out = append(out, row{name: fmt.Sprint(n), src: text, sizes: [][]int64{{int64(of(256, 300))}, {int64(of(385, 600))}}})
	}
	return out
}

// drawnSlices are products of long sums and few results, as the gradients of weights of narrow layers are, with rows of any length.
func drawnSlices(count int) (out []row) {
	r := rand.New(rand.NewPCG(59, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		k, columns := of(8, 64), of(8, 64)
		if n%3 == 1 {
			k = 8 * of(1, 8)
		}
		if n%3 == 2 {
			k, columns = 8*of(1, 8), 8*of(1, 8)
		}
		behind := []string{"p", "p + d", "f32(p) * 2"}[of(0, 2)]
		dtype := []string{"bf16", "f16"}[of(0, 1)]
		result := dtype
		if behind == "f32(p) * 2" {
			result = "f32"
		}
		text := fmt.Sprintf("@bench(N=200000) graph g(x: T[N, %d], w: T[N, %d], d: T[%d, %d]) -> (y: R[%d, %d]) {\np = transpose(x) @ w\ny = %s }", k, columns, k, columns, k, columns, behind)
		sizes := [][]int64{{int64(of(1, 200))}, {int64(of(3072, 4000))}}
		out = append(out, row{name: fmt.Sprint(n), src: strings.NewReplacer("T[", dtype+"[", "R[", result+"[").Replace(text), sizes: sizes})
	}
	return out
}

// drawnBandChains are two layers, the first of which has short rows of pairs.
func drawnBandChains(count int) (out []row) {
	r := rand.New(rand.NewPCG(61, 0))
	of := func(low, high int) int { return low + r.IntN(high-low+1) }
	for n := range count {
		k, hidden, columns := 2*of(9, 31), 8*of(2, 20), 8*of(2, 8)
		if k%8 == 0 {
			k -= 2
		}
		first := []string{"linear(x, w)", "linear(x, w)", "x @ transpose(w)"}[n%3]
		between := []string{"relu", "gelu", "tanh"}[of(0, 2)]
		lead := []string{"N", "2, N, 3"}[n%2]
		text := fmt.Sprintf("@bench(N=200000) graph g(x: T[%s, %d], w: T[%d, %d], v: T[%d, %d]) -> (y: T[%s, %d]) {\ny = linear(%s(%s), v) }", lead, k, hidden, k, columns, hidden, lead, columns, between, first)
		text = strings.ReplaceAll(text, "T[", []string{"bf16[", "f16["}[of(0, 1)])
		out = append(out, row{name: fmt.Sprint(n), src: text, sizes: [][]int64{{int64(of(1, 60))}, {int64(of(129, 300))}}})
	}
	return out
}

func isBandChain(v *ir.Variant) bool {
	return v.Attend != nil && (v.Attend.Q.Band != nil || v.Attend.K.Band != nil)
}

// TestBandChains runs such layers on a simulated device that looks for races and accesses outside of tensors.
func TestBandChains(t *testing.T) {
	t.Parallel()
	drawn := 3
	if inFull() {
		drawn = 9
	}
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	require.GreaterOrEqual(t, forVariants(t, dev, isBandChain, drawnBandChains(drawn)), drawn)
}

func TestBandChainsOnGPU(t *testing.T) {
	mustEnd(t)
	require.GreaterOrEqual(t, forVariants(t, openGPU(t, runtime.Options{}), isBandChain, drawnBandChains(9)), 9)
}

func isHalfSlice(v *ir.Variant) bool {
	return v.Contract != nil && v.Contract.Slices != nil && v.Contract.Unit == ir.HalfUnit
}

// TestHalfSlices runs such products in slices on a simulated device that looks for races and accesses outside of tensors.
func TestHalfSlices(t *testing.T) {
	t.Parallel()
	drawn := 4
	if inFull() {
		drawn = 12
	}
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	require.GreaterOrEqual(t, forVariants(t, dev, isHalfSlice, drawnSlices(drawn)), drawn)
}

func TestHalfSlicesOnGPU(t *testing.T) {
	mustEnd(t)
	require.GreaterOrEqual(t, forVariants(t, openGPU(t, runtime.Options{}), isHalfSlice, drawnSlices(12)), 12)
}

func isBand(v *ir.Variant) bool {
	return v.Contract != nil && (v.Contract.A.Band != nil || v.Contract.B[0].Band != nil)
}

// TestBands runs such products on a simulated device that looks for races and accesses outside of tensors.
func TestBands(t *testing.T) {
	t.Parallel()
	drawn := 6
	if inFull() {
		drawn = 24
	}
	dev := openSimulated(t, simtest.Config{Arch: "sm_90a", Order: simtest.Order{Races: true}})
	require.GreaterOrEqual(t, forVariants(t, dev, isBand, drawnBands(drawn)), drawn)
}

func TestBandsOnGPU(t *testing.T) {
	mustEnd(t)
	require.GreaterOrEqual(t, forVariants(t, openGPU(t, runtime.Options{}), isBand, drawnBands(24)), 24)
}
