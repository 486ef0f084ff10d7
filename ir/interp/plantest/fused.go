package plantest

import (
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// rows starts a graph x: t[N, M] -> y: t[N, M] and a kernel over rows of it.
func rows(name string, t ir.DType) (*Builder, *ir.Kernel, *ir.Value, *ir.Value) {
	g := ir.NewGraph(name)
	g.Symbols = []ir.Symbol{{Name: "N"}, {Name: "M"}}
	shape := []*ir.Expr{ir.Sym("N"), ir.Sym("M")}
	x := g.Input("x", t, shape, diag.Span{})
	axes := g.NewAxes(shape)
	y := g.Define("y", axes, ir.Load(x, ir.Indices(axes), nil), ir.Origin{})
	g.Output("y", y, diag.Span{})
	b := NewPlan(g)
	k := &ir.Kernel{Name: name, Rows: g.NewAxes(shape[:1]), Cols: g.NewAxes(shape[1:])}
	b.Plan.Kernels = []*ir.Kernel{k}
	return b, k, x, y
}

// Softmax is one kernel with three variants of the same softmax over the last
// axis: the row kept on chip, a pass for each reduction, and the sum streamed
// beside the maximum. The plan's graph gives the shapes and types only.
func Softmax(t ir.DType) *ir.Plan {
	b, k, x, y := rows("softmax", t)
	at := ir.Indices(append(append([]*ir.Range(nil), k.Rows...), k.Cols...))
	in := b.Local("x", ir.FullLevel, ir.Cast(b.Read(k, x, at, nil), t.Info().Compute))
	top := b.Fold(k, "m", ir.Max, nil, in)
	e := b.Local("e", ir.FullLevel, ir.Apply(ir.OpExp, ir.Apply(ir.OpSub, in, ir.LocalRef(top.Result))))
	sum := b.Fold(k, "s", ir.Sum, nil, e)
	running := ir.Apply(ir.OpExp, ir.Apply(ir.OpSub, in, b.Running(top)))
	streamed := b.Fold(k, "s_streamed", ir.Sum, nil, running)
	b.Stream(streamed, top, func(old, now *ir.Expr) *ir.Expr {
		return ir.Apply(ir.OpExp, ir.Apply(ir.OpSub, old, now))
	})
	pass := func(folds ...*ir.Fold) *ir.Section { return &ir.Section{Level: ir.FullLevel, Folds: folds} }
	result := func(f *ir.Fold) *ir.Section {
		value := ir.Apply(ir.OpDiv, e, ir.LocalRef(f.Result))
		return &ir.Section{Level: ir.FullLevel, Stores: []*ir.Store{b.Store(k, y, at, value)}}
	}
	three := []*ir.Section{pass(top), pass(sum), result(sum)}
	small := ir.Apply(ir.OpLe, ir.Sym("M"), ir.IntConst(8192))
	locals := []*ir.Local{in.Local, e.Local}
	k.Variants = []*ir.Variant{
		{When: small, Locals: locals, Sections: three, Keep: locals},
		{When: ir.Apply(ir.OpLe, ir.Sym("M"), ir.IntConst(16384)), Locals: locals, Sections: three},
		{Locals: locals, Sections: []*ir.Section{pass(top, streamed), result(streamed)}},
	}
	return b.Plan
}

// Norm is layer normalisation without weights over the last axis in one kernel,
// two passes to reduce and one to store, the row kept on chip.
func Norm(t ir.DType) *ir.Plan {
	b, k, x, y := rows("norm", t)
	c := t.Info().Compute
	at := ir.Indices(append(append([]*ir.Range(nil), k.Rows...), k.Cols...))
	in := b.Local("x", ir.FullLevel, ir.Cast(b.Read(k, x, at, nil), c))
	count := b.Local("count", ir.RowLevel, ir.Cast(ir.Sym("M"), c))
	sum := b.Fold(k, "sum", ir.Sum, nil, in)
	mean := b.Local("mean", ir.RowLevel, ir.Apply(ir.OpDiv, ir.LocalRef(sum.Result), count))
	d := b.Local("d", ir.FullLevel, ir.Apply(ir.OpSub, in, mean))
	squares := b.Fold(k, "squares", ir.Sum, nil, ir.Apply(ir.OpMul, d, d))
	variance := ir.Apply(ir.OpDiv, ir.LocalRef(squares.Result), count)
	scale := b.Local("scale", ir.RowLevel, ir.Apply(ir.OpRsqrt, ir.Apply(ir.OpAdd, variance, ir.Num(c, 1e-5))))
	store := b.Store(k, y, at, ir.Apply(ir.OpMul, d, scale))
	locals := []*ir.Local{in.Local, count.Local, mean.Local, d.Local, scale.Local}
	k.Variants = []*ir.Variant{{Locals: locals, Keep: locals[:1], Sections: []*ir.Section{
		{Level: ir.FullLevel, Folds: []*ir.Fold{sum}},
		{Level: ir.FullLevel, Folds: []*ir.Fold{squares}},
		{Level: ir.FullLevel, Stores: []*ir.Store{store}},
	}}}
	return b.Plan
}
