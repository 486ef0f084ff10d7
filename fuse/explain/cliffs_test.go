package explain_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// convolution is a drawn convolution.
type convolution struct {
	*rand.Rand
	kind, dtype                        string // dtype as a program says it
	batch, channels, results, groups   int
	taps, strides, dilations, paddings []int
	sizes                              []int // of the image
	dims                               []string
	annotations, front, behind         string
}

func oneOf[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// drawConvolution draws a convolution of any dims, type, stride, dilation, padding and groups, by numbers or by symbols, with
// something in front of it and behind it.
func drawConvolution(seed uint64) *convolution {
	r := rand.New(rand.NewPCG(seed, 77))
	c := &convolution{Rand: r, kind: oneOf(r, "conv", "conv", "conv", "transposed", "unfold", "fold"), groups: 1,
		dtype: oneOf(r, "f16", "bf16", "f32"), front: "x", behind: "?"}
	axes := 2
	if c.kind == "conv" || c.kind == "transposed" {
		axes = oneOf(r, 1, 2, 2, 2, 3)
	}
	widths := []int{1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 24, 31, 32, 33, 40, 48, 64, 65, 80, 96, 100, 128, 160, 192, 255, 256, 320, 512}
	c.channels, c.results = oneOf(r, widths...), oneOf(r, widths...)
	if g := oneOf(r, 1, 1, 1, 2, 4, 8, c.channels); c.channels%g == 0 && c.kind != "unfold" && c.kind != "fold" {
		c.groups, c.results = g, (c.results+g-1)/g*g
	}
	for range axes {
		c.axis(axes)
	}
	c.fit()
	c.symbols()
	if c.dtype == "f32" && r.IntN(2) == 0 {
		c.annotations = "@tf32 " + c.annotations
	}
	if r.IntN(4) == 0 {
		c.front = oneOf(r, "relu(x)", "silu(x)", "x * 0.5")
	}
	if r.IntN(3) == 0 {
		c.behind = oneOf(r, "relu(?)", "silu(?)")
	}
	return c
}

// axis draws one axis of the image, often as the one before.
func (c *convolution) axis(axes int) {
	most := []int{0, 9, 7, 3}[axes]
	k, s, d := min(most, oneOf(c.Rand, 1, 2, 3, 3, 3, 4, 5, 7, 9)), oneOf(c.Rand, 1, 1, 2, 3), oneOf(c.Rand, 1, 1, 1, 2)
	if len(c.taps) > 0 && c.IntN(3) > 0 {
		k, s, d = c.taps[0], c.strides[0], c.dilations[0]
	}
	sizes := [][]int{{}, {500, 1000, 1024, 4096, 8192}, {14, 28, 32, 56, 57, 64, 112, 113, 128}, {8, 14, 16, 31, 32}}[axes]
	c.taps, c.strides, c.dilations = append(c.taps, k), append(c.strides, s), append(c.dilations, d)
	c.paddings, c.sizes = append(c.paddings, oneOf(c.Rand, 0, (k-1)*d/2, (k-1)*d/2, 1)), append(c.sizes, oneOf(c.Rand, sizes...))
}

// fit draws a batch with which tensors fit memory.
func (c *convolution) fit() {
	c.batch = oneOf(c.Rand, 1, 4, 16, 64)
	elements := max(c.channels, c.results)
	for _, n := range c.sizes {
		elements *= n
	}
	for c.batch > 1 && c.batch*elements > 1<<27 {
		c.batch /= 4
	}
}

// symbols draws which sizes are symbols.
func (c *convolution) symbols() {
	for _, n := range c.sizes {
		c.dims = append(c.dims, strconv.Itoa(n))
	}
	if c.IntN(2) == 0 {
		return
	}
	c.annotations = fmt.Sprintf("@bench(N=%d)\n", c.batch)
	if c.kind != "fold" && c.IntN(2) == 0 {
		c.dims = []string{"D", "H", "W"}[3-len(c.sizes):]
		c.annotations = fmt.Sprintf("@bench(N=%d", c.batch)
		for i, n := range c.sizes {
			c.annotations += fmt.Sprintf(", %s=%d", c.dims[i], n)
		}
		c.annotations += ")\n"
	}
}

// list is numbers with commas between them.
func list(n []int) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(n), "[]"), " ", ", ") }

// tuple is numbers as an argument of a function for so many axes.
func tuple(n []int) string {
	if len(n) == 1 {
		return strconv.Itoa(n[0])
	}
	return "(" + list(n) + ")"
}

// shape is the extents of the result behind the channels.
func (c *convolution) shape() string {
	var out []string
	for i, k := range c.taps {
		reach, text := c.dilations[i]*(k-1)+1-2*c.paddings[i], ""
		if c.kind == "transposed" || c.kind == "fold" {
			text = fmt.Sprintf("((%s - 1) * %d + %d)", c.dims[i], c.strides[i], reach)
		} else {
			text = fmt.Sprintf("((%s - %d) / %d + 1)", c.dims[i], reach, c.strides[i])
		}
		out = append(out, strings.NewReplacer("- -", "+ ", "+ -", "- ").Replace(text))
	}
	if c.kind == "unfold" {
		return strings.Join(out, " * ")
	}
	return strings.Join(out, ", ")
}

// text is the program.
func (c *convolution) text() string {
	axes, taps, image := len(c.taps), 1, strings.Join(c.dims, ", ")
	for _, k := range c.taps {
		taps *= k
	}
	how := fmt.Sprintf("stride=%s, padding=%s, dilation=%s", tuple(c.strides), tuple(c.paddings), tuple(c.dilations))
	weight, call := "", ""
	switch c.kind {
	case "conv":
		weight = fmt.Sprintf("%d, %d, %s", c.results, c.channels/c.groups, list(c.taps))
		call = fmt.Sprintf("conv%dd(%s, w, %s, groups=%d)", axes, c.front, how, c.groups)
	case "transposed":
		weight = fmt.Sprintf("%d, %d, %s", c.channels, c.results/c.groups, list(c.taps))
		call = fmt.Sprintf("conv_transpose%dd(%s, w, %s, groups=%d)", axes, c.front, how, c.groups)
	case "unfold":
		weight = fmt.Sprintf("%d, %d", c.results, c.channels*taps)
		call = fmt.Sprintf("w @ unfold2d(%s, %s, %s)", c.front, tuple(c.taps), how)
	case "fold":
		weight, image = fmt.Sprintf("%d, %d", c.results*taps, c.channels), strings.Join(c.dims, " * ")
		call = fmt.Sprintf("fold2d(w @ %s, (%s), %s, %s)", c.front, c.shape(), tuple(c.taps), how)
	}
	n := strconv.Itoa(c.batch)
	if strings.Contains(c.annotations, "@bench") {
		n = "N"
	}
	return fmt.Sprintf("%sgraph f(x: %s[%s, %d, %s], w: %[2]s[%[6]s]) -> (y: %[2]s[%[3]s, %[7]d, %[8]s]) {\n    y = %[9]s\n}\n",
		c.annotations, c.dtype, n, c.channels, image, weight, c.results, c.shape(), strings.ReplaceAll(c.behind, "?", call))
}

// Figures of cliffs.
const (
	cliffTimes = 8      // times what memory, or the multiplications, take,
	cliffLost  = 0.0002 // and so many seconds more
)

// TestNoCliffs: no convolution of drawn sizes on tensor cores is planned so that its estimate is many times what memory and
// multiplications take. Estimates count what threads spend on copying single elements, so the test finds structures that the
// planner leaves to tiles that gather. Phases of transposed convolutions, and products that fold2d adds up, are drawn, but
// held to nothing yet. CLIFFS=1500 go test -run TestNoCliffs -v ./fuse/explain draws more, and lists the worst.
func TestNoCliffs(t *testing.T) {
	count, _ := strconv.Atoi(os.Getenv("CLIFFS"))
	device, err := ir.DeviceNamed("H100")
	require.NoError(t, err)
	for seed := range uint64(max(count, 100)) {
		c := drawConvolution(seed)
		if _, err := parser.Parse("p.fuse", []byte(c.text()), parser.Options{}); err != nil {
			assert.ErrorContains(t, err, "size", c.text()) // no window fits
			continue
		}
		x := Explain(t, c.text(), explain.Options{Device: device})
		floor, took := floorOf(c, x, device), *x.Fused.Seconds
		if took > cliffTimes*floor/2 && took > floor+cliffLost/2 {
			t.Logf("%d: %.1f times, %.0f us more: %s", seed, took/floor, 1e6*(took-floor), c.text())
		}
		if c.dtype == "f32" && !strings.Contains(c.annotations, "@tf32") || c.kind == "transposed" || c.kind == "fold" {
			continue
		}
		assert.False(t, took > cliffTimes*floor && took > floor+cliffLost, "%d: %.1f times, %.0f us more: %s", seed, took/floor, 1e6*(took-floor), c.text())
	}
}

// floorOf is the time that the tensors take to be moved, and the products on the unit that a type allows.
func floorOf(c *convolution, x explain.Explanation, d ir.Device) float64 {
	rate := d.TensorRate
	switch {
	case strings.Contains(c.annotations, "@tf32"):
		rate /= 2
	case c.dtype == "f32":
		rate = d.F32Rate
	}
	products := 0.0
	for _, k := range x.Kernels {
		for _, w := range k.Work {
			if n, ok := ir.EvalSize(w.Points, x.Sizes); ok {
				products += w.Products * float64(n)
			}
		}
	}
	bytes := float64(*x.Unfused.Read.Bytes + *x.Unfused.Written.Bytes)
	return max(d.Time(bytes, 0, 0), d.Launch+products/rate)
}
