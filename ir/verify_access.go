package ir

import (
	"fmt"
	"maps"
	"slices"
	"sort"
)

// Accesses inside their buffers. That a proof is not found does not mean that an access is wrong. So accesses are not
// proved but tried, at sizes that the graph and the variant admit. At each size they are tried at the first and the
// last point of every loop, in all combinations while these are few, and at the last point at which the conditions
// around them hold. An access that is outside there is also outside in the kernel. An access whose condition or offset
// depends on data is not tried. In tests, plans run on an interpreter that checks every access.

// access is a place in memory that a body touches where its conditions hold.
type access struct {
	arg    *Arg
	offset *Expr
	under  *condition
}

// accessKey identifies equal accesses in all bodies of one kernel.
type accessKey struct {
	arg           *Arg
	offset, under uint64
}

// condition is a condition that holds, or does not hold, where an expression is evaluated, with the
// conditions around it.
type condition struct {
	e     *Expr
	holds bool
	outer *condition
	hash  uint64
}

// given adds a condition, which may be nil for none.
func given(outer *condition, e *Expr, holds bool) *condition {
	if e == nil {
		return outer
	}
	h := hashInit.word(e.hash)
	if outer != nil {
		h = h.word(outer.hash)
	}
	if holds {
		h = h.word(1)
	}
	return &condition{e, holds, outer, uint64(h)}
}

// touch notes an access.
func (b *bodyVerifier) touch(a *Arg, offset *Expr, under *condition) {
	b.found = append(b.found, access{a, offset, under})
}

// sampleSizes are sizes that a graph admits: its defaults, small ones, and some in between.
func sampleSizes(g *Graph) []map[string]int64 {
	facts := g.Facts()
	of := func(size func(i int, s Symbol) int64) map[string]int64 {
		out := make(map[string]int64, len(g.Symbols))
		for i, s := range g.Symbols {
			by := max(1, facts.Divisible[s.Name])
			out[s.Name] = (size(i, s) + by - 1) / by * by
		}
		return out
	}
	var out []map[string]int64
	for _, sizes := range []map[string]int64{
		of(func(_ int, s Symbol) int64 { return max(1, s.Default) }),
		of(func(int, Symbol) int64 { return 1 }),
		of(func(i int, _ Symbol) int64 { return int64(i % 2) }), // empty tensors: a kernel that still has points touches none of them
		of(func(i int, _ Symbol) int64 { return 1 - int64(i%2) }),
		of(func(i int, _ Symbol) int64 { return []int64{3, 5, 2}[i%3] }),
		of(func(i int, _ Symbol) int64 { return []int64{8, 64, 16}[i%3] }),
		of(func(i int, _ Symbol) int64 { return []int64{130, 33, 257}[i%3] }),
		of(func(i int, _ Symbol) int64 { return []int64{512, 4096, 128}[i%3] }),
	} {
		if admits(g, sizes) && !slices.ContainsFunc(out, func(o map[string]int64) bool { return maps.Equal(o, sizes) }) {
			out = append(out, sizes)
		}
	}
	return out
}

func admits(g *Graph, sizes map[string]int64) bool {
	for _, c := range g.Constraints {
		if v, ok := EvalSize(c.Cond, sizes); !ok || v == 0 {
			return false
		}
	}
	return true
}

// inBounds tries the accesses of the body that were not tried for another body.
func (b *bodyVerifier) inBounds() error {
	samples := b.admitted(b.samples)
	if len(samples) == 0 {
		samples = b.admitted(b.within())
	}
	if len(samples) == 0 {
		return nil
	}
	for _, a := range b.found {
		key := accessKey{arg: a.arg, offset: a.offset.hash}
		if a.under != nil {
			key.under = a.under.hash
		}
		if b.tried[key] {
			continue
		}
		b.tried[key] = true
		ranges := a.ranges()
		for _, sizes := range samples {
			if err := a.inside(ranges, sizes); err != nil {
				return err
			}
		}
	}
	return nil
}

// admitted are the sizes of a list at which the kernel runs by this variant, and has points.
func (b *bodyVerifier) admitted(list []map[string]int64) (out []map[string]int64) {
	for _, sizes := range list {
		at := corner{sizes: sizes}
		if at.holds(b.k.When) && at.holds(b.variant.When) && b.runs(&at) {
			out = append(out, sizes)
		}
	}
	return out
}

// within are sizes made of the numbers in the variant's condition: one symbol has such a number, the
// others have small ones.
func (b *bodyVerifier) within() (out []map[string]int64) {
	const most = 1 << 20
	g := b.plan.Graph
	numbers := map[int64]bool{}
	Walk(b.variant.When, func(e *Expr) bool {
		if e.Op == OpConst && e.Int > 0 && e.Int <= most {
			numbers[e.Int] = true
		}
		return true
	})
	symbols := map[string]bool{}
	Walk(b.variant.When, func(e *Expr) bool {
		if e.Op == OpSym {
			symbols[e.Name] = true
		}
		return true
	})
	for _, n := range slices.Sorted(maps.Keys(numbers)) {
		for _, name := range slices.Sorted(maps.Keys(symbols)) {
			sizes := make(map[string]int64, len(g.Symbols))
			for _, s := range g.Symbols {
				by := max(1, b.facts.Divisible[s.Name])
				sizes[s.Name] = by
				if s.Name == name {
					sizes[s.Name] = (n + by - 1) / by * by
				}
			}
			if admits(g, sizes) {
				out = append(out, sizes)
			}
		}
	}
	return out
}

// runs reports whether the loops of the kernel have points.
func (b *bodyVerifier) runs(at *corner) bool {
	for _, r := range slices.Concat(b.variant.Rows(b.k), b.k.Cols) {
		at.fuel = evalFuel
		if n, ok := at.eval(r.Extent); !ok || n < 1 {
			return false
		}
	}
	return true
}

// holds reports whether a condition on the sizes, which may be nil for none, is known to hold.
func (p *corner) holds(e *Expr) bool {
	if e == nil {
		return true
	}
	p.fuel = evalFuel
	v, ok := p.eval(e)
	return ok && v != 0
}

// ranges lists the loops that an access depends on.
func (a access) ranges() []*Range {
	set := map[*Range]bool{}
	add := func(e *Expr) {
		WalkThrough(func(e *Expr) bool {
			if e.Op == OpRange {
				set[e.Range] = true
			}
			return e.Op != OpRead
		}, e)
	}
	add(a.offset)
	for c := a.under; c != nil; c = c.outer {
		add(c.e)
	}
	return slices.SortedFunc(maps.Keys(set), func(x, y *Range) int { return x.ID - y.ID })
}

// Figures of trying accesses.
const (
	mostCorners = 64
	evalFuel    = 500 // steps to find one offset
)

// inside tries an access at the corners of its loops.
func (a access) inside(ranges []*Range, sizes map[string]int64) error {
	at := corner{sizes: sizes, ranges: make(map[*Range]int64, len(ranges)), fuel: evalFuel}
	elements, ok := int64(1), true
	for _, e := range a.arg.Buffer.Shape {
		n, known := at.eval(e)
		ok = ok && known && mulFits(elements, n) // no memory holds so many elements, so nothing runs at such sizes
		elements *= n
	}
	last := make([]int64, len(ranges))
	for i, r := range ranges {
		at.fuel = evalFuel
		n, known := at.eval(r.Extent)
		if !known || n < 1 {
			return nil // nothing is known, or the loop does not run
		}
		last[i] = n - 1
	}
	if !ok {
		return nil
	}
	corners := mostCorners
	if len(ranges) < 6 {
		corners = 1 << len(ranges)
	}
	for n := range corners {
		for i, r := range ranges {
			at.ranges[r] = 0
			if n>>(i%6)&1 == 1 {
				at.ranges[r] = last[i]
			}
		}
		if err := a.try(&at, elements); err != nil {
			return err
		}
		if at.all(a.under) {
			continue
		}
		for i, r := range ranges { // for each loop, also try the last point at which the conditions hold
			if at.ranges[r] == 0 {
				continue
			}
			at.ranges[r] = int64(sort.Search(int(last[i]), func(n int) bool {
				at.ranges[r] = int64(n)
				return !at.all(a.under)
			})) - 1
			if at.ranges[r] >= 0 {
				if err := a.try(&at, elements); err != nil {
					return err
				}
			}
			at.ranges[r] = last[i]
		}
	}
	return nil
}

// try tries an access at one point, where its conditions are known to hold there.
func (a access) try(at *corner, elements int64) error {
	if !at.all(a.under) {
		return nil
	}
	at.fuel = evalFuel
	if offset, known := at.eval(a.offset); known && (offset < 0 || offset >= elements) {
		return fmt.Errorf("it touches element %d of %s, which has %d at sizes %v", offset, a.arg.Name, elements, at.sizes)
	}
	return nil
}

// corner gives symbols and ranges values.
type corner struct {
	sizes  map[string]int64
	ranges map[*Range]int64
	fuel   int
}

// all reports whether all conditions are known to hold, or to fail, as they should.
func (p *corner) all(c *condition) bool {
	p.fuel = evalFuel
	for ; c != nil; c = c.outer {
		if v, ok := p.eval(c.e); !ok || (v != 0) != c.holds {
			return false
		}
	}
	return true
}

// eval evaluates an expression over symbols and ranges; ok is false for any other, and for what does
// not fit 64 bits.
func (p *corner) eval(e *Expr) (v int64, ok bool) {
	if p.fuel--; p.fuel < 0 || e.Type != Index && e.Type != I64 && e.Type != Bool {
		return 0, false
	}
	switch e.Op {
	case OpConst:
		return e.Int, true
	case OpSym:
		v, ok = p.sizes[e.Name]
		return v, ok
	case OpRange:
		v, ok = p.ranges[e.Range]
		return v, ok
	case OpCast:
		return p.eval(e.Args[0])
	case OpLocal:
		if e.Local.Def == nil {
			return 0, false
		}
		return p.eval(e.Local.Def)
	case OpSelect:
		if v, ok = p.eval(e.Args[0]); !ok {
			return 0, false
		}
		if v != 0 {
			return p.eval(e.Args[1])
		}
		return p.eval(e.Args[2])
	}
	info := e.Op.Info()
	if info.Int == nil || len(e.Args) == 0 || len(e.Args) > 3 {
		return 0, false
	}
	var args [3]int64
	for i, a := range e.Args {
		if args[i], ok = p.eval(a); !ok {
			return 0, false
		}
	}
	if e.Op == OpMul && !mulFits(args[0], args[1]) {
		return 0, false
	}
	return info.Int(args[0], args[1], args[2]), true
}
