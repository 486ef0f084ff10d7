package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// An operation whose operands do not fit is reported at the operation, with a note
// for each operand: where its name was bound, or where it stands.

// noted adds the operands to the error reported last.
func (v val) noted(b *builder, about ...val) val {
	if b.muted > 0 || len(*b.errs) == 0 {
		return v
	}
	b.origins((*b.errs)[len(*b.errs)-1], about)
	return v
}

// origins notes what the operands of an error are: inside a library function the
// arguments of the call in the user's program.
func (b *builder) origins(e *diag.Error, about []val) {
	f := b.blamed()
	if f.mod.library {
		for f.parent != nil && f.parent.mod.library {
			f = f.parent
		}
		about = nil
		for _, a := range f.args {
			about = append(about, a.val)
		}
	}
	seen := map[diag.Span]bool{}
	for _, a := range about {
		span, text := a.bound, a.name+" is "+a.describe()+" here"
		if a.name == "" || a.bound.IsZero() {
			span, text = a.span, "this operand is "+a.describe()
		}
		if !a.isOperand() || span.IsZero() || span == e.Span || seen[span] {
			continue
		}
		seen[span] = true
		e.Note(span, "%s", text)
	}
}

// isOperand reports whether v is worth a note: a tensor, or what is no operand at all.
func (v val) isOperand() bool {
	return v.kind == arrayVal && v.arr.dtype != ir.Index || v.kind == textVal || v.kind == listVal || v.kind == dtypeVal
}

// accepts checks the operand type of what the user calls name against the op table.
func (b *builder) accepts(op ir.Op, name string, t ir.DType, args []val, span diag.Span) bool {
	info := op.Info()
	if op == ir.OpSelect || info.On.Has(t.Info().Kind) {
		return true
	}
	b.origins(b.errorf(span, "%s takes %s, not %s%s", name, kindsText(info.On), t, castHint(info.On, t)), args)
	return false
}

// castHint names a type to cast t to, where an operation takes none of its kind.
func castHint(takes ir.Kinds, t ir.DType) string {
	switch {
	case t.IsInt() && takes == ir.OnFloat:
		return ": cast first, as in f32(...)"
	case t == ir.Bool && takes.Has(ir.KindInt), t.IsFloat() && takes.Has(ir.KindInt):
		return ": cast first, as in i32(...)"
	case takes == ir.OnBool:
		return ": compare first, as in x != 0"
	}
	return ""
}

func kindsText(k ir.Kinds) string {
	switch k {
	case ir.OnBool:
		return "bools"
	case ir.OnInt:
		return "integers"
	case ir.OnFloat:
		return "floats"
	case ir.OnNum:
		return "numbers"
	case ir.OnBits:
		return "integers and bools"
	}
	return "any values"
}

func (b *builder) mismatch(name string, args []val, arrays []*array, x, y *ir.Expr, span diag.Span) {
	text := ""
	for i, a := range arrays {
		if i > 0 {
			text += " and "
		}
		text += typeText(a.dtype, a.shape)
	}
	e := b.errorf(span, "cannot apply %s to %s: %s", name, text, differText(x, y)+lackedAxis(arrays)+splitAxis(arrays)+meantAxis(args...))
	b.origins(e, args)
	if len(arrays) == 2 && len(arrays[0].shape) != len(arrays[1].shape) {
		b.reducers(e, args)
	}
}

// differText says that two sizes are not known to be equal.
func differText(x, y *ir.Expr) string {
	if x.Op == ir.OpConst && y.Op == ir.OpConst {
		return sizeText(x) + " and " + sizeText(y) + " differ"
	}
	return sizeText(x) + " and " + sizeText(y) + " may differ" + equalWhere(x, y)
}
