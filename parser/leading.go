package parser

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// In index notation, ... on the left stands for leading axes: y[..., i] = x[..., 2*i]
// gives y the leading axes of x. They become ranges without names, which every
// ... on the right is indexed by, aligned at the last as in broadcasting.

// leadingName is the scope entry that holds the ranges of ....
const leadingName = "..."

// declareLeading binds the ranges of ... on the left of name[..., i] = value. The
// declared shape gives their extents, else the operands of value do.
func (b *builder) declareLeading(binds []*bindNode, want *declared, value *exprNode) ([]*ir.Range, bool) {
	if len(binds) == 0 || !binds[0].Leading {
		return nil, true
	}
	span := binds[0].span()
	shape, ok := b.leadingShape(value)
	if want != nil && !want.bad {
		shape = want.shape[:len(want.shape)-len(binds)+1]
	}
	ranges := b.g.NewAxes(shape)
	b.scope.names[leadingName] = &binding{span: span, leading: ranges}
	return ranges, ok
}

// leadingShape broadcasts the axes that ... stands for in the operands of e.
func (b *builder) leadingShape(e *exprNode) (shape []*ir.Expr, ok bool) {
	ok = true
	walkUnary(e, nil, func(u *unaryNode, _ []*bindNode) {
		a := b.indexedTensor(u)
		if a == nil || !ok {
			return
		}
		lead := leadingAxes(a, u.Index[0])
		if len(lead) > len(shape) {
			shape, lead = append([]*ir.Expr(nil), lead...), shape
		}
		for i, size := range lead {
			at := len(shape) - len(lead) + i
			switch {
			case b.sameSize(shape[at], size) || size.IsConst(1):
			case shape[at].IsConst(1):
				shape[at] = size
			default:
				b.errorf(u.span(), "leading axes of %s are %s, which do not match %s",
					u.Base.Name.Name.Text, shapeText(lead), shapeText(shape))
				ok = false
				return
			}
		}
	})
	return shape, ok
}

// leadingAxes returns the sizes that ... stands for in x[..., i]; nil where the index has none.
func leadingAxes(a *array, n *indexNode) []*ir.Expr {
	if len(n.Items) == 0 || !n.Items[0].Leading {
		return nil
	}
	used := 0
	for _, item := range n.Items[1:] {
		if !isNewAxis(item) {
			used++
		}
	}
	return a.shape[:max(0, len(a.shape)-used)]
}

// leadingItems indexes the first n axes of a by the ranges of ...; ok is false
// where none are in scope, and then ... takes the axes whole.
func (b *builder) leadingItems(a *array, n int, span diag.Span) (items []alignedItem, ok bool) {
	found := b.scope.find(leadingName)
	if found == nil {
		return nil, false
	}
	skip := len(found.leading) - n
	if skip < 0 {
		b.errorf(span, "... stands for %s here, and for %s on the left",
			plural(n, "axis"), plural(len(found.leading), "axis"))
		return nil, true
	}
	for d, r := range found.leading[skip:] {
		at := r.At()
		if a.shape[d].IsConst(1) {
			at = ir.IntConst(0)
		}
		items = append(items, alignedItem{axis: d, at: at})
	}
	return items, true
}
