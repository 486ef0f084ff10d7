package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// Checks of indices (ir.Check) are computed beside the program. Their kernels never merge with
// kernels of the program, so those are the same with and without checks.

// onlyChecked are the values that only checks need.
func onlyChecked(g *ir.Graph) map[*ir.Value]bool {
	if len(g.Checks) == 0 {
		return nil
	}
	needed := map[*ir.Value]bool{}
	for _, o := range g.Results() {
		needed[o.Value] = true
	}
	only := map[*ir.Value]bool{}
	for _, v := range slices.Backward(g.Values) { // readers come later in the list, so they are seen first
		if only[v] = !needed[v]; only[v] {
			continue
		}
		for _, l := range v.Loads() {
			needed[l.From] = true
		}
	}
	return only
}

// apart reports whether exactly one of two regions computes checks.
func (p *program) apart(a, b *region) bool {
	return p.checks[a.members[0]] != p.checks[b.members[0]]
}

// resultKernels counts the launched kernels that results need. Kernels that only check indices
// do not count as the program's.
func resultKernels(p *ir.Plan) int {
	if len(p.Graph.Checks) == 0 {
		return len(p.Launched())
	}
	needed, kernels := map[*ir.Buffer]bool{}, map[*ir.Kernel]bool{}
	for _, b := range p.Buffers {
		needed[b] = b.Kind == ir.OutputBuffer
	}
	for _, k := range slices.Backward(p.Kernels) {
		writes := func(a *ir.Arg) bool { return a.Write && needed[a.Buffer] }
		if kernels[k] = slices.ContainsFunc(k.Args, writes); !kernels[k] {
			continue
		}
		for _, a := range k.Args {
			needed[a.Buffer] = true
		}
	}
	n := 0
	for _, k := range p.Launched() {
		if kernels[k] || k.LastBlock != nil && kernels[k.LastBlock.Kernel] {
			n++
		}
	}
	return n
}
