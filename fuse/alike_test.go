package fuse

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// layers is a chain of layers: first for the first, then the given lines, in which {i}
// and {next} are the layer and the one after it.
func layers(n int, params, first, line, last string) string {
	var in, body []string
	for i := range n {
		of := strings.NewReplacer("{i}", fmt.Sprint(i), "{next}", fmt.Sprint(i+1))
		in, body = append(in, of.Replace(params)), append(body, of.Replace(line))
	}
	return fmt.Sprintf("@bench(N=64, M=64) graph g(x: f32[N, M], %s) -> (y: f32[N, M]) {\n%s\n%s\n%s\n}",
		strings.Join(in, ", "), first, strings.Join(body, "\n"),
		strings.ReplaceAll(last, "{n}", fmt.Sprint(n)))
}

// columns takes maxima over rows: of a product, of an expression with those, and of another
// expression with these.
func columns(first, second string) string {
	return fmt.Sprintf(`@bench(N=64, M=64) graph g(a: f32[N, M], b: f32[N, M]) -> (z: f32[M]) {
		x = max(a * b, axis=0)
		y = max(%s, axis=0)
		z = max(%s, axis=0) }`, first, second)
}

// own counts the kernels with a body of their own.
func own(p *ir.Plan) int {
	n := 0
	for _, k := range p.Kernels {
		if k.Like == nil {
			n++
		}
	}
	return n
}

// TestAlike says which kernels share a body, and that the plans compute what the graphs do.
func TestAlike(t *testing.T) {
	for _, c := range []struct {
		name, src    string
		kernels, own int
	}{
		{"layers", layers(4, "x{i}: f32[N, M], s{i}: f32[M]", "v0 = x",
			"v{next} = cumsum(softmax(v{i} * s{i} + x{i}), axis=0)", "y = v{n}"), 8, 4},
		{"other tensors", columns("a * b + flip(x, 0)", "b * a + flip(y, 0)"), 3, 2},
		{"one tensor twice", columns("a * b + flip(x, 0)", "b * b + flip(y, 0)"), 3, 3},
		{"other constants", columns("a * 2 + flip(x, 0)", "b * 3 + flip(y, 0)"), 3, 3},
		{"other operations", columns("a * b + flip(x, 0)", "a * b - flip(y, 0)"), 3, 3},
		{"columns and a row the other way round", columns("a * b + flip(x, 0)", "flip(y, 0) + a * b"), 3, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			assert.Len(t, p.Kernels, c.kernels, "%v", summaries(p))
			assert.Equal(t, c.own, own(p), "%v", summaries(p))
			compareAtSizes(t, c.src)
		})
	}
}

// TestLimits says where kernels end that could go on, and what explain says of it.
func TestLimits(t *testing.T) {
	many := func(n int, format, between string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(format, "#", fmt.Sprint(i))
		}
		return strings.Join(parts, between)
	}
	for _, c := range []struct {
		name, src, reason, detail string
		kernels                   int
	}{
		{"passes", layers(40, "x{i}: f32[N]", "v0 = x", "v{next} = v{i} - max(v{i}, axis=1, keep=true)", "y = v{n}"),
			"no-gain", "go over its rows", 3},
		{"work", layers(460, "x{i}: f32[N]", "v0 = x", "v{next} = tanh(v{i}) + x", "y = v{n}"), "no-gain", "operations for each element", 2},
		{"tensors", "graph g(" + many(400, "x#: f32[N, M]", ", ") + ") -> (y: f32[N, M]) { y = " + many(400, "exp(x#)", " + ") + " }",
			"resources", "tensors; the most is 256", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			assert.Len(t, p.Kernels, c.kernels)
			for _, k := range p.Kernels {
				assert.LessOrEqual(t, len(k.Args), mostArgs)
			}
			said := false
			for _, r := range p.Refused {
				said = said || r.Reason.String() == c.reason && strings.Contains(r.Detail, c.detail)
			}
			assert.True(t, said, "%v", p.Refused)
		})
	}
}

// TestRegionsAreWrittenWhole: every field of a region, and of what its kinds hold, is written where bodies are shared, or
// is known to say nothing of a body. A field that nobody decided about is none of either.
func TestRegionsAreWrittenWhole(t *testing.T) {
	for _, c := range []struct {
		of          any
		written, no string
	}{
		{region{}, "members space cols at accumulated inside stored stream folded product", "id rank mark size reads inputs concat"},
		{streamed{}, "Stream depth also same", ""},
		{form.Stream{}, "Out Keys Score Weight Factor Value Sums Own Chained Others", "Epilogue"}, // streams that have regions have no epilogue
		{form.Exponential{}, "Scale Logit Max", ""},
		{folded{}, "product depth index extent", ""},
		{bounded{}, "expr along others low high", ""},
		{lastBlockPair{}, "first then parts to", ""},
	} {
		of := reflect.TypeOf(c.of)
		known := strings.Fields(c.written + " " + c.no)
		for i := range of.NumField() {
			assert.Contains(t, known, of.Field(i).Name, "of %s", of.Name())
		}
		assert.Equal(t, len(known), of.NumField(), of.Name())
	}
}
