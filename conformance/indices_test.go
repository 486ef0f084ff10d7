package conformance

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// hostile are the elements that indices are made of: those that are inside, beside the ends of every
// integer type, and such that times a small number they wrap to a place that is inside.
var hostile = []int64{0, 1, 2, 3, 5, 8, 9, -1, -2, 127, -128, 255, math.MaxInt32, math.MaxInt32 - 1, math.MinInt32, math.MinInt32 + 2, math.MaxUint32, 1 << 31,
	1<<32 + 1, 1 << 40, math.MaxInt64, math.MaxInt64 - 1, math.MinInt64, math.MinInt64 + 1, 1 << 61, 1 << 62, -1 << 62, 6148914691236517206, 1<<63 - 8}

// indexSizes are those of N, M and K.
var indexSizes = []int64{9, 12, int64(len(hostile))}

// indexTypes are the types of the elements that indices are made of.
var indexTypes = []string{"i32", "u32", "i8", "u8", "i64", "i64"}

// drawIndex draws an index of data, ranges and sizes. What is computed on the way may need 128 bits, and no more.
func drawIndex(r *rand.Rand, depth int) string {
	leaves := []string{"z%d[i]", "z%d[i]", "z%d[(i + j) % K]", "(z%d[i] + j)", "i", "j", "N", "M", "2", "3", "1152921504606846976"}
	if depth == 0 || r.IntN(6) == 0 {
		return strings.ReplaceAll(leaves[r.IntN(len(leaves))], "%d", fmt.Sprint(r.IntN(len(indexTypes))))
	}
	a, b := drawIndex(r, depth-1), drawIndex(r, depth-1)
	switch r.IntN(10) {
	case 0, 1, 2:
		return "(" + a + " + " + b + ")"
	case 3, 4:
		return "(" + a + " - " + b + ")"
	case 5:
		return "(" + a + " * " + []string{"2", "i", "N", "-3", "(z4[i] + 1)"}[r.IntN(5)] + ")"
	case 6:
		return "(" + a + " / " + []string{"2", "N", "M", "(z4[i] + M)"}[r.IntN(4)] + ")"
	case 7:
		return "(" + a + " % " + []string{"4", "N", "M", "(z5[i] + M)"}[r.IntN(4)] + ")"
	case 8:
		return "where(" + a + " < " + b + ", " + b + ", " + a + ")"
	}
	return fmt.Sprintf("%s(%s, %s)", []string{"min", "max"}[r.IntN(2)], a, b)
}

// drawRead draws an element of a tensor at such indices, or of a view of it at elements alone.
func drawRead(r *rand.Rand) string {
	fill := []string{"", " else 7", " else -3"}[r.IntN(3)]
	at := fmt.Sprintf("z%d[i]", r.IntN(5))
	switch r.IntN(7) {
	case 0, 1:
		return "(w[" + drawIndex(r, 2) + "]" + fill + ")"
	case 2, 3:
		return "(m[" + drawIndex(r, 2) + ", " + drawIndex(r, 1) + "]" + fill + ")"
	case 4:
		return []string{"w[1:]", "w[::2]", "w[::4]", "w[::-1]", "roll(w, 3)", "pad(w, (2, 1))", "reshape(m, N * M)", "m[:, 1]", "m[2]"}[r.IntN(9)] + "[" + at + "]"
	case 5:
		return []string{"m[1:, ::2]", "m[::-1, ::-1]", "transpose(m, 0, 1)", "flip(m, axis=1)", "reshape(m, M, N)"}[r.IntN(5)] + "[" + at + ", " + fmt.Sprintf("z%d[i]", r.IntN(5)) + "]"
	}
	return "where(" + drawIndex(r, 1) + " < " + drawIndex(r, 1) + ", " + drawReadOf(r) + ", 1)"
}

func drawReadOf(r *rand.Rand) string { return "m[" + drawIndex(r, 1) + ", j]" }

// indexProgram draws a program that reads at indices made of integers of several types: element by
// element, under a reduction, and under a predicate.
func indexProgram(r *rand.Rand, outputs int, strict bool) string {
	inputs := "w: f32[N], m: f32[N, M]"
	for i, t := range indexTypes {
		inputs += fmt.Sprintf(", z%d: %s[K]", i, t)
	}
	var out, body []string
	for n := range outputs {
		switch r.IntN(4) {
		case 0, 1:
			out = append(out, fmt.Sprintf("y%d: f32[K, M]", n))
			body = append(body, fmt.Sprintf("    y%d[i, j] = %s + %s", n, drawRead(r), drawRead(r)))
		case 2:
			out = append(out, fmt.Sprintf("y%d: f32[K]", n))
			body = append(body, fmt.Sprintf("    y%d[i] = %s[j: M where %s < %s] %s", n, []string{"sum", "max"}[r.IntN(2)], drawIndex(r, 1), drawIndex(r, 1), drawRead(r)))
		default:
			out = append(out, fmt.Sprintf("y%d: i64[K, M]", n))
			body = append(body, fmt.Sprintf("    y%d[i, j] = i64(%s)", n, drawIndex(r, 2)))
		}
	}
	annotation := ""
	if strict {
		annotation = "@strict\n"
	}
	return fmt.Sprintf("%sgraph g(%s) -> (%s) {\n%s\n}\n", annotation, inputs, strings.Join(out, ", "), strings.Join(body, "\n"))
}

// TestIndicesOfData: whatever integers indices are made of, no read leaves its tensor and every engine
// gives what the interpreter gives: of a strict graph, which every other one is, the error of the first index outside. Of the
// programs it draws a third, unless FUSEC_TEST_FULL is set.
func TestIndicesOfData(t *testing.T) {
	t.Parallel()
	seed, many, few := uint64(7), 20, 2
	if inFull() {
		many, few = 60, 6
	}
	ampere := openSimulated(t, simtest.Config{Arch: "sm_80"})
	hopper := openSimulated(t, simtest.Config{Arch: "sm_90a"})
	for i, c := range []struct {
		dev      *Engine
		programs int
	}{{openCPU(t), many}, {ampere, few}, {hopper, few}} {
		t.Run(c.dev.Arch(), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for drawn := 0; drawn < c.programs; {
				src := indexProgram(r, 6, drawn%2 == 0)
				l, err := c.dev.Load(fusec.Source{Name: "g.fuse", Text: []byte(src)}, fusec.Options{})
				if err != nil {
					require.NotContains(t, err.Error(), "internal error", src)
					continue // as an index of ranges and sizes that may be 2^62 and more
				}
				sizes, fit := Sizes(l.Graph(), indexSizes)
				if !fit {
					continue
				}
				drawn++
				args, err := InputsBy(l.Graph(), sizes, hostileFill)
				require.NoError(t, err)
				require.NoError(t, l.Check(t.Context(), args), src)
			}
		})
	}
}

// hostileFill is a Fill of the hostile integers, in another order for each input.
func hostileFill(v *ir.Value, place int, shape []int) (*tensor.Tensor, error) {
	if v.Type.IsFloat() {
		return Random(v, place, shape)
	}
	elements := interp.New(v.Type, shape...)
	for k := range elements.I {
		elements.I[k] = wrappedTo(v.Type, hostile[k*(place+1)%len(hostile)])
	}
	return tensor.FromBytes(v.Type, elements.Bytes(), shape...)
}

// wrappedTo is an integer that a type holds.
func wrappedTo(t ir.DType, v int64) int64 {
	info := t.Info()
	least := int64(0)
	if info.Signed {
		least = -int64(info.Max) - 1
	}
	if v < least || info.Max < math.MaxInt64 && v > int64(info.Max) {
		return least + (v&15)*int64(info.Max/16)
	}
	return v
}
