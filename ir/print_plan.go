package ir

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// PrintPlan writes a plan for reading: its buffers, its kernels with the bodies of
// their variants, and the merges it refused. Equal plans print alike. A body that
// is that of an earlier variant is not repeated.
func PrintPlan(p *Plan) string {
	var out planPrinter
	out.line("plan %s", p.Graph.Name)
	for _, b := range p.Buffers {
		out.line("  %s", bufferText(b))
	}
	for _, k := range p.Kernels {
		out.kernel(k)
	}
	for _, r := range p.Refused {
		out.line("\nrefused %s -> %s (%s)", r.Producer, r.Consumer, r.Reason)
		out.line("  %s; merged, it would save %s bytes", r.Detail, r.Bytes)
	}
	return out.String()
}

// PrintKernel writes the plan of one kernel alone, with its tensors. Kernels that print alike give the
// same CUDA text, except for comments about places in the program.
func PrintKernel(g *Graph, k *Kernel) string {
	p := &Plan{Graph: g, Kernels: []*Kernel{k}}
	args := k.Args
	if k.LastBlock != nil {
		args = append(slices.Clone(args), k.LastBlock.Kernel.Args...)
	}
	for _, a := range args {
		if !slices.Contains(p.Buffers, a.Buffer) {
			p.Buffers = append(p.Buffers, a.Buffer)
		}
	}
	return PrintPlan(p)
}

// sharedNames lists the arguments of a kernel whose memory may be that of another.
func sharedNames(k *Kernel) string {
	var out []string
	for _, a := range k.Args {
		if a.Shared {
			out = append(out, a.Name)
		}
	}
	return strings.Join(out, ", ")
}

func bufferText(b *Buffer) string {
	text := fmt.Sprintf("%s: %s%s ", b.Name, b.Type, shapeText(b.Shape))
	if b.Kind == TempBuffer {
		text += fmt.Sprintf("temporary, slot %d", b.Slot)
		if b.Over != nil {
			text += ", over " + b.Over.Name
		}
		return text
	}
	text += [...]string{InputBuffer: "input", OutputBuffer: "output", CheckBuffer: "check"}[b.Kind]
	switch {
	case b.InPlace:
		text += ", next " + b.Updates.Name + " in place"
	case b.Updates != nil:
		text += ", next " + b.Updates.Name + ": " + b.Apart
	}
	return text
}

func shapeText(shape []*Expr) string {
	parts := make([]string, len(shape))
	for i, e := range shape {
		parts[i] = e.String()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

type planPrinter struct{ strings.Builder }

func (p *planPrinter) line(format string, args ...any) {
	fmt.Fprintf(p, format, args...)
	p.WriteByte('\n')
}

func (p *planPrinter) kernel(k *Kernel) {
	p.line("\nkernel %s: %s template, %s%s", k.Name, k.Template, k.Numerics, precision(k))
	if len(k.Rows) > 0 {
		p.line("  rows %s", rangesText(k.Rows))
	}
	if len(k.Cols) > 0 {
		p.line("  columns %s", rangesText(k.Cols))
	}
	if len(k.Accumulated) > 0 {
		p.line("  accumulates over %s%s", rangesText(k.Accumulated), insideText(k))
	}
	if k.When != nil {
		p.line("  runs where %s", k.When)
	}
	reads, writes, members := names(k)
	p.line("  reads %s", reads)
	p.line("  writes %s", writes)
	if shared := sharedNames(k); shared != "" {
		p.line("  shares memory of %s", shared)
	}
	p.line("  computes %s", members)
	if k.LastBlock != nil {
		p.line("  last blocks run %s, which folds %s", k.LastBlock.Kernel.Name, rangesText(k.LastBlock.Parts))
	}
	if k.Like != nil {
		p.line("  body of kernel %s, with %s", k.Like.Name, standsFor(k))
		return
	}
	first := map[string]int{}
	for n, v := range k.Variants {
		p.line("  variant %d: %s", n+1, chosenText(v))
		if v.When != nil {
			p.line("    when %s", v.When)
		}
		for _, r := range v.Units {
			if v.Empty {
				p.line("    results that do not lie along %s", r.Name)
			} else {
				p.line("    one row along %s", r.Name)
			}
		}
		if v.Least > 0 {
			p.line("    rows longer than %d", v.Least)
		}
		body := variantText(k, v)
		if v.LastBlock != nil {
			body += fmt.Sprintf("    last block: %s\n%s", chosenText(v.LastBlock), variantText(k.LastBlock.Kernel, v.LastBlock))
		}
		if at, ok := first[body]; ok {
			p.line("    body of variant %d", at)
			continue
		}
		first[body] = n + 1
		p.WriteString(body)
	}
}

// precision is the precision of the kernel's results, if some are floats.
func precision(k *Kernel) string {
	if k.Mantissa == 0 {
		return ""
	}
	return fmt.Sprintf(" to %d bits", k.Mantissa)
}

// standsFor pairs the arguments of a kernel with those of the one that it repeats.
func standsFor(k *Kernel) string {
	var pairs []string
	for i, a := range k.Args {
		if of := k.Like.Args[i].Name; a.Name != of {
			pairs = append(pairs, a.Name+" for "+of)
		}
	}
	return strings.Join(pairs, ", ")
}

func insideText(k *Kernel) string {
	if k.Inside == nil {
		return ""
	}
	return " where " + k.Inside.String()
}

func names(k *Kernel) (reads, writes, members string) {
	var r, w, m []string
	for _, a := range k.Args {
		if a.Write {
			w = append(w, a.Name)
		} else {
			r = append(r, a.Name)
		}
	}
	for _, v := range k.Members {
		m = append(m, v.Name)
	}
	return strings.Join(r, ", "), strings.Join(w, ", "), strings.Join(m, ", ")
}

func rangesText(ranges []*Range) string {
	parts := make([]string, len(ranges))
	for i, r := range ranges {
		parts[i] = r.Name + ": " + r.Extent.String()
	}
	return strings.Join(parts, ", ")
}

// chosenText is a body's strategy and what its schedule sets.
func chosenText(v *Variant) string {
	s := v.Schedule
	parts := []string{v.Strategy.String()}
	for _, k := range knobs {
		switch value := k.of(&s); {
		case value == 0:
		case k.flag:
			parts = append(parts, k.name)
		default:
			parts = append(parts, k.name+" "+strconv.Itoa(value))
		}
	}
	return strings.Join(parts, ", ")
}

// variantPrinter writes the body of one variant; every local has a name of its own.
type variantPrinter struct {
	printer
	kept   map[*Local]bool
	early  map[*Local]bool
	staged map[*Local]bool
	ahead  map[*Local]int // the number of the section, from 1
}

func setOf(list []*Local) map[*Local]bool {
	out := map[*Local]bool{}
	for _, l := range list {
		out[l] = true
	}
	return out
}

func variantText(k *Kernel, v *Variant) string {
	p := &variantPrinter{kept: setOf(v.Keep), early: setOf(v.Early), staged: setOf(v.Staged), ahead: map[*Local]int{}}
	for _, a := range v.Ahead {
		if sharedNames(k) != "" { // else nothing is stored to that is read
			p.ahead[a.Local] = a.Section + 1
		}
	}
	p.locals, p.ranges = bodyNames(k, v)
	p.parts(k, v)
	for _, s := range v.Sections {
		p.section(s)
	}
	if v.Sort != nil {
		p.sort(v.Sort)
	}
	return p.String()
}

// bodyNames gives unique names to locals and to the ranges of sums inside bodies.
func bodyNames(k *Kernel, v *Variant) (names map[*Local]string, ranges map[*Range]string) {
	names, ranges = map[*Local]string{}, map[*Range]string{}
	taken := map[string]bool{}
	for _, r := range append(append([]*Range(nil), k.Rows...), k.Cols...) {
		taken[r.Name] = true
	}
	for _, a := range k.Args {
		taken[a.Name] = true
	}
	for _, r := range v.innerRanges() {
		if ranges[r] == "" {
			ranges[r] = freshName(r.Name, taken)
		}
	}
	add := func(l *Local) {
		if l != nil {
			names[l] = freshName(l.Name, taken)
		}
	}
	for _, s := range v.Sections {
		for _, f := range s.Folds {
			add(f.Result)
			add(f.Running)
			add(f.Old)
		}
	}
	if s := v.Sort; s != nil {
		taken[s.Places.Name] = true
		add(s.Value)
		add(s.Index)
	}
	for _, l := range v.Locals {
		add(l)
	}
	for _, o := range v.operands() {
		for _, p := range []*Piece{o.Pieces, o.Scale} {
			if p == nil {
				continue
			}
			for _, r := range p.Reads {
				add(r.Local)
			}
			for _, l := range p.Locals {
				add(l)
			}
		}
	}
	return names, ranges
}

func (p *variantPrinter) local(l *Local) {
	p.WriteString("    let " + p.locals[l] + " = ")
	p.expr(l.Def, looseLevel)
	notes := []string{l.Type.String(), [...]string{"each row", "each element"}[l.Level]}
	if l.Wide {
		notes = append(notes, "wide")
	}
	if l.EvictFirst != nil {
		notes = append(notes, "evict-first when "+l.EvictFirst.String())
	}
	if l.EvictLast != nil {
		notes = append(notes, "evict-last when "+l.EvictLast.String())
	}
	if p.kept[l] {
		notes = append(notes, "kept")
	}
	if p.early[l] {
		notes = append(notes, "early")
	}
	if n := p.ahead[l]; n > 0 {
		notes = append(notes, "complete before the results of section "+strconv.Itoa(n))
	}
	if p.staged[l] {
		notes = append(notes, "through shared memory")
	}
	p.WriteString("  # " + strings.Join(notes, ", ") + "\n")
}

// view writes dims and strides innermost first, as the view lists them.
func (p *variantPrinter) view(w *TMAView) {
	fmt.Fprintf(p, "    tensor map %s of %s: dims %s", w.Name, w.Arg.Name, shapeText(w.Dims))
	if len(w.Strides) > 0 {
		fmt.Fprintf(p, ", strides %s", shapeText(w.Strides))
	}
	if w.Offset != nil {
		fmt.Fprintf(p, ", from %s", w.Offset)
	}
	fmt.Fprintf(p, ", TMA tile %v", w.Box)
	if w.Steps != nil {
		fmt.Fprintf(p, " in steps of %v", w.Steps)
	}
	fmt.Fprintf(p, ", swizzle %d", w.Swizzle)
	if w.TF32 {
		p.WriteString(", rounded to tf32")
	}
	p.WriteByte('\n')
}

func (p *variantPrinter) section(s *Section) {
	p.WriteString([...]string{"    row", "    pass"}[s.Level])
	if s.Reverse {
		p.WriteString(" from the last column")
	}
	p.WriteByte('\n')
	for _, f := range s.Folds {
		p.fold(f)
	}
	p.stores(s.Stores)
	for _, t := range s.Partials {
		p.WriteString("      accumulate to " + t.Arg.Name + "[")
		p.expr(t.Offset, looseLevel)
		p.WriteString("]: " + t.Op.String() + " of ")
		p.expr(t.Body, looseLevel)
		p.WriteString(flagText(t.Wide, "  # wide") + "\n")
	}
}

// sort writes the order and the stores at its places.
func (p *variantPrinter) sort(s *Sort) {
	fmt.Fprintf(p, "    %s, %s = sorted %s ", p.locals[s.Value], p.locals[s.Index], s.Type)
	p.expr(s.Key, looseLevel)
	if s.Descending {
		p.WriteString(", the largest first")
	}
	p.WriteString("\n    at " + s.Places.Name + ": ")
	p.expr(s.Places.Extent, looseLevel)
	p.WriteByte('\n')
	p.stores(s.Stores)
}

func (p *variantPrinter) stores(stores []*Store) {
	for _, st := range stores {
		p.WriteString("      store " + st.Arg.Name + "[")
		p.expr(st.Offset, looseLevel)
		p.WriteString("] = ")
		p.expr(st.Value, looseLevel)
		p.where(st.Guard)
		if st.Wide {
			p.WriteString("  # wide")
		}
		if st.Staged {
			p.WriteString(", through shared memory")
		}
		if st.Between > 0 {
			fmt.Fprintf(p, ", %d rows between each other", st.Between)
		}
		p.WriteByte('\n')
	}
}

func (p *variantPrinter) fold(f *Fold) {
	p.WriteString("      " + f.Prefix.String() + " " + p.locals[f.Result] + " = " + f.Op.String() + " of ")
	p.expr(f.Body, looseLevel)
	if f.Index != nil {
		p.WriteString(" at ")
		p.expr(f.Index, looseLevel)
	}
	p.where(f.Where)
	if f.After != nil {
		fmt.Fprintf(p, ", times ")
		p.expr(f.Rescale, postfixLevel)
		fmt.Fprintf(p, " when %s goes from %s to %s", p.locals[f.After.Result], p.locals[f.Old], p.locals[f.After.Running])
	}
	p.WriteByte('\n')
}

func (p *variantPrinter) where(cond *Expr) {
	if cond != nil {
		p.WriteString(" where ")
		p.expr(cond, looseLevel)
	}
}
