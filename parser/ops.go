package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

var binaryOps = map[string]ir.Op{
	"||": ir.OpOr, "&&": ir.OpAnd,
	"<": ir.OpLt, "<=": ir.OpLe, ">": ir.OpGt, ">=": ir.OpGe, "==": ir.OpEq, "!=": ir.OpNe,
	"|": ir.OpBitOr, "^": ir.OpBitXor, "&": ir.OpBitAnd, "<<": ir.OpShl, ">>": ir.OpShr,
	"+": ir.OpAdd, "-": ir.OpSub, "*": ir.OpMul, "%": ir.OpMod, "**": ir.OpPow,
}

// binaryOp returns the operation an operator means on operands of type t.
func binaryOp(op string, t ir.DType) (ir.Op, bool) {
	if op == "/" {
		if t.IsFloat() {
			return ir.OpDiv, true
		}
		return ir.OpFloorDiv, true
	}
	code, ok := binaryOps[op]
	return code, ok
}

func (b *builder) binary(op string, x, y val, span diag.Span) val {
	switch {
	case !x.ok() || !y.ok():
		return val{span: span}
	case op == "@":
		return b.matmul(x, y, span)
	case x.isStatic() && y.isStatic():
		return b.fold(op, x, y, span)
	case (op == "==" || op == "!=") && (x.kind == noneVal || y.kind == noneVal || x.kind == textVal || y.kind == textVal):
		return boolv(op == "!=").at(span)
	}
	if op == "/" {
		t, ok := b.common([]val{x, y}, op, span)
		if !ok {
			return val{span: span}
		}
		code, _ := binaryOp(op, t)
		return b.elementwise(code, []val{x, y}, span)
	}
	return b.elementwise(binaryOps[op], []val{x, y}, span)
}

// elementwise applies op to tensors, promoting and broadcasting.
func (b *builder) elementwise(op ir.Op, args []val, span diag.Span) val {
	for _, a := range args {
		if !a.ok() {
			return val{span: span}
		}
	}
	if v, ok := b.foldCall(op, args, span); ok {
		return v
	}
	values := args
	if op == ir.OpSelect {
		values = args[1:]
	}
	name := opText(op)
	t, ok := b.common(values, name, span)
	if !ok {
		return val{span: span}
	}
	if t == ir.Index && (!onIndex(op) || !allScalars(args)) {
		t = ir.I64
	}
	arrays := make([]*array, len(args))
	for i, a := range args {
		to := t
		if op == ir.OpSelect && i == 0 {
			if to = ir.Bool; !b.isBool(a) {
				return b.fail(span, "where takes a bool to choose by, not %s", a.describe()).noted(b, a)
			}
		}
		if arrays[i] = b.convert(a, to); arrays[i] == nil {
			return val{span: span}
		}
	}
	if !b.accepts(op, name, t, args, span) {
		return val{span: span}
	}
	return b.mapped(op, arrays, args, span)
}

func (b *builder) isBool(v val) bool {
	return v.kind == boolVal || v.kind == arrayVal && v.arr.dtype == ir.Bool
}

func opText(op ir.Op) string {
	if infix := op.Info().Infix; infix != "" {
		return infix
	}
	return op.String()
}

// onIndex reports whether op exists on index expressions.
func onIndex(op ir.Op) bool {
	switch op {
	case ir.OpAdd, ir.OpSub, ir.OpMul, ir.OpFloorDiv, ir.OpMod, ir.OpMin, ir.OpMax, ir.OpNeg, ir.OpSelect:
		return true
	}
	return op.Info().Result == ir.ToBool
}

// common returns the dtype that the operands of one operation are converted to.
func (b *builder) common(args []val, name string, span diag.Span) (ir.DType, bool) {
	t := ir.Invalid
	for _, a := range args {
		switch {
		case a.kind == arrayVal && t == ir.Invalid:
			t = a.arr.dtype
		case a.kind == arrayVal:
			t = promote(t, a.arr.dtype)
		case !a.isNumber():
			b.fail(span, "cannot apply %s to %s: expected tensors or numbers", name, a.describe()).noted(b, args...)
			return t, false
		}
	}
	switch {
	case t == ir.Invalid:
		t = literalType(args)
	case t == ir.Index && !allScalars(args):
		t = ir.I64 // indices and sizes are scalars
	}
	return t, true
}

func allScalars(args []val) bool {
	for _, a := range args {
		if a.kind == arrayVal && len(a.arr.shape) > 0 {
			return false
		}
	}
	return true
}

// promote extends ir.Promote to indices: beside any integer, an index stays one.
func promote(a, b ir.DType) ir.DType {
	if a == ir.Index && b.IsInt() || b == ir.Index && a.IsInt() {
		return ir.Index
	}
	return ir.Promote(a, b)
}

// literalType is the dtype of numbers with nothing beside them to take one from.
func literalType(args []val) ir.DType {
	t := ir.Bool
	for _, a := range args {
		switch a.kind {
		case floatVal:
			return ir.F32
		case intVal:
			t = ir.I64
		}
	}
	return t
}

// convert returns v as an array of dtype t, or reports why it cannot be one.
func (b *builder) convert(v val, t ir.DType) *array {
	switch {
	case v.kind == arrayVal:
		return b.convertArray(v, t)
	case v.kind == floatVal && !t.IsFloat():
		b.errorf(v.span, "the number %s beside %s: cast the tensor to a float type first", formatFloat(v.float), t)
		return nil
	case v.kind == intVal && t == ir.Bool:
		b.errorf(v.span, "the integer %d beside bool: write true or false", v.int)
		return nil
	case v.kind == intVal && t.IsInt() && !fits(v.int, t):
		b.errorf(v.span, "the integer %d does not fit in %s", v.int, t)
		return nil
	case v.kind == floatVal:
		return constant(ir.Num(t, v.float).At(b.shown(v.span)))
	case v.isNumber():
		return constant(ir.IntNum(t, v.int).At(b.shown(v.span)))
	}
	b.errorf(v.span, "expected a tensor or a number, not %s", v.describe())
	return nil
}

func fits(i int64, t ir.DType) bool {
	info := t.Info()
	switch {
	case info.Size == 8:
		return true
	case i < 0:
		return info.Signed && i >= -int64(info.Max)-1
	}
	return i <= int64(info.Max)
}

func (b *builder) convertArray(v val, t ir.DType) *array {
	a := v.arr
	if a.dtype == t {
		return a
	}
	if a.ranged && t.IsFloat() {
		b.errorf(v.span, "an index beside %s: cast it, as in %s(i)", t, t)
		return nil
	}
	return castArray(a, t)
}

// castArray converts each element.
func castArray(a *array, t ir.DType) *array {
	if a.dtype == t {
		return a
	}
	c := *a
	c.dtype, c.value, c.outer, c.size = t, nil, nil, a.size+1
	c.elem = func(at []*ir.Expr) *ir.Expr { return ir.Cast(a.elem(at), t) }
	c.cheap = a.dtype == ir.Index && a.cheap
	c.ranged = a.ranged && t == ir.Index
	return &c
}

// mapped applies op to converted operands.
func (b *builder) mapped(op ir.Op, arrays []*array, args []val, span diag.Span) val {
	shape, ok := b.broadcast(opText(op), args, arrays, span)
	if !ok {
		return val{span: span}
	}
	out := &array{shape: shape, size: 1}
	for _, a := range arrays {
		out.size += a.size
	}
	types := make([]ir.DType, len(arrays))
	for i, a := range arrays {
		types[i] = a.dtype
	}
	t, err := ir.ResultType(op, types...)
	if err != nil {
		return b.fail(span, "%s", err)
	}
	out.dtype = t
	at := b.shown(span)
	out.elem = func(index []*ir.Expr) *ir.Expr {
		parts := make([]*ir.Expr, len(arrays))
		for i, a := range arrays {
			parts[i] = a.elem(project(index, shape, a.shape))
		}
		return applyOp(op, parts).At(at)
	}
	if arrays[0].dtype == ir.Index && t == ir.Bool {
		if e := out.elem(nil); e.Op == ir.OpConst {
			return boolv(e.Int != 0).at(span)
		}
	}
	return b.bounded(out, span)
}

// applyOp builds one operation, folding index arithmetic.
func applyOp(op ir.Op, parts []*ir.Expr) *ir.Expr {
	switch {
	case parts[0].Type == ir.Index && op.Info().Result == ir.SameType && len(parts) == 2:
		return indexOp(op, parts[0], parts[1])
	case op == ir.OpNeg && parts[0].Op == ir.OpConst && parts[0].Type == ir.Index:
		return ir.IntConst(-parts[0].Int)
	case parts[0].Type == ir.Index && op.Info().Result == ir.ToBool &&
		parts[0].Op == ir.OpConst && parts[1].Op == ir.OpConst:
		return ir.IntNum(ir.Bool, op.Info().Int(parts[0].Int, parts[1].Int, 0))
	}
	return ir.Apply(op, parts...)
}

// bounded keeps expressions from growing without end: a large one becomes a
// value of its own, so that work stays linear in the program's size.
func (b *builder) bounded(a *array, span diag.Span) val {
	if a.dtype == ir.Index {
		if a.size > maxIndexSize {
			return b.fail(span, "index or size expression has more than %d terms", maxIndexSize)
		}
		e := a.elem(nil)
		if e.Op == ir.OpConst {
			return intv(e.Int).at(span)
		}
		c := constant(e)
		c.size, c.ranged = a.size, !overSymbols(e)
		return arrv(c).at(span)
	}
	if a.size > maxArraySize {
		a = b.define("", a, span)
	}
	return arrv(a).at(span)
}

// broadcast returns the common shape of the operands, aligning trailing dims.
func (b *builder) broadcast(name string, args []val, arrays []*array, span diag.Span) ([]*ir.Expr, bool) {
	var shape []*ir.Expr
	for _, a := range arrays {
		if len(a.shape) > len(shape) {
			shape = concat(a.shape[:len(a.shape)-len(shape)], shape)
		}
		offset := len(shape) - len(a.shape)
		for d, size := range a.shape {
			switch have := shape[offset+d]; {
			case have.IsConst(1):
				shape[offset+d] = size
			case !size.IsConst(1) && !b.sameSize(have, size):
				b.mismatch(name, args, arrays, have, size, span)
				return nil, false
			}
		}
	}
	return shape, true
}

// project maps an index into the broadcast shape to one into an operand's shape.
func project(index, shape, to []*ir.Expr) []*ir.Expr {
	out := append([]*ir.Expr(nil), index[len(index)-len(to):]...)
	for d := range to {
		if to[d].IsConst(1) && !shape[len(shape)-len(to)+d].IsConst(1) {
			out[d] = ir.IntConst(0)
		}
	}
	return out
}
