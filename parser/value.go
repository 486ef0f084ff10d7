package parser

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// kind says what a val holds.
type kind uint8

// The kinds. A poisoned value stands for a mistake already reported: whatever
// is computed from it is poisoned too, and nothing is reported twice.
const (
	poisoned kind = iota
	noneVal
	intVal   // a number with no dtype yet
	floatVal // a number with no dtype yet
	boolVal
	textVal
	listVal
	dtypeVal
	arrayVal
)

// val is the meaning of an expression while a graph is built.
type val struct {
	kind  kind
	int   int64 // intVal, and 0 or 1 for boolVal
	float float64
	text  string
	list  []val
	dtype ir.DType
	arr   *array
	span  diag.Span // of the expression
	name  string    // the name it was read from, if any
	bound diag.Span // of the statement that bound that name
	meant *meaning  // of min and max, for messages; mostly nil
	by    string    // the function of the library that gave it fewer axes than its argument has, for messages
}

// array is a tensor that may not be a Value yet: a dtype, a shape and a
// function from indices to the element. The indices handed to elem are inside
// the shape. A rank-0 array of dtype Index is a size or an index.
type array struct {
	dtype ir.DType
	shape []*ir.Expr
	elem  func(at []*ir.Expr) *ir.Expr

	size   int  // nodes that one call of elem makes, about
	cheap  bool // elem only moves indices: computing it twice costs nothing
	ranged bool // of dtype Index and dependent on a range

	value *ir.Value  // set where elem(at) is value[outer..., at...]
	outer []*ir.Expr // indices of the ranges value was lifted over
}

const (
	maxArraySize = 400  // a larger expression becomes a value of its own
	maxIndexSize = 2000 // a larger index or size expression is an error
)

func intv(i int64) val     { return val{kind: intVal, int: i} }
func floatv(f float64) val { return val{kind: floatVal, float: f} }
func textv(s string) val   { return val{kind: textVal, text: s} }
func arrv(a *array) val    { return val{kind: arrayVal, arr: a} }

func boolv(b bool) val {
	if b {
		return val{kind: boolVal, int: 1}
	}
	return val{kind: boolVal}
}

func (v val) at(span diag.Span) val {
	v.span, v.name, v.bound = span, "", diag.Span{}
	return v
}

func (v val) ok() bool       { return v.kind != poisoned }
func (v val) isNumber() bool { return v.kind == intVal || v.kind == floatVal || v.kind == boolVal }
func (v val) isStatic() bool { return v.kind != arrayVal && v.kind != poisoned }

// isIndex reports whether v is an integer usable in sizes and indices.
func (v val) isIndex() bool {
	return v.kind == intVal || v.kind == arrayVal && v.arr.dtype == ir.Index
}

// isSize reports whether v is an integer known when the symbols are.
func (v val) isSize() bool { return v.kind == intVal || v.isIndex() && !v.arr.ranged }

func (v val) toFloat() float64 {
	if v.kind == floatVal {
		return v.float
	}
	return float64(v.int)
}

// describe names the value's type as an error message needs it.
func (v val) describe() string {
	switch v.kind {
	case noneVal:
		return "none"
	case intVal:
		return fmt.Sprintf("the integer %d", v.int)
	case floatVal:
		return "the number " + formatFloat(v.float)
	case boolVal:
		return "a bool constant"
	case textVal:
		return fmt.Sprintf("the text %q", v.text)
	case listVal:
		return "a list"
	case dtypeVal:
		return "the dtype " + v.dtype.String()
	case arrayVal:
		return v.arr.describe()
	}
	return "an invalid value"
}

// called names a tensor in a message that stands alone: by its name and type.
func (v val) called() string {
	if v.name == "" {
		return v.describe()
	}
	return v.name + ", " + v.describe() + ","
}

func (a *array) describe() string {
	if a.dtype == ir.Index {
		if a.ranged {
			return "an index"
		}
		return "the size " + sizeText(a.elem(nil))
	}
	return typeText(a.dtype, a.shape)
}

func typeText(t ir.DType, shape []*ir.Expr) string { return t.String() + shapeText(shape) }

func shapeText(shape []*ir.Expr) string {
	parts := make([]string, len(shape))
	for i, d := range shape {
		parts[i] = sizeText(d)
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func sizeText(e *ir.Expr) string { return e.String() }

// constant is an array of rank 0.
func constant(e *ir.Expr) *array {
	return &array{dtype: e.Type, elem: func([]*ir.Expr) *ir.Expr { return e }, size: 1, cheap: true}
}

// scalar is the rank-0 array of an expression that has been built.
func scalar(e *ir.Expr, size int) *array {
	a := constant(e)
	a.size, a.cheap = size, e.Op == ir.OpLoad
	return a
}

// sizeVal is an integer val for a size, static where it is a number.
func sizeVal(e *ir.Expr) val {
	if e.Op == ir.OpConst {
		return intv(e.Int)
	}
	return arrv(constant(e))
}

// indexExpr is the Index expression of a value for which isIndex holds.
func (v val) indexExpr() *ir.Expr {
	if v.kind == intVal {
		return ir.IntConst(v.int)
	}
	return v.arr.elem(nil)
}

// spanned returns a with every element marked as coming from span.
func (a *array) spanned(span diag.Span) *array {
	c := *a
	c.elem = func(at []*ir.Expr) *ir.Expr { return a.elem(at).At(span) }
	return &c
}

// ofValue is the array of a value that was lifted over outer.
func ofValue(v *ir.Value, outer []*ir.Expr) *array {
	shape := v.Shape()[len(outer):]
	return &array{dtype: v.Type, shape: shape, size: 1 + len(v.Axes), cheap: true, value: v, outer: outer,
		elem: func(at []*ir.Expr) *ir.Expr { return ir.Load(v, concat(outer, at), nil) }}
}

func concat[T any](parts ...[]T) []T {
	var out []T
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}
