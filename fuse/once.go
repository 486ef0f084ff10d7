package fuse

import "github.com/fusec/fusec/ir"

// Reads of what a kernel reads once and only folds. The L2 cache holds what was written
// before, which is written back to memory when something takes its place. A tensor that
// is read once and is larger than the cache would take the place of all of it, for
// nothing: its lines go first. A kernel that writes as much itself gains nothing, as its
// results take that place.

// Figures of such reads, measured on an H200: docs/performance.md.
const (
	onceAgain  = 1.25 // reads of an element on average up to which it is read once: chunks overhang
	onceWrites = 16   // a kernel that folds reads that many times the bytes it writes
	onceMost   = 8    // times the cache: in longer kernels, what is written back takes less than a smaller cache costs
)

// markOnce marks the wide reads of a variant whose lines are the first to leave.
func (lo *lowering) markOnce(v *ir.Variant) {
	if m := v.Schedule.Mapping; m != ir.FlatMapping && m != ir.RowMapping || !lo.onlyFolds() {
		return
	}
	readers := map[*ir.Arg]int{}
	for _, l := range v.Locals {
		if r := readIn(l.Def); r != nil {
			readers[r.Arg]++
		}
	}
	kept := map[*ir.Local]bool{}
	for _, l := range v.Keep {
		kept[l] = true
	}
	again := repeated(v, kept)
	for _, l := range v.Locals {
		if r := readIn(l.Def); r != nil && l.Wide && readers[r.Arg] == 1 && !again[l] && lo.readsOnce(r) {
			l.Leaves = lo.exceedsCache(r.Arg.Buffer)
		}
	}
}

// onlyFolds reports whether the kernel writes next to nothing of what it reads.
func (lo *lowering) onlyFolds() bool {
	read, written := 0.0, 0.0
	for _, a := range lo.k.Args {
		if a.Write {
			written += lo.f.bytes(a.Buffer.Value)
		} else {
			read += lo.f.bytes(a.Buffer.Value)
		}
	}
	return read >= onceWrites*written
}

// readsOnce reports whether the points of the kernel read an element each.
func (lo *lowering) readsOnce(r *ir.Expr) bool {
	points := 1.0
	for _, list := range [][]*ir.Range{lo.k.Rows, lo.k.Cols} {
		for _, s := range list {
			points *= lo.f.estimate(s.Extent)
			if !isUnit(s) && !ir.DependsOn(r.Args[0], s) {
				return false
			}
		}
	}
	v := r.Arg.Buffer.Value
	return points*float64(v.Type.Size()) <= onceAgain*lo.f.bytes(v)
}

// exceedsCache is the condition under which a tensor is larger than the L2 cache, but not
// so much that the time it takes to write that back is lost in the rest; nil where the
// size of the cache is not known, or the tensor's is and is another, or where a kernel
// ahead has just written it.
func (lo *lowering) exceedsCache(b *ir.Buffer) *ir.Expr {
	cache := lo.f.opts.Device.L2
	if cache <= 0 || b.Kind == ir.TempBuffer {
		return nil
	}
	size := int64(b.Type.Size())
	elements := product(b.Value.Axes)
	when := orTrue(and(ir.Apply(ir.OpGt, elements, ir.IntConst(cache/size)),
		ir.Apply(ir.OpLe, elements, ir.IntConst(onceMost*cache/size))))
	if ir.Decide(when, ir.Facts{}) == ir.False {
		return nil
	}
	return when
}
