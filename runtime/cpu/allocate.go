package cpu

// allocate maps the tile registers of the passes to few places, so that they stay in the
// first-level cache. A place is free after the last use of its register, and an instruction may
// write where it reads. Registers that outlive a step, are views of memory or are named inside
// instructions keep places of their own.
func (g *gen) allocate() {
	a := &allocator{pinned: g.pinned, views: map[pinnedReg]bool{}}
	a.outlive(g.code.job, true)
	for _, s := range g.sections {
		a.outlive(s.prologue, true)
		a.outlive(s.body, false)
	}
	for _, f := range g.code.folds {
		a.outlive(f.rescale, true)
	}
	for c := range numClasses {
		a.place[c] = make([]int, g.regs[c])
		for r := range a.place[c] {
			a.place[c][r] = -1
			if a.pinned[pinnedReg{c, r}] {
				a.place[c][r] = r
			}
		}
	}
	for _, s := range g.sections {
		a.body(s.body)
	}
	g.compact(a)
}

type allocator struct {
	pinned map[pinnedReg]bool
	views  map[pinnedReg]bool // registers that are views of memory
	place  [numClasses][]int  // new register; -1 while it has none
	free   [numClasses][]int
	all    [numClasses][]int // places made so far, for the next section
}

// outlive pins the views of a list, or all its results.
func (a *allocator) outlive(list []instr, all bool) {
	for _, in := range list {
		key := pinnedReg{in.dst.class, in.dst.reg}
		if in.dst.vec && (all || in.view) {
			a.pinned[key] = true
		}
		if in.view {
			a.views[key] = true
		}
	}
}

// body places the registers of one section; those of earlier ones are free again.
func (a *allocator) body(list []instr) {
	for c := range numClasses {
		a.free[c] = append([]int(nil), a.all[c]...)
	}
	last := map[pinnedReg]int{}
	for n, in := range list {
		for _, s := range in.src {
			if s.vec {
				last[pinnedReg{s.class, s.reg}] = n
			}
		}
	}
	for n, in := range list {
		for _, s := range in.src {
			if key := (pinnedReg{s.class, s.reg}); s.vec && s.reg >= 0 && !a.pinned[key] && last[key] == n {
				a.free[s.class] = append(a.free[s.class], a.place[s.class][s.reg])
				last[key] = -1 // an instruction may name it twice, but it is freed once
			}
		}
		if in.dst.vec && in.dst.reg >= 0 && !a.pinned[pinnedReg{in.dst.class, in.dst.reg}] {
			a.take(in.dst)
		}
	}
}

func (a *allocator) take(o operand) {
	free := a.free[o.class]
	if len(free) == 0 {
		a.place[o.class][o.reg] = o.reg
		a.all[o.class] = append(a.all[o.class], o.reg)
		return
	}
	a.place[o.class][o.reg] = free[len(free)-1]
	a.free[o.class] = free[:len(free)-1]
}

// compact rewrites the instructions to the places. Registers without any have
// no instruction left that names them.
func (g *gen) compact(a *allocator) {
	rename := func(list []instr) {
		for n := range list {
			list[n].dst = a.renamed(list[n].dst)
			for i := range list[n].src {
				list[n].src[i] = a.renamed(list[n].src[i])
			}
		}
	}
	for _, s := range g.sections {
		rename(s.body)
	}
	used := &g.code.used
	for c := range numClasses {
		used[c] = make([]bool, g.regs[c])
		for r, p := range a.place[c] {
			used[c][r] = p == r && !a.views[pinnedReg{c, r}]
		}
	}
}

func (a *allocator) renamed(o operand) operand {
	if o.vec && o.reg >= 0 && a.place[o.class][o.reg] >= 0 {
		o.reg = a.place[o.class][o.reg]
	}
	return o
}
