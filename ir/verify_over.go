package ir

import (
	"cmp"
	"fmt"
	"slices"
)

// overs checks the temporaries that may have the memory of another; last is the last kernel that uses each.
func (v *planVerifier) overs(temps []*Buffer, last map[*Buffer]int) error {
	taken := map[*Buffer]*Buffer{}
	for _, b := range temps {
		old := b.Over
		if old == nil {
			continue
		}
		k := v.plan.Kernels[v.written[b]]
		switch {
		case !slices.Contains(temps, old) || len(b.Parts)+len(old.Parts) > 0:
			return fmt.Errorf("%s is over %s, which is no temporary that one kernel writes", b.Name, old.Name)
		case old.Type != b.Type || !SameSize(old.Elements(), b.Elements()):
			return fmt.Errorf("%s is over %s, but they differ in type or size", b.Name, old.Name)
		case taken[old] != nil:
			return fmt.Errorf("%s and %s are both over %s", taken[old].Name, b.Name, old.Name)
		case v.written[old] >= v.written[b] || last[old] > v.written[b]:
			return fmt.Errorf("%s is over %s, which kernels read from kernel %s on", b.Name, old.Name, k.Name)
		}
		taken[old] = b
		if err := v.over(k, b, old); err != nil {
			return fmt.Errorf("%s is over %s, but kernel %s %w", b.Name, old.Name, k.Name, err)
		}
	}
	return nil
}

// updates checks the outputs that may have the memory of the input whose next value they are.
func (v *planVerifier) updates(last map[*Buffer]int) error {
	for _, b := range v.plan.Buffers {
		if !b.InPlace {
			continue
		}
		old := b.Updates
		switch {
		case old == nil || b.Kind != OutputBuffer || old.Kind != InputBuffer || old.Type != b.Type || !SameSize(old.Elements(), b.Elements()):
			return fmt.Errorf("%s takes the place of what is no input like it", b.Name)
		case last[old] > v.written[b]:
			return fmt.Errorf("%s takes the place of %s, which kernel %s reads later", b.Name, old.Name, v.plan.Kernels[last[old]].Name)
		}
		if err := v.over(v.plan.Kernels[v.written[b]], b, old); err != nil {
			return fmt.Errorf("%s takes the place of %s, but kernel %w", b.Name, old.Name, err)
		}
	}
	return nil
}

// over checks the kernel that stores to a buffer over another one that it reads.
func (v *planVerifier) over(k *Kernel, b, old *Buffer) error {
	body := k
	if k.Like != nil {
		body = k.Like
	}
	var from, to *Arg
	for i, a := range k.Args {
		switch a.Buffer {
		case old:
			from = body.Args[i]
		case b:
			to = body.Args[i]
		}
	}
	switch {
	case from == nil:
		return nil
	case k.LastBlock != nil || len(body.Accumulated) > 0 || !slices.Contains(v.plan.Launched(), k):
		return fmt.Errorf("does not store what it reads at one point")
	case !from.Shared || !to.Shared:
		return fmt.Errorf("relies on their memory being apart")
	}
	for i, variant := range body.Variants {
		if err := variant.over(body, from, to, b.Over != nil); err != nil {
			return fmt.Errorf("%w in variant %d", err, i+1)
		}
	}
	return nil
}

// over checks that a body of k reads each element of from before it stores to the same one of to. Where it passes over
// columns, another thread may visit the point in the next pass: what an earlier pass reads is read before the store only if
// the threads of the row have an exchange in between, which waits says counts.
func (v *Variant) over(k *Kernel, from, to *Arg, waits bool) error {
	info := v.Strategy.Info()
	waits = waits && info.May&PartAhead != 0
	shared := v.Early
	if !waits {
		shared = slices.Concat(shared, v.Staged)
	}
	if !info.Apart && !waits {
		return fmt.Errorf("has threads read for each other")
	}
	r, err := v.replacing(k, from, to)
	if err != nil {
		return err
	}
	for _, l := range shared {
		if reads, err := r.reads(l.Def); reads || err != nil {
			return cmp.Or(err, fmt.Errorf("has threads read for each other"))
		}
	}
	for i, s := range v.Sections {
		switch reads, err := r.reads(s.roots()...); {
		case err != nil:
			return err
		case !reads:
		case i > r.section:
			return fmt.Errorf("reads after it has stored")
		case len(k.Cols) > 0 && i < r.section && !(waits && slices.ContainsFunc(v.Sections[i:r.section], (*Section).Exchanges)):
			return fmt.Errorf("may store before another thread has read")
		}
	}
	if reads, err := r.reads(r.late...); reads || err != nil {
		return cmp.Or(err, fmt.Errorf("reads after it has stored"))
	}
	return nil
}

// A replacing is where a body stores over what it reads.
type replacing struct {
	from    *Arg
	offset  *Expr
	section int
	late    []*Expr         // what the section may evaluate behind the store
	ahead   map[*Local]bool // reads that are complete before the section
}

// replacing finds where a body of k stores to an argument, and checks that no element is stored at two points.
func (v *Variant) replacing(k *Kernel, from, to *Arg) (*replacing, error) {
	r := &replacing{from: from, ahead: map[*Local]bool{}}
	r.section = slices.IndexFunc(v.Sections, func(s *Section) bool { return s.storeTo(to) >= 0 })
	if r.section < 0 {
		return nil, fmt.Errorf("stores where no section does")
	}
	s := v.Sections[r.section]
	at := s.storeTo(to)
	r.offset = s.Stores[at].Offset
	for _, st := range s.Stores[at+1:] {
		r.late = append(r.late, st.roots()...)
	}
	for _, f := range s.Scans() {
		r.late = append(r.late, f.roots()...)
	}
	for _, along := range slices.Concat(v.Rows(k), k.Cols) {
		if !DependsOn(r.offset, along) && !along.Extent.IsConst(1) {
			return nil, fmt.Errorf("stores one element at several points")
		}
	}
	for _, a := range v.Ahead {
		if s := v.Sections[a.Section]; a.Local.Level != RowLevel || !s.Exchanges() {
			return nil, fmt.Errorf("has a read ahead of no exchange")
		}
		r.ahead[a.Local] = a.Section < r.section
	}
	return r, nil
}

// reads reports whether expressions read what is stored over, and checks that they do at the same element.
func (r *replacing) reads(exprs ...*Expr) (found bool, err error) {
	WalkThrough(func(e *Expr) bool {
		if e.Op == OpLocal && r.ahead[e.Local] {
			return false
		}
		if e.Op == OpRead && e.Arg == r.from {
			found = true
			if !Equal(e.Args[0], r.offset) {
				err = fmt.Errorf("reads other elements than it stores")
			}
		}
		return err == nil
	}, exprs...)
	return found, err
}

// storeTo is the place of the first store to an argument among those of the section; -1 where it has none.
func (s *Section) storeTo(to *Arg) int {
	return slices.IndexFunc(s.Stores, func(st *Store) bool { return st.Arg == to })
}

// roots are the expressions that a section evaluates.
func (s *Section) roots() (out []*Expr) {
	for _, f := range s.Folds {
		out = append(out, f.roots()...)
	}
	for _, st := range s.Stores {
		out = append(out, st.roots()...)
	}
	for _, p := range s.Partials {
		out = append(out, p.Body, p.Offset)
	}
	return out
}

func (f *Fold) roots() []*Expr { return []*Expr{f.Where, f.Body, f.Index, f.Rescale} }

func (st *Store) roots() []*Expr { return []*Expr{st.Value, st.Offset, st.Guard} }
