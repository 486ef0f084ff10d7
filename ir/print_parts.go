package ir

import (
	"fmt"
	"strings"
)

// What plans print of the parts of a body: products, attention, and how their operands reach the tiles.

// parts writes what stands in front of a body's sections.
func (p *variantPrinter) parts(k *Kernel, v *Variant) {
	if v.Across != nil {
		p.note("tiles across %s", v.Across.Name)
	}
	if v.Run > 0 {
		p.note("reads to shared memory run along %d of the columns", v.Run)
	}
	for _, w := range v.TensorMaps {
		p.view(w)
	}
	for _, l := range v.Locals {
		p.local(l)
	}
	if v.Stencil != nil {
		p.stencil(v.Stencil)
	}
	if s := v.Scatter; s != nil {
		p.text("    columns go to %s = ", s.To.Name)
		p.expr(s.Key, looseLevel)
		p.where(s.Rest)
		p.text(" for each of %s\n", p.list(s.Batch))
	}
	if v.Contract != nil {
		p.contract(v.Contract)
	}
	if v.Attend != nil {
		p.attend(v.Attend)
	}
}

func (p *variantPrinter) text(format string, args ...any) { fmt.Fprintf(p, format, args...) }

func (p *variantPrinter) note(format string, args ...any) { p.text("    "+format+"\n", args...) }

// named writes a line with a name and an expression; nothing if the expression is nil.
func (p *variantPrinter) named(name string, e *Expr) {
	if e != nil {
		p.text("      %s ", name)
		p.expr(e, looseLevel)
		p.WriteByte('\n')
	}
}

func (p *variantPrinter) list(ranges []*Range) string {
	names := make([]string, len(ranges))
	for i, r := range ranges {
		names[i] = p.rangeName(r)
	}
	return "(" + strings.Join(names, ", ") + ")"
}

func (p *variantPrinter) contract(c *Contract) {
	p.note("product of %s by %s: batch %s, rows %s, columns %s%s", c.Type, c.Unit, p.list(c.Batch), p.list(c.M),
		p.list(c.N), flagText(c.FewN, ", few columns"))
	if c.Product != nil {
		p.note("  %s sums over %s, and is folded a tile at a time", p.locals[c.Product], p.list(c.Depth))
	}
	if c.Phases > 0 {
		p.note("  tiles of %d phases follow each other", c.Phases)
	}
	if c.Between != nil {
		p.note("  results of %s lie between each other, and are stored by %s", p.rangeName(c.Between), p.rangeName(c.Lane))
	}
	p.named("width", c.Width)
	p.named("slices", c.Slices)
	if c.Symmetric {
		p.note("  symmetric, tiles below the diagonal are those above it")
	}
	for _, n := range c.Taps {
		p.named("taps", n)
	}
	if c.NoTaps {
		p.note("  there may be no taps")
	}
	p.side("a", &c.A)
	for i := range c.B {
		p.side("b", &c.B[i])
	}
	for i := range c.Segments {
		s := &c.Segments[i]
		p.named("segment of columns", s.Depth)
		p.side("a", &s.A)
		for j := range s.B {
			p.side("b", &s.B[j])
		}
	}
}

func flagText(set bool, text string) string {
	if set {
		return text
	}
	return ""
}

// side writes one operand of a product.
func (p *variantPrinter) side(name string, o *Operand) {
	p.text("      %s = ", name)
	p.expr(o.Value, looseLevel)
	p.text("  # along the %s%s%s%s", [...]string{"rows", "sum"}[flag(o.KLast)], flagText(o.Wide, ", wide"),
		flagText(o.Async, ", copied"), flagText(o.Early, ", early"))
	if s := o.Band; s != nil {
		p.text(", bands with lines %d apart, from element %d of an access on", s.Pitch, s.Skip)
	}
	if o.View != nil {
		p.text(", tensor map %s at %s", o.View.Name, p.list(o.ViewBatch))
	}
	p.WriteByte('\n')
	p.piece("pieces", o.Pieces)
	p.piece("factors", o.Scale)
	p.window(o.Window)
	p.windowTiles(o.WindowTiles)
}

// window writes the place at which a windowed operand is read, over its rows and columns.
func (p *variantPrinter) window(w *Window) {
	if w == nil {
		return
	}
	p.named("  row at", w.Base)
	if w.ByRow {
		p.text("        by rows\n")
	}
	p.halo(w.Halo)
	p.named("  column", w.Step)
	p.named("  columns apart", w.Pitch)
	for _, s := range w.Spans {
		p.named("  inside from row", s.Row)
		p.named("    and column", s.Tap)
		p.named("    of", s.Extent)
	}
}

// halo writes what the windows of a tile cover.
func (p *variantPrinter) halo(h *Halo) {
	if h == nil {
		return
	}
	p.text("        what windows cover, %d planes at a time, lines padded by %d\n", h.Channels, h.Pad)
	p.named("  planes from", h.Start)
	p.named("  planes apart", h.Plane)
	for _, d := range h.Dims {
		p.text("        axis of %d places in a tile, %d apart, taps %d apart\n", d.Tile, d.Stride, d.Dilation)
		p.named("  axis from", d.First)
		p.named("  axis of", d.Extent)
		p.named("  axis apart", d.Apart)
	}
}

// windowTiles writes how tiles of a windowed operand are copied.
func (p *variantPrinter) windowTiles(b *WindowTiles) {
	if b == nil {
		return
	}
	p.text("        TMA tiles of %s at %s, tiles of %v, of which %d is shared\n", b.View.Name, shapeText(b.At), b.Tile, b.Share)
	if c := b.Cover; c != nil {
		p.text("        %d lines cover it, %d at a time, rows %v apart, every %d groups %d apart in %d rows\n", c.Lines, c.Slots, c.Apart, c.Every, c.Group, c.Rows)
		p.named("  tap at", c.Tap)
	}
}

func (p *variantPrinter) piece(name string, of *Piece) {
	if of == nil {
		return
	}
	p.text("        %s of %d along %s = %s * %d + %s\n", name, of.Length, of.Inner.Name, of.Outer.Name, of.Length, of.Lane.Name)
	for _, r := range of.Reads {
		p.text("          let %s = %s[", p.locals[r.Local], r.Arg.Name)
		p.expr(r.Base, looseLevel)
		p.text("; %d][", r.Width)
		p.expr(r.At, looseLevel)
		p.text("]\n")
	}
	for _, l := range of.Locals {
		p.text("          let %s: %s = ", p.locals[l], l.Type)
		p.expr(l.Def, looseLevel)
		p.WriteByte('\n')
	}
	p.named("    value", of.Value)
	if f := of.Fields; f != nil {
		p.text("          fields of read %d: %d of %d bits from bit %d, flipped by %d, times %g plus %g, order %v%s\n", f.Read,
			f.Width, f.Bits, f.First, f.Flip, f.Step, f.Base, f.Order, flagText(f.Twice, ", twice"))
		p.named("    plus", f.Offset)
	}
}

func (p *variantPrinter) attend(a *Attend) {
	p.note("attention of %s, width %d: batch %s, queries %s, depth %s, columns of values %s", a.Type, a.Width,
		p.list(a.Batch), p.list(a.M), p.list(a.Depth), p.list(a.N))
	if a.Parts > 0 {
		p.note("  elements are sums of %d of %s", a.Parts, BF16)
	}
	if a.Max == nil {
		p.note("  a chain: scores %s, sum %s, values in product %d", p.locals[a.Score], p.locals[a.Acc.Result], a.ValueIn)
	} else {
		p.note("  scores %s, largest %s, scale %v, sum %s", p.locals[a.Score], p.locals[a.Max.Result], a.Scale, p.locals[a.Acc.Result])
	}
	if s := a.Also; s != nil {
		p.note("  also: sum %s, values in product %d", p.locals[s.Acc.Result], s.ValueIn)
		p.named("values", s.Value)
		p.named("factor", s.Weight)
		p.named("then", s.Clear)
	}
	for i := range a.Others {
		o := &a.Others[i]
		p.note("  scores %s, depth %s", p.locals[o.Score], p.list(o.Depth))
		p.side("queries", &o.Q)
		p.side("keys", &o.K)
		for _, t := range []*TMATile{o.QTile, o.KTile} {
			p.tmaTile(t)
		}
	}
	if len(a.Outer) > 0 {
		p.note("  all keys for each of %s", p.list(a.Outer))
	}
	if a.Held > 0 {
		p.note("  %d slabs of queries in registers", a.Held)
	}
	for _, l := range a.Brought {
		p.note("  brought with keys %s", p.locals[l])
	}
	for _, l := range a.OfQuery {
		p.note("  read once for a query %s", p.locals[l])
	}
	for _, f := range a.Sums {
		p.note("  sum of weights %s", p.locals[f.Result])
	}
	for _, side := range []struct {
		name    string
		o       *Operand
		tmaTile *TMATile
	}{{"queries", &a.Q, a.QTile}, {"keys", &a.K, a.KTile}, {"values", &a.V, a.VTile}} {
		p.side(side.name, side.o)
		p.tmaTile(side.tmaTile)
	}
	p.named("factor", a.Weight)
	p.mask(&a.Skip)
}

// tmaTile writes how an operand is copied, if the tensor copy engine copies it.
func (p *variantPrinter) tmaTile(t *TMATile) {
	if t == nil {
		return
	}
	p.text("        tensor map %s at %s", t.View.Name, shapeText(t.At))
	if t.Line != nil {
		p.text(" from line %s", t.Line)
	}
	p.text("\n")
}

// mask writes the conditions on tiles, over their first query and key.
func (p *variantPrinter) mask(m *TileMask) {
	p.note("  tiles from query %s and key %s%s%s", m.Query, m.Key, flagText(m.Table, ", in a table"), flagText(m.FirstMost, ", the first ones first"))
	p.named("any", m.Any)
	p.named("all", m.All)
	p.named("then", m.Clear)
	p.named("kept", m.Kept)
	p.named("settled", m.Settled)
	p.named("placed", m.Placed)
}

// stencil writes how windows overlap, and which reads a thread does once for all of its
// windows.
func (p *variantPrinter) stencil(s *Stencil) {
	for _, slide := range s.Slides() {
		p.named("slides along "+p.rangeName(slide.Place)+", at", slide.At(slide.Row.At(), slide.Tap.At()))
	}
	for _, r := range s.Reads {
		vectors := ""
		if r.Width > 0 {
			vectors = fmt.Sprintf(" in vectors of %d from %d ahead", r.Width, r.Shift)
		}
		p.named("once a place"+vectors+": "+p.locals[r.Local]+" =", r.At)
	}
}
