package fuse

import "github.com/fusec/fusec/ir"

// Reads of tensors that are larger than what the L2 cache keeps until another run, and
// that nothing else reads: their lines may go first, before those that are read again
// or still to be written back.

const (
	onceShare = 2    // of the L2 cache: a tensor of that part of it is not kept
	onceAgain = 1.25 // reads of an element on average up to which it is read once: chunks overhang
)

// markOnce marks the wide reads of a variant that are of such tensors.
func (lo *lowering) markOnce(v *ir.Variant) {
	if m := v.Schedule.Mapping; m != ir.FlatMapping && m != ir.RowMapping {
		return
	}
	readers := map[*ir.Arg]int{}
	for _, l := range v.Locals {
		if r := readIn(l.Def); r != nil {
			readers[r.Arg]++
		}
	}
	var once []*ir.Local
	for _, l := range v.Locals {
		if r := readIn(l.Def); r != nil && l.Wide && readers[r.Arg] == 1 && lo.readOnce(r) {
			once = append(once, l)
		}
	}
	if len(once) == 0 {
		return
	}
	kept := map[*ir.Local]bool{}
	for _, l := range v.Keep {
		kept[l] = true
	}
	again := repeated(v, kept)
	for _, l := range once {
		l.Once = !again[l]
	}
}

// readOnce reports whether the kernel reads each element of a large tensor once, and
// nothing else of the plan does.
func (lo *lowering) readOnce(r *ir.Expr) bool {
	f, v := lo.f, r.Arg.Buffer.Value
	if f.results[v] || !f.readOnlyIn(v, lo.r) || f.bytes(v) < float64(f.opts.Device.L2)/onceShare {
		return false
	}
	points := 1.0
	for _, list := range [][]*ir.Range{lo.k.Rows, lo.k.Cols} {
		for _, s := range list {
			points *= f.estimate(s.Extent)
			if !isUnit(s) && !ir.DependsOn(r.Args[0], s) {
				return false
			}
		}
	}
	return points*float64(v.Type.Size()) <= onceAgain*f.bytes(v)
}
