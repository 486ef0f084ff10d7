package explain_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// A productCase is a product of a and b, as drawn, and what is known of it.
type productCase struct {
	text       string
	annotation string
	types      [2]ir.DType // of a and b
	computed   bool        // an operand is computed, or read through windows
}

// drawProduct draws a product of two types under an annotation, with operands as they are, turned or computed.
func drawProduct(r *rand.Rand) productCase {
	one := func(from ...string) string { return from[r.IntN(len(from))] }
	c := productCase{annotation: one("", "@tf32", "@tf32", "@strict")}
	types := []ir.DType{ir.F32, ir.F32, ir.F32, ir.BF16, ir.F16, ir.F64, ir.I8, ir.F8E4M3, ir.I32}
	c.types[0] = types[r.IntN(len(types))]
	c.types[1] = c.types[0]
	if r.IntN(5) == 0 {
		c.types[1] = types[r.IntN(len(types))]
	}
	k := one("K", "64", "101", "8")
	if r.IntN(4) == 0 {
		c.computed = true // by the windows
		c.text = fmt.Sprintf("%[1]s graph f(a: %[2]s[M, 32, %[3]s], b: %[4]s[N, 32, 3]) -> (y: f32[M, N, %[3]s]) { y = f32(conv1d(a, b, padding=1)) }", c.annotation, c.types[0], k, c.types[1])
	} else {
		shapes := [2]string{"M, " + k, k + ", N"}
		operands := [2]string{"a", "b"}
		for i := range operands {
			switch r.IntN(4) {
			case 0:
				d := strings.Split(shapes[i], ", ")
				shapes[i], operands[i] = d[1]+", "+d[0], "transpose("+operands[i]+")"
			case 1:
				operands[i], c.computed = "abs("+operands[i]+")", true
			}
		}
		c.text = fmt.Sprintf("%s graph f(a: %s[%s], b: %s[%s]) -> (y: f32[M, N]) { y = f32(%s @ %s) }", c.annotation, c.types[0], shapes[0], c.types[1], shapes[1], operands[0], operands[1])
	}
	return c
}

// slowerReasons are what a reason says, and whether it is true of a case. What is in parentheses is given in order.
var slowerReasons = []struct {
	says *regexp.Regexp
	true func(c productCase, said []string) bool
}{
	{regexp.MustCompile(`^@strict keeps`), func(c productCase, _ []string) bool { return c.annotation == "@strict" }},
	{regexp.MustCompile(`^(\w+) is (\w+): wgmma takes`), func(c productCase, said []string) bool {
		half, byteWide := said[2] == "bf16" || said[2] == "f16", said[2] == "i8" || said[2] == "f8e4m3"
		return c.has(said[1], said[2]) && !half && !byteWide && !(said[2] == "f32" && (c.annotation == "@tf32" || c.isF32()))
	}},
	{regexp.MustCompile(`^f32 reaches wgmma as terms of bf16, which pays from (\d+) .* on, and here are (\d+)(?: and (\d+))?`), func(c productCase, said []string) bool {
		pays, _ := strconv.Atoi(said[1])
		first, _ := strconv.Atoi(said[2])
		second, err := strconv.Atoi(said[3])
		return c.isF32() && (first < pays || err == nil && second < pays)
	}},
	{regexp.MustCompile(`^f32 reaches wgmma as terms of bf16, of windows`), func(c productCase, _ []string) bool { return c.isF32() && c.computed }},
	{regexp.MustCompile(`^windows of 32 channels with 16 results each|^32 channels of the input, 16 of the result and|^each element of the input is multiplied`), func(c productCase, _ []string) bool { return c.computed }},
	{regexp.MustCompile(`^(\w+) is (\w+) and (\w+) (\w+): wgmma takes two operands of one type`), func(c productCase, said []string) bool {
		return said[2] != said[4] && c.has(said[1], said[2]) && c.has(said[3], said[4])
	}},
	{regexp.MustCompile(`^rows of \w+ are (\d+) bytes apart`), func(c productCase, said []string) bool {
		bytes, err := strconv.Atoi(said[1])
		return err == nil && bytes%16 != 0
	}},
	{regexp.MustCompile(`^an operand is computed on the way`), func(c productCase, _ []string) bool { return c.computed }},
	{regexp.MustCompile(`^([MNK]) = (\d+) is not a multiple of (\d+)`), func(c productCase, said []string) bool {
		n, _ := strconv.Atoi(said[2])
		multiple, _ := strconv.Atoi(said[3])
		return c.isSize(said[1], said[2]) && n%multiple != 0
	}},
	{regexp.MustCompile(`^([MNK]) = (\d+) is less than (\d+)`), func(c productCase, said []string) bool {
		n, _ := strconv.Atoi(said[2])
		least, _ := strconv.Atoi(said[3])
		return c.isSize(said[1], said[2]) && n < least
	}},
	{regexp.MustCompile(`^(\w+) does not lie along the sum`), func(c productCase, said []string) bool { return c.types[0].Size() != 2 || c.types[1].Size() != 2 }},
	{regexp.MustCompile(`^the operands are not read as plain tiles`), func(productCase, []string) bool { return true }},
}

// reasonSizes are those that products are explained at.
var reasonSizes = map[string]int64{"M": 512, "N": 16, "K": 509}

// has reports whether an input has a type, where the name is an input's and not that of a copy.
func (c productCase) has(name, dtype string) bool {
	at, input := map[string]int{"a": 0, "b": 1}[name]
	return !input || c.types[at].String() == dtype
}

// isF32 reports whether the operands are f32 that may be multiplied as terms of bf16.
func (c productCase) isF32() bool {
	return c.types == [2]ir.DType{ir.F32, ir.F32} && c.annotation == ""
}

func (c productCase) isSize(name, n string) bool { return fmt.Sprint(reasonSizes[name]) == n }

// TestReasonsOfSlowerProductsAreTrue: whatever the operands of a product, their types and the annotation, the reason for which it
// does not run on warpgroups is true of it.
func TestReasonsOfSlowerProductsAreTrue(t *testing.T) {
	draws := 24
	if inFull() {
		draws = 200
	}
	device, err := ir.DeviceNamed("H200")
	require.NoError(t, err)
	r, given := rand.New(rand.NewPCG(1, 2)), 0
	for n := 0; n < draws; {
		c := drawProduct(r)
		if _, err := parser.Parse("p.fuse", []byte(c.text), parser.Options{}); err != nil {
			continue // as types that do not go together
		}
		n++
		for _, k := range Explain(t, c.text, explain.Options{Device: device, Sizes: reasonSizes}).Kernels {
			if k.Slower != "" {
				given++
				requireTrue(t, c, k.Slower)
			}
		}
	}
	require.Greater(t, given, draws/4)
}

func requireTrue(t *testing.T, c productCase, reason string) {
	t.Helper()
	for _, known := range slowerReasons {
		if said := known.says.FindStringSubmatch(reason); said != nil {
			require.True(t, known.true(c, said), "%s\n%s", c.text, reason)
			return
		}
	}
	require.Fail(t, "a reason of another form", "%s\n%s", c.text, reason)
}

// TestReasonsOfSlowerProducts: each thing that keeps f32 from wgmma is named, and nothing is said of kernels that are no
// work for it.
func TestReasonsOfSlowerProducts(t *testing.T) {
	for _, c := range []struct{ program, why string }{
		{"graph g(a: f32[4096, 96], b: f32[96, 4096]) -> (y: f32[4096, 4096]) { y = a @ b }", "takes longer than they save where a sum has 96 terms"},
		{"graph g(a: f32[128, 4096], b: f32[4096, 4096]) -> (y: f32[128, 4096]) { y = a @ b }", "512 rows and columns on, and here are 128; @tf32"},
		{"graph g(a: f32[1024, 4096], b: f32[4096, 1024]) -> (y: f32[1024, 1024]) { y = a @ b }", "1638400 results on, and here are 1048576; @tf32"},
		{"graph g(a: f32[4096, 4096], b: f32[4096, 4096]) -> (y: f32[4096, 4096]) { y[i, j] = sum[k where k <= i + j] a[i, k] * b[k, j] }", "picks its products by a condition"},
		{"@onekernel graph g(a: f32[4096, 4096], b: f32[4096, 4096]) -> (y: f32[4096, 4096]) { y = a @ b }", "@onekernel leaves no kernel"},
		{"graph g(a: f64[4096, 4096], b: f64[4096, 4096]) -> (y: f64[4096, 4096]) { y = a @ b }", "a is f64: wgmma takes bf16 and f16"},
		{"graph g(x: f32[16, 8, 128, 128], w: f32[64, 8, 3, 3]) -> (y: f32[16, 64, 126, 126]) { y = conv2d(x, w) }", "32 channels of the input and of the result on, and here are 8 and 64"},
		{"@tf32 graph g(x: f32[4, 64, 1024, 1024], w: f32[128, 64, 1, 1]) -> (y: f32[4, 128, 1024, 1024]) { y = conv2d(x, w) }", "x does not lie along the sum"},
		{"@tf32 graph g(x: f32[16, 3, 128, 128], w: f32[16, 3, 3, 3]) -> (y: f32[16, 16, 126, 126]) { y = conv2d(x, w) }", "windows of 3 channels with 16 results each"},
		{"graph g(x: f32[16, 64, 128, 128], w: f32[64, 1, 3, 3]) -> (y: f32[16, 64, 126, 126]) { y = conv2d(x, w, groups=64) }", ""},
		{"graph g(x: f32[4096, 4096], w: f32[4096]) -> (y: f32[4096]) { y = x @ w }", ""},
		{"graph g(x: f32[4096, 4096]) -> (y: f32[4096]) { y = mean(x, axis=1) }", ""},
	} {
		var why []string
		for _, k := range Explain(t, c.program, explain.Options{}).Kernels {
			if k.Slower != "" {
				why = append(why, k.Slower)
			}
		}
		if c.why == "" {
			require.Empty(t, why, c.program)
			continue
		}
		require.Len(t, why, 1, c.program)
		require.Contains(t, why[0], c.why, c.program)
	}
}

// TestWindowsOfFewImages: tiles are boxes of places of several images where that suits the usual sizes. A program for many images
// takes hardly longer for few than one that was written for these.
func TestWindowsOfFewImages(t *testing.T) {
	for _, program := range []string{
		"@tf32 @bench(N=%d) graph g(x: f32[N, 48, 24, 24, 24], w: f32[48, 24, 3, 3, 3]) -> (y: f32[N, 24, 26, 26, 26]) { y = conv_transpose3d(x, w) }",
		"@tf32 @bench(N=%d) graph g(x: f32[N, 48, 48, 48, 48], w: f32[48, 24, 3, 3, 3]) -> (y: f32[N, 24, 50, 50, 50]) { y = conv_transpose3d(x, w) }",
		"@tf32 @bench(N=%d) graph g(x: f32[N, 48, 33, 33], w: f32[64, 48, 3, 5]) -> (y: f32[N, 64, 33, 33]) { y = conv2d(x, w, padding=(1, 2)) }",
		"@bench(N=%d) graph g(x: bf16[N, 128, 8192], w: bf16[128, 128, 3]) -> (y: bf16[N, 128, 8192]) { y = conv1d(x, w, padding=1) }",
	} {
		for _, n := range []int64{1, 2, 5} {
			seconds := func(usual int64) float64 {
				x := Explain(t, fmt.Sprintf(program, usual), explain.Options{Sizes: map[string]int64{"N": n}})
				require.NotNil(t, x.Fused.Seconds)
				return *x.Fused.Seconds
			}
			require.LessOrEqual(t, seconds(64), 1.35*seconds(n), "%s at %d", program, n)
		}
	}
}
