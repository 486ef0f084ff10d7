package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Regions never wait for each other. A set of values can be one kernel only if it is convex: no value
// outside the set is computed from one of its members and feeds another, since the kernel would then wait
// for itself. take is the only way to make a region, and refuses other sets.
//
// Each region has a rank. Ranks follow the order of the graph: a region ranks after those that it reads. A
// value between members of a set has a rank between theirs, so only regions of such ranks are searched.
// When a set becomes one region, the regions that read it move after it and those that it reads move
// before it; all others stay (Pearce and Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic
// Graphs", 2006).

// take makes the new region r the home of its members. It returns false, and changes nothing, where the
// members are not convex, or where r has only some of the members of another region.
func (f *fuser) take(r *region) bool {
	parts, whole := f.partsOf(r)
	if !whole || !f.contract(r, parts) {
		return false
	}
	r.id = f.next
	f.next++
	r.inputs = map[*ir.Value]bool{}
	for _, v := range r.members {
		for _, from := range f.sources[v] {
			if !r.inputs[from] {
				r.inputs[from] = true
				r.reads = append(r.reads, from)
			}
		}
	}
	r.size = f.measure(r)
	for _, v := range r.members {
		f.home[v] = r
	}
	return true
}

// partsOf lists the regions whose members are in r; whole says that r has all of their members.
func (f *fuser) partsOf(r *region) (parts []*region, whole bool) {
	members := 0
	for _, v := range r.members {
		if part := f.home[v]; part != nil && !slices.Contains(parts, part) {
			parts = append(parts, part)
			members += len(part.members)
		}
	}
	return parts, members == 0 || members == len(r.members)
}

// keepsConvex refuses to merge regions where another one depends on a and feeds b.
func (f *fuser) keepsConvex(a, b *region) *form.Refusal {
	_, through := f.dependents([]*region{a, b}, max(a.rank, b.rank))
	if through == nil {
		return nil
	}
	x, y, span := f.ends(a, b)
	return form.Refuse(ir.ReasonCycle, span, "the kernel of %s also needs %s, which another kernel computes from %s", y.Name, through.Name, x.Name)
}

// contract gives r a rank in place of its parts, and moves the regions between the parts to either side of
// it. It returns false, and changes nothing, where one of these would have to be on both sides.
func (f *fuser) contract(r *region, parts []*region) bool {
	switch len(parts) {
	case 0: // the first region of a value
		r.rank = f.order[r.members[0]]
		return true
	case 1:
		r.rank = parts[0].rank
		return true
	}
	after, through := f.dependents(parts, highest(parts))
	if through != nil {
		return false
	}
	before := f.dependencies(parts, lowest(parts))
	var ranks []int
	for _, list := range [][]*region{before, parts, after} {
		for _, x := range list {
			ranks = append(ranks, x.rank)
		}
	}
	slices.Sort(ranks)
	byRank := func(a, b *region) int { return cmp.Compare(a.rank, b.rank) }
	slices.SortFunc(before, byRank)
	slices.SortFunc(after, byRank)
	for i, x := range before {
		x.rank = ranks[i]
	}
	r.rank = ranks[len(before)]
	for i, x := range after {
		x.rank = ranks[len(ranks)-len(after)+i]
	}
	return true
}

// dependents lists the regions, other than the parts, that depend on a part and have ranks below a limit;
// through is a value of one of them that a part reads, nil where there is none.
func (f *fuser) dependents(parts []*region, limit int) (out []*region, through *ir.Value) {
	f.mark(parts)
	part := f.marked
	f.marked++
	for _, p := range parts {
		out = f.readersBelow(out, p, limit, part)
	}
	for i := 0; i < len(out); i++ { // out grows as readers are found
		for _, v := range out[i].members {
			for _, u := range f.readers[v] {
				if f.home[u].mark == part {
					return nil, v
				}
			}
		}
		out = f.readersBelow(out, out[i], limit, part)
	}
	return out, nil
}

// readersBelow adds to a list the regions with ranks below a limit that read r, except parts and regions
// that are in the list already.
func (f *fuser) readersBelow(out []*region, r *region, limit, part int) []*region {
	for _, v := range r.members {
		for _, u := range f.readers[v] {
			if next := f.home[u]; next.rank < limit && next.mark != part && next.mark != f.marked {
				next.mark = f.marked
				out = append(out, next)
			}
		}
	}
	return out
}

// dependencies lists the regions, other than the parts, that a part depends on and that have ranks above
// a limit.
func (f *fuser) dependencies(parts []*region, limit int) (out []*region) {
	f.mark(parts)
	sources := func(r *region) {
		for _, from := range r.reads {
			if next := f.home[from]; next != nil && next.rank > limit && next.mark != f.marked {
				next.mark = f.marked
				out = append(out, next)
			}
		}
	}
	for _, p := range parts {
		sources(p)
	}
	for i := 0; i < len(out); i++ {
		sources(out[i])
	}
	return out
}

// mark gives regions a mark that no other region has.
func (f *fuser) mark(regions []*region) {
	f.marked++
	for _, r := range regions {
		r.mark = f.marked
	}
}

func highest(regions []*region) int {
	n := regions[0].rank
	for _, r := range regions {
		n = max(n, r.rank)
	}
	return n
}

func lowest(regions []*region) int {
	n := regions[0].rank
	for _, r := range regions {
		n = min(n, r.rank)
	}
	return n
}
