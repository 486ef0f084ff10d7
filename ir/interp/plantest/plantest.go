// Package plantest makes plans for tests of whatever executes plans: unfused
// ones of any graph, and fused kernels written by hand. It also draws graphs and
// programs that more than one package tests. It decides nothing and must not know
// the planner.
package plantest

import (
	"github.com/fusec/fusec/ir"
)

// Unfused returns the plan of g with one kernel for each value.
func Unfused(g *ir.Graph) *ir.Plan {
	b := NewPlan(g)
	for _, v := range g.Values {
		if !v.IsInput() {
			b.Plan.Kernels = append(b.Plan.Kernels, b.alone(v))
		}
	}
	return b.Plan
}

// Builder makes a plan over the buffers of a graph's values.
type Builder struct {
	Plan    *ir.Plan
	buffers map[*ir.Value]*ir.Buffer
	locals  int
}

// NewPlan returns a builder with a buffer for each input and output; Buffer adds
// temporaries.
func NewPlan(g *ir.Graph) *Builder {
	b := &Builder{Plan: &ir.Plan{Graph: g}, buffers: map[*ir.Value]*ir.Buffer{}}
	for _, v := range g.Inputs {
		b.add(v, ir.InputBuffer)
	}
	for _, o := range g.Outputs {
		if b.buffers[o.Value] == nil {
			b.add(o.Value, ir.OutputBuffer)
		}
	}
	return b
}

func (b *Builder) add(v *ir.Value, kind ir.BufferKind) *ir.Buffer {
	buf := &ir.Buffer{Index: len(b.Plan.Buffers), Name: v.Name, Type: v.Type, Shape: v.Shape(), Kind: kind,
		Slot: len(b.Plan.Buffers), Value: v}
	b.Plan.Buffers = append(b.Plan.Buffers, buf)
	b.buffers[v] = buf
	return buf
}

// Buffer returns the buffer of v, a temporary where v is neither input nor output.
func (b *Builder) Buffer(v *ir.Value) *ir.Buffer {
	if buf := b.buffers[v]; buf != nil {
		return buf
	}
	return b.add(v, ir.TempBuffer)
}

// Arg returns the kernel's argument for v, adding it at first use.
func (b *Builder) Arg(k *ir.Kernel, v *ir.Value, write bool) *ir.Arg {
	buf := b.Buffer(v)
	for _, a := range k.Args {
		if a.Buffer == buf && a.Write == write {
			return a
		}
	}
	a := &ir.Arg{Index: len(k.Args), Name: v.Name, Type: v.Type, Buffer: buf, Write: write}
	k.Args = append(k.Args, a)
	return a
}

// Local makes a computed local and returns a reference to it.
func (b *Builder) Local(name string, level ir.Level, def *ir.Expr) *ir.Expr {
	b.locals++
	l := &ir.Local{ID: b.locals, Name: name, Type: def.Type, Level: level, Def: def}
	return ir.LocalRef(l)
}

// Fold returns a reduction of body, cast to the type it accumulates in.
func (b *Builder) Fold(k *ir.Kernel, name string, op ir.Monoid, where, body *ir.Expr) *ir.Fold {
	body = ir.Cast(body, op.Accumulator(body.Type))
	b.locals++
	result := &ir.Local{ID: b.locals, Name: name, Type: op.Result(body.Type), Level: ir.RowLevel}
	f := &ir.Fold{Result: result, Op: op, Where: where, Body: body}
	if op.IsArg() {
		var extents []*ir.Expr
		for _, r := range k.Cols {
			extents = append(extents, r.Extent)
		}
		f.Index = Offset(ir.Indices(k.Cols), extents)
	}
	return f
}

// Running returns the running value of a fold, for bodies streamed beside it.
func (b *Builder) Running(f *ir.Fold) *ir.Expr {
	if f.Running == nil {
		f.Running = b.placeholder(f.Result.Name+"_running", f.Result.Type)
	}
	return ir.LocalRef(f.Running)
}

// Stream makes f streamed beside after; rescale is of the old value and the new.
func (b *Builder) Stream(f, after *ir.Fold, rescale func(old, now *ir.Expr) *ir.Expr) {
	f.After, f.Old = after, b.placeholder(after.Result.Name+"_old", after.Result.Type)
	f.Rescale = rescale(ir.LocalRef(f.Old), b.Running(after))
}

func (b *Builder) placeholder(name string, t ir.DType) *ir.Local {
	b.locals++
	return &ir.Local{ID: b.locals, Name: name, Type: t, Level: ir.FullLevel}
}

// Read loads v at indices as kernels do: a flat offset, and a guard where there
// is a fill.
func (b *Builder) Read(k *ir.Kernel, v *ir.Value, at []*ir.Expr, fill *ir.Expr) *ir.Expr {
	var guard *ir.Expr
	if fill != nil {
		guard = inside(at, v.Shape())
	}
	if guard == nil {
		fill = nil
	}
	return ir.Read(b.Arg(k, v, false), Offset(at, v.Shape()), guard, fill)
}

// Offset is the row-major position of indices in a shape.
func Offset(at, shape []*ir.Expr) *ir.Expr {
	offset := ir.IntConst(0)
	for d, i := range at {
		if d == 0 {
			offset = i
			continue
		}
		offset = ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, offset, shape[d]), i)
	}
	return offset
}

func inside(at, shape []*ir.Expr) *ir.Expr {
	var out *ir.Expr
	for d, i := range at {
		in := ir.Apply(ir.OpAnd, ir.Apply(ir.OpLe, ir.IntConst(0), i), ir.Apply(ir.OpLt, i, shape[d]))
		if out == nil {
			out = in
		} else {
			out = ir.Apply(ir.OpAnd, out, in)
		}
	}
	return out
}

// Lower replaces the loads of an expression by reads.
func (b *Builder) Lower(k *ir.Kernel, e *ir.Expr) *ir.Expr {
	if e == nil {
		return nil
	}
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLoad {
			return b.Read(k, e.From, e.Args, e.Fill).At(e.Span)
		}
		return e
	})
}

// Store writes value to v at indices.
func (b *Builder) Store(k *ir.Kernel, v *ir.Value, at []*ir.Expr, value *ir.Expr) *ir.Store {
	return &ir.Store{Arg: b.Arg(k, v, true), Offset: Offset(at, v.Shape()), Value: value}
}

// alone is the kernel that computes one value.
func (b *Builder) alone(v *ir.Value) *ir.Kernel {
	k := &ir.Kernel{Name: v.Name, Rows: v.Axes, Members: []*ir.Value{v}}
	body := b.Lower(k, v.Body)
	at := ir.Indices(v.Axes)
	if v.Reduce == nil {
		all := &ir.Section{Level: ir.FullLevel, Stores: []*ir.Store{b.Store(k, v, at, body)}}
		k.Variants = []*ir.Variant{{Sections: []*ir.Section{all}}}
		return k
	}
	k.Cols = v.Reduce.Ranges
	f := b.Fold(k, v.Name, v.Reduce.Op, b.Lower(k, v.Reduce.Where), body)
	k.Variants = []*ir.Variant{{Sections: []*ir.Section{
		{Level: ir.FullLevel, Folds: []*ir.Fold{f}},
		{Level: ir.RowLevel, Stores: []*ir.Store{b.Store(k, v, at, ir.LocalRef(f.Result))}},
	}}}
	return k
}
