package fuse

import (
	"fmt"
	"strings"
)

// Figures of horizontal fusion.
const (
	horizontalBytes = 16 << 20 // most bytes that a region may move: for more, a launch is little of its time
	horizontalArgs  = 32       // most tensors of one kernel: each takes registers for its address
)

// fuseHorizontally merges small regions over loops of the same extents that read neither each other nor a
// common tensor, such as the parameters of an optimizer's step. Each merge saves a launch. Large regions
// stay apart, because a merge would only take registers from them.
func (pt *partition) fuseHorizontally() {
	if pt.g.OneKernel {
		return
	}
	open := map[string]*region{}
	for _, r := range pt.schedule() {
		key, small := pt.horizontalKey(r)
		if !small {
			continue
		}
		if a := open[key]; a != nil {
			if m := pt.fuseTwo(a, r); m != nil {
				open[key] = m
				continue
			}
		}
		open[key] = r
	}
}

// horizontalKey names the loops of a region and the loop that is contiguous in memory. small says that the
// region moves few bytes and is of the loop template.
func (fl *flow) horizontalKey(r *region) (key string, small bool) {
	if !fl.may(r, joins) || fl.traffic(r) > horizontalBytes {
		return "", false
	}
	var b strings.Builder
	for _, s := range r.space {
		fmt.Fprintf(&b, "%s %t;", s.Extent, r.cols[s])
	}
	fmt.Fprintf(&b, "%d", fl.contiguous(r))
	return b.String(), true
}

// fuseTwo merges two regions neither of which reads the other; nil where they stay apart.
func (pt *partition) fuseTwo(a, b *region) *region {
	if len(pt.tensors(a))+len(pt.tensors(b)) > horizontalArgs || a.readsFrom(b) || b.readsFrom(a) {
		return nil
	}
	m, no := pt.mergeable(a, b)
	if no != nil || len(m.al.to) != len(m.b.space) || len(m.al.from) != len(m.a.space) {
		return nil
	}
	if r := m.region(); pt.take(r) {
		return r
	}
	return nil
}
