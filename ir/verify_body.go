package ir

import (
	"fmt"
	"slices"
)

// bodyVerifier checks one variant of a kernel.
type bodyVerifier struct {
	*planVerifier
	k       *Kernel
	variant *Variant
	args    map[*Arg]bool
	written map[*Arg]int    // how many stores each has
	known   map[*Local]bool // locals that have a value where the current part is evaluated
	tried   map[accessKey]bool
	found   []access
}

func (b *bodyVerifier) check() error {
	if err := b.body(); err != nil {
		return err
	}
	for _, a := range b.k.Args {
		n, want := b.written[a], 0
		if a.Write {
			want = max(1, len(a.Buffer.PartsIn(b.k)))
		}
		if n != want && (n > want || !b.variant.Empty) {
			return fmt.Errorf("%d stores to %s", n, a.Name)
		}
	}
	return b.inBounds()
}

// body checks every expression of the variant, in the order in which they are evaluated.
func (b *bodyVerifier) body() error {
	v := b.variant
	listed := map[*Local]bool{}
	for _, l := range v.Locals {
		if l.Def == nil {
			return fmt.Errorf("local %s is listed, but has no definition", l.Name)
		}
		var err error
		Walk(l.Def, func(e *Expr) bool {
			if err == nil && e.Op == OpLocal && e.Local.Def != nil && e.Local.Def.Op != OpReduce && !listed[e.Local] {
				err = fmt.Errorf("local %s reads %s, which is not defined before", l.Name, e.Local.Name)
			}
			return err == nil
		})
		if err != nil {
			return err
		}
		listed[l] = true
	}
	if a := v.Attend; a != nil {
		if err := v.Schedule.sharesKeys(); err != nil {
			return err
		}
		for _, p := range a.Products() {
			b.known[p.Score] = true
		}
	}
	if c := v.Contract; c != nil && c.Product != nil {
		b.known[c.Product] = true
	}
	if s := v.Sort; s != nil {
		b.known[s.Value], b.known[s.Index] = true, true
		if err := b.exprs(nil, s.Key); err != nil {
			return err
		}
		if err := b.stores(s.Stores); err != nil {
			return err
		}
	}
	if s := v.Scatter; s != nil {
		if first := append(slices.Clone(s.Batch), s.To); len(b.k.Rows) < len(first) || !slices.Equal(b.k.Rows[:len(first)], first) {
			return fmt.Errorf("the rows that keys depend on and the places do not come first")
		}
		if err := b.exprs(nil, s.Key, s.Rest); err != nil {
			return err
		}
	}
	for _, s := range v.Sections {
		if err := b.section(s); err != nil {
			return err
		}
	}
	return b.operands()
}

// section checks one step. The results of its folds over whole rows may be used in later steps, and
// those of scans also in this one. Folds that follow a running maximum may read its running value.
func (b *bodyVerifier) section(s *Section) error {
	for _, f := range s.Folds {
		if f.Prefix != WholeRow {
			if err := b.fold(f); err != nil {
				return err
			}
			b.known[f.Result] = true
		} else if f.Running != nil {
			b.known[f.Running] = true
		}
	}
	for _, f := range s.Folds {
		if f.Prefix == WholeRow {
			if err := b.fold(f); err != nil {
				return err
			}
		}
	}
	for _, f := range s.Folds {
		delete(b.known, f.Running)
		if b.variant.Attend != nil || b.variant.Contract != nil { // the epilogue is computed where the sums are
			b.known[f.Result] = true
		}
	}
	if err := b.stores(s.Stores); err != nil {
		return err
	}
	for _, t := range s.Partials {
		if err := b.store(t.Arg, nil, t.Offset, t.Body); err != nil {
			return err
		}
	}
	for _, f := range s.Folds {
		b.known[f.Result] = true
	}
	return nil
}

func (b *bodyVerifier) fold(f *Fold) error {
	if err := b.exprs(nil, f.Where); err != nil {
		return err
	}
	if f.Old != nil {
		b.known[f.Old] = true
		defer delete(b.known, f.Old)
	}
	return b.exprs(f.Where, f.Body, f.Index, f.Rescale)
}

func (b *bodyVerifier) stores(stores []*Store) error {
	for _, st := range stores {
		if err := b.store(st.Arg, st.Guard, st.Offset, st.Value); err != nil {
			return err
		}
	}
	return nil
}

func (b *bodyVerifier) store(to *Arg, guard, offset, value *Expr) error {
	if !b.args[to] || !to.Write {
		return fmt.Errorf("it stores to %s, which is no result of the kernel", to.Name)
	}
	b.written[to]++
	if err := b.exprs(nil, guard); err != nil {
		return err
	}
	if err := b.exprs(guard, offset, value); err != nil {
		return err
	}
	b.touch(to, offset, b.where(guard))
	return nil
}

// exprs checks expressions, any of which may be nil, that are evaluated where a condition holds: what
// they read and which values they use.
func (b *bodyVerifier) exprs(where *Expr, exprs ...*Expr) error {
	var seen exprMap[struct{}]
	for _, e := range exprs {
		if err := b.expr(e, b.where(where), &seen); err != nil {
			return err
		}
	}
	return nil
}

func (b *bodyVerifier) expr(e *Expr, under *condition, seen *exprMap[struct{}]) error {
	if e == nil {
		return nil
	}
	if _, ok := seen.get(e); ok {
		return nil
	}
	seen.set(e, struct{}{})
	switch e.Op {
	case OpLoad:
		return fmt.Errorf("a load of %s, which belongs into graphs", e.From.Name)
	case OpRead:
		if !b.args[e.Arg] || e.Arg.Write {
			return fmt.Errorf("it reads %s, which is no operand of the kernel", e.Arg.Name)
		}
		b.touch(e.Arg, e.Args[0], given(under, e.Guard, true))
	case OpLocal:
		switch l := e.Local; {
		case l.Def == nil && !b.known[l]:
			return fmt.Errorf("it uses %s before that is computed", l.Name)
		case l.Def != nil:
			return b.expr(l.Def, under, seen)
		}
		return nil
	case OpSelect:
		if err := b.expr(e.Args[0], under, seen); err != nil {
			return err
		}
		if err := b.expr(e.Args[1], given(under, e.Args[0], true), seen); err != nil {
			return err
		}
		return b.expr(e.Args[2], given(under, e.Args[0], false), seen)
	case OpReduce:
		if err := b.expr(e.Reduce.Where, under, seen); err != nil {
			return err
		}
		under = given(under, e.Reduce.Where, true)
	}
	for _, a := range e.Args {
		if err := b.expr(a, under, seen); err != nil {
			return err
		}
	}
	return b.expr(e.Guard, under, seen)
}

// operands checks the sides of products.
func (b *bodyVerifier) operands() error {
	for _, o := range b.variant.operands() {
		if err := b.exprs(b.exists(), o.Value); err != nil {
			return err
		}
		for _, p := range []*Piece{o.Pieces, o.Scale} {
			if err := b.piece(p); err != nil {
				return err
			}
		}
		if err := b.exprs(b.exists(), o.placed()...); err != nil {
			return err
		}
		if o.Early && b.readsResults(o.Value) {
			return fmt.Errorf("an operand is read ahead of the kernels that compute it")
		}
	}
	if c := b.variant.Contract; c != nil {
		if err := b.exprs(nil, c.Taps...); err != nil {
			return err
		}
	}
	for _, w := range b.variant.TensorMaps {
		if !b.args[w.Arg] || w.Arg.Write {
			return fmt.Errorf("view %s is of no operand of the kernel", w.Name)
		}
	}
	return nil
}

// where is the conditions that hold where an expression under the condition e, which may be
// nil, is evaluated.
func (b *bodyVerifier) where(e *Expr) *condition {
	return given(given(nil, b.k.Inside, true), e, true)
}

// exists is the condition that a column of a folded tile exists; nil for always.
func (b *bodyVerifier) exists() *Expr {
	if c := b.variant.Contract; c != nil && c.Width != nil {
		return b.variant.Sections[0].Folds[0].Where
	}
	return nil
}

func (b *bodyVerifier) piece(p *Piece) error {
	if p == nil {
		return nil
	}
	for _, r := range p.Reads {
		if !b.args[r.Arg] || r.Arg.Write {
			return fmt.Errorf("it reads %s, which is no operand of the kernel", r.Arg.Name)
		}
		b.known[r.Local] = true
	}
	return nil
}

// readsResults reports whether an expression reads the result of a kernel.
func (b *bodyVerifier) readsResults(e *Expr) bool {
	found := false
	WalkThrough(func(e *Expr) bool {
		found = found || e.Op == OpRead && e.Arg.Buffer.Kind != InputBuffer
		return !found
	}, e)
	return found
}

// sharesKeys returns an error where the warps of a block that multiply fragments (mma) cannot divide a tile of queries and
// keys: those that have the same queries have whole fragments of keys.
func (s Schedule) sharesKeys() error {
	if s.Mapping != AttendMapping && s.Mapping != ChainMapping {
		return nil
	}
	if _, keys := s.AttendWarps(); s.TileN%(keys*mmaFragment) != 0 {
		return fmt.Errorf("%d warps cannot share %d keys: each takes %d at a time", keys, s.TileN, mmaFragment)
	}
	return nil
}
