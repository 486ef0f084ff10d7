package ptxsim

import "slices"

// A flight is a warp's products by wgmma.mma_async for which it has not waited: until then PTX
// does not define their results. Groups are numbered from one.
type flight struct {
	fenced          bool  // wgmma.fence was executed
	committed, done int   // groups
	group           []int // for each register, the group that writes it last; only in entries with such products
}

// commit closes a group.
func (w *warp) commit(mask uint32) {
	w.warpgroup(mask)
	w.cta.cluster.launch.events++
	w.flight.committed++
}

// await returns wgmma.wait_group n: all but the last n groups are done. Products are those
// of a warpgroup: they are done when its four warps have issued them.
func await(n int) exec {
	return func(w *warp, mask uint32) {
		w.warpgroup(mask)
		done := max(w.flight.done, w.flight.committed-n)
		over := func() bool {
			for _, o := range w.peers() {
				if o.live != 0 && o.flight.committed < done {
					return false
				}
			}
			w.flight.done = done
			if r := w.cta.cluster.races; r != nil {
				r.products(w, mask, done)
			}
			return true
		}
		if !over() {
			w.wait = over
		}
	}
}

// peers are the warps of a warp's warpgroup.
func (w *warp) peers() []*warp {
	first := w.index / 4 * 4
	return w.cta.warps[first:min(first+4, len(w.cta.warps))]
}

// A placed statement is one that became the instruction at an index.
type placed struct {
	*statement
	at int
}

// isProduct reports whether a statement is a wgmma.mma_async.
func (s *statement) isProduct() bool { return s.Op == "wgmma" && s.has("mma_async") }

// registers lists those of an operand.
func (o operand) registers() (out []operand) {
	if o.kind == regOperand {
		out = append(out, o)
	}
	for _, e := range o.elems {
		out = append(out, e.registers()...)
	}
	for _, e := range []*operand{o.base, o.pair} {
		if e != nil {
			out = append(out, e.registers()...)
		}
	}
	return out
}

// results are the registers that a statement writes, sources those that it reads. A statement
// that writes only to memory has no results.
func (s *statement) results() []operand {
	if len(s.Args) == 0 || s.Args[0].kind == addrOperand {
		return nil
	}
	return s.Args[0].registers()
}

func (s *statement) sources() (out []operand) {
	for i, o := range s.Args {
		if i > 0 || o.kind == addrOperand {
			out = append(out, o.registers()...)
		}
	}
	return out
}

// watchProducts makes it an error if an instruction reads a result of wgmma.mma_async too
// early. Moves are allowed, because ptxas gives both registers one place. Entries without such
// products, and instructions that do not use results, are not changed.
func (b *entryParser) watchProducts() {
	results := b.productRegisters()
	if len(results) == 0 {
		return
	}
	b.e.products = true
	concerned := func(o operand) bool { return results[o.reg] }
	for _, s := range b.statements {
		in := &b.e.code[s.at]
		if !slices.ContainsFunc(append(s.results(), s.sources()...), concerned) {
			continue
		}
		switch {
		case s.isProduct():
			in.run = watchProduct(in.run, s.statement)
		case s.Op == "mov":
			in.run = watchMove(in.run, s.statement)
		default:
			in.run = watchUse(in.run, s.statement)
		}
	}
}

// productRegisters are those that may hold a result.
func (b *entryParser) productRegisters() map[int]bool {
	out := map[int]bool{}
	for _, s := range b.statements {
		if s.isProduct() {
			for _, o := range s.results() {
				out[o.reg] = true
			}
		}
	}
	for before := -1; before != len(out); {
		before = len(out)
		for _, s := range b.statements {
			if s.Op == "mov" && slices.ContainsFunc(s.sources(), func(o operand) bool { return out[o.reg] }) {
				for _, o := range s.results() {
					out[o.reg] = true
				}
			}
		}
	}
	return out
}

func watchProduct(run exec, s *statement) exec {
	results := s.results()
	run = watchUse(run, s)
	return func(w *warp, mask uint32) {
		run(w, mask)
		for _, o := range results {
			w.flight.group[o.reg] = w.flight.committed + 1
		}
	}
}

func watchMove(run exec, s *statement) exec {
	from, to := s.sources(), s.results()
	return func(w *warp, mask uint32) {
		run(w, mask)
		group := 0
		for _, o := range from {
			group = max(group, w.flight.group[o.reg])
		}
		for _, o := range to {
			w.flight.group[o.reg] = group
		}
	}
}

func watchUse(run exec, s *statement) exec {
	from, to := s.sources(), s.results()
	return func(w *warp, mask uint32) {
		for _, o := range from {
			if w.flight.group[o.reg] > w.flight.done {
				panic(w.fault(0, "%s holds a result of wgmma.mma_async that no wgmma.wait_group has waited for", o.name))
			}
		}
		run(w, mask)
		for _, o := range to {
			w.flight.group[o.reg] = 0
		}
	}
}
