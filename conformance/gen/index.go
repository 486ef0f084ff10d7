package gen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
)

// A text is the same expression in both languages.
type text struct{ fuse, python string }

func both(format string, args ...any) text {
	fuse, python := make([]any, len(args)), make([]any, len(args))
	for i, a := range args {
		fuse[i], python[i] = a, a
		if t, is := a.(text); is {
			fuse[i], python[i] = t.fuse, t.python
		}
	}
	return text{fmt.Sprintf(format, fuse...), fmt.Sprintf(format, python...)}
}

// An index is a range name with its extent.
type index struct{ name, extent string }

// indexed composes one line of index notation.
type indexed struct {
	*drawer
	line    Line
	out     []index  // axes of the result
	reduced []index  // of a reduction, where there is one
	dtype   ir.DType // that operands are brought to
}

// indexLine writes name[i: N, j: M] = expression.
func (d *drawer) indexLine() Line {
	x := &indexed{drawer: d, line: Line{Feature: "index"}}
	x.dtype = one(d.Rand, d.pool).Type
	name := d.name()
	points := int64(1)
	for i := range one(d.Rand, []int{0, 1, 1, 2, 2, 2, 3}) {
		ix := index{string("ijl"[i]), d.anyExtent()}
		if points *= max(d.extent(ix.extent), 1); points > mostPoints {
			return Line{}
		}
		x.out = append(x.out, ix)
	}
	body := x.reduction()
	if d.IntN(6) == 0 {
		body = both("%s %s %s", body, one(d.Rand, []string{"+", "*", "-"}), x.simple())
	}
	var binds, axes []string
	for _, ix := range x.out {
		binds = append(binds, ix.name+": "+ix.extent)
	}
	for at, ix := range append(append([]index(nil), x.out...), x.reduced...) {
		axes = append(axes, fmt.Sprintf("%s=idx(%d, %s, %d)", ix.name, at, ix.extent, len(x.out)+len(x.reduced)))
	}
	x.line.Text = fmt.Sprintf("%s[%s] = %s", name, strings.Join(binds, ", "), body.fuse)
	if len(x.out) == 0 {
		x.line.Text = fmt.Sprintf("%s = %s", name, body.fuse)
	}
	var extents []string
	for _, ix := range x.out {
		extents = append(extents, ix.extent)
	}
	if body.python != "" {
		x.line.Python = fmt.Sprintf("%s = build([%s], lambda %s: %s)", name, strings.Join(extents, ", "), strings.Join(axes, ", "), body.python)
	}
	x.line.Results = []Value{{Name: name}}
	return x.line
}

// anyExtent is the extent of a range: mostly that of a tensor's axis.
func (d *drawer) anyExtent() string {
	if d.IntN(4) == 0 {
		return one(d.Rand, []string{"1", "2", "3", "4", "5", "8"})
	}
	return one(d.Rand, d.dims)
}

// all are the ranges in scope.
func (x *indexed) all() []index { return append(append([]index(nil), x.out...), x.reduced...) }

// reduction is the right side: a reduction, an element of an order, or an expression alone.
func (x *indexed) reduction() text {
	kind := x.IntN(10)
	if kind < 3 {
		return x.expression(2)
	}
	count := one(x.Rand, []int{1, 1, 1, 2})
	for i := range count {
		x.reduced = append(x.reduced, index{string("kp"[i]), x.anyExtent()})
	}
	names := []string{"sum", "sum", "sum", "max", "min", "prod", "argmax", "argmin"}
	if x.dtype == ir.Bool {
		names = []string{"any", "all", "sum", "argmax", "max"}
	}
	op := one(x.Rand, names)
	x.line.Feature = "index " + op
	var binds, axes []string
	for i, k := range x.reduced {
		binds = append(binds, k.name+": "+k.extent)
		axes = append(axes, fmt.Sprint(len(x.out)+i))
	}
	if kind == 9 && count == 1 && len(x.out) > 0 {
		op = one(x.Rand, []string{"min", "max", "argmin", "argmax"})
		x.line.Feature = "index order"
		at := one(x.Rand, []string{x.out[len(x.out)-1].name, "0", "1"})
		body := x.expression(1)
		return text{fuse: fmt.Sprintf("%s[%s at %s] %s", op, binds[0], at, body.fuse)}
	}
	where := text{"", "None"}
	if kind >= 7 {
		x.line.Feature += " where"
		where = x.predicate()
		where.fuse = " where " + where.fuse
	}
	body := x.expression(2)
	if body.python == "" || where.python == "" {
		where.python = ""
	}
	out := text{fuse: fmt.Sprintf("(%s[%s%s] %s)", op, strings.Join(binds, ", "), where.fuse, body.fuse)}
	if where.python != "" {
		out.python = fmt.Sprintf("red(%q, [%s], %s, %s)", op, strings.Join(axes, ", "), body.python, where.python)
	}
	return out
}

// predicate is what leaves points of a reduction out.
func (x *indexed) predicate() text {
	k := x.reduced[0].name
	switch x.IntN(6) {
	case 0, 1:
		if len(x.out) > 0 {
			other := one(x.Rand, x.out).name
			return both("(%s %s %s)", k, one(x.Rand, []string{"<=", "<", ">=", ">", "!=", "=="}), other)
		}
	case 5: // places of data on both sides
		if key, ok := x.valueOf(ir.DType.IsInt, -1); ok {
			x.line.Feature += " places"
			return text{fuse: fmt.Sprintf("(%s %s %s)", x.place(key), one(x.Rand, []string{"<", ">=", ">", "<=", "==", "!="}), x.place(key))}
		}
	case 2: // a scatter: a key that is compared with a place
		if key, ok := x.valueOf(ir.DType.IsInt, 1); ok && len(x.out) > 0 {
			x.line.Feature += " key"
			return both("(%s == %s)", x.load(key, []text{both("%s", k)}, ""), x.out[0].name)
		}
	case 3:
		if m, ok := x.valueOf(func(t ir.DType) bool { return t == ir.Bool }, -1); ok {
			return x.load(m, x.indices(m), "")
		}
	case 4:
		return both("((%s + %d) %% %d == 0)", k, x.IntN(3), 2+x.IntN(2))
	}
	return both("(%s %s %d)", k, one(x.Rand, []string{"<=", "<", ">", "!="}), x.IntN(6))
}

// expression combines loads.
func (x *indexed) expression(depth int) text {
	if depth == 0 || x.IntN(3) == 0 {
		return x.simple()
	}
	a, b := x.expression(depth-1), x.expression(depth-1)
	switch {
	case x.dtype == ir.Bool:
		return x.join("(%s %s %s)", a, one(x.Rand, []string{"&", "|", "^", "=="}), b)
	case x.IntN(6) == 0:
		return x.join("where(%s, %s, %s)", x.condition(), a, b)
	case x.IntN(6) == 0:
		return x.join("%[2]s(%[1]s, %[3]s)", a, one(x.Rand, []string{"min", "max"}), b)
	}
	return x.join("(%s %s %s)", a, one(x.Rand, []string{"+", "*", "*", "-"}), b)
}

// join is both, with no Python where a part has none.
func (x *indexed) join(format string, args ...any) text {
	out := both(format, args...)
	for _, a := range args {
		if t, is := a.(text); is && t.python == "" {
			out.python = ""
		}
	}
	return out
}

// condition compares indices.
func (x *indexed) condition() text {
	if all := x.all(); len(all) > 0 {
		return both("(%s %s %s)", one(x.Rand, all).name, one(x.Rand, []string{"<", ">=", "==", "!="}),
			one(x.Rand, append(all, index{name: "1"}, index{name: "2"})).name)
	}
	return both("(1 < 2)")
}

// simple is an element of a value, brought to the line's dtype, or a number made of an index.
func (x *indexed) simple() text {
	if all := x.all(); len(all) > 0 && x.IntN(10) == 0 && x.dtype != ir.Bool {
		return both("%s(%s)", x.dtype, x.affine(one(x.Rand, all).name))
	}
	v := one(x.Rand, x.pool)
	if x.IntN(2) == 0 {
		v = x.pool[max(0, len(x.pool)-1-x.IntN(3))]
	}
	out := x.load(v, x.indices(v), x.elseText(v))
	if v.Type != x.dtype {
		return x.join("%s(%s)", x.dtype, out)
	}
	return out
}

func (x *indexed) elseText(v Value) string {
	switch {
	case x.IntN(3) > 0:
		return ""
	case v.Type == ir.Bool:
		return one(x.Rand, []string{"true", "false"})
	case v.Type.IsFloat():
		return one(x.Rand, []string{"0", "1", "7", "-inf", "0.5"})
	}
	return one(x.Rand, []string{"0", "1", "7"})
}

// load reads a value; what is outside gives fill, or 0.
func (x *indexed) load(v Value, at []text, fill string) text {
	x.line.Uses = append(x.line.Uses, v)
	if v.Rank() == 0 {
		return text{v.Name, v.Name}
	}
	var fuse, python []string
	known := true
	for _, a := range at {
		fuse, python, known = append(fuse, a.fuse), append(python, a.python), known && a.python != ""
	}
	out := text{fuse: fmt.Sprintf("%s[%s]", v.Name, strings.Join(fuse, ", "))}
	number := "0"
	if fill != "" {
		out.fuse = fmt.Sprintf("(%s else %s)", out.fuse, fill)
		number = map[string]string{"true": "True", "false": "False", "-inf": "-inf"}[fill]
		if number == "" {
			number = fill
		}
	}
	if known {
		out.python = fmt.Sprintf("%s.at(%s, %s)", v.Name, number, strings.Join(python, ", "))
	}
	return out
}

// valueOf is a value of a type and a rank, -1 for any but scalars.
func (x *indexed) valueOf(is func(ir.DType) bool, rank int) (Value, bool) {
	var fit []Value
	for _, v := range x.pool {
		if is(v.Type) && (v.Rank() == rank || rank < 0 && v.Rank() > 0) {
			fit = append(fit, v)
		}
	}
	if len(fit) == 0 {
		return Value{}, false
	}
	return one(x.Rand, fit), true
}

// indices are one for each axis of a value.
func (x *indexed) indices(v Value) []text {
	var out []text
	for _, dim := range v.Dims {
		out = append(out, x.index(dim))
	}
	return out
}

// index is where an axis is read: an index whose range has the same extent more often than
// not, moved, scaled, turned or taken from memory.
func (x *indexed) index(dim string) text {
	var same []index
	all := x.all()
	for _, ix := range all {
		if ix.extent == dim {
			same = append(same, ix)
		}
	}
	if len(all) == 0 {
		return both("%d", x.IntN(3))
	}
	name := one(x.Rand, all).name
	if len(same) > 0 && x.IntN(5) > 0 {
		name = one(x.Rand, same).name
	}
	switch x.IntN(16) {
	case 0:
		return both("%d", x.IntN(3))
	case 1:
		return both("%s - 1 - %s", sized(dim), name)
	case 2:
		return both("%s + %s", name, one(x.Rand, all).name)
	case 3, 4:
		if at, ok := x.valueOf(ir.DType.IsInt, -1); ok && x.IntN(2) == 0 {
			x.line.Feature += " gather"
			return x.gathered(at)
		}
	case 5, 6:
		return x.affine(name)
	case 7:
		return both("%s * %d + %s", name, 2+x.IntN(2), one(x.Rand, all).name)
	case 8:
		return both("%s / %d", name, 2+x.IntN(3))
	case 9:
		return both("%s %% %d", name, 2+x.IntN(3))
	}
	return both("%s", name)
}

// gathered is an index taken from memory, as it is or in a sum.
func (x *indexed) gathered(at Value) text {
	switch x.IntN(4) {
	case 0:
		return text{fuse: x.place(at)} // exact, where NumPy wraps
	case 1:
		return text{fuse: fmt.Sprintf("%s %s %s", x.place(at), one(x.Rand, []string{"+", "-"}), x.place(at))}
	}
	return x.element(at)
}

// element is an element of a value at ranges.
func (x *indexed) element(at Value) text {
	where := make([]text, at.Rank())
	for i := range where {
		where[i] = both("%s", one(x.Rand, x.all()).name)
	}
	return x.load(at, where, "")
}

// place is an exact index made of an element and a range.
func (x *indexed) place(at Value) string {
	format := one(x.Rand, []string{"(%s + %s)", "(%s - %s)", "(%s + %s) * 2", "(%s + %s) / 2", "(%s - %s) %% 3", "min(%s, %s)"})
	return fmt.Sprintf(format, x.element(at).fuse, one(x.Rand, x.all()).name)
}

// sized is a dim in an expression.
func sized(dim string) string {
	if strings.ContainsAny(dim, " +-*/") {
		return "(" + dim + ")"
	}
	return dim
}

func (x *indexed) affine(name string) text {
	switch x.IntN(4) {
	case 0:
		return both("%s + %d", name, 1+x.IntN(3))
	case 1:
		return both("%s - %d", name, 1+x.IntN(3))
	case 2:
		return both("%d * %s", 2+x.IntN(2), name)
	}
	return both("2 - %s", name)
}
