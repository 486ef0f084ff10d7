package explain_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
)

// TestOneOperationIsItsOwnPlan: a function of the library that is one operation on a tensor is one kernel as planned and as
// written, and both read the tensor once, however often the function uses it.
func TestOneOperationIsItsOwnPlan(t *testing.T) {
	library, err := os.ReadFile("../../parser/std/activations.fuse")
	require.NoError(t, err)
	const bytes = 4096 * 4096 * 4
	maps := regexp.MustCompile(`(?m)^fn (\w+)\(x: T\[\.\.\.\](?:, \w+: float = [^,)]+)*\) -> T\[\.\.\.\]`).FindAllSubmatch(library, -1)
	single := 0
	for _, m := range maps {
		name := string(m[1])
		x := Explain(t, fmt.Sprintf("graph g(x: f32[4096, 4096]) -> (y: f32[4096, 4096]) { y = %s(x) }", name), explain.Options{})
		if x.Unfused.Kernels > 1 { // it names a value on the way
			continue
		}
		single++
		for _, total := range []explain.Total{x.Fused, x.Unfused} {
			assert.Equal(t, 1, total.Kernels, name)
			assert.Equal(t, int64(bytes), *total.Read.Bytes, name)
			assert.Equal(t, int64(bytes), *total.Written.Bytes, name)
		}
		assert.LessOrEqual(t, *x.Fused.Seconds, *x.Unfused.Seconds*1.001, name)
	}
	assert.Greater(t, single, 15)
}

// TestUnfusedReadsPartsOnce: parts of a tensor count for themselves, the same part once, and all parts for no more than the
// whole.
func TestUnfusedReadsPartsOnce(t *testing.T) {
	for _, c := range []struct {
		n, m int // of x and of y
		y    string
		read int64
	}{
		{200, 100, "x[:100] * x[:100]", 100 * 4},
		{200, 100, "x[:100] * x[100:]", 200 * 4},
		{201, 200, "x[:200] * x[1:]", 201 * 4},
	} {
		x := Explain(t, fmt.Sprintf("graph g(x: f32[%d]) -> (y: f32[%d]) { y = %s }", c.n, c.m, c.y), explain.Options{})
		assert.Equal(t, c.read, *x.Unfused.Read.Bytes, c.y)
		assert.Equal(t, c.read, *x.Fused.Read.Bytes, c.y)
	}
}

// TestUnfusedCopiesOperands: a library copies an operand whose order is no view of a tensor, and reads the copy; one that is it reads as it
// lies.
func TestUnfusedCopiesOperands(t *testing.T) {
	for y, kernels := range map[string]int{
		"reshape(x, 1024, 128) @ w":                                                       1,
		"reshape(transpose(x, 0, 1), 1024, 128) @ w":                                      2,
		"reshape(permute(reshape(x, 2, 16, 2, 16, 128), (0, 2, 1, 3, 4)), 1024, 128) @ w": 2,
	} {
		x := Explain(t, "graph g(x: bf16[32, 32, 128], w: bf16[128, 512]) -> (y: bf16[1024, 512]) { y = "+y+" }", explain.Options{})
		assert.Equal(t, kernels, x.Unfused.Kernels, y)
	}
}

// TestOrdersTakeTheSameUnfused: what one operation puts in order takes no less as written than as planned, be it all elements or the largest,
// and values and places of one order do not count it twice.
func TestOrdersTakeTheSameUnfused(t *testing.T) {
	for _, result := range []string{
		"y: i64[N, M]) { y = argsort(x)", "y: i64[N, M]) { y = argsort(argsort(x))", "y: T[N, M]) { y = sort(x)",
		"y: T[N, M], at: i64[N, M]) { y = sort(x)\nat = argsort(x)", "y: T[N, 8], at: i64[N, 8]) { y, at = topk(x, 8)",
	} {
		for _, dtype := range []string{"f32", "bf16", "i64"} {
			for _, shape := range [][2]string{{"32", "50257"}, {"4096", "1000"}, {"1", "1000000"}} {
				src := strings.NewReplacer("T", dtype, "N", shape[0], "M", shape[1]).Replace("graph g(x: T[N, M]) -> (" + result + "\n}")
				x := Explain(t, src, explain.Options{})
				assert.LessOrEqual(t, *x.Fused.Seconds, *x.Unfused.Seconds*1.001, src)
				assert.Less(t, *x.Unfused.Seconds, 2**x.Fused.Seconds+50e-6, src)
			}
		}
	}
}

// TestLoses: a plan loses where it is estimated to take a tenth longer than its operations one by one, and longer than a few
// launches make up for.
func TestLoses(t *testing.T) {
	for _, c := range []struct {
		fused, unfused float64
		loses          bool
	}{
		{2e-3, 1e-3, true},
		{1.05e-3, 1e-3, false},
		{15e-6, 10e-6, false},
		{1e-3, 2e-3, false},
	} {
		x := explain.Explanation{Fused: explain.Total{Seconds: &c.fused}, Unfused: explain.Total{Seconds: &c.unfused}}
		assert.Equal(t, c.loses, x.Loses(), "%+v", c)
	}
	assert.False(t, explain.Explanation{}.Loses(), "without sizes")
	eachExplained(t, func(t *testing.T, _ string, _ ir.Device, x knownPlan) {
		assert.False(t, x.Loses())
		worst := x.Kernels[x.Costliest()]
		for _, k := range x.Kernels {
			assert.LessOrEqual(t, *k.Seconds, *worst.Seconds)
		}
	})
}
