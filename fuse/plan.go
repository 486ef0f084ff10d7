package fuse

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// plan lowers the regions, in an order in which each runs after those that it reads.
func (f *fuser) plan() *ir.Plan {
	p := &ir.Plan{Graph: f.g}
	buffers := f.buffers(p)
	f.linkStates(buffers)
	names, bodies := map[string]int{}, map[string]lowered{}
	order, lastBlocks := f.lastBlocks(f.schedule())
	order = slices.DeleteFunc(order, func(r *region) bool { return r.concat })
	lowerings, apart := map[*region]*kernel{}, map[string]bool{}
	for _, r := range order {
		fin := lastBlocks[r]
		if fin == nil || fin.first != r {
			continue
		}
		pair := string(encodePair(fin, buffers, f.program).bytes)
		if apart[pair] || !f.together(fin, buffers, lowerings) {
			apart[pair] = true // all pairs that are alike stay apart too
			delete(lastBlocks, fin.first)
			delete(lastBlocks, fin.then)
		}
	}
	for _, r := range order {
		k := f.kernel(r, buffers, lowerings, bodies)
		names[k.Name]++
		if n := names[k.Name]; n > 1 {
			k.Name = fmt.Sprintf("%s_%d", k.Name, n)
		}
		p.Kernels = append(p.Kernels, k)
	}
	for i, r := range order {
		if k := p.Kernels[i]; k.Like != nil {
			f.cover(k, k.Like.Variants)
		} else {
			f.choose(p, k)
		}
		if fin := lastBlocks[r]; fin != nil && fin.first == r && len(f.choices) > 0 {
			lastBlockKernel{lowerings[r]}.refit(lowerings[fin.then])
		}
	}
	p.Refused = f.refused.final(f.home)
	shareTemps(p)
	f.decideUpdates(p)
	return p
}

// buffers makes a buffer for each input, each result and each value that one kernel writes for another.
func (f *fuser) buffers(p *ir.Plan) map[*ir.Value]*ir.Buffer {
	out := map[*ir.Value]*ir.Buffer{}
	add := func(v *ir.Value, name string, kind ir.BufferKind) *ir.Buffer {
		b := &ir.Buffer{Index: len(p.Buffers), Name: name, Type: v.Type, Shape: v.Shape(), Kind: kind, Value: v}
		p.Buffers = append(p.Buffers, b)
		return b
	}
	for _, v := range f.g.Inputs {
		out[v] = add(v, v.Name, ir.InputBuffer)
	}
	results := len(f.g.Results())
	for i, o := range f.g.Outputs {
		kind := ir.OutputBuffer
		if i >= results {
			kind = ir.CheckBuffer
		}
		out[o.Value] = add(o.Value, o.Name, kind)
	}
	for _, v := range f.g.Values {
		place, isPart := f.parts[v]
		if whole := place.whole; isPart {
			if out[whole] == nil {
				out[whole] = add(whole, whole.Name, ir.TempBuffer)
			}
			out[v] = out[whole]
			out[v].Parts = append(out[v].Parts, v)
		} else if out[v] == nil && !f.readOnlyIn(v, f.home[v]) {
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
