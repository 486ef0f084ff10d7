package ir

import (
	"fmt"
	"slices"
)

// VerifyPlan checks what every engine relies on in a Plan, and returns the first thing that does not
// hold, naming the kernel. A plan that fails is a bug of the planner, never of the user's program.
//
//   - of the conditions on sizes under which kernels run, one holds at every size; the rest holds for the
//     kernels that run under each of them
//   - every kernel has a variant for every size that the graph admits: see Covers
//   - a kernel comes after the kernels that write what it reads
//   - every buffer but the inputs is written by one kernel, or each part of it is, and by each variant of it once
//   - temporaries in one slot are alike, and not needed at the same time
//   - what may have the memory of another temporary or, as the next value of a state, of an input is like it, and stored to
//     by a kernel that reads the other last, and reads each element before it stores there
//   - bodies read and write arguments of their kernel only, and use values that are computed before
//   - a kernel fits the one whose last blocks run it, and the one whose body it repeats
//   - bodies have the knobs and the parts that their strategies take: see strategies
//   - accesses are inside their buffers, at the points that verify_access.go tries
//
// It takes a small part of the time of planning, so that it can always run.
func VerifyPlan(p *Plan) error {
	samples := sampleSizes(p.Graph)
	conditions, err := p.conditions(samples)
	if err != nil {
		return fmt.Errorf("plan of graph %s: %w", p.Graph.Name, err)
	}
	for _, when := range conditions {
		v := &planVerifier{plan: p, when: when, facts: p.Graph.Facts(), written: map[*Buffer]int{}, parts: map[*Buffer]int{}, samples: samples}
		if err := v.all(); err != nil {
			return err
		}
	}
	return nil
}

// conditions lists the conditions under which kernels run; only nil if all kernels always run. Otherwise
// exactly one of them holds at every size.
func (p *Plan) conditions(samples []map[string]int64) (out []*Expr, err error) {
	for _, k := range p.Kernels {
		if k.When != nil && !slices.ContainsFunc(out, func(e *Expr) bool { return Equal(e, k.When) }) {
			out = append(out, k.When)
		}
	}
	if len(out) == 0 {
		return []*Expr{nil}, nil
	}
	for _, sizes := range samples {
		hold, fits := 0, true
		for _, when := range out {
			n, ok := EvalSize(when, sizes)
			if fits = fits && ok; n != 0 {
				hold++
			}
		}
		if fits && hold != 1 { // numbers of 64 bits do not hold what tensors have that no memory holds
			return nil, fmt.Errorf("%d of its %d conditions on sizes hold at %v", hold, len(out), sizes)
		}
	}
	return out, nil
}

type planVerifier struct {
	plan    *Plan
	when    *Expr // the kernels that always run are verified, and those that run under this condition
	facts   Facts
	written map[*Buffer]int // the place of the first kernel that writes it; later ones may write further parts
	parts   map[*Buffer]int // how many parts have been written of a buffer that has some
	samples []map[string]int64
}

func (v *planVerifier) all() error {
	if err := v.buffers(); err != nil {
		return fmt.Errorf("plan of graph %s: %w", v.plan.Graph.Name, err)
	}
	for i, k := range v.plan.Kernels {
		if !v.runs(k.When) {
			continue
		}
		if err := v.kernel(i, k); err != nil {
			return fmt.Errorf("kernel %s: %w", k.Name, err)
		}
	}
	if err := v.ends(); err != nil {
		return fmt.Errorf("plan of graph %s: %w", v.plan.Graph.Name, err)
	}
	return nil
}

// runs reports whether a kernel, or who uses a buffer, runs under the condition.
func (v *planVerifier) runs(when *Expr) bool { return when == nil || Equal(when, v.when) }

// buffers checks that buffers are listed in order, and that every input and output has one.
func (v *planVerifier) buffers() error {
	kinds := map[*Value]BufferKind{}
	for i, b := range v.plan.Buffers {
		if b.Index != i {
			return fmt.Errorf("buffer %s has the index %d, but stands at %d", b.Name, b.Index, i)
		}
		if _, twice := kinds[b.Value]; twice && b.Value != nil {
			return fmt.Errorf("buffer %s is of a value that has another one", b.Name)
		}
		kinds[b.Value] = b.Kind
		if parts := v.partsOf(b); len(parts) > 0 && !SameIndex(b.Elements(), elementsOf(parts), v.plan.Graph.Facts()) {
			return fmt.Errorf("the parts of buffer %s are not all of it", b.Name)
		}
	}
	for _, in := range v.plan.Graph.Inputs {
		if kind, ok := kinds[in]; !ok || kind != InputBuffer {
			return fmt.Errorf("input %s has no buffer", in.Name)
		}
	}
	for _, o := range v.plan.Graph.Outputs {
		if kind, ok := kinds[o.Value]; !ok || kind != OutputBuffer && kind != CheckBuffer {
			return fmt.Errorf("output %s has no buffer", o.Name)
		}
	}
	return nil
}

// elementsOf is the elements of all parts of a buffer.
func elementsOf(parts []*Value) *Expr {
	n := IntConst(0)
	for _, part := range parts {
		n = Apply(OpAdd, n, (&Buffer{Shape: part.Shape()}).Elements())
	}
	return n
}

// kernel checks the kernel at a place of the plan.
func (v *planVerifier) kernel(at int, k *Kernel) error {
	if len(k.Variants) == 0 {
		return fmt.Errorf("it has no variants")
	}
	if err := v.args(at, k); err != nil {
		return err
	}
	if k.Like != nil {
		return v.like(at, k)
	}
	if !Covers(k.Variants, v.facts) {
		return fmt.Errorf("nothing shows that one of its %d variants holds at every size", len(k.Variants))
	}
	for i, body := range k.Variants {
		if body.When != nil && len(FreeRanges(body.When)) > 0 {
			return fmt.Errorf("variant %d runs where %s, which is no condition on sizes", i+1, body.When)
		}
	}
	for i, later := range k.Variants {
		for j, first := range k.Variants[:i] {
			if Narrower(later.When, first.When) {
				return fmt.Errorf("variant %d never runs: variant %d takes all of its sizes", i+1, j+1)
			}
		}
	}
	if f := k.LastBlock; f != nil && (at+1 == len(v.plan.Kernels) || v.plan.Kernels[at+1] != f.Kernel) {
		return fmt.Errorf("kernel %s is run by its last blocks, but does not come next", f.Kernel.Name)
	}
	tried := map[accessKey]bool{}
	for i, body := range k.Variants {
		if err := v.variant(k, body, tried); err != nil {
			return fmt.Errorf("variant %d: %w", i+1, err)
		}
	}
	return nil
}

// args checks the order in which kernels write and read buffers.
func (v *planVerifier) args(at int, k *Kernel) error {
	seen := map[*Buffer]bool{}
	for i, a := range k.Args {
		b := a.Buffer
		switch writer, written := v.written[b]; {
		case b.Index >= len(v.plan.Buffers) || v.plan.Buffers[b.Index] != b:
			return fmt.Errorf("argument %s is no buffer of the plan", a.Name)
		case a.Type != b.Type:
			return fmt.Errorf("argument %s is %s, its buffer %s", a.Name, a.Type, b.Type)
		case i > 0 && k.Args[i-1].Index >= a.Index:
			return fmt.Errorf("argument %s is out of order", a.Name)
		case seen[b]:
			return fmt.Errorf("buffer %s is two of its arguments", b.Name)
		case a.Write && b.Kind == InputBuffer:
			return fmt.Errorf("it writes the input %s", b.Name)
		case a.Write && len(v.partsOf(b)) > 0 && len(b.PartsIn(k)) == 0:
			return fmt.Errorf("it writes %s, and computes none of its parts", b.Name)
		case a.Write && written && len(v.partsOf(b)) == 0:
			return fmt.Errorf("it writes %s, which kernel %s writes too", b.Name, v.plan.Kernels[writer].Name)
		case !a.Write && b.Kind != InputBuffer && (!written || v.parts[b] != len(v.partsOf(b))):
			return fmt.Errorf("it reads %s, which no kernel ahead of it writes", b.Name)
		}
		seen[b] = true
	}
	for _, a := range k.Args {
		if a.Write {
			if _, written := v.written[a.Buffer]; !written {
				v.written[a.Buffer] = at
			}
			v.parts[a.Buffer] += len(a.Buffer.PartsIn(k))
		}
	}
	return nil
}

// partsOf lists the parts of a buffer. Where kernels run at some sizes only, these are the ones that those of the sizes looked at
// compute: at other sizes a result may have other parts, or none.
func (v *planVerifier) partsOf(b *Buffer) (out []*Value) {
	if v.when == nil || len(b.Parts) == 0 {
		return b.Parts
	}
	for _, k := range v.plan.Kernels {
		if v.runs(k.When) {
			out = append(out, b.PartsIn(k)...)
		}
	}
	return out
}

// like checks a kernel against the one whose body it repeats.
func (v *planVerifier) like(at int, k *Kernel) error {
	of := k.Like
	if !slices.Contains(v.plan.Kernels[:at], of) {
		return fmt.Errorf("kernel %s, which it repeats, does not stand ahead of it", of.Name)
	}
	if len(k.Args) != len(of.Args) || len(k.Variants) != len(of.Variants) || k.LastBlock != nil {
		return fmt.Errorf("it does not repeat kernel %s", of.Name)
	}
	for i, a := range k.Args {
		b := of.Args[i]
		if a.Index != b.Index || a.Type != b.Type || a.Write != b.Write || len(a.Buffer.PartsIn(k)) != len(b.Buffer.PartsIn(of)) || !sameSizes(a.Buffer.Shape, b.Buffer.Shape) {
			return fmt.Errorf("argument %s is not like %s of kernel %s", a.Name, b.Name, of.Name)
		}
	}
	return nil
}

func sameSizes(a, b []*Expr) bool { return slices.EqualFunc(a, b, SameSize) }

// variant checks one body of a kernel; tried are the accesses that other bodies have had checked.
func (v *planVerifier) variant(k *Kernel, body *Variant, tried map[accessKey]bool) error {
	if s := body.Schedule; s.Threads < 1 || s.Threads > maxThreads {
		return fmt.Errorf("its blocks have %d threads", s.Threads)
	}
	if err := strategyOf(k, body); err != nil {
		return err
	}
	b := &bodyVerifier{planVerifier: v, k: k, variant: body, args: map[*Arg]bool{}, written: map[*Arg]int{},
		known: map[*Local]bool{}, tried: tried}
	for _, a := range k.Args {
		b.args[a] = true
	}
	if err := b.check(); err != nil {
		return err
	}
	if k.LastBlock == nil {
		return nil
	}
	if body.LastBlock == nil {
		return fmt.Errorf("it has no body for what its last blocks do")
	}
	if body.LastBlock.Schedule.Threads != body.Schedule.Threads {
		return fmt.Errorf("its last blocks would have %d threads, not %d", body.LastBlock.Schedule.Threads, body.Schedule.Threads)
	}
	return v.variant(k.LastBlock.Kernel, body.LastBlock, map[accessKey]bool{})
}

const maxThreads = 1024 // of a block

// strategyOf checks that a body has a strategy, and what belongs to it.
func strategyOf(k *Kernel, body *Variant) error {
	if body.Strategy == NoStrategy || body.Strategy >= strategyCount {
		return fmt.Errorf("no strategy has %s mapping with %s", body.Schedule.Mapping, body.Schedule.Set())
	}
	info := body.Strategy.Info()
	if err := info.fits(body.Schedule.Set()); err != nil {
		return err
	}
	return info.suits(k, body)
}

// ends checks that every result is written, and which buffers share memory.
func (v *planVerifier) ends() error {
	last := map[*Buffer]int{}
	for i, k := range v.plan.Kernels {
		for _, a := range k.Args {
			last[a.Buffer] = i
		}
	}
	owners := map[int]*Buffer{}
	used := slices.DeleteFunc(slices.Clone(v.plan.Buffers), func(b *Buffer) bool { return !v.runs(b.When) })
	temps := slices.DeleteFunc(slices.Clone(used), func(b *Buffer) bool { return b.Kind != TempBuffer })
	for _, b := range used {
		if _, ok := v.written[b]; !ok && b.Kind != InputBuffer {
			return fmt.Errorf("no kernel writes %s", b.Name)
		}
	}
	slices.SortStableFunc(temps, func(a, b *Buffer) int { return v.written[a] - v.written[b] })
	for _, b := range temps {
		if o := owners[b.Slot]; o != nil {
			switch {
			case last[o] >= v.written[b]:
				return fmt.Errorf("%s and %s are in slot %d, but kernel %s needs both", o.Name, b.Name, b.Slot, v.plan.Kernels[v.written[b]].Name)
			case o.Type.Size() != b.Type.Size() || !sameSizes(o.Shape, b.Shape):
				return fmt.Errorf("%s and %s are in slot %d, but differ in size", o.Name, b.Name, b.Slot)
			}
		}
		owners[b.Slot] = b
	}
	if err := v.overs(temps, last); err != nil {
		return err
	}
	return v.updates(last)
}
