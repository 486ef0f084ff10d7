package parser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// In PyTorch and NumPy max(x, 1) reduces axis 1, and in PyTorch it gives values and places, of which [0] takes the values.
// Here max(x, 1) is the larger of each element and 1, and a reduction gives one tensor. Both are programs that mean something
// else, so they are told of where a value is used as if it were the other.

// meaning is what a call of min or max may have been meant as, for messages alone.
type meaning struct {
	op      ir.Monoid
	of      string // the tensor, as messages name it
	axis    int64
	reduces bool   // it is this reduction; else it compares elements with the number axis
	picked  string // of an item of such a call: what is wrong with it
}

// reduction is the call that reduces.
func (m *meaning) reduction(op string) string {
	return fmt.Sprintf("%s(%s, axis=%d)", op, m.of, m.axis)
}

// meantAs is what a call of min or max of these operands may have been meant as: of a tensor and an integer that is one of
// its axes. It is nil for other operands, and in the library.
func (b *builder) meantAs(op ir.Monoid, vals []val, reduces bool) *meaning {
	if b.mod.library || op != ir.Max && op != ir.Min || len(vals) < 2 || vals[0].kind != arrayVal || vals[1].kind != intVal {
		return nil
	}
	rank := int64(len(vals[0].arr.shape))
	if n := vals[1].int; rank == 0 || n < -rank || n >= rank {
		return nil
	}
	m := &meaning{op: op, of: vals[0].name, axis: vals[1].int, reduces: reduces}
	if m.of == "" {
		m.of = "..."
	}
	return m
}

// meantAxis says what one of the operands that do not fit was meant to be; "" for others.
func meantAxis(vals ...val) string {
	for _, v := range vals {
		switch m := v.meant; {
		case m == nil:
		case m.picked != "":
			return ": " + m.picked
		case !m.reduces:
			return ": did you mean " + m.reduction(m.op.String()) + "?"
		}
	}
	return ""
}

// warnOfItem warns of min and max whose first or second row is picked, as if it were the first or second of two results, and
// gives the meaning of what is picked.
func (b *builder) warnOfItem(base *primaryNode, v val, n *indexNode) *meaning {
	text := itemOf(base, v.meant, n)
	if text == "" {
		return nil
	}
	b.warn(v.span.Join(n.span()), "%s", text)
	m := *v.meant
	m.picked = text
	return &m
}

// itemOf says what is wrong with an item of a call of min or max; "" where it is no such item.
func itemOf(base *primaryNode, m *meaning, n *indexNode) string {
	if m == nil || m.picked != "" || len(n.Items) != 1 || n.Items[0].Slice != nil || n.Items[0].Start == nil || m.reduces && (base.Name == nil || base.Name.Call == nil) {
		return ""
	}
	first := n.Items[0].Start.First
	if len(n.Items[0].Start.Rest) > 0 || len(first.Prefix)+len(first.Index) > 0 || first.Base.Number == nil {
		return ""
	}
	item := *first.Base.Number
	switch {
	case item != "0" && item != "1":
		return ""
	case m.reduces:
		return fmt.Sprintf("%s gives the values alone, so [%s] picks one of them: %s gives their places",
			m.reduction(m.op.String()), item, m.reduction("arg"+m.op.String()))
	}
	return fmt.Sprintf("%s(%s, %d) is of each element and %[3]d, so [%[4]s] picks a part of that: %[5]s reduces, and %[6]s gives the places",
		m.op, m.of, m.axis, item, m.reduction(m.op.String()), m.reduction("arg"+m.op.String()))
}

// warn reports what is valid but may not be what was meant, once for each place.
func (b *builder) warn(span diag.Span, format string, args ...any) {
	span = b.shown(span)
	if b.warnings == nil || b.muted > 0 || slices.ContainsFunc(*b.warnings, func(w *diag.Error) bool { return w.Span == span }) {
		return
	}
	*b.warnings = append(*b.warnings, diag.Warningf(span, format, args...))
}

// valuesAlone says where the places are that other languages give beside the values, for a function that has a twin for them,
// as max has argmax.
func (b *builder) valuesAlone(name string, results []val) string {
	twin := "arg" + name
	if !b.isFunction(twin) {
		return ""
	}
	call := twin + "(...)"
	if len(results) == 1 && results[0].meant != nil {
		call = results[0].meant.reduction(twin)
	}
	return fmt.Sprintf(": %s gives the values, and %s their places", name, call)
}

// reducedBy marks the results of a function of the library that have fewer axes than its first tensor.
func reducedBy(fn *fnNode, mod *module, args []argument, results []val) []val {
	i := slices.IndexFunc(args, func(a argument) bool { return a.val.kind == arrayVal })
	if !mod.library || i < 0 {
		return results
	}
	for r, v := range results {
		if v.kind == arrayVal && len(v.arr.shape) < len(args[i].val.arr.shape) {
			results[r].by = fn.Name.Text
		}
	}
	return results
}

// reducers notes what the functions of the library say of themselves that gave values other numbers of axes than fit: over
// which axes they go is not what it is elsewhere.
func (b *builder) reducers(e *diag.Error, vals []val) {
	for _, v := range vals {
		if fn, mod := b.mod.function(v.by); fn != nil && mod.library && !b.mod.library {
			e.Note(v.span, "%s", libraryText(fn, mod))
		}
	}
}

// libraryText is what the library says of a function.
func libraryText(fn *fnNode, mod *module) string {
	f := mod.lazy[fn.Name.Text]
	if f == nil {
		return ""
	}
	return strings.Join(strings.Fields(docAbove(f.src[:f.start])), " ")
}
