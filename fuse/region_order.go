package fuse

import (
	"cmp"
	"slices"

	"github.com/fusec/fusec/ir"
)

// Each region has a rank. Ranks follow the order of the graph: a region ranks after those that it reads. A
// value between members of a set has a rank between theirs, so only regions of such ranks are searched.
// When a set becomes one region, the regions that read it move after it and those that it reads move
// before it; all others stay (Pearce and Kelly, "A Dynamic Topological Sort Algorithm for Directed Acyclic
// Graphs", 2006).

// regionOrder is the regions of a graph, in an order in which each comes after those that it reads.
type regionOrder struct {
	values *dependence
	home   map[*ir.Value]*region // by member
	marked int                   // how many searches have marked regions
}

// partsOf lists the regions whose members are in r; whole says that r has all of their members.
func (o *regionOrder) partsOf(r *region) (parts []*region, whole bool) {
	members := 0
	for _, v := range r.members {
		if part := o.home[v]; part != nil && !slices.Contains(parts, part) {
			parts = append(parts, part)
			members += len(part.members)
		}
	}
	return parts, members == 0 || members == len(r.members)
}

// contract gives r a rank in place of its parts, and moves the regions between the parts to either side of
// it. It returns false, and changes nothing, where one of these would have to be on both sides.
func (o *regionOrder) contract(r *region, parts []*region) bool {
	switch len(parts) {
	case 0: // the first region of a value
		r.rank = o.values.order[r.members[0]]
		return true
	case 1:
		r.rank = parts[0].rank
		return true
	}
	after, through := o.dependents(parts, highest(parts))
	if through != nil {
		return false
	}
	before := o.dependencies(parts, lowest(parts))
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
func (o *regionOrder) dependents(parts []*region, limit int) (out []*region, through *ir.Value) {
	o.mark(parts)
	part := o.marked
	o.marked++
	for _, x := range parts {
		out = o.readersBelow(out, x, limit, part)
	}
	for i := 0; i < len(out); i++ { // out grows as readers are found
		for _, v := range out[i].members {
			for _, u := range o.values.readers[v] {
				if o.home[u].mark == part {
					return nil, v
				}
			}
		}
		out = o.readersBelow(out, out[i], limit, part)
	}
	return out, nil
}

// readersBelow adds to a list the regions with ranks below a limit that read r, except parts and regions
// that are in the list already.
func (o *regionOrder) readersBelow(out []*region, r *region, limit, part int) []*region {
	for _, v := range r.members {
		for _, u := range o.values.readers[v] {
			if next := o.home[u]; next.rank < limit && next.mark != part && next.mark != o.marked {
				next.mark = o.marked
				out = append(out, next)
			}
		}
	}
	return out
}

// dependencies lists the regions, other than the parts, that a part depends on and that have ranks above
// a limit.
func (o *regionOrder) dependencies(parts []*region, limit int) (out []*region) {
	o.mark(parts)
	sources := func(r *region) {
		for _, from := range r.reads {
			if next := o.home[from]; next != nil && next.rank > limit && next.mark != o.marked {
				next.mark = o.marked
				out = append(out, next)
			}
		}
	}
	for _, x := range parts {
		sources(x)
	}
	for i := 0; i < len(out); i++ {
		sources(out[i])
	}
	return out
}

// mark gives regions a mark that no other region has.
func (o *regionOrder) mark(regions []*region) {
	o.marked++
	for _, r := range regions {
		r.mark = o.marked
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
