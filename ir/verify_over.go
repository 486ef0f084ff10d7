package ir

import (
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
		if err := v.over(k, b); err != nil {
			return fmt.Errorf("%s is over %s, but kernel %s %w", b.Name, old.Name, k.Name, err)
		}
	}
	return nil
}

// over checks the kernel that stores to a buffer over one that it reads.
func (v *planVerifier) over(k *Kernel, b *Buffer) error {
	body := k
	if k.Like != nil {
		body = k.Like
	}
	var from, to *Arg
	for i, a := range k.Args {
		switch a.Buffer {
		case b.Over:
			from = body.Args[i]
		case b:
			to = body.Args[i]
		}
	}
	switch {
	case from == nil:
		return nil
	case k.LastBlock != nil || len(body.Accumulated) > 0:
		return fmt.Errorf("does not store what it reads at one point")
	case !from.Shared || !to.Shared:
		return fmt.Errorf("relies on their memory being apart")
	}
	for i, variant := range body.Variants {
		if err := variant.over(from, to); err != nil {
			return fmt.Errorf("%w in variant %d", err, i+1)
		}
	}
	return nil
}

// over checks that a body reads each element of from before it stores to the same one of to.
func (v *Variant) over(from, to *Arg) error {
	if info := v.Strategy.Info(); !info.Apart && info.May&PartAhead == 0 {
		return fmt.Errorf("has threads read for each other")
	}
	stores := slices.IndexFunc(v.Sections, func(s *Section) bool {
		return slices.ContainsFunc(s.Stores, func(st *Store) bool { return st.Arg == to })
	})
	if stores < 0 {
		return fmt.Errorf("stores where no section does")
	}
	at := slices.IndexFunc(v.Sections[stores].Stores, func(st *Store) bool { return st.Arg == to })
	offset := v.Sections[stores].Stores[at].Offset
	ahead := map[*Local]bool{}
	for _, a := range v.Ahead {
		if s := v.Sections[a.Section]; a.Local.Level != RowLevel || !s.Exchanges() {
			return fmt.Errorf("has a read ahead of no exchange")
		}
		ahead[a.Local] = a.Section < stores
	}
	for i, s := range v.Sections {
		var err error
		WalkThrough(func(e *Expr) bool {
			switch {
			case e.Op == OpLocal && ahead[e.Local]:
				return false
			case e.Op != OpRead || e.Arg != from:
			case !Equal(e.Args[0], offset):
				err = fmt.Errorf("reads other elements than it stores")
			case i > stores:
				err = fmt.Errorf("reads after it has stored")
			case i < stores && !slices.ContainsFunc(v.Sections[i:stores], (*Section).Exchanges):
				err = fmt.Errorf("may store before another thread has read")
			}
			return err == nil
		}, s.roots()...)
		if err != nil {
			return err
		}
	}
	return nil
}

// roots are the expressions that a section evaluates.
func (s *Section) roots() (out []*Expr) {
	for _, f := range s.Folds {
		out = append(out, f.Where, f.Body, f.Index, f.Rescale)
	}
	for _, st := range s.Stores {
		out = append(out, st.Value, st.Offset, st.Guard)
	}
	for _, p := range s.Partials {
		out = append(out, p.Body, p.Offset)
	}
	return out
}
