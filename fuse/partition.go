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

// partition is the values of a graph, in regions of which none waits for itself.
type partition struct {
	*flow
	home   map[*ir.Value]*region // by member
	next   int                   // id of a region
	marked int                   // how many searches have marked regions
}

// take makes the new region r the home of its members. It returns false, and changes nothing, where the
// members are not convex, or where r has only some of the members of another region.
func (pt *partition) take(r *region) bool {
	parts, whole := pt.partsOf(r)
	if !whole || !pt.contract(r, parts) {
		return false
	}
	r.id = pt.next
	pt.next++
	r.inputs = map[*ir.Value]bool{}
	for _, v := range r.members {
		for _, from := range pt.sources[v] {
			if !r.inputs[from] {
				r.inputs[from] = true
				r.reads = append(r.reads, from)
			}
		}
	}
	r.size = pt.measure(r)
	for _, v := range r.members {
		pt.home[v] = r
	}
	return true
}

// partsOf lists the regions whose members are in r; whole says that r has all of their members.
func (pt *partition) partsOf(r *region) (parts []*region, whole bool) {
	members := 0
	for _, v := range r.members {
		if part := pt.home[v]; part != nil && !slices.Contains(parts, part) {
			parts = append(parts, part)
			members += len(part.members)
		}
	}
	return parts, members == 0 || members == len(r.members)
}

// keepsConvex refuses to merge regions where another one depends on a and feeds b.
func (pt *partition) keepsConvex(a, b *region) *form.Refusal {
	_, through := pt.dependents([]*region{a, b}, max(a.rank, b.rank))
	if through == nil {
		return nil
	}
	x, y, span := pt.ends(a, b)
	return form.Refuse(ir.ReasonCycle, span, "the kernel of %s also needs %s, which another kernel computes from %s", y.Name, through.Name, x.Name)
}

// contract gives r a rank in place of its parts, and moves the regions between the parts to either side of
// it. It returns false, and changes nothing, where one of these would have to be on both sides.
func (pt *partition) contract(r *region, parts []*region) bool {
	switch len(parts) {
	case 0: // the first region of a value
		r.rank = pt.order[r.members[0]]
		return true
	case 1:
		r.rank = parts[0].rank
		return true
	}
	after, through := pt.dependents(parts, highest(parts))
	if through != nil {
		return false
	}
	before := pt.dependencies(parts, lowest(parts))
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
func (pt *partition) dependents(parts []*region, limit int) (out []*region, through *ir.Value) {
	pt.mark(parts)
	part := pt.marked
	pt.marked++
	for _, x := range parts {
		out = pt.readersBelow(out, x, limit, part)
	}
	for i := 0; i < len(out); i++ { // out grows as readers are found
		for _, v := range out[i].members {
			for _, u := range pt.readers[v] {
				if pt.home[u].mark == part {
					return nil, v
				}
			}
		}
		out = pt.readersBelow(out, out[i], limit, part)
	}
	return out, nil
}

// readersBelow adds to a list the regions with ranks below a limit that read r, except parts and regions
// that are in the list already.
func (pt *partition) readersBelow(out []*region, r *region, limit, part int) []*region {
	for _, v := range r.members {
		for _, u := range pt.readers[v] {
			if next := pt.home[u]; next.rank < limit && next.mark != part && next.mark != pt.marked {
				next.mark = pt.marked
				out = append(out, next)
			}
		}
	}
	return out
}

// dependencies lists the regions, other than the parts, that a part depends on and that have ranks above
// a limit.
func (pt *partition) dependencies(parts []*region, limit int) (out []*region) {
	pt.mark(parts)
	sources := func(r *region) {
		for _, from := range r.reads {
			if next := pt.home[from]; next != nil && next.rank > limit && next.mark != pt.marked {
				next.mark = pt.marked
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
func (pt *partition) mark(regions []*region) {
	pt.marked++
	for _, r := range regions {
		r.mark = pt.marked
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

// relink computes again what depends on the order of the graph's values, after some were added or taken out.
func (pt *partition) relink() {
	pt.link(pt.program)
	for i, r := range pt.schedule() {
		r.rank = i
	}
}

// schedule orders the regions by their place in the graph, producers first.
func (pt *partition) schedule() []*region {
	var out []*region
	placed := map[*region]bool{}
	var place func(r *region)
	place = func(r *region) {
		placed[r] = true
		for _, v := range r.members {
			for _, from := range pt.sources[v] {
				if home := pt.home[from]; home != nil && !placed[home] {
					place(home)
				}
			}
		}
		out = append(out, r)
	}
	if pt.g.HasState() {
		pt.statesLast(place, placed)
		return out
	}
	for _, v := range pt.g.Values {
		if r := pt.home[v]; r != nil && !placed[r] {
			place(r)
		}
	}
	return out
}

// statesLast puts the regions that write next values of states after all regions that do not
// need them, so that few present values are read after their next ones are written. Among these
// regions, one that reads a present value comes before the one that replaces it, where possible.
func (pt *partition) statesLast(place func(*region), placed map[*region]bool) {
	replaces := map[*region][]*ir.Value{} // the present values
	for v, old := range pt.updates {
		if r := pt.home[v]; r != nil {
			replaces[r] = append(replaces[r], old)
		}
	}
	var left []*region
	for _, v := range pt.g.Values {
		r := pt.home[v]
		if r == nil || placed[r] || slices.Contains(left, r) {
			continue
		}
		if replaces[r] != nil {
			left = append(left, r)
			continue
		}
		place(r)
	}
	reads := func(r *region, old []*ir.Value) bool {
		return slices.ContainsFunc(old, func(v *ir.Value) bool { return slices.Contains(r.reads, v) })
	}
	for len(left) > 0 {
		at := slices.IndexFunc(left, func(r *region) bool {
			return placed[r] || !slices.ContainsFunc(left, func(other *region) bool {
				return other != r && !placed[other] && reads(other, replaces[r])
			})
		})
		r := left[max(at, 0)] // if they wait for each other in a cycle, one state gets a second buffer
		left = slices.DeleteFunc(left, func(other *region) bool { return other == r })
		if !placed[r] {
			place(r)
		}
	}
}
