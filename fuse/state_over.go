package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Temporaries over each other. A kernel may store its result over a temporary that it is the last to read, as a state
// gets its next value in place: the gradient of scores over the scores. Such a kernel cannot overlap its loads with
// its stores as freely, so this is done only where the peak of memory falls.

// Figures of temporaries over each other.
const (
	smallPeak = 1 << 30 // bytes up to which memory is no concern
	leastFall = 16      // the peak has to fall by its 16th part
)

// decideOver places temporaries over each other while that lowers the peak of memory at the default sizes.
func (pr *program) decideOver(p *ir.Plan) {
	u := pr.usageOf(p)
	for {
		peak, at := u.peak(nil)
		if peak <= smallPeak {
			return
		}
		if !slices.ContainsFunc(u.written(at), func(next *ir.Buffer) bool { return pr.over(p, u, at, next, peak) }) {
			return
		}
	}
}

// over places a result of a kernel over a temporary that the kernel reads, if it may and the peak falls enough.
func (pr *program) over(p *ir.Plan, u *usage, at int, next *ir.Buffer, peak float64) bool {
	k := p.Kernels[at]
	for _, a := range k.Args {
		old := a.Buffer
		taken := func(b *ir.Buffer) bool { return b.Over == old }
		if a.Write || slices.ContainsFunc(p.Buffers, taken) || !u.ends(old, at) || len(old.Parts) > 0 || old.Type != next.Type || !ir.SameSize(old.Elements(), next.Elements()) {
			continue
		}
		if now, _ := u.peak(map[*ir.Buffer]int{next: at}); now > peak-peak/leastFall {
			continue
		}
		by := pr.updateBy(p, k, next, old)
		by.findAhead()
		if by.refusal(old.Name, k.Name) != "" {
			continue
		}
		for i, v := range by.k.Variants {
			v.Ahead = by.ahead[i]
		}
		next.Over = old
		share(k, next, old)
		u.first[next]++ // at its first kernel it takes no memory
		return true
	}
	return false
}

// findAhead finds, for each body, the reads of single elements that can be complete before the body stores: those of the
// row that it stores to, whose place is known before the last exchange ahead of the stores.
func (u *update) findAhead() {
	u.ahead = make([][]ir.Ahead, len(u.k.Variants))
	for i, v := range u.k.Variants {
		for _, l := range v.Locals {
			if n := u.sectionAhead(v, l); n >= 0 {
				u.ahead[i] = append(u.ahead[i], ir.Ahead{Local: l, Section: n})
			}
		}
	}
}

// sectionAhead is the section at whose end a body can read an element of the row for sections behind it; -1 where there is
// none, or the read is no such one.
func (u *update) sectionAhead(v *ir.Variant, l *ir.Local) int {
	r, place := algebra.ReadIn(l.Def), u.place(v)
	if r == nil || r.Arg != u.from || l.Level != ir.RowLevel || place == nil || v.Strategy.Info().May&ir.PartAhead == 0 ||
		!u.inRow(r, place) {
		return -1
	}
	known := map[*ir.Local]bool{} // results of folds
	for n, sec := range v.Sections {
		if slices.ContainsFunc(sec.Stores, func(s *ir.Store) bool { return s.Arg == u.to }) || uses(sec, l) {
			return -1
		}
		if sec.Exchanges() && !slices.ContainsFunc(foldsIn(l.Def), func(f *ir.Local) bool { return !known[f] }) {
			return n
		}
		for _, f := range sec.Folds {
			known[f.Result] = true
		}
	}
	return -1
}

// exchanged is how many sections of a body are over in all threads of a row before any of them stores a temporary over
// another: those up to the last that ends with an exchange among these threads.
func (u *update) exchanged(v *ir.Variant) int {
	if u.ahead == nil || v.Strategy.Info().May&ir.PartAhead == 0 {
		return 0
	}
	n := 0
	for i, sec := range v.Sections {
		if slices.ContainsFunc(sec.Stores, func(s *ir.Store) bool { return s.Arg == u.to }) {
			break
		}
		if sec.Exchanges() {
			n = i + 1
		}
	}
	return n
}

// inRow reports whether a read is of an element of the row that the kernel stores to: behind the first place of the row
// by less than the row is long.
func (u *update) inRow(r, place *ir.Expr) bool {
	first := map[*ir.Range]*ir.Expr{}
	for _, c := range u.k.Cols {
		first[c] = ir.IntConst(0)
	}
	start := ir.Substitute(place, first)
	behind := func(e *ir.Expr) *ir.Expr { return ir.Simplify(ir.Apply(ir.OpSub, e, start), u.facts) }
	if !u.distinct(u.k.Cols, behind(place)) || r.Guard == nil {
		return false
	}
	at := behind(r.Args[0])
	inside := ir.Apply(ir.OpAnd, ir.Apply(ir.OpLe, ir.IntConst(0), at), ir.Apply(ir.OpLt, at, algebra.Product(u.k.Cols)))
	return ir.SimplifyGiven(inside, r.Guard, u.facts).IsConst(1)
}

// foldsIn lists the results of folds in an expression, those in its locals included.
func foldsIn(e *ir.Expr) (out []*ir.Local) {
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpLocal && e.Local.Def == nil {
			out = append(out, e.Local)
		}
		return true
	}, e)
	return out
}

// uses reports whether a section needs a local.
func uses(s *ir.Section, l *ir.Local) bool {
	found := false
	walk := func(exprs ...*ir.Expr) {
		ir.WalkThrough(func(e *ir.Expr) bool {
			found = found || e.Op == ir.OpLocal && e.Local == l
			return !found
		}, exprs...)
	}
	for _, f := range s.Folds {
		walk(f.Where, f.Body, f.Index, f.Rescale)
	}
	for _, st := range s.Stores {
		walk(st.Value, st.Offset, st.Guard)
	}
	return found
}

// usage is when a plan's kernels use temporaries, and how many bytes these have at the default sizes. What lies over
// another counts as one with that.
type usage struct {
	first, last map[*ir.Buffer]int
	bytes       map[*ir.Buffer]float64
	order       []*ir.Buffer
}

func (pr *program) usageOf(p *ir.Plan) *usage {
	u := &usage{map[*ir.Buffer]int{}, map[*ir.Buffer]int{}, map[*ir.Buffer]float64{}, nil}
	for i, k := range p.Kernels {
		for _, a := range k.Args {
			b := a.Buffer
			if b.Kind != ir.TempBuffer {
				continue
			}
			if _, seen := u.first[b]; !seen {
				u.first[b], u.order = i, append(u.order, b)
				u.bytes[b] = algebra.Estimate(b.Elements(), pr.sizes) * float64(b.Type.Size())
			}
			u.last[b] = i
		}
	}
	return u
}

// peak is the most bytes that are in use at one kernel, and the first such kernel. Temporaries of begins take no memory of
// their own at the kernel there.
func (u *usage) peak(begins map[*ir.Buffer]int) (most float64, at int) {
	changes := map[int]float64{}
	for _, b := range u.order {
		first := u.first[b]
		if kernel, ok := begins[b]; ok {
			first = kernel + 1
		}
		changes[first] += u.bytes[b]
		changes[u.last[b]+1] -= u.bytes[b]
	}
	now := 0.0
	for i, end := 0, len(changes); end > 0; i++ {
		if change, ok := changes[i]; ok {
			end--
			if now += change; now > most {
				most, at = now, i
			}
		}
	}
	return most, at
}

// written lists the temporaries whose one writer is the kernel.
func (u *usage) written(at int) (out []*ir.Buffer) {
	for _, b := range u.order {
		if u.first[b] == at && len(b.Parts) == 0 && b.Over == nil {
			out = append(out, b)
		}
	}
	return out
}

// ends reports whether a kernel is the last to use a temporary.
func (u *usage) ends(b *ir.Buffer, at int) bool {
	_, temporary := u.first[b]
	return temporary && u.last[b] == at
}
