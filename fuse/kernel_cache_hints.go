package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Cache hints for streaming reads: tensors of which a kernel reads each element once. The L2 cache holds what earlier
// kernels wrote, and has to write it back to memory when other lines take its place. A tensor that is larger than
// the cache and only reduced would replace all of that for nothing, so its lines are evicted first. Where a kernel
// writes rows as large as those it reads, lines that are read are evicted last: that takes 2 to 5 % less time, though
// as many bytes move. Other kernels gain little or nothing by hints.

// Figures of such reads, measured on an H200: docs/performance.md.
const (
	streamReads      = 1.25 // most reads of an element, on average, for it to count as read once: chunks reach past the end
	evictFirstReads  = 16   // a kernel that folds reads that many times the bytes it writes
	evictFirstCaches = 8    // most bytes read, in caches: in longer kernels, writing the cache back costs less than doing with a smaller one
	evictLastReads   = 4    // a kernel that writes its rows again reads at most that many times the bytes it writes
)

// setCacheHints marks the wide reads of a variant whose lines are to be evicted first, or last. Locals in cached are
// left out: the L2 cache holds their tensors.
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

// traffic is the number of bytes of the tensors that the kernel reads, and of those that it writes.
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

// isStreamingRead reports whether the kernel reads each element of the tensor about once.
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

// exceedsCache is the condition that a tensor is larger than the L2 cache, and at most so many times larger (0 for no
// limit). It is nil where the size of the cache is not known, where the condition is known to fail, and where a
// kernel before has just written the tensor.
func (lo *kernel) exceedsCache(b *ir.Buffer, most int64) *ir.Expr {
	cache := lo.device.L2
	if cache <= 0 || b.Kind == ir.TempBuffer {
		return nil
	}
	size := int64(b.Type.Size())
	elements := algebra.Product(b.Value.Axes)
	when := ir.Apply(ir.OpGt, elements, ir.IntConst(cache/size))
	if most > 0 { // in longer kernels the time to write the cache back hardly counts
		when = algebra.And(when, ir.Apply(ir.OpLe, elements, ir.IntConst(most*cache/size)))
	}
	when = algebra.OrTrue(when)
	if ir.Decide(when, ir.Facts{}) == ir.False {
		return nil
	}
	return when
}
