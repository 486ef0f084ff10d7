package conformance

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen"
	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// drawOrders makes a program with one order, or two, of rows longer than the blocks that hold one: of any type, in either
// direction, along any axis, of what is computed; results are its elements, where these were, what follows from both, or only the first places.
func drawOrders(r *rand.Rand) (src string, sizes map[string]int64) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	types := ir.DTypes()
	dtype, long := types[r.IntN(len(types))].String(), 1+r.IntN(4000)
	n, extent := pick("3", "N"), pick(fmt.Sprint(long), "M")
	shape, axis := n+", "+extent, "1"
	if r.IntN(3) == 0 {
		shape, axis = extent+", "+n, "0"
	}
	of := pick("x", "x", "x", "where(x == x, x, x)")
	arguments := fmt.Sprintf("%s, axis=%s, descending=%s", of, axis, pick("true", "false"))
	var results, lines []string
	add := func(name, dtype, shape, value string) {
		results, lines = append(results, fmt.Sprintf("%s: %s[%s]", name, dtype, shape)), append(lines, fmt.Sprintf("    %s = %s", name, value))
	}
	kinds := 1 + r.IntN(7)
	if kinds&1 != 0 {
		add("y", dtype, shape, fmt.Sprintf("sort(%s)", arguments))
	}
	if kinds&2 != 0 {
		add("at", "i64", shape, fmt.Sprintf("argsort(%s)", arguments))
	}
	if kinds&4 != 0 {
		add("both", "f64", shape, fmt.Sprintf("f64(sort(%s)) * 2 + f64(argsort(%s))", arguments, arguments))
	}
	if most := long / 2; r.IntN(3) == 0 && most > 300 {
		k := fmt.Sprint(257 + r.IntN(most-257))
		top := strings.Replace(shape, extent, k, 1)
		results = append(results, fmt.Sprintf("top: %s[%s], top_at: i64[%s]", dtype, top, top))
		lines = append(lines, fmt.Sprintf("    top, top_at = topk(%s, %s, axis=%s, largest=%s)", of, k, axis, pick("true", "false")))
		if extent == "M" {
			lines = append([]string{fmt.Sprintf(`    require(M >= %s, "enough columns")`, k)}, lines...)
		}
	}
	src = fmt.Sprintf("graph g(x: %s[%s]) -> (%s) {\n%s\n}", dtype, shape, strings.Join(results, ", "), strings.Join(lines, "\n"))
	return src, map[string]int64{"N": int64(1 + r.IntN(5)), "M": int64(long)}
}

// fewValues draws numbers many of which are equal, with zeros of both signs, infinities and NaN among them.
func fewValues(r *rand.Rand) float64 {
	switch r.IntN(12) {
	case 0:
		return math.NaN()
	case 1:
		return math.Copysign(0, -1)
	case 2:
		return 0
	case 3:
		return math.Inf(1 - 2*r.IntN(2))
	case 4, 5, 6:
		return float64(r.IntN(100))
	}
	return 100 * r.NormFloat64()
}

// drawFirst makes a program of the first places of few rows that several blocks share.
func drawFirst(r *rand.Rand) (src string, sizes map[string]int64) {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	types := ir.DTypes()
	dtype, k, n := types[r.IntN(len(types))].String(), 1+r.IntN(1+r.IntN(256)), pick("2", "N")
	shape, top, axis := n+", M", fmt.Sprintf("%s, %d", n, k), "1"
	if r.IntN(3) == 0 {
		shape, top, axis = "M, "+n, fmt.Sprintf("%d, %s", k, n), "0"
	}
	src = fmt.Sprintf("graph g(x: %s[%s]) -> (y: %s[%s], at: i64[%s]) {\n    require(M >= 256, \"enough columns\")\n    y, at = topk(x, %d, axis=%s, largest=%s)\n}",
		dtype, shape, dtype, top, top, k, axis, pick("true", "false"))
	return src, map[string]int64{"N": int64(1 + r.IntN(3)), "M": int64(8192 + r.IntN(20000))}
}

// TestSharedOrders compares drawn orders with the interpreter, on simulated devices that are planned for as if blocks had
// little shared memory, so that rows of some hundred columns are chunks that blocks merge.
func TestSharedOrders(t *testing.T) {
	RequireNVRTC(t)
	programs := 8
	if inFull() {
		programs = 80
	}
	for seed := range programs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(seed), 0x50f7))
			draw := drawOrders
			if seed%4 == 3 {
				draw = drawFirst
			}
			src, sizes := draw(r)
			arch := []string{"sm_90a", "sm_80"}[seed/4%2]
			p := planned(t, row{name: "orders", src: src}, arch)
			device, err := ir.DeviceNamed(arch)
			require.NoError(t, err)
			device.SharedBlock = 1 << (12 + seed%3)
			plan, err := fuse.Plan(p.Graph(), fuse.Options{Device: device})
			require.NoError(t, err, src)
			require.NoError(t, ir.VerifyPlan(plan), src)
			program := codegen.Generate(plan)
			dev := openSimulated(t, simtest.Config{Arch: arch, BlocksPerMultiprocessor: 1 + r.IntN(2), Order: forcedOrders[r.IntN(4)%len(forcedOrders)]})
			f, err := dev.Device.Load(context.Background(), program)
			require.NoError(t, err, src)
			fill := func(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
				return filled(v, place, shape, fewValues)
			}
			args, err := InputsBy(p.Graph(), sizes, fill)
			require.NoError(t, err)
			want := interpreted(t, p.Graph(), args)
			for range 2 { // the counters are left at zero
				got, err := f.Call(t.Context(), args)
				require.NoError(t, err, src)
				require.NoError(t, want.CompareExactly(got, false), "%s\n%v", src, sizes)
			}
			require.NoError(t, f.Close())
		})
	}
}
