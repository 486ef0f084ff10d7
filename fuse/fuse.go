// Package fuse turns a Graph into a Plan: it decides everything a kernel is (what
// is computed together, in which loops, with which schedule) and nothing about
// how CUDA is spelled. It knows no text syntax, no files and no devices beyond
// the figures in ir.Device.
//
// The stages, in order: passes over the graph (package passes), regions grown by merging
// (region.go, merge.go), lowering of each region to a kernel (lower.go, kernel.go), and
// the strategies that make variants of a kernel, for classes of sizes (strategies.go).
package fuse

import (
	"fmt"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Plan cuts the graph into kernels. The graph is not changed. An error is a
// diagnostic about the user's program: a @onekernel that cannot be kept on a GPU.
func Plan(g *ir.Graph, opts Options) (*ir.Plan, error) {
	if opts.Device.Name == "" {
		opts.Device = ir.Devices()[0]
	}
	work, err := Normalize(g, opts)
	if err != nil {
		return nil, err
	}
	others, err := otherGraphs(g, work, opts)
	if err != nil {
		return nil, err
	}
	var plan *ir.Plan
	if len(others) == 0 {
		plan = formed(work, opts, nil).plan()
	} else {
		plan = planForAll(work, others, opts)
	}
	for _, rewritten := range append(others, work) {
		rewritten.Forget()
	}
	if err := ir.VerifyPlan(plan); err != nil {
		panic("BUG: " + err.Error())
	}
	if n := resultKernels(plan); g.OneKernel && n > 1 && opts.Device.Arch != "" { // the CPU launches nothing
		return plan, oneKernelError(work, plan, n)
	}
	return plan, nil
}

// formed makes the regions of a graph after its passes, and merges them, for the sizes at which only holds; nil for all sizes.
func formed(g *ir.Graph, opts Options, only *ir.Expr) *fuser {
	f := newFuser(g, opts)
	f.only = boundsIn(only)
	held := f.withholdConcats()
	f.mergeAll()
	f.mergeConcats()
	f.releaseConcats(held)
	f.joinPartials()
	f.mergePrologues()
	f.mergePlaced()
	f.splitDigits()
	f.fuseHorizontally()
	return f
}

// Normalize runs the passes over a copy of the graph.
func Normalize(g *ir.Graph, opts Options) (*ir.Graph, error) {
	if opts.Device.Name == "" {
		opts.Device = ir.Devices()[0]
	}
	return normalized(g, nil, opts)
}

// normalized is Normalize of a graph that has the values of another one, at other sizes; like is that one after its passes, or
// nil.
func normalized(g, like *ir.Graph, opts Options) (*ir.Graph, error) {
	work := g.Clone()
	passes.Specialize(work, opts.Specialize)
	work = ir.Checked(work)
	if like != nil {
		form.ShareProofs(like, work)
	}
	for _, p := range passes.All {
		if p.On == nil || p.On(opts.Device) {
			p.Run(work)
		}
		if opts.Observe != nil {
			if err := opts.Observe(p.Name, work); err != nil {
				return nil, fmt.Errorf("after pass %s: %w", p.Name, err)
			}
		}
	}
	return work, nil
}

// oneKernelError reports the refusal that costs most.
func oneKernelError(g *ir.Graph, plan *ir.Plan, kernels int) error {
	sizes := algebra.DefaultSizes(g)
	e := diag.Errorf(g.Span, "graph %s is @onekernel but needs %d kernels", g.Name, kernels)
	var worst *ir.Refusal
	for i := range plan.Refused {
		r := &plan.Refused[i]
		if worst == nil || algebra.Estimate(r.Bytes, sizes) > algebra.Estimate(worst.Bytes, sizes) {
			worst = r
		}
	}
	if worst != nil {
		e.Note(worst.Span, "%s cannot join the kernel of %s (%s): %s", worst.Consumer, worst.Producer, worst.Reason, worst.Detail)
	}
	return diag.List{e}
}

// newFuser makes a region of each value, and one of each attention and each product with a reduction epilogue.
func newFuser(g *ir.Graph, opts Options) *fuser {
	p, refused := newProgram(g, opts.Device), edgeRefusals{}
	recognised, streams := p.findStreams(refused)
	for _, v := range g.Values {
		p.loads[v] = v.Loads()
	}
	p.checks = onlyChecked(g)
	values := &flow{program: p, dependence: dependenceIn(p), work: map[*ir.Value]int{}}
	f := &fuser{partition: newPartition(values), refused: refused, choices: opts.Choices, stored: map[*ir.Value]bool{}}
	for _, v := range g.Values {
		if !v.IsInput() {
			f.take(newRegion(v))
		}
	}
	for _, s := range streams {
		f.take(streamRegion(g, s))
	}
	if g.Numerics == ir.Fast && opts.Device.TensorCores() {
		_, no := recognised.ReductionEpilogues()
		refused.reductionEpilogues(p, no)
		for _, r := range f.foldedRegions() {
			f.take(r)
		}
	}
	return f
}

// findStreams finds the streams of the graph, and adds the bounds of their masks to it. recognised is of the graph as it
// is then; nil where numerics or device allow no streams.
func (p *program) findStreams(refused edgeRefusals) (recognised *form.Recogniser, streams []*form.Stream) {
	if p.g.Numerics == ir.Strict || !p.device.TensorCores() {
		return nil, nil
	}
	recognised = form.NewRecogniser(p.g)
	streams, no := streamsIn(p.g, recognised)
	refused.attention(p, no)
	if p.bounds = boundMasks(p.g, streams); len(p.bounds) > 0 { // which are new values
		recognised = form.NewRecogniser(p.g)
	}
	return recognised, streams
}
