package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Cache hints for streaming reads, of what a kernel reads once. The L2 cache holds what was written before, which is
// written back to memory when something takes its place. A tensor that is read once, is
// larger than the cache and is only folded would take the place of all of it, for nothing:
// its lines are evicted first. Where rows are written again they are evicted last, which takes 2 to 5 % less
// though as many bytes pass. What one element is made of elsewhere gains little or nothing.

// Figures of such reads, measured on an H200: docs/performance.md.
const (
	streamReads      = 1.25 // reads of an element on average up to which it is read once: chunks overhang
	evictFirstReads  = 16   // a kernel that folds reads that many times the bytes it writes
	evictFirstCaches = 8    // times the cache: in longer kernels, what is written back takes less than a smaller cache costs
	evictLastReads   = 4    // a kernel that writes its rows again reads at most that many times the bytes it writes
)

// setCacheHints marks the wide reads of a variant whose lines are evicted first, or last, but those that
// the L2 cache holds.
func (lo *kernel) setCacheHints(v *ir.Variant, cached []*ir.Local) {
	read, written := lo.traffic()
	m := v.Schedule.Mapping
	folds := (m == ir.FlatMapping || m == ir.RowMapping) && read >= evictFirstReads*written
	copies := m == ir.RowMapping && read <= evictLastReads*written && !lo.hasScan()
	if !folds && !copies {
		return
	}
	readers := map[*ir.Arg]int{}
	for _, l := range v.Locals {
		if r := algebra.ReadIn(l.Def); r != nil {
			readers[r.Arg]++
		}
	}
	kept := map[*ir.Local]bool{}
	for _, l := range v.Keep {
		kept[l] = true
	}
	again := repeated(v, kept)
	for _, l := range v.Locals {
		r := algebra.ReadIn(l.Def)
		if r == nil || !l.Wide || readers[r.Arg] > 1 || again[l] || !lo.isStreamingRead(r) || slices.Contains(cached, l) {
			continue
		}
		if folds {
			l.EvictFirst = lo.exceedsCache(r.Arg.Buffer, evictFirstCaches)
		} else {
			l.EvictLast = lo.exceedsCache(r.Arg.Buffer, 0)
		}
	}
}

// traffic is the bytes of the tensors that the kernel reads, and of those it writes.
func (lo *kernel) traffic() (read, written float64) {
	for _, a := range lo.k.Args {
		if a.Write {
			written += lo.bytes(a.Buffer.Value)
		} else {
			read += lo.bytes(a.Buffer.Value)
		}
	}
	return read, written
}

// isStreamingRead reports whether the points of the kernel read an element each.
func (lo *kernel) isStreamingRead(r *ir.Expr) bool {
	points := 1.0
	for _, list := range [][]*ir.Range{lo.k.Rows, lo.k.Cols} {
		for _, s := range list {
			points *= lo.estimate(s.Extent)
			if !algebra.IsUnit(s) && !ir.DependsOn(r.Args[0], s) {
				return false
			}
		}
	}
	v := r.Arg.Buffer.Value
	return points*float64(v.Type.Size()) <= streamReads*lo.bytes(v)
}

// exceedsCache is the condition under which a tensor is larger than the L2 cache, by at most
// the given factor, or by any for 0; nil where the size of the cache is not known, or the
// tensor's is and is another, or where a kernel ahead has just written it.
func (lo *kernel) exceedsCache(b *ir.Buffer, most int64) *ir.Expr {
	cache := lo.device.L2
	if cache <= 0 || b.Kind == ir.TempBuffer {
		return nil
	}
	size := int64(b.Type.Size())
	elements := algebra.Product(b.Value.Axes)
	when := ir.Apply(ir.OpGt, elements, ir.IntConst(cache/size))
	if most > 0 { // in longer kernels the time it takes to write the cache back is lost in the rest
		when = algebra.And(when, ir.Apply(ir.OpLe, elements, ir.IntConst(most*cache/size)))
	}
	when = algebra.OrTrue(when)
	if ir.Decide(when, ir.Facts{}) == ir.False {
		return nil
	}
	return when
}
