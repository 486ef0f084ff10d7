package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// flow says what regions read and write: which tensors, how many bytes, and along which loops. What a merge saves, and
// what it costs, follows from that. It does not know which regions there are.
type flow struct {
	*program
	*dependence
	work map[*ir.Value]int // operations of a point of each value, counted when first needed
}

// traffic estimates the bytes that a region reads and writes.
func (fl *flow) traffic(r *region) float64 {
	n := 0.0
	for _, v := range fl.tensors(r) {
		n += fl.bytes(v)
	}
	return n
}

// saving estimates the seconds a merge saves: a launch, the reads of shared
// tensors, and the write and reads of values that no longer leave the kernel.
func (fl *flow) saving(a, b *region) float64 {
	bytes := 0.0
	for _, v := range b.reads {
		size := fl.bytes(v)
		switch {
		case a.has(v):
			bytes += size
			if !fl.leaves(v, a, b) {
				bytes += size
			}
		case a.inputs[v]:
			bytes += size
		}
	}
	return bytes/fl.device.Bandwidth + fl.device.Launch
}

// contiguous is the index, in a region's space, of the range that is contiguous in the largest tensor it
// accesses; -1 where no range is.
func (fl *flow) contiguous(r *region) int {
	best, along := -1.0, -1
	m := &matcher{facts: fl.facts}
	consider := func(u, v *ir.Value, at []*ir.Expr) {
		if size := fl.bytes(v); size > best && len(at) > 0 {
			best, along = size, -1
			if digits := m.digits(r.index(u, at[len(at)-1], fl.facts)); len(digits) > 0 {
				along = slices.Index(r.space, digits[len(digits)-1])
			}
		}
	}
	for _, v := range r.members {
		if fl.leaves(v, r) {
			consider(v, v, algebra.UnitIndices(v.Axes))
		}
		for _, l := range fl.loads[v] {
			if !r.has(l.From) {
				consider(v, l.From, l.Args)
			}
		}
	}
	return along
}

// readsAlong reports whether neighbours of a loop read neighbours, or nearly so, of the largest tensor that a region reads.
func (fl *flow) readsAlong(r *region, loop *ir.Range) bool {
	size, along := 0.0, false
	for _, v := range r.members {
		for _, l := range fl.loads[v] {
			if n := fl.bytes(l.From); !r.has(l.From) && n > size && len(l.Args) > 0 {
				size, along = n, ir.DependsOn(r.index(v, l.Args[len(l.Args)-1], fl.facts), loop)
			}
		}
	}
	return along
}

// storedAlong is the loop along which a region stores its results, and their bytes; nil if the results are stored along
// different loops, or along an index that is no loop.
func (fl *flow) storedAlong(r *region) (along *ir.Range, bytes float64) {
	for _, v := range r.members {
		axes := algebra.Widened(v.Axes)
		if !fl.leaves(v, r) || len(axes) == 0 {
			continue
		}
		at := r.at[v][axes[len(axes)-1]]
		if at == nil || at.Op != ir.OpRange || along != nil && along != at.Range {
			return nil, 0
		}
		along, bytes = at.Range, bytes+fl.bytes(v)
	}
	return along, bytes
}
