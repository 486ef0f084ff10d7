package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// explainText draws explanations one below another.
func (a *app) explainText(graphs []explain.Explanation, classes bool) {
	for i, x := range graphs {
		if i > 0 {
			a.ui.printf("\n")
		}
		a.ui.printf("%s: %s, on %s", a.ui.style(bold, x.Graph), kernelsText(x), x.Device)
		if len(x.Sizes) > 0 {
			a.ui.printf(" at %s", sizesText(x.Sizes))
		}
		a.ui.printf("\n\n")
		for _, k := range x.Kernels {
			a.explainKernel(k, classes)
		}
		a.explainStates(x.States)
		a.explainRefused(x.Refused)
		a.totals(x)
		a.losing(x, x.Kernels[max(x.Costliest(), 0)].Name)
	}
}

func (a *app) explainKernel(k explain.KernelNote, classes bool) {
	a.ui.printf("%s  %s template, %s mapping%s\n", a.ui.style(bold, k.Name), k.Template, k.Mapping,
		estimateText(k.Seconds))
	a.field("space", spaceText(k))
	switch {
	case k.Idle:
		a.field("runs", "not at these sizes, at which it has nothing to write")
	case k.LastBlockOf != "":
		a.field("runs", "in the last blocks of "+k.LastBlockOf)
	default:
		a.field("schedule", scheduleText(k))
	}
	if k.Slower != "" {
		a.field("no wgmma", k.Slower)
	}
	if k.Folds != "" {
		a.field("folds", "tiles of "+k.Folds+" where they are multiplied; it is not written")
	}
	for i, line := range a.operationLines(k.Operations) {
		a.field([]string{"computes", ""}[min(i, 1)], line)
	}
	if k.Copies != nil {
		a.field("computes", a.copyLine(k.Copies))
	}
	if len(k.Terms) > 0 {
		a.field("for", "a product of f32, which is the sum of products of these terms on tensor cores")
	}
	for i, line := range transferLines(k.Reads) {
		a.field([]string{"reads", ""}[min(i, 1)], line)
	}
	for i, line := range transferLines(k.Writes) {
		a.field([]string{"writes", ""}[min(i, 1)], line)
	}
	if classes {
		for i, c := range k.Classes {
			a.field([]string{"classes", ""}[min(i, 1)], fmt.Sprintf("%2d  %s", i+1, oneSchedule(c)))
			for n, line := range wrapped(c.Terms, classWidth) {
				a.field("", fmt.Sprintf("    %-5s %s", []string{"where", ""}[min(n, 1)], a.ui.style(faint, line)))
			}
		}
	}
	a.ui.printf("\n")
}

// explainStates says of each state whether it is updated in place, or why it has a second buffer.
func (a *app) explainStates(states []explain.StateNote) {
	var inPlace []string
	for _, s := range states {
		if s.InPlace {
			inPlace = append(inPlace, s.Name)
		}
	}
	const named = 16 // states that are listed by name, if there are no more
	switch {
	case len(inPlace) > named:
		a.field("in place", fmt.Sprintf("%d of %s", len(inPlace), count(len(states), "state")))
	case len(inPlace) > 0:
		a.field("in place", strings.Join(inPlace, ", "))
	}
	for _, s := range states {
		if !s.InPlace {
			a.field("2 buffers", s.Name+": "+s.Why)
		}
	}
	if len(states) > 0 {
		a.ui.printf("\n")
	}
}

func (a *app) field(name, text string) {
	const indent = 12
	for _, line := range breakLine(text, a.ui.width()-indent) {
		a.ui.printf("  %s %s\n", a.ui.style(faint, fmt.Sprintf("%-9s", name)), line)
		name = ""
	}
}

func spaceText(k explain.KernelNote) string {
	text := rangesText(k.Rows)
	if len(k.Cols) > 0 {
		text += ", reduced over " + rangesText(k.Cols)
	}
	if len(k.Depth) > 0 {
		text += ", of sums over " + rangesText(k.Depth)
	}
	return text
}

func rangesText(ranges []explain.RangeNote) string {
	if len(ranges) == 0 {
		return "one point"
	}
	var parts []string
	for _, r := range ranges {
		parts = append(parts, r.Name+": "+r.Extent)
	}
	return strings.Join(parts, ", ")
}

// scheduleText is the schedule of the class that the sizes choose, or how many
// classes there are.
func scheduleText(k explain.KernelNote) string {
	if k.Class == nil {
		return fmt.Sprintf("one of %d classes of sizes", len(k.Classes))
	}
	c := k.Classes[*k.Class]
	return fmt.Sprintf("%s  (class %d of %d: %s)", oneSchedule(c), *k.Class+1, len(k.Classes), whenText(c))
}

// whenText says which sizes a class is for. It leaves out the condition that offsets fit 32 bits.
func whenText(c explain.Class) string {
	if len(c.Terms) == 0 {
		return "any size"
	}
	return strings.Join(c.Terms, ", ")
}

// shortTerm is the characters up to which a condition is not broken over lines.
const shortTerm = 40

// classWidth is the characters of a line of conditions, mostClassLines how many lines of
// them are shown: conditions that compare costs of tiles are long, and in --json.
const (
	classWidth     = 90
	mostClassLines = 3
)

// wrapped lays conditions out in lines, short ones whole, and ends what goes on for too
// long.
func wrapped(terms []string, width int) []string {
	var words []string
	for i, term := range terms {
		if i < len(terms)-1 {
			term += ","
		}
		if len(term) <= shortTerm {
			words = append(words, term)
		} else {
			words = append(words, strings.Fields(term)...)
		}
	}
	var lines []string
	line := ""
	for _, word := range words {
		switch {
		case line == "":
			line = word
		case len(line)+1+len(word) <= width:
			line += " " + word
		case len(lines) == mostClassLines-1:
			return append(lines, line+" …")
		default:
			lines, line = append(lines, line), word
		}
	}
	if line == "" {
		line = "any size"
	}
	return append(lines, line)
}

func oneSchedule(c explain.Class) string {
	s := c.Schedule
	parts := []string{s.Mapping.String() + " mapping", count(s.Threads, "thread") + " a block"}
	if s.Mapping == ir.RowMapping {
		parts[1] = count(s.RowThreads*max(s.Cluster, 1), "thread") + " a row"
	}
	if s.TileM > 0 && s.TileN > 0 {
		parts = append(parts, fmt.Sprintf("tiles of %d x %d", s.TileM, s.TileN))
	}
	if s.Cluster > 1 {
		parts = append(parts, fmt.Sprintf("%d blocks share it", s.Cluster))
	}
	if c.Slices != "" {
		parts = append(parts, c.Slices+" blocks share it, through memory")
	}
	if s.ColThreads > 1 {
		parts = append(parts, fmt.Sprintf("%d threads share the reduction", s.ColThreads))
	}
	if s.Chain > 0 {
		parts = append(parts, "by chained scan: blocks add to the totals of their predecessors")
	}
	if s.LookBack > 0 {
		parts = append(parts, "by decoupled look-back, slab by slab")
	}
	if s.Mapping == ir.FlatMapping && s.TileM > 0 { // of a stencil
		parts = append(parts, fmt.Sprintf("windows of %d by %d neighbours folded from lines that are read once", s.TileM, s.Vector))
	}
	parts = append(parts, count(s.Vector, "element")+" at a time")
	if s.Mapping == ir.RowMapping {
		parts = append(parts, count(c.Passes, "pass"))
	}
	if c.Kept > 0 {
		parts = append(parts, "the row kept on chip")
	}
	if s.Index64 {
		parts = append(parts, "64-bit offsets")
	}
	return strings.Join(parts, ", ")
}

// operationLines lists places of the program with their text and what is computed
// there.
func (a *app) operationLines(ops []explain.Operation) []string {
	var rows [][2]string
	var spans []diag.Span
	for _, op := range ops {
		name := op.Name
		if op.Count > 1 {
			name = fmt.Sprintf("%s ×%d", name, op.Count)
		}
		if i := slices.Index(spans, op.Span.Span); i >= 0 {
			rows[i][1] += ", " + name
			continue
		}
		spans = append(spans, op.Span.Span)
		rows = append(rows, [2]string{a.spanText(op.Span.Span), name})
	}
	places, width := make([]string, len(rows)), 0
	for i, r := range rows {
		places[i] = fmt.Sprintf("%-7s %s", fmt.Sprintf("%d:%d", spans[i].Start.Line, spans[i].Start.Column), r[0])
		width = max(width, len([]rune(places[i])))
	}
	for i, r := range rows {
		pad := strings.Repeat(" ", width-len([]rune(places[i])))
		places[i] += pad + "  " + a.ui.style(faint, r[1])
	}
	return places
}

// copyLine says what is copied, behind the place of the program that it is for.
func (a *app) copyLine(c *explain.CopyNote) string {
	text := copyText(c, func(name string) string { return name })
	if s := c.Span; !s.IsZero() {
		return fmt.Sprintf("%-7s %s  %s", fmt.Sprintf("%d:%d", s.Start.Line, s.Start.Column), a.spanText(s.Span), a.ui.style(faint, text))
	}
	return text
}

// spanText is the program's text of a span, on one line and not too long.
func (a *app) spanText(s diag.Span) string {
	const longest = 60
	text, ok := a.files.text(s.Start.Filename)
	if !ok || s.End.Offset > len(text) || s.Start.Offset > s.End.Offset {
		return s.Start.Filename
	}
	line := []rune(strings.Join(strings.Fields(text[s.Start.Offset:s.End.Offset]), " "))
	if len(line) > longest {
		line = append(line[:longest-1], '…')
	}
	return string(line)
}

func transferLines(list []explain.Transfer) []string {
	var out []string
	for _, t := range list {
		text := fmt.Sprintf("%s: %s[%s]  %s bytes", t.Name, t.DType, strings.Join(t.Shape, ", "), t.Size)
		if t.Bytes != nil {
			text += " = " + byteText(*t.Bytes)
		}
		if t.Kind == "temporary" {
			text += ", temporary"
		}
		out = append(out, text)
	}
	return out
}

func (a *app) explainRefused(refused []explain.RefusalNote) {
	for _, r := range refused {
		a.ui.printf("%s  %s into %s (%s)\n", a.ui.style(bold, "not merged"), r.Producer, r.Consumer, r.Reason)
		a.field("because", r.Detail)
		saved := r.Saved.Size + " bytes"
		if r.Saved.Bytes != nil {
			saved += " = " + byteText(*r.Saved.Bytes)
		}
		a.field("between", saved+" go through memory")
		if !r.Span.IsZero() {
			a.field("at", fmt.Sprintf("%s  %s", r.Span, a.spanText(r.Span.Span)))
		}
		a.ui.printf("\n")
	}
}

// totals shows what the whole program costs, as planned and without fusion: a row each, or, where
// sizes are symbols and their formulas are too long for a row, a paragraph each.
func (a *app) totals(x explain.Explanation) {
	const room = 24 // characters that a formula may take in a row
	rows := [][]string{totalRow("as planned", x.Fused), totalRow("unfused", x.Unfused)}
	long := slices.ContainsFunc(rows, func(row []string) bool { return max(len(row[2]), len(row[3])) > room })
	if !long {
		a.ui.table([]column{col(""), number("kernels"), number("read"), number("written"), number("about ms")}, rows)
		return
	}
	for i, total := range []explain.Total{x.Fused, x.Unfused} {
		row := rows[i]
		a.ui.printf("%s: %s\n", row[0], count(total.Kernels, "kernel"))
		a.field("read", row[2])
		a.field("written", row[3])
	}
}

// losing says where a plan is slower than what it is made of, most of it by a kernel of that name.
func (a *app) losing(x explain.Explanation, kernel string) {
	if !x.Loses() {
		return
	}
	text := fmt.Sprintf("%s is estimated to take longer as planned than unfused, most of it in %s. The planner is at fault, not the program: "+
		"please report it with the folder that `fusec repro` makes of the program", x.Graph, kernel)
	a.ui.printf("\n%s\n", strings.Join(wrap(text, a.ui.width()), "\n"))
}

func totalRow(name string, t explain.Total) []string {
	return []string{name, fmt.Sprint(t.Kernels), amountText(t.Read), amountText(t.Written),
		secondsText(t.Seconds)}
}

func amountText(a explain.Amount) string {
	if a.Bytes == nil {
		return a.Size
	}
	return byteText(*a.Bytes)
}

func secondsText(s *float64) string {
	if s == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *s*1e3)
}

func estimateText(s *float64) string {
	if s == nil {
		return ""
	}
	return ", about " + secondsText(s) + " ms"
}
