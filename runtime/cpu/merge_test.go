package cpu_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir/interp"
)

// TestSplitPassesMerge: folds of each kind over rows so long that their passes are cut into parts, along the lanes and across them: the
// parts together are the whole, also where one has no column that takes part, and with the largest element in any of them.
func TestSplitPassesMerge(t *testing.T) {
	for _, c := range []struct{ dtypes, body string }{
		{"f32 f64 i64", "sum(x, axis=AXIS)"},
		{"f32 f64 i64 bool", "max(x, axis=AXIS)"},
		{"f32 i64", "min(x, axis=AXIS)"},
		{"bool", "any(x, axis=AXIS)"},
		{"bool", "all(x | (x == x), axis=AXIS)"},
		{"f32 f64 i64", "argmax(x, axis=AXIS)"},
		{"f32 i64", "argmin(x, axis=AXIS)"},
		{"f32 f64", "sum(exp(x - max(x, axis=AXIS, keep=true)), axis=AXIS)"},
		{"f32", "logsumexp(x, axis=AXIS)"},
		{"f32", "var(x, axis=AXIS)"},
		{"f32 i64", "sum(where(x > 2, x, 0), axis=AXIS)"},
	} {
		for _, of := range []struct {
			axis string
			n, m int64
		}{{"1", 1, 140_001}, {"0", 50_003, 3}} {
			for i, dtype := range strings.Fields(c.dtypes) {
				if i > 0 && testing.Short() {
					continue
				}
				src := fmt.Sprintf("graph g(x: %s[N, M]) -> (y: TYPE[K]) { y = %s }", dtype, strings.ReplaceAll(c.body, "AXIS", of.axis))
				result := dtype
				if strings.HasPrefix(c.body, "arg") {
					result = "i64"
				}
				left := map[string]string{"0": "M", "1": "N"}[of.axis]
				src = strings.NewReplacer("TYPE", result, "K", left).Replace(src)
				t.Run(fmt.Sprint(c.body, dtype, of.axis), func(t *testing.T) {
					g := parseGraph(t, src)
					in := waves(t, g, map[string]int64{"N": of.n, "M": of.m})
					for i := range in[0].F {
						in[0].F[i] += float64(i%1009) / 1009
					}
					want, err := interp.Run(g, in, interp.Options{})
					require.NoError(t, err)
					plan, symbols := planForCPU(t, g), bind(t, g, in)
					one := execute(t, plan, symbols, in, 1)
					compare(t, "engine", g, want, one)
					assert.Equal(t, one[0].Bytes(), execute(t, plan, symbols, in, 3)[0].Bytes(), "the number of cores must not matter")
				})
			}
		}
	}
}

// TestIntegersWrapBetweenOperations: each result has its type's bits before the next operation sees it, and not only where it is stored.
func TestIntegersWrapBetweenOperations(t *testing.T) {
	for _, dtype := range []string{"i8", "i16", "i32", "i64", "u8", "u32"} {
		for _, body := range []string{"(x * x * x) / 3", "(x * x * x * x) % 7", "max(x * x * x, x)", "where(x * x * x > x, x, x + x)"} {
			src := fmt.Sprintf("graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M], z: f32[N, M], s: %[1]s[N]) { \n y = %[2]s\n z = f32(%[2]s)\n s = max(%[2]s, axis=1)\n}",
				dtype, body)
			t.Run(dtype+" "+body, func(t *testing.T) {
				g := parseGraph(t, src)
				in := waves(t, g, map[string]int64{"N": 3, "M": 257})
				bits := min(in[0].Type.Size()*8-1, 62)
				for i := range in[0].I {
					in[0].I[i] = int64(i) * 2654435761 % (1 << (bits/2 + 2))
				}
				in[0] = interp.FromBytes(in[0].Type, in[0].Shape, in[0].Bytes())
				want, err := interp.Run(g, in, interp.Options{})
				require.NoError(t, err)
				compare(t, "engine", g, want, execute(t, planForCPU(t, g), bind(t, g, in), in, 2))
			})
		}
	}
}

// TestRowsThatAreKept: what one pass over a row computes is what the next finds there, in registers of each class, in rows of
// one tile and of several, and in rows that are too long to be kept.
func TestRowsThatAreKept(t *testing.T) {
	for _, dtype := range []string{"i8", "i32", "i64", "f32", "f64", "bf16"} {
		for _, m := range []int64{1, 7, 1030, 2500, 70_001} {
			src := fmt.Sprintf("graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M]) { y = x * 3 - max(x * 3, axis=1, keep=true) }", dtype)
			t.Run(fmt.Sprint(dtype, m), func(t *testing.T) {
				g := parseGraph(t, src)
				in := waves(t, g, map[string]int64{"N": 2, "M": m})
				want, err := interp.Run(g, in, interp.Options{})
				require.NoError(t, err)
				compare(t, "engine", g, want, execute(t, planForCPU(t, g), bind(t, g, in), in, 2))
			})
		}
	}
}

// TestIndicesBeyond64Bits: an index that is made of data and of places is outside where the exact one is, and does not come
// back from the other end: as a scalar, along the lanes, and in a sum.
func TestIndicesBeyond64Bits(t *testing.T) {
	values := []int64{0, 1, -1, 2, 7, 1 << 31, -1 << 31, 1 << 32, 1 << 61, 1 << 62, -1 << 62, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64}
	for _, index := range []string{"at[i] * j", "at[j] * i", "at[i] * j * i", "at[j] * i + j", "(at[i] + j) * j", "j * at[j] + at[i] * i",
		"0 - at[j] * 4 * j", "(at[i] - j) * (at[j] + i)", "at[i] * (1 - j)", "at[i] - at[i] * j", "(at[i] - at[j]) * 3", "at[j] * (i - j) + 2", "at[i] * 3 - at[i] * 2", "at[i] + j + (at[i] + j)", "at[j] + i + (at[j] + i)", "at[i] + i + (at[i] + i)"} {
		for _, result := range []string{"y: f32[K, K]) { y[i: K, j: K] = x[INDEX] else 100 }", "y: f32[K]) { y[i: K] = sum[j: K] (x[INDEX] else 100) }"} {
			src := "graph g(x: f32[N], at: i64[K]) -> (" + strings.ReplaceAll(result, "INDEX", index)
			t.Run(src, func(t *testing.T) {
				g := parseGraph(t, src)
				in := waves(t, g, map[string]int64{"N": 40, "K": int64(len(values))})
				copy(in[1].I, values)
				want, err := interp.Run(g, in, interp.Options{})
				require.NoError(t, err)
				compare(t, "engine", g, want, execute(t, planForCPU(t, g), bind(t, g, in), in, 2))
			})
		}
	}
}

// TestReadsAcrossTheEdge: tiles of which some lanes are outside on either side, which read what stands for these.
func TestReadsAcrossTheEdge(t *testing.T) {
	for _, dtype := range []string{"f32", "f64", "bf16", "i32", "bool"} {
		for _, at := range []string{"i, j - 1", "i, j + 1", "i, j - 37", "i, j + 1000", "i - 1, j + 2", "i, j * 2 - 5", "i, 2 - j"} {
			src := fmt.Sprintf("graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M]) { y[i: N, j: M] = x[%[2]s] else 1 }", dtype, at)
			if dtype == "bool" {
				src = strings.Replace(src, "else 1", "else true", 1)
			}
			for _, m := range []int64{1, 5, 1030, 2500} {
				t.Run(fmt.Sprint(dtype, at, m), func(t *testing.T) {
					g := parseGraph(t, src)
					in := waves(t, g, map[string]int64{"N": 3, "M": m})
					want, err := interp.Run(g, in, interp.Options{})
					require.NoError(t, err)
					compare(t, "engine", g, want, execute(t, planForCPU(t, g), bind(t, g, in), in, 2))
				})
			}
		}
	}
}
