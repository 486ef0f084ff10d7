package fuse

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// plan lowers the regions, in an order in which each runs after those that it reads.
func (f *fuser) plan() *ir.Plan {
	p := &ir.Plan{Graph: f.g}
	ls := &lowerings{f.program, f.buffers(p), map[*region]*kernel{}}
	f.linkStates(ls.buffers)
	order, lastBlocks := f.lastBlocks(f.schedule())
	order = slices.DeleteFunc(order, func(r *region) bool { return r.concat })
	ls.lowerPairs(order, lastBlocks)
	p.Kernels = ls.kernels(order)
	for i, r := range order {
		if k := p.Kernels[i]; k.Like != nil {
			f.cover(k, k.Like.Variants)
		} else {
			f.choose(f.choices, p, k)
		}
		if pair := lastBlocks[r]; pair != nil && pair.first == r && len(f.choices) > 0 {
			lastBlockKernel{ls.done[r]}.refit(ls.done[pair.then])
		}
	}
	p.Refused = f.refused.final(f.home)
	shareTemps(p)
	f.decideUpdates(p)
	return p
}

// lowerPairs lowers the regions of pairs for one launch each. It drops the pairs of which the first does not run the
// other in its last blocks: each region of these becomes a kernel of its own.
func (ls *lowerings) lowerPairs(regions []*region, of map[*region]*lastBlockPair) {
	apart := map[string]bool{}
	for _, r := range regions {
		p := of[r]
		if p == nil || p.first != r {
			continue
		}
		pair := string(encodePair(p, ls.buffers, ls.program).bytes)
		if apart[pair] || !ls.together(p) {
			apart[pair] = true // all pairs that are alike stay apart too
			delete(of, p.first)
			delete(of, p.then)
		}
	}
}

// kernels makes the kernels of regions, and names no two of them alike.
func (ls *lowerings) kernels(regions []*region) (out []*ir.Kernel) {
	names, bodies := map[string]int{}, bodies{}
	for _, r := range regions {
		k := bodies.kernel(r, ls)
		names[k.Name]++
		if n := names[k.Name]; n > 1 {
			k.Name = fmt.Sprintf("%s_%d", k.Name, n)
		}
		out = append(out, k)
	}
	return out
}

// buffers makes a buffer for each input, each result and each value that one kernel writes for another.
func (pt *partition) buffers(p *ir.Plan) map[*ir.Value]*ir.Buffer {
	out := map[*ir.Value]*ir.Buffer{}
	add := func(v *ir.Value, name string, kind ir.BufferKind) *ir.Buffer {
		b := &ir.Buffer{Index: len(p.Buffers), Name: name, Type: v.Type, Shape: v.Shape(), Kind: kind, Value: v}
		p.Buffers = append(p.Buffers, b)
		return b
	}
	for _, v := range pt.g.Inputs {
		out[v] = add(v, v.Name, ir.InputBuffer)
	}
	results := len(pt.g.Results())
	for i, o := range pt.g.Outputs {
		kind := ir.OutputBuffer
		if i >= results {
			kind = ir.CheckBuffer
		}
		out[o.Value] = add(o.Value, o.Name, kind)
	}
	for _, v := range pt.g.Values {
		place, isPart := pt.parts[v]
		if whole := place.whole; isPart {
			if out[whole] == nil {
				out[whole] = add(whole, whole.Name, ir.TempBuffer)
			}
			out[v] = out[whole]
			out[v].Parts = append(out[v].Parts, v)
		} else if out[v] == nil && !pt.readOnlyIn(v, pt.home[v]) {
			out[v] = add(v, v.Name, ir.TempBuffer)
		}
	}
	return out
}

// shareTemps gives temporaries of equal size that are not in use at the same time one slot of memory.
func shareTemps(p *ir.Plan) {
	last := map[*ir.Buffer]int{}
	for i, k := range p.Kernels {
		for _, a := range k.Args {
			last[a.Buffer] = i
		}
	}
	type slot struct {
		shape []*ir.Expr
		size  int
		until int
	}
	var slots []slot
	placed := map[*ir.Buffer]bool{}
	for i, k := range p.Kernels {
		for _, a := range k.Args {
			b := a.Buffer
			if !a.Write || b.Kind != ir.TempBuffer || placed[b] {
				continue
			}
			placed[b] = true
			b.Slot = -1
			for s := range slots {
				if slots[s].until < i && slots[s].size == b.Type.Size() && sameShape(slots[s].shape, b.Shape) {
					b.Slot, slots[s].until = s, last[b]
					break
				}
			}
			if b.Slot < 0 {
				b.Slot = len(slots)
				slots = append(slots, slot{b.Shape, b.Type.Size(), last[b]})
			}
		}
	}
}

func sameShape(a, b []*ir.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !ir.SameSize(a[i], b[i]) {
			return false
		}
	}
	return true
}
