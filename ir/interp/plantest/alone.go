package plantest

import (
	"fmt"
	"strings"

	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// aloneProgram writes folds, orders and gathers that leave ranges of their own alone: a
// fold over ranges that its body does not depend on, an order of rows that are equal, a
// read of an axis of one element. They stand beside others that share their loops, so
// that a kernel may take them in.
type aloneProgram struct {
	t       *rapid.T
	dtype   ir.DType
	strict  bool
	lines   []string
	results []string
}

// RangesLeftAlone draws a program of one graph over symbols N and M, whose values leave ranges of their own alone. It is text,
// so that tests of devices can take it too.
func RangesLeftAlone(t *rapid.T) string {
	p := &aloneProgram{t: t, dtype: rapid.SampledFrom(ir.DTypes()).Draw(t, "dtype"),
		strict: rapid.IntRange(0, 2).Draw(t, "numerics") == 2}
	for n := range rapid.IntRange(1, 4).Draw(t, "statements") {
		p.statement(fmt.Sprintf("y%d", n))
	}
	annotation := ""
	if p.strict {
		annotation = "@strict "
	}
	return fmt.Sprintf("%sgraph g(s: %[2]s[], o: %[2]s[1], v: %[2]s[M], w: %[2]s[N], x: %[2]s[N, M], at: i8[M]) -> (%s) {\n    %s\n}\n",
		annotation, p.dtype, strings.Join(p.results, ", "), strings.Join(p.lines, "\n    "))
}

func (p *aloneProgram) pick(what string, from ...string) string {
	return rapid.SampledFrom(from).Draw(p.t, what)
}

// outside is what a read gives outside; strict graphs must say it.
func (p *aloneProgram) outside() string {
	zero, one := " else 0", " else 1"
	if p.dtype == ir.Bool {
		zero, one = " else false", " else true"
	}
	if p.strict {
		return p.pick("else", zero, one)
	}
	return p.pick("else", "", zero, one)
}

// result declares a result.
func (p *aloneProgram) result(name string, t ir.DType, shape, format string, args ...any) {
	p.results = append(p.results, fmt.Sprintf("%s: %s%s", name, t, shape))
	p.lines = append(p.lines, name+fmt.Sprintf(format, args...))
}

func (p *aloneProgram) statement(name string) {
	op := rapid.SampledFrom(ir.Monoids()).Draw(p.t, "reduction")
	t, test := p.dtype, ""
	if op.Info().On == ir.OnBool {
		t, test = ir.Bool, " != s"
		if p.dtype == ir.Bool {
			test = " ^ s"
		}
	}
	out := op.Result(t)
	first := p.pick("first fold", "min", "max")
	where := p.pick("predicate", "", "", " where k < 2", " where k <= i", " where at[k] > 1")
	switch rapid.IntRange(0, 12).Draw(p.t, "statement") {
	case 0:
		p.result(name, out, "[]", " = %s(%s(%s)%s)", op, first, p.pick("tensor", "s", "v", "x"), test)
	case 1:
		p.result(name, out, "[1]", " = %s(%s%s, axis=0, keep=true)", op, p.pick("single", "o", "min(v, axis=0, keep=true)"), test)
	case 2:
		p.result(name, out, "[N]", "[i] = %s[k: M%s] w[i]%s", op, where, test)
	case 3:
		p.result(name, out, "[N]", "[i] = %s[k: 5, l: M] x[i, 2]%s", op, test)
	case 4:
		p.result(name, out, "[N, M]", "[i, j] = %s[k: N%s] v[j]%s", op, strings.ReplaceAll(where, "at[k]", "at[j]"), test)
	case 5:
		p.result(name, out, "[N]", " = %s(x%s, axis=1)", op, test)
	case 6:
		p.result(name, out, "[]", " = %s(x%s)", op, test)
	case 7, 11, 12:
		p.order(name)
	case 8:
		p.lines = append(p.lines, fmt.Sprintf("%s_row[i: N, j: M] = (v[j]%s)", name, p.outside()))
		p.result(name, out, "[N]", " = %s(%s_row%s, axis=1)", op, name, test)
	case 10: // an order beside what is in order, at other places
		p.lines = append(p.lines, fmt.Sprintf("%s_order = sort(v)", name))
		p.result(name, p.dtype, "[M, M]", "[i, j] = where(%s_order[i] == v[j], s, %[1]s_order[%s])", name, p.pick("index", "i", "j"))
	case 9:
		p.lines = append(p.lines, fmt.Sprintf("%s_one[i: 1, j: M] = %s[k: %s] v[j]", name, first, p.pick("extent", "N", "M", "3")))
		p.result(name, p.dtype, "[M, M]", " = %s_one[at]%s", name, p.outside())
	}
}

// order sorts rows that do not depend on all of their axes.
func (p *aloneProgram) order(name string) {
	rows := p.pick("rows", "(v[j]"+p.outside()+")", "x[2, j]", "max(v[j], s)", "w[i]", "x[i, j]", "x[i, 1]")
	p.lines = append(p.lines, fmt.Sprintf("%s_rows[i: N, j: M] = %s", name, rows))
	largest := p.pick("direction", "true", "false")
	switch p.pick("order", "sort", "argsort", "topk", "at") {
	case "sort":
		p.result(name, p.dtype, "[N, M]", " = sort(%s_rows, axis=%s, descending=%s)", name, p.pick("axis", "0", "1"), largest)
	case "argsort":
		p.result(name, ir.I64, "[N, M]", " = argsort(%s_rows, axis=%s, descending=%s)", name, p.pick("axis", "0", "1"), largest)
	case "topk":
		p.result(name, p.dtype, "[N, 2]", ", %s_at = topk(%[1]s_rows, 2, largest=%s)", name, largest)
	case "at":
		p.result(name, p.dtype, "[N]", "[i] = %s[j: M at %s] %s_rows[i, j]", p.pick("end", "min", "max"), p.pick("place", "0", "1", "i", "2 * i"), name)
	}
}
