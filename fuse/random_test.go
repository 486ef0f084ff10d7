package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// randomProgram writes a program over x, z: [N, M], w: [M], r: [N] biased to what
// fusion decides about: row reductions that feed each other, terms around a
// maximum, both axes, stencils, transposes, gathers, masks and predicates. Values
// stay near 1, and choices rest on inputs only, so that roundings cannot flip them.
type randomProgram struct {
	t     *rapid.T
	lines []string
	full  []string // names of [N, M] values
	row   []string // [N, 1]
	col   []string // [M]
	n     int
	dtype string
}

func drawProgram(t *rapid.T) string {
	p := &randomProgram{t: t, full: []string{"x", "z"}, row: []string{"r[:, none]"}, col: []string{"w"}}
	dtype := rapid.SampledFrom([]string{"f64", "f64", "f32", "bf16", "f16"}).Draw(t, "dtype")
	p.dtype = dtype
	for range rapid.IntRange(1, 7).Draw(t, "statements") {
		p.statement()
	}
	annotation := rapid.SampledFrom([]string{"", "", "@strict "}).Draw(t, "numerics")
	outputs, tail := p.outputs(dtype)
	return fmt.Sprintf("%sgraph g(x: %s[N, M], z: %[2]s[N, M], w: %[2]s[M], r: %[2]s[N], pick: i32[N]) -> (%s) {\n    %s\n}\n",
		annotation, dtype, outputs, strings.Join(append(p.lines, tail...), "\n    "))
}

// outputs names between one and three values as results; the last is among them.
func (p *randomProgram) outputs(dtype string) (decl string, tail []string) {
	var decls []string
	add := func(value, shape string) {
		name := fmt.Sprintf("out%d", len(decls))
		decls = append(decls, fmt.Sprintf("%s: %s%s", name, dtype, shape))
		tail = append(tail, fmt.Sprintf("%s = %s", name, value))
	}
	add(p.full[len(p.full)-1]+" + 0.5", "[N, M]")
	if rapid.Bool().Draw(p.t, "row output") {
		add(p.row[len(p.row)-1]+" * 2", "[N, 1]")
	}
	if rapid.Bool().Draw(p.t, "column output") {
		add(p.col[len(p.col)-1]+" * 2", "[M]")
	}
	return strings.Join(decls, ", "), tail
}

func (p *randomProgram) one(from []string, what string) string {
	if rapid.Bool().Draw(p.t, "latest "+what) {
		return from[len(from)-1]
	}
	return rapid.SampledFrom(from).Draw(p.t, what)
}

func (p *randomProgram) bind(kind *[]string, format string, args ...any) {
	p.n++
	name := fmt.Sprintf("v%d", p.n)
	*kind = append(*kind, name)
	p.lines = append(p.lines, name+" = "+fmt.Sprintf(format, args...))
}

func (p *randomProgram) statement() {
	a, b := p.one(p.full, "a"), p.one(p.full, "b")
	row, col := p.one(p.row, "row"), p.one(p.col, "col")
	switch rapid.IntRange(0, 15).Draw(p.t, "statement") {
	case 0:
		f := rapid.SampledFrom([]string{"tanh", "sigmoid", "sin", "gelu", "abs", "-"}).Draw(p.t, "unary")
		p.bind(&p.full, "%s(%s)", f, a)
	case 1:
		other := rapid.SampledFrom([]string{b, row, col, "0.25"}).Draw(p.t, "operand")
		o := rapid.SampledFrom([]string{"+", "-", "*"}).Draw(p.t, "operator")
		p.bind(&p.full, "tanh(%s %s %s)", a, o, other)
	case 2:
		f := rapid.SampledFrom([]string{"max", "min", "mean", "sum"}).Draw(p.t, "row reduction")
		p.bind(&p.row, "%s(%s, axis=1, keep=true)", f, a)
		if f == "sum" {
			p.bind(&p.row, "tanh(%s)", p.row[len(p.row)-1])
		}
	case 3:
		f := rapid.SampledFrom([]string{"max", "min", "mean"}).Draw(p.t, "column reduction")
		p.bind(&p.col, "%s(%s, axis=0)", f, a)
	case 4: // the shape of the rescale rule, and its near misses
		f := rapid.SampledFrom([]string{"max", "max", "max", "min"}).Draw(p.t, "shift")
		scale := rapid.SampledFrom([]string{"", "", "0.5 * ", "2 * ", "-1 * "}).Draw(p.t, "scale")
		p.bind(&p.row, "%s(%s, axis=1, keep=true)", f, a)
		m := p.row[len(p.row)-1]
		p.bind(&p.full, "exp(%s(%s - %s)) / 64", scale, a, m)
		p.bind(&p.row, "mean(%s * %s, axis=1, keep=true)", p.full[len(p.full)-1], p.one([]string{b, col, "1"}, "factor"))
	case 5:
		p.bind(&p.full, "%s / (1 + abs(%s))", a, p.one([]string{b, row, col}, "divisor"))
	case 6:
		p.bind(&p.full, "softmax(%s, axis=%d)", a, rapid.IntRange(0, 1).Draw(p.t, "axis"))
	case 7:
		p.stencil(a)
	case 8:
		p.bind(&p.full, "where(z > 0.1, %s, %s)", a, p.one([]string{b, row, "0"}, "else"))
	case 9:
		p.bind(&p.full, "%s[pick] + %s", a, b)
	case 10:
		p.bind(&p.full, "transpose(tanh(transpose(%s, 0, 1) * 2), 0, 1)", a)
	case 11:
		p.n++
		name := fmt.Sprintf("v%d", p.n)
		p.lines = append(p.lines, fmt.Sprintf("%s[i: N, j: M] = sum[k: M where k <= j] %s[i, k] / 8", name, a))
		p.full = append(p.full, name)
	case 12:
		p.bind(&p.full, "layer_norm(%s)", a)
	case 13:
		p.bind(&p.full, "%s + %s(argmax(x, axis=1, keep=true)) / 64", a, p.dtype)
	case 14:
		p.bind(&p.row, "(%s)[:, %s, none]", a, rapid.SampledFrom([]string{"0", "-1", "M / 2"}).Draw(p.t, "column"))
	case 15:
		p.bind(&p.col, "%s[%s]", a, rapid.SampledFrom([]string{"0", "-1", "N - 1"}).Draw(p.t, "line"))
	}
}

func (p *randomProgram) stencil(a string) {
	p.n++
	name := fmt.Sprintf("v%d", p.n)
	fill := rapid.SampledFrom([]string{"", " else 1"}).Draw(p.t, "fill")
	if fill != "" {
		p.lines = append(p.lines, fmt.Sprintf("%s[i: N, j: M] = (%s[i, j - 1] else 1) + %[2]s[i + 1, j] * 0.5", name, a))
	} else {
		p.lines = append(p.lines, fmt.Sprintf("%s[i: N, j: M] = sum[d: 3, e: 2] %s[i + d - 1, j + e - 1] / 6", name, a))
	}
	p.full = append(p.full, name)
}

// TestPlanIsGraphForRandomPrograms compares plans with graphs on programs that
// nobody wrote.
func TestPlanIsGraphForRandomPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawProgram(t)
		g := parse(t, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		sizes := map[string]int64{
			"N": rapid.SampledFrom([]int64{0, 1, 2, 5, 8}).Draw(t, "N"),
			"M": rapid.SampledFrom([]int64{0, 1, 2, 7, 8, 16, 33}).Draw(t, "M"),
		}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}
