// Package std holds the standard library's sources, which package parser embeds,
// and tests them, the examples and the language against numbers computed by
// PyTorch, NumPy and SciPy (testdata/reference/generate.py). The tests run programs
// through the parser and the reference interpreter, and must not know how other
// engines compute.
package std

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// testCase is a program with inputs and the outputs it must give. An output x is
// right within Tol * (1 + |x|), and where it is infinite, NaN or an integer, exactly.
type testCase struct {
	Name    string
	Program string // text, or the path of a file of the repository
	Tol     float64
	Inputs  []tensor
	Outputs []tensor
}

type tensor struct {
	Name  string
	DType string
	Shape []int
	Data  []element
}

// element is a number, or "NaN", "Inf" or "-Inf".
type element string

func (e *element) UnmarshalJSON(b []byte) error {
	*e = element(strings.Trim(string(b), `"`))
	return nil
}

func (e element) float() (float64, error) { return strconv.ParseFloat(string(e), 64) }

const root = "../.."

func referenceFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "testdata/reference/*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

func TestReference(t *testing.T) {
	for _, file := range referenceFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			t.Parallel()
			for _, c := range readCases(t, file) {
				t.Run(c.Name, func(t *testing.T) { run(t, c) })
			}
		})
	}
}

// parts are library functions tested through those that call them.
var parts = []string{
	"reduced", "weighted", "class_weight", "channel_affine", "per_channel", "positions", "position_axes",
	"batch_axes", "lined_up", "has_axis", "held", "windows", "spread", "bias_correction", "adam_moments",
}

// TestEveryFunctionHasReferenceValues fails for a library function that no case calls.
func TestEveryFunctionHasReferenceValues(t *testing.T) {
	var programs strings.Builder
	for _, file := range referenceFiles(t) {
		for _, c := range readCases(t, file) {
			programs.WriteString(c.Program)
		}
	}
	docs, err := parser.Library()
	require.NoError(t, err)
	for _, d := range docs {
		assert.NotEmpty(t, d.Doc, "comment of %s", d.Name)
		called := strings.Contains(programs.String(), d.Name+"(")
		assert.True(t, called || slices.Contains(parts, d.Name), "no reference values for %s: add a case", d.Name)
	}
}

func readCases(t *testing.T, file string) []testCase {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var cases []testCase
	require.NoError(t, json.Unmarshal(text, &cases), file)
	return cases
}

func run(t *testing.T, c testCase) {
	name, src := "case.fuse", []byte(c.Program)
	if strings.HasSuffix(c.Program, ".fuse") {
		var err error
		name = c.Program
		src, err = os.ReadFile(filepath.Join(root, name))
		require.NoError(t, err)
	}
	file, err := parser.Parse(name, src, parser.Options{})
	if err != nil {
		t.Fatalf("%s\n%s", src, diag.Render(err, func(n string) (string, bool) { return string(src), n == name }))
	}
	g, err := file.Graph("")
	require.NoError(t, err)
	inputs := make([]*interp.Tensor, len(c.Inputs))
	for i, in := range c.Inputs {
		inputs[i] = in.load(t)
	}
	outputs, err := interp.Run(g, inputs, interp.Options{})
	require.NoError(t, err, "%s", src)
	require.Len(t, outputs, len(c.Outputs))
	for i, want := range c.Outputs {
		compare(t, want, outputs[i], c.Tol)
		if t.Failed() {
			t.Logf("program:\n%s", src)
		}
	}
}

func (x tensor) load(t *testing.T) *interp.Tensor {
	t.Helper()
	dtype, ok := ir.DTypeNamed(x.DType)
	require.True(t, ok, x.DType)
	out := interp.New(dtype, x.Shape...)
	for i, e := range x.Data {
		var err error
		if dtype.IsFloat() {
			out.F[i], err = e.float()
		} else {
			out.I[i], err = strconv.ParseInt(string(e), 10, 64)
		}
		require.NoError(t, err)
	}
	return out
}

// compare reports the first elements that differ.
func compare(t *testing.T, want tensor, got *interp.Tensor, tol float64) {
	t.Helper()
	require.Equal(t, want.DType, got.Type.String(), "dtype of %s", want.Name)
	require.Equal(t, want.Shape, append([]int{}, got.Shape...), "shape of %s", want.Name)
	const most = 5
	wrong := 0
	for i, e := range want.Data {
		text, ok := differs(e, got, i, tol)
		if ok {
			continue
		}
		if wrong++; wrong <= most {
			t.Errorf("%s%v = %s, want %s", want.Name, position(i, want.Shape), text, e)
		}
	}
	if wrong > most {
		t.Errorf("%s: %d of %d elements are wrong", want.Name, wrong, len(want.Data))
	}
}

func differs(e element, got *interp.Tensor, i int, tol float64) (text string, ok bool) {
	if !got.Type.IsFloat() {
		text = strconv.FormatInt(got.I[i], 10)
		return text, text == string(e)
	}
	want, err := e.float()
	have := got.F[i]
	return fmt.Sprint(have), err == nil && close(want, have, tol)
}

// close compares one float. Zeros of either sign are equal: the scalar operations' tests look at signs.
func close(want, have, tol float64) bool {
	switch {
	case math.IsNaN(want):
		return math.IsNaN(have)
	case math.IsInf(want, 0) || tol == 0:
		return want == have
	}
	return math.Abs(want-have) <= tol*(1+math.Abs(want))
}

func position(flat int, shape []int) []int {
	out := make([]int, len(shape))
	for d := len(shape) - 1; d >= 0; d-- {
		out[d], flat = flat%shape[d], flat/shape[d]
	}
	return out
}

// TestLayout checks that the library and the examples are laid out as fusec fmt does.
func TestLayout(t *testing.T) {
	files, err := filepath.Glob("*.fuse")
	require.NoError(t, err)
	examples, err := filepath.Glob(filepath.Join(root, "examples/*.fuse"))
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, file := range append(files, examples...) {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		want, err := parser.Format(file, src)
		require.NoError(t, err)
		assert.Equal(t, string(want), string(src), "%s: run fusec fmt", file)
		for i, line := range strings.Split(string(src), "\n") {
			assert.LessOrEqual(t, len(line), 110, "%s:%d: line too long", file, i+1)
		}
	}
}
