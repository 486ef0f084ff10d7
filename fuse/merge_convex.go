package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/ir"
)

// Regions never wait for each other. A set of values can be one kernel only if it is convex: no value
// outside the set is computed from one of its members and feeds another, since the kernel would then
// wait for itself. take is the only way to make a region, and takes no other sets.
//
// Each region has a rank, in an order in which every region stands after those that it reads. A value
// that stands between members of a set has a rank between theirs, so that only regions of such ranks
// are searched. When a set becomes one region, those that read it and those that it reads move behind
// it and ahead of it; all others stay (Pearce and Kelly, "A Dynamic Topological Sort Algorithm for
// Directed Acyclic Graphs", 2006).

// take makes r, which is new, the home of its members. It reports whether it did: not where the
// members are not convex, or are only some of those of another region.
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

// partsOf lists the regions that have members of r; whole says that they have no others.
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

// between reports whether another region stands between some of those given.
func (f *fuser) between(parts ...*region) bool {
	_, convex := f.behind(parts, highest(parts))
	return !convex
}

// contract gives r a rank in place of its parts, and moves the regions between these to either side of
// it. It reports false, and changes nothing, where one of those would have to be on both sides.
func (f *fuser) contract(r *region, parts []*region) bool {
	switch len(parts) {
	case 0: // the first region of a value
		r.rank = f.order[r.members[0]]
		return true
	case 1:
		r.rank = parts[0].rank
		return true
	}
	behind, convex := f.behind(parts, highest(parts))
	if !convex {
		return false
	}
	ahead := f.ahead(parts, lowest(parts))
	var ranks []int
	for _, list := range [][]*region{ahead, parts, behind} {
		for _, x := range list {
			ranks = append(ranks, x.rank)
		}
	}
	slices.Sort(ranks)
	byRank := func(a, b *region) int { return cmp.Compare(a.rank, b.rank) }
	slices.SortFunc(ahead, byRank)
	slices.SortFunc(behind, byRank)
	for i, x := range ahead {
		x.rank = ranks[i]
	}
	r.rank = ranks[len(ahead)]
	for i, x := range behind {
		x.rank = ranks[len(ranks)-len(behind)+i]
	}
	return true
}

// behind lists the regions, other than the parts, that depend on one of these and have ranks below a
// limit; convex is false where one of them feeds a part.
func (f *fuser) behind(parts []*region, limit int) (out []*region, convex bool) {
	f.mark(parts)
	part := f.marked
	f.marked++
	for _, p := range parts {
		out = f.readersBelow(out, p, limit, part)
	}
	for i := 0; i < len(out); i++ { // out grows
		for _, v := range out[i].members {
			for _, u := range f.readers[v] {
				if f.home[u].mark == part {
					return nil, false
				}
			}
		}
		out = f.readersBelow(out, out[i], limit, part)
	}
	return out, true
}

// readersBelow adds to a list the regions with ranks below a limit that read r, but no parts and none
// that are in the list.
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

// ahead lists the regions, other than the parts, that one of these depends on and that have ranks
// above a limit.
func (f *fuser) ahead(parts []*region, limit int) (out []*region) {
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
