package fuse

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// State: inputs that a run gives next values. Whether the next value may take the memory of the
// present one is a question about index functions, asked of the finished plan. It may where one
// kernel writes it, each element is read by that kernel only at the very point that writes it and
// before it does so, and no later kernel reads the present value. What this file cannot show gets a
// buffer of its own, and whoever owns the state swaps the two.

// linkStates says of each buffer of a next value which input it belongs to.
func (pr *program) linkStates(buffers map[*ir.Value]*ir.Buffer) {
	for next, present := range pr.updates {
		buffers[next].Updates = buffers[present]
	}
}

// decideUpdates decides of each next value whether it is written in place.
func (pr *program) decideUpdates(p *ir.Plan) {
	for _, b := range p.Buffers {
		if b.Updates == nil {
			continue
		}
		k, why := pr.refusesInPlace(p, b)
		b.InPlace, b.Apart = why == "", why
		if b.InPlace {
			share(k, b, b.Updates)
		}
	}
	pr.decideOver(p)
	for _, k := range p.Kernels {
		for _, v := range k.Variants {
			for _, l := range v.Locals {
				if r := algebra.ReadIn(l.Def); r != nil && r.Arg.Shared {
					l.EvictFirst, l.EvictLast = nil, nil // such reads go past what the kernel writes
				}
			}
		}
	}
}

// share says of two arguments of a kernel that their memory may be one.
func share(k *ir.Kernel, next, old *ir.Buffer) {
	for i, a := range k.Args {
		if a.Buffer == next || a.Buffer == old {
			a.Shared = true
			if k.Like != nil {
				k.Like.Args[i].Shared = true // whose text serves both
			}
		}
	}
}

// refusesInPlace returns the kernel that writes a next value, and why it may not take the memory of
// the present one; "" where it may.
func (pr *program) refusesInPlace(p *ir.Plan, next *ir.Buffer) (writer *ir.Kernel, why string) {
	old := next.Updates
	for _, k := range p.Kernels {
		if slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return a.Buffer == old }) && writer != nil {
			return writer, fmt.Sprintf("kernel %s reads %s after kernel %s has written its next value", k.Name, old.Name, writer.Name)
		}
		if slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return a.Buffer == next }) && writer == nil {
			writer = k
		}
	}
	u := pr.updateBy(p, writer, next, old)
	if u.from == nil {
		return writer, "" // nobody reads the present value from here on
	}
	return writer, u.refusal(old.Name, writer.Name)
}

// update is a kernel that reads the present value of a state and writes the next one.
type update struct {
	*program
	k        *ir.Kernel         // that has the body
	from, to *ir.Arg            // of its arguments; from is nil where it does not read the present value
	alone    bool               // the kernel shares its launch with no other
	ahead    [][]ir.Ahead       // of each body, the reads that are complete before it stores; nil for none
	past     map[*ir.Local]bool // those of the body in question
}

// updateBy is what a kernel does to the next value.
func (pr *program) updateBy(p *ir.Plan, writer *ir.Kernel, next, old *ir.Buffer) *update {
	body := writer
	if writer.Like != nil {
		body = writer.Like
	}
	u := &update{program: pr, k: body, alone: slices.Contains(p.Launched(), writer) && writer.LastBlock == nil}
	for i, a := range writer.Args {
		switch a.Buffer {
		case old:
			u.from = body.Args[i]
		case next:
			u.to = body.Args[i]
		}
	}
	return u
}

// refusal is why some body of the kernel must not write where it reads; "" where all may.
func (u *update) refusal(state, kernel string) string {
	if !u.alone {
		return fmt.Sprintf("kernel %s shares its launch with another", kernel)
	}
	for i, v := range u.k.Variants {
		u.past = map[*ir.Local]bool{}
		if u.ahead != nil {
			for _, a := range u.ahead[i] {
				u.past[a.Local] = true
			}
		}
		switch {
		case len(u.k.Accumulated) > 0 || u.sharesReads(v):
			return fmt.Sprintf("threads of kernel %s share what they read of %s", kernel, state)
		case !u.aligned(v):
			return fmt.Sprintf("kernel %s reads other elements of %s than the one it replaces at that point", kernel, state)
		case !u.ordered(v):
			return fmt.Sprintf("kernel %s still reads %s after it has stored the next value", kernel, state)
		}
	}
	return ""
}

// sharesReads reports whether a body reads the present value where one thread does it for others, or
// ahead of the pass that needs it.
func (u *update) sharesReads(v *ir.Variant) bool {
	shared := slices.Concat(v.Staged, v.Early)
	switch info := v.Strategy.Info(); {
	case u.ahead != nil && info.May&ir.PartAhead != 0: // a block reads its own rows for its threads, each before it is worked on
		shared = v.Early
	case !info.Apart:
		return true
	}
	return slices.ContainsFunc(shared, func(l *ir.Local) bool {
		found := false
		eachRead(func(r *ir.Expr) { found = found || r.Arg == u.from }, l.Def)
		return found
	})
}

// aligned reports whether each element of the present value is read only at the point of the kernel
// that writes it: all accesses have one index function, which takes no value twice.
func (u *update) aligned(v *ir.Variant) bool {
	offset := u.place(v)
	if offset == nil || !u.distinct(slices.Concat(v.Rows(u.k), u.k.Cols), offset) {
		return false
	}
	for _, r := range u.reads(v) {
		if !ir.Equal(r.Args[0], offset) {
			return false
		}
	}
	return true
}

// place is where a body stores the next value; nil where it does so at several places, or not everywhere.
func (u *update) place(v *ir.Variant) (offset *ir.Expr) {
	for _, sec := range v.Sections {
		for _, s := range sec.Stores {
			if s.Arg == u.to {
				if offset != nil || s.Guard != nil {
					return nil
				}
				offset = s.Offset
			}
		}
	}
	return offset
}

// reads are the reads of the present value in a body.
func (u *update) reads(v *ir.Variant) (out []*ir.Expr) {
	keep := func(r *ir.Expr) {
		if r.Arg == u.from {
			out = append(out, r)
		}
	}
	for _, l := range v.Locals {
		if !u.past[l] {
			u.eachRead(keep, l.Def)
		}
	}
	for _, sec := range v.Sections {
		for _, s := range sec.Stores {
			u.eachRead(keep, s.Value, s.Offset, s.Guard)
		}
		for _, f := range sec.Folds {
			u.eachRead(keep, f.Where, f.Body, f.Index, f.Rescale)
		}
	}
	return out
}

// eachRead calls f for the reads in expressions but those that are ahead of all stores.
func (u *update) eachRead(f func(*ir.Expr), exprs ...*ir.Expr) {
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpRead {
			f(e)
		}
		return e.Op != ir.OpLocal || !u.past[e.Local]
	}, exprs...)
}

// ordered reports whether nothing needs the present value once the next one is stored: no later store,
// and, where the kernel passes over columns, no section but that of the store.
func (u *update) ordered(v *ir.Variant) bool {
	ok := true
	reading := func(exprs ...*ir.Expr) {
		u.eachRead(func(r *ir.Expr) { ok = ok && r.Arg != u.from }, exprs...)
	}
	written := len(u.k.Cols) > 0 // or to be: what another pass reads, another thread may
	exchanged := u.exchanged(v)
	for n, sec := range v.Sections {
		if n < exchanged { // these passes are over when the first thread stores
			continue
		}
		at := slices.IndexFunc(sec.Stores, func(s *ir.Store) bool { return s.Arg == u.to })
		for i, s := range sec.Stores {
			if at < 0 && written || at >= 0 && i > at {
				reading(s.Value, s.Offset, s.Guard)
			}
		}
		for _, f := range sec.Folds {
			if at < 0 && written || f.Prefix != ir.WholeRow {
				reading(f.Where, f.Body, f.Index, f.Rescale)
			}
		}
		written = written || at >= 0
	}
	return ok
}

// mostOrders is up to how many ranges all orders of them are tried.
const mostOrders = 4

// distinct reports whether an offset is another one at each point of the ranges: it is the row-major
// place of the point, with the ranges in some order.
func (pr *program) distinct(ranges []*ir.Range, offset *ir.Expr) bool {
	offset = ir.Simplify(offset, pr.facts)
	is := func(order []*ir.Range) bool {
		shape := make([]*ir.Expr, len(order))
		for d, r := range order {
			shape[d] = r.Extent
		}
		return ir.Equal(ir.Simplify(ir.FlatOffset(shape, ir.Indices(order)), pr.facts), offset)
	}
	if is(ranges) || len(ranges) > mostOrders {
		return is(ranges)
	}
	order := slices.Clone(ranges)
	var try func(n int) bool
	try = func(n int) bool {
		if n == len(order) {
			return is(order)
		}
		for i := n; i < len(order); i++ {
			order[n], order[i] = order[i], order[n]
			if try(n + 1) {
				return true
			}
			order[n], order[i] = order[i], order[n]
		}
		return false
	}
	return try(0)
}
