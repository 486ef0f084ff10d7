package explain_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// partialReaders is a drawn program of values of B tokens of S, of D features, which readers take in part.
type partialReaders struct {
	*rand.Rand
	b, s, d, e int // the sizes
	symbolic   bool
	lines      []string
	values     []string // of the shape of x
	results    []string
}

func drawPartialReaders(seed uint64, large bool) *partialReaders {
	r := rand.New(rand.NewPCG(seed, 21))
	p := &partialReaders{Rand: r, values: []string{"x"}, symbolic: r.IntN(3) == 0}
	if p.b, p.s, p.d, p.e = oneOf(r, 2, 3), oneOf(r, 4, 6), oneOf(r, 16, 18), oneOf(r, 8, 20); large {
		p.b, p.s, p.d, p.e = oneOf(r, 2, 16, 64), oneOf(r, 128, 1024, 1000), oneOf(r, 64, 256, 1024, 1022), oneOf(r, 64, 512, 4096)
	}
	for range 1 + r.IntN(3) {
		p.stage()
	}
	for range 1 + r.IntN(2) {
		p.reader(p.values[len(p.values)-1], p.IntN(4) > 0)
	}
	if r.IntN(2) == 0 {
		p.reader(oneOf(r, p.values...), r.IntN(2) == 0)
	}
	return p
}

// stage makes a value of the latest ones.
func (p *partialReaders) stage() {
	a, b := p.values[len(p.values)-1], oneOf(p.Rand, p.values...)
	text := oneOf(p.Rand, "rms_norm(?)", "softmax(?)", "gelu(? @ w) @ v", "tanh(? * 2) + !", "(? @ w) @ v", "attention(rms_norm(?), !, x)", "? - mean(!, axis=1, keep=true)",
		"exp(? - max(?, axis=2, keep=true))", "sigmoid(?) * (! @ w @ v)", "concat(!, ?, axis=1)[:, H:H + S]", "stack(?, !, axis=1)[:, 1]", "cumsum(?, axis=1)",
		"where(x > 0, ?, !)", "softmax(?, axis=1)", "transpose(conv1d(transpose(?, 1, 2), u, padding=1), 1, 2)")
	name := fmt.Sprintf("h%d", len(p.values))
	p.lines = append(p.lines, name+" = "+strings.NewReplacer("?", a, "!", b).Replace(text))
	p.values = append(p.values, name)
}

// reader makes a result of a value, or of a part of it.
func (p *partialReaders) reader(of string, part bool) {
	shape := []string{strconv.Itoa(p.b), strconv.Itoa(p.s), strconv.Itoa(p.d)}
	if p.symbolic {
		shape[0], shape[1] = "B", "S"
	}
	if part {
		d, index := oneOf(p.Rand, 1, 1, 2, 2, 0), []string{":", ":", ":"}
		if half := p.d / 2; d == 2 && p.IntN(4) > 0 {
			index[d], shape[d] = fmt.Sprintf("3:%d", half+3), strconv.Itoa(half)
		} else if !p.symbolic && d == 1 && p.IntN(2) == 0 {
			index[d], shape[d] = "1:3", "2"
		} else {
			index[d], shape = oneOf(p.Rand, "0", "-1", "1"), slices.Delete(shape, d, d+1)
		}
		of += "[" + strings.Join(index, ", ") + "]"
	}
	name := fmt.Sprintf("y%d", len(p.results))
	if part && !p.symbolic && p.IntN(4) == 0 { // and outside
		whole, _, _ := strings.Cut(of, "[")
		p.results = append(p.results, fmt.Sprintf("%s: T[%d, 3, %d]", name, p.b, p.d))
		p.lines = append(p.lines, fmt.Sprintf("%s[i, j: 3, k] = (%s[i, j + %d, k] else 0.5)", name, whole, oneOf(p.Rand, -2, -1, p.s-2, p.s-1)))
		return
	}
	behind := oneOf(p.Rand, "tanh(?)", "? * 2", "sum(?, axis=-1)", "exp(?) + sum(?)", "softmax(?)")
	if strings.Contains(behind, "axis") {
		shape = shape[:len(shape)-1]
	}
	p.results = append(p.results, fmt.Sprintf("%s: T[%s]", name, strings.Join(shape, ", ")))
	p.lines = append(p.lines, name+" = "+strings.ReplaceAll(behind, "?", of))
}

func (p *partialReaders) text(dtype string) string {
	of, annotation := fmt.Sprintf("%d, %d", p.b, p.s), ""
	if p.symbolic {
		of, annotation = "B, S", fmt.Sprintf("@bench(B=%d, S=%d) ", p.b, p.s)
	}
	text := fmt.Sprintf("%sgraph g(x: T[%s, %d], w: T[%d, %d], v: T[%d, %d], u: T[%d, %d, 3]) -> (%s) {\n%s\n}", annotation, of, p.d, p.d, p.e, p.e, p.d, p.d, p.d,
		strings.Join(p.results, ", "), strings.Join(p.lines, "\n"))
	size, half := "S", "S / 2"
	if !p.symbolic {
		size, half = strconv.Itoa(p.s), strconv.Itoa(p.s/2)
	}
	return strings.NewReplacer("T[", dtype+"[", "H:H + S", half+":"+half+" + "+size).Replace(text)
}

// withoutCrop runs work with the passes but that which crops values.
func withoutCrop(t *testing.T, work func()) {
	all := passes.All
	defer func() { passes.All = all }()
	passes.All = slices.DeleteFunc(slices.Clone(all), func(p passes.Pass) bool { return p.Name == "crop" })
	require.Len(t, passes.All, len(all)-1)
	work()
}

// TestCroppedIsNoSlower: no drawn program takes longer where of values that are read in part no more is computed. Three launches are left to
// products, which have another strategy where they have few rows. CROPS=1500 go test -run TestCropped -v ./fuse/explain draws more, and lists them.
func TestCroppedIsNoSlower(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("CROPS"))
	device, err := ir.DeviceNamed("H200")
	require.NoError(t, err)
	for seed := range uint64(max(count, 60)) {
		p := drawPartialReaders(seed, true)
		src := p.text(oneOf(p.Rand, "bf16", "bf16", "f32"))
		cropped := Explain(t, src, explain.Options{Device: device})
		var whole explain.Explanation
		withoutCrop(t, func() { whole = Explain(t, src, explain.Options{Device: device}) })
		a, b := *cropped.Fused.Seconds, *whole.Fused.Seconds
		if a != b {
			t.Logf("%d: %d kernels in %.1f us, %d whole in %.1f us", seed, cropped.Fused.Kernels, a*1e6, whole.Fused.Kernels, b*1e6)
		}
		assert.LessOrEqual(t, a, b*1.01+3*device.Launch, "%d: %s", seed, src)
	}
}

// TestCroppedKeepsResults: the plans of drawn programs whose values are read in part give what the programs say, also where an axis is
// empty.
func TestCroppedKeepsResults(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("CROPS"))
	for seed := range uint64(max(count, 60)) {
		p := drawPartialReaders(seed, false)
		src := p.text("f64")
		g, plan := planOf(t, src, oneOf(p.Rand, ir.Devices()...))
		if p.symbolic {
			p.b, p.s = oneOf(p.Rand, 0, 1, 2), oneOf(p.Rand, 0, 1, 3, 4)
		}
		inputs := []*interp.Tensor{interp.New(ir.F64, p.b, p.s, p.d), interp.New(ir.F64, p.d, p.e), interp.New(ir.F64, p.e, p.d), interp.New(ir.F64, p.d, p.d, 3)}
		for _, in := range inputs {
			for i := range in.F {
				in.F[i] = p.NormFloat64()
			}
		}
		want, err := interp.Run(g, inputs, interp.Options{})
		require.NoError(t, err, src)
		got, err := interp.RunPlan(plan, inputs, interp.PlanOptions{})
		require.NoError(t, err, src)
		for i := range want {
			require.Len(t, got[i].F, len(want[i].F), src)
			for n, f := range want[i].F {
				if f == f || got[i].F[n] == got[i].F[n] {
					require.InDelta(t, f, got[i].F[n], 1e-9*max(1, math.Abs(f)), "%d: %s", seed, src)
				}
			}
		}
	}
}
