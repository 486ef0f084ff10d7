package parser

import (
	"sort"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// define makes a a value of the graph, and returns the array that reads it. An
// array whose elements depend on ranges of the surrounding index notation is
// lifted: the value gets those ranges as extra leading axes.
func (b *builder) define(name string, a *array, span diag.Span) *array {
	if a.dtype == ir.Index {
		a = castArray(a, ir.I64)
	}
	axes := b.g.NewAxes(a.shape)
	return b.defineOver(name, axes, a.elem(ir.Indices(axes)), span)
}

// defineOver makes name[axes] = body a value, lifting as define does.
func (b *builder) defineOver(name string, axes []*ir.Range, body *ir.Expr, span diag.Span) *array {
	return b.defineLifted(name, axes, freeRanges(body, axes), body, span)
}

// defineLifted does so over the ranges free, of which those that body depends on are some.
func (b *builder) defineLifted(name string, axes, free []*ir.Range, body *ir.Expr, span diag.Span) *array {
	lifted := make([]*ir.Range, len(free))
	outer := make([]*ir.Expr, len(free))
	subst := map[*ir.Range]*ir.Expr{}
	for i, r := range free {
		if r.Extent == nil {
			b.errorf(r.Span, "extent of %s is not known here: write [%s: size]", r.Name, r.Name)
			r.Extent = ir.IntConst(1)
		}
		lifted[i] = b.g.NewRange(r.Name, r.Extent)
		lifted[i].Span = r.Span
		outer[i], subst[r] = r.At(), lifted[i].At()
	}
	axes = concat(lifted, axes)
	b.checkVolume(axes, span)
	v := b.g.Define(b.valueName(name), axes, ir.Substitute(body, subst), b.origin(span))
	return ofValue(v, outer)
}

// freeRanges lists the ranges body depends on, less the given ones, in order of creation.
func freeRanges(body *ir.Expr, axes []*ir.Range) []*ir.Range {
	set := ir.FreeRanges(body)
	for _, r := range axes {
		delete(set, r)
	}
	var out []*ir.Range
	for r := range set {
		out = append(out, r)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].ID < out[j].ID })
	return out
}

// maxRank bounds the axes of a tensor, those it is lifted over included.
const maxRank = 32

// checkVolume reports, once a graph, a tensor too large to count.
func (b *builder) checkVolume(axes []*ir.Range, span diag.Span) {
	sizes := make([]*ir.Expr, len(axes))
	for i, r := range axes {
		sizes[i] = r.Extent
	}
	if len(axes) > maxRank && !b.tooLarge {
		b.tooLarge = true
		b.errorf(span, "tensor has %d axes, more than %d", len(axes), maxRank)
	}
	if _, ok := product(sizes); !ok && !b.tooLarge {
		b.tooLarge = true
		b.errorf(span, "tensor of shape %s has more than 2^63 elements", shapeText(sizes))
	}
}

// settle returns an array that may be read many times: a value of the graph,
// or one whose elements cost nothing.
func (b *builder) settle(name string, a *array, span diag.Span) *array {
	if a.cheap {
		return a
	}
	return b.define(name, a, span)
}

// stored returns the array as a value that can be loaded at any index.
func (b *builder) stored(a *array, span diag.Span) *array {
	if a.value != nil {
		return a
	}
	return b.define("", a, span)
}

// loadAt reads a stored array at indices that may be outside.
func (a *array) loadAt(index []*ir.Expr, fill *ir.Expr, span diag.Span) *ir.Expr {
	return ir.Load(a.value, concat(a.outer, index), fill).At(span)
}

// valueName is the printed name of a value bound to name in the current frame.
func (b *builder) valueName(name string) string {
	if name == "" {
		name = "t"
	}
	if b.fn == nil || strings.HasPrefix(name, b.fn.Name.Text+"_") {
		return name
	}
	return b.fn.Name.Text + "_" + name
}

func (b *builder) origin(span diag.Span) ir.Origin {
	return ir.Origin{Span: b.shown(span), Call: b.path}
}

// require records a condition on the symbols; one that is plainly false is an error.
func (b *builder) require(cond *ir.Expr, why string, span diag.Span) {
	for _, c := range b.g.Constraints {
		if ir.Equal(c.Cond, cond) {
			return
		}
	}
	b.trace.relied(b.shown(span), cond, why)
	b.g.Constraints = append(b.g.Constraints, ir.Constraint{Cond: cond, Why: why, Span: b.shown(span)})
}

// requireDivides makes d a divisor of n: checked now for numbers, where what begins
// the error, else when the symbols bind, as a condition of why.
func (b *builder) requireDivides(n, d *ir.Expr, what, why string, span diag.Span) *diag.Error {
	rest := normal(modIndex(n, d))
	switch {
	case rest.Op != ir.OpConst:
		b.require(ir.Apply(ir.OpEq, rest, ir.IntConst(0)), why+" needs "+sizeText(n)+" divisible by "+sizeText(d), span)
	case rest.Int != 0 || d.IsConst(0):
		return b.errorf(span, "%s: %s is not divisible by %s", what, sizeText(n), sizeText(d))
	}
	return nil
}

// requireAtLeast0 makes e non-negative, in the same way.
func (b *builder) requireAtLeast0(e *ir.Expr, why string, span diag.Span) {
	if !ir.ProveNonNegative(e, ir.Facts{}) {
		b.require(ir.Apply(ir.OpGe, normal(e), ir.IntConst(0)), why, span)
	}
}
