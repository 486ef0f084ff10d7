package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// dependence says how the values of a graph depend on each other: their order, what each reads, and who reads it.
// It asks of a region only which values are in it, and knows neither sizes nor loops.
type dependence struct {
	order   map[*ir.Value]int
	sources map[*ir.Value][]*ir.Value // the values that each value reads, each once
	readers map[*ir.Value][]*ir.Value
	results map[*ir.Value]bool // the values that the graph returns
}

// dependenceIn links the values of a program.
func dependenceIn(p *program) *dependence {
	d := &dependence{results: map[*ir.Value]bool{}}
	for _, o := range p.g.Outputs {
		d.results[o.Value] = true
	}
	d.link(p)
	return d
}

// link records the order of the program's values, and what each reads.
func (d *dependence) link(p *program) {
	d.order, d.sources, d.readers = map[*ir.Value]int{}, map[*ir.Value][]*ir.Value{}, map[*ir.Value][]*ir.Value{}
	for i, v := range p.g.Values {
		d.order[v] = i
		for _, l := range p.loads[v] {
			d.source(v, l.From)
		}
		for _, b := range p.bounds[v] {
			d.source(v, b.low)
			d.source(v, b.high)
		}
	}
}

// source records that v reads from. Calls for the same v must follow each other.
func (d *dependence) source(v, from *ir.Value) {
	if rs := d.readers[from]; len(rs) == 0 || rs[len(rs)-1] != v {
		d.readers[from] = append(rs, v)
		d.sources[v] = append(d.sources[v], from)
	}
}

// dependsOn reports whether a value is computed from another.
func (d *dependence) dependsOn(v, from *ir.Value) bool {
	seen := map[*ir.Value]bool{}
	var visit func(v *ir.Value) bool
	visit = func(v *ir.Value) bool {
		if seen[v] || d.order[v] < d.order[from] {
			return false
		}
		seen[v] = true
		return v == from || slices.ContainsFunc(d.sources[v], visit)
	}
	return visit(v)
}

// passes is the longest chain of reductions among values in graph order.
func (d *dependence) passes(members []*ir.Value) int {
	most, depth := 0, make(map[*ir.Value]int, len(members))
	for _, v := range members {
		n := 0
		for _, from := range d.sources[v] {
			n = max(n, depth[from])
		}
		if v.Reduce != nil {
			n++
		}
		depth[v], most = n, max(most, n)
	}
	return most
}

// readOnlyIn reports whether all readers of a value are members of the regions.
func (d *dependence) readOnlyIn(v *ir.Value, regions ...*region) bool {
	for _, u := range d.readers[v] {
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

// leaves reports whether a member of the regions has to be stored, because it is a result or is read elsewhere.
func (d *dependence) leaves(v *ir.Value, regions ...*region) bool {
	return d.results[v] || !d.readOnlyIn(v, regions...)
}

// tensors lists the values that a region reads from others, and those that others read from it.
func (d *dependence) tensors(r *region) []*ir.Value {
	var out []*ir.Value
	for _, v := range r.members {
		if d.leaves(v, r) {
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

// joinedTensors counts the tensors that two regions together read and write.
func (d *dependence) joinedTensors(a, b *region) int {
	all := map[*ir.Value]bool{}
	for _, v := range append(d.tensors(a), d.tensors(b)...) {
		if inside := (a.has(v) || b.has(v)) && !d.leaves(v, a, b); !inside {
			all[v] = true
		}
	}
	return len(all)
}
