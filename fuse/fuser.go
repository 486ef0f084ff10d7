package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// fuser grows regions by merging them until no merge saves time.
type fuser struct {
	*program
	choices []Choice
	order   map[*ir.Value]int
	results map[*ir.Value]bool
	checks  map[*ir.Value]bool        // values that are needed for checks only
	sources map[*ir.Value][]*ir.Value // the values that each value reads, each once
	readers map[*ir.Value][]*ir.Value
	home    map[*ir.Value]*region
	next    int
	marked  int // how many searches have marked regions, see merge_convex.go
	refused map[[2]*ir.Value]ir.Refusal
	work    map[*ir.Value]int // operations of a point
	streams []*form.Stream
	updates map[*ir.Value]*ir.Value // next values of states, and the inputs that hold the present ones
}

// linkValues records the order of the graph's values, and what each reads.
func (f *fuser) linkValues() {
	f.order, f.sources, f.readers = map[*ir.Value]int{}, map[*ir.Value][]*ir.Value{}, map[*ir.Value][]*ir.Value{}
	for i, v := range f.g.Values {
		f.order[v] = i
		for _, l := range f.loads[v] {
			f.source(v, l.From)
		}
		for _, b := range f.bounds[v] {
			f.source(v, b.low)
			f.source(v, b.high)
		}
	}
}

// source records that v reads from. Calls for the same v must follow each other.
func (f *fuser) source(v, from *ir.Value) {
	if rs := f.readers[from]; len(rs) == 0 || rs[len(rs)-1] != v {
		f.readers[from] = append(rs, v)
		f.sources[v] = append(f.sources[v], from)
	}
}

// reads reports whether a member of b loads a member of a.
func (f *fuser) reads(b, a *region) bool {
	if a == nil || b == nil || a == b {
		return false
	}
	for _, from := range b.reads {
		if a.has(from) {
			return true
		}
	}
	return false
}

func (f *fuser) readOnlyIn(v *ir.Value, regions ...*region) bool {
	for _, u := range f.readers[v] {
		inside := false
		for _, r := range regions {
			inside = inside || r.has(u)
		}
		if !inside {
			return false
		}
	}
	return true
}

// tensors lists the values that a region reads from others, and those that others read from it.
func (f *fuser) tensors(r *region) []*ir.Value {
	var out []*ir.Value
	for _, v := range r.members {
		if f.results[v] || !f.readOnlyIn(v, r) {
			out = append(out, v)
		}
	}
	for _, from := range r.reads {
		if !r.has(from) {
			out = append(out, from)
		}
	}
	return out
}

// contiguous is the index, in a region's space, of the range that is contiguous in the largest tensor it
// accesses; -1 where no range is.
func (f *fuser) contiguous(r *region) int {
	best, along := -1.0, -1
	m := &matcher{facts: f.facts}
	consider := func(u, v *ir.Value, at []*ir.Expr) {
		if size := f.bytes(v); size > best && len(at) > 0 {
			best, along = size, -1
			if digits := m.digits(r.index(u, at[len(at)-1], f.facts)); len(digits) > 0 {
				along = slices.Index(r.space, digits[len(digits)-1])
			}
		}
	}
	for _, v := range r.members {
		if f.results[v] || !f.readOnlyIn(v, r) {
			consider(v, v, algebra.UnitIndices(v.Axes))
		}
		for _, l := range f.loads[v] {
			if !r.has(l.From) {
				consider(v, l.From, l.Args)
			}
		}
	}
	return along
}
