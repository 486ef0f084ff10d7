package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Kernels that are alike. Layers of a network repeat each other: their regions differ in
// names, places in the program and tensors only, none of which a body depends on. A region
// is written as bytes in which values, ranges and expressions are numbers, in the order in
// which they appear; regions with equal bytes share one body, lowered and compiled once.

// lowered is a kernel and the values of its region, by number.
type lowered struct {
	kernel *ir.Kernel
	values []*ir.Value
}

func encode(r *region, buffers map[*ir.Value]*ir.Buffer, p *program) *encoding {
	c := &encoding{bounds: p.bounds, parts: p.parts, buffers: buffers,
		number: map[*ir.Value]int{}, ranges: map[*ir.Range]int{}, exprs: map[uint64][]numbered{}}
	c.region(r)
	return c
}

// encodePair writes two regions, of which the first may run the second in its last blocks, and how
// their loops are paired.
func encodePair(p *lastBlockPair, buffers map[*ir.Value]*ir.Buffer, of *program) *encoding {
	c := encode(p.first, buffers, of)
	c.region(p.then)
	for _, s := range p.first.space {
		c.flag(p.parts[s])
	}
	for _, s := range p.then.space {
		c.put(slices.Index(p.first.space, p.to[s]))
	}
	return c
}

func (c *encoding) region(r *region) {
	c.r = r
	for _, s := range r.space {
		c.rng(s)
		c.flag(r.cols[s])
	}
	for _, v := range r.members {
		c.member(v)
	}
	for _, k := range regionKinds {
		if k.encode != nil {
			k.encode(c, r)
		}
	}
}

// bodies are the kernels that have bodies of their own, by the bytes of their regions.
type bodies map[string]lowered

// kernel lowers a region, or gives it the body of a region that is alike. A kernel that shares
// a launch with another one is lowered already, and has a body of its own.
func (bs bodies) kernel(r *region, ls *lowerings) *ir.Kernel {
	if lo := ls.done[r]; lo != nil {
		return lo.k
	}
	c := encode(r, ls.buffers, ls.program)
	first, ok := bs[string(c.bytes)]
	if !ok {
		k := ls.lower(r, nil)
		bs[string(c.bytes)] = lowered{k, c.values}
		return k
	}
	k := *first.kernel
	k.Name, k.Like, k.Members, k.Args = kernelName(ls.g, r), first.kernel, r.members, nil
	at := map[*ir.Value]*ir.Value{}
	for i, v := range first.values {
		at[v] = c.values[i]
	}
	for _, a := range first.kernel.Args {
		b := ls.buffers[at[a.Buffer.Value]]
		k.Args = append(k.Args, &ir.Arg{Index: a.Index, Name: b.Name, Type: b.Type, Buffer: b, Write: a.Write})
	}
	return &k
}
