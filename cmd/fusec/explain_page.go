package main

import (
	"cmp"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir/diag"
)

// How much of a plan a page shows.
const (
	pageKernels  = 20 // the costliest, where there are more
	pageDetailed = 5  // kernels up to which each is shown with its operations and tensors
)

// explainPages draws an explanation of each graph that fits on a page.
func (a *app) explainPages(graphs []explain.Explanation) {
	for i, x := range graphs {
		if i > 0 {
			a.ui.printf("\n")
		}
		p := page{app: a, x: x}
		p.title()
		p.kernels()
		p.prepared()
		p.explainStates(x.States)
		p.refusal()
		a.totals(x)
		a.losing(x, "kernel "+p.label(x.Costliest()))
	}
}

// page draws one explanation in words of the program: kernels have numbers, and values are
// named by the text that computes them.
type page struct {
	*app
	x explain.Explanation
}

func (p *page) title() {
	text := kernelsText(p.x)
	if p.x.Fused.Seconds != nil && p.x.Unfused.Seconds != nil {
		text += fmt.Sprintf(", about %s ms instead of %s,", secondsText(p.x.Fused.Seconds), secondsText(p.x.Unfused.Seconds))
	}
	text += " on " + p.x.Device
	if len(p.x.Sizes) > 0 {
		text += " at " + sizesText(p.x.Sizes)
	}
	p.ui.printf("%s\n\n", strings.Join(wrap(p.ui.style(bold, p.x.Graph)+": "+text, p.ui.width()), "\n"))
}

// kernelsText says how many kernels there are, and how many there are without fusion. More of them are no gain in
// themselves: copies to another layout are kernels of their own.
func kernelsText(x explain.Explanation) string {
	kernels, unfused := count(x.Fused.Kernels, "kernel"), x.Unfused.Kernels
	if x.Fused.Kernels > unfused {
		return fmt.Sprintf("%s (unfused: %d)", kernels, unfused)
	}
	return fmt.Sprintf("%s instead of %d", kernels, unfused)
}

// kernels lists the kernels in the order they run in; of very many the costliest.
func (p *page) kernels() {
	shown := p.costliest()
	var rows [][]string
	edge := p.edge(shown)
	for _, n := range shown {
		k := p.x.Kernels[n]
		share := "-"
		if k.Seconds != nil && p.x.Fused.Seconds != nil {
			share = fmt.Sprintf("%.0f%%", 100*min(1, *k.Seconds / *p.x.Fused.Seconds))
		}
		lines, text := p.does(k)
		if k.LastBlockOf != "" {
			text = fmt.Sprintf("in the last blocks of %s: %s", p.label(p.position(k.LastBlockOf)), text)
		}
		rows = append(rows, []string{p.label(n), secondsText(k.Seconds), share, roofText(k), lines, p.cut(text, edge)})
		if len(p.x.Kernels) <= pageDetailed {
			for _, line := range p.details(k) {
				for _, part := range wrap(line, p.ui.width()-edge) {
					rows = append(rows, []string{"", "", "", "", "", p.ui.style(faint, part)})
				}
			}
		}
	}
	p.ui.table([]column{number(""), number("about ms"), number("share"), col("roofline"), col("line"), col("computes")}, rows)
	if more := len(p.running()) - len(shown); more > 0 {
		p.ui.printf("%s\n", p.ui.style(faint, fmt.Sprintf("and %s that take less; --verbose shows them, and what each reads and writes", count(more, "kernel"))))
	} else if len(p.x.Kernels) > pageDetailed {
		p.ui.printf("%s\n", p.ui.style(faint, "--verbose shows what each reads and writes"))
	}
	p.ui.printf("\n")
}

// label names a kernel of the plan: launches have numbers, so that the last is how many there are, and what runs in the last blocks of a launch has
// the number of that with a sign behind it. What has nothing to do at the sizes is not launched.
func (p *page) label(n int) string {
	if n < 0 || p.x.Kernels[n].Idle {
		return "-"
	}
	if of := p.position(p.x.Kernels[n].LastBlockOf); of >= 0 {
		return p.label(of) + "+"
	}
	launches := 0
	for _, k := range p.x.Kernels[:n+1] {
		if !k.Idle && k.LastBlockOf == "" {
			launches++
		}
	}
	return fmt.Sprint(launches)
}

// position is where in the plan a kernel of a name is; -1 for none.
func (p *page) position(name string) int {
	return slices.IndexFunc(p.x.Kernels, func(k explain.KernelNote) bool { return k.Name == name })
}

// edge is how many characters the columns before the last have.
func (p *page) edge(shown []int) int {
	const gap = 2
	widths := []int{0, len("about ms"), len("share"), len("roofline"), len("line")}
	for _, n := range shown {
		k := p.x.Kernels[n]
		lines, _ := p.does(k)
		for i, cell := range []string{p.label(n), secondsText(k.Seconds), "", roofText(k), lines} {
			widths[i] = max(widths[i], len(cell))
		}
	}
	sum := 0
	for _, w := range widths {
		sum += w + gap
	}
	return sum
}

func roofText(k explain.KernelNote) string {
	if k.OfRoof == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f%% %s", 100**k.OfRoof, k.Roof)
}

// running are the positions of the kernels that have something to do at the sizes.
func (p *page) running() (out []int) {
	for i, k := range p.x.Kernels {
		if !k.Idle {
			out = append(out, i)
		}
	}
	return out
}

// costliest are the positions of the kernels to show.
func (p *page) costliest() []int {
	all := p.running()
	if len(all) <= pageKernels {
		return all
	}
	seconds := func(i int) float64 {
		if s := p.x.Kernels[i].Seconds; s != nil {
			return *s
		}
		return 0
	}
	slices.SortStableFunc(all, func(i, j int) int { return cmp.Compare(seconds(j), seconds(i)) })
	return slices.Sorted(slices.Values(all[:pageKernels]))
}

// does says which lines of the program a kernel computes, and the last thing it computes. Of a copy it
// says what is copied, and the line of what that is for.
func (p *page) does(k explain.KernelNote) (lines, text string) {
	if k.Copies != nil {
		return p.copies(k.Copies)
	}
	lines, text = p.operations(k)
	if len(k.Terms) > 0 {
		text = termsText(k, p.words) + ", for " + text
	}
	return lines, text
}

// operations says which lines of the program a kernel computes, and the last thing on them.
func (p *page) operations(k explain.KernelNote) (lines, text string) {
	first, last := 0, 0
	var at diag.Span
	for _, op := range k.Operations {
		s := op.Span.Span
		if s.IsZero() {
			continue
		}
		if first == 0 || s.Start.Line < first {
			first = s.Start.Line
		}
		if at.IsZero() || s.Start.Line > last || s.Start.Line == last && s.End.Offset-s.Start.Offset >= at.End.Offset-at.Start.Offset {
			at = s
		}
		last = max(last, s.Start.Line)
	}
	switch {
	case at.IsZero():
		return "", k.Name
	case first == last:
		return fmt.Sprint(first), p.spanText(at)
	}
	return fmt.Sprintf("%d-%d", first, last), p.spanText(at)
}

// details are the operations of a kernel, and the tensors it moves.
func (p *page) details(k explain.KernelNote) []string {
	var ops []string
	for _, op := range k.Operations {
		if op.Name != explain.TermsOperation && !slices.Contains(ops, op.Name) {
			ops = append(ops, op.Name)
		}
	}
	var out []string
	if len(ops) > 0 {
		out = append(out, strings.Join(ops, ", "))
	}
	if len(k.Reads) > 0 {
		out = append(out, "reads "+p.tensors(k.Reads, "the %s of kernel %s",
			func(k explain.KernelNote) []explain.Transfer { return k.Writes }))
	}
	return append(out, "writes "+p.tensors(k.Writes, "%s for kernel %s",
		func(k explain.KernelNote) []explain.Transfer { return k.Reads }))
}

// tensors names inputs and outputs; of what goes from kernel to kernel it names the kernels at
// the other end, with what they write or read.
func (p *page) tensors(list []explain.Transfer, form string, end func(explain.KernelNote) []explain.Transfer) string {
	var parts, ends []string
	between := map[string]explain.Transfer{} // joined, by the kernels at the other end
	for _, t := range list {
		if t.Kind != "temporary" {
			parts = append(parts, t.Name+" "+transferSize(t))
			continue
		}
		var others []string
		for i, k := range p.x.Kernels {
			if slices.ContainsFunc(end(k), func(o explain.Transfer) bool { return o.Name == t.Name }) {
				others = append(others, p.label(i))
			}
		}
		key := strings.Join(others, ", ")
		if sum, ok := between[key]; ok {
			between[key] = joined(sum, t)
		} else {
			between[key] = t
			ends = append(ends, key)
		}
	}
	for _, key := range ends {
		parts = append(parts, fmt.Sprintf(form, transferSize(between[key]), key))
	}
	return strings.Join(parts, ", ")
}

// joined is two transfers as one.
func joined(a, b explain.Transfer) explain.Transfer {
	a.Size += " + " + b.Size
	if a.Bytes != nil && b.Bytes != nil {
		bytes := *a.Bytes + *b.Bytes
		a.Bytes = &bytes
	} else {
		a.Bytes = nil
	}
	return a
}

func transferSize(t explain.Transfer) string {
	if t.Bytes == nil {
		return t.Size + " bytes"
	}
	return byteText(*t.Bytes)
}

// refusal shows the refused merge that would have saved the most bytes. Only the first refusal for
// each tensor that goes through memory counts. Refusals of what the compiler has inserted are shown
// with --verbose alone, because the program cannot change them.
func (p *page) refusal() {
	var worst *explain.RefusalNote
	shown := 0
	for i := range p.x.Refused {
		r := &p.x.Refused[i]
		if r.Inserted {
			continue
		}
		shown++
		if worst == nil || savedBytes(r) > savedBytes(worst) || savedBytes(r) == savedBytes(worst) && worst.Rewrite == "" && r.Rewrite != "" {
			worst = r
		}
	}
	if worst == nil {
		return
	}
	title, time := "a merge was refused", takes(worst.Seconds)
	if shown > 1 {
		title = fmt.Sprintf("costliest of %d merges refused", shown)
	}
	if p.isSmall(worst.Seconds) {
		time, title = "", strings.Replace(title, "costliest", "one", 1)
	}
	head := fmt.Sprintf("%s: %s through memory%s", p.ui.style(bold, title), amountGoes(worst.Saved), time)
	p.ui.printf("%s\n", strings.Join(breakLine(head, p.ui.width()), "\n"))
	p.field("from", p.placeText(worst.From.Span))
	p.field("into", p.placeText(worst.Span.Span))
	p.field("because", p.words(worst.Detail))
	if worst.Rewrite != "" {
		p.field("rewrite", worst.Rewrite)
	}
	if shown > 1 {
		p.field("", p.ui.style(faint, "--verbose shows the others"))
	}
	p.ui.printf("\n")
}

// refusedShare is the part of a plan's time from which the time of a refusal is told.
const refusedShare = 0.01

// isSmall reports whether a refusal costs so little that its time says nothing: what it keeps apart may still cost more, as a
// tensor that is read twice.
func (p *page) isSmall(seconds *float64) bool {
	return seconds != nil && p.x.Fused.Seconds != nil && *seconds < refusedShare**p.x.Fused.Seconds
}

// savedBytes returns how many bytes a merge would have kept from memory. Amounts that depend on
// symbols without sizes count as more than known amounts, which then are only a few numbers.
func savedBytes(r *explain.RefusalNote) int64 {
	if r.Saved.Bytes == nil {
		return math.MaxInt64
	}
	return *r.Saved.Bytes
}

func amountGoes(a explain.Amount) string {
	if a.Bytes == nil {
		return a.Size + " bytes go"
	}
	return byteText(*a.Bytes) + " go"
}

func takes(seconds *float64) string {
	if seconds == nil {
		return ""
	}
	return ", about " + secondsText(seconds) + " ms"
}

func (p *page) placeText(s diag.Span) string {
	return fmt.Sprintf("%d:%d  %s", s.Start.Line, s.Start.Column, p.spanText(s))
}

var wordText = regexp.MustCompile(`\b[A-Za-z_]\w*\b`)

// words writes a detail with names of the program. A value without a name in the program is called by
// the text that computes it.
func (p *page) words(detail string) string {
	return wordText.ReplaceAllStringFunc(detail, func(name string) string {
		part, isValue := p.x.Places[name]
		if !isValue || part.Span.IsZero() {
			return name
		}
		text, ok := p.files.text(part.Span.Start.Filename)
		if ok && slices.Contains(wordText.FindAllString(text, -1), name) {
			return name
		}
		if part.Is != "" {
			return "the " + part.Is + " in `" + p.spanText(part.Span) + "`"
		}
		return "`" + p.spanText(part.Span) + "`"
	})
}

// cut shortens a text to what the terminal has beside the columns before it.
func (p *page) cut(text string, before int) string {
	const least = 20
	line := []rune(text)
	if width := max(p.ui.width()-before, least); len(line) > width {
		return string(line[:width-1]) + "…"
	}
	return text
}

// breakLine breaks a line that is too long at spaces. A line that fits stays as it is, with
// the columns it may have.
func breakLine(line string, width int) []string {
	if text.StringWidthWithoutEscSequences(line) <= width {
		return []string{line}
	}
	return wrap(line, width)
}

// wrap breaks a text into lines of a width, at spaces.
func wrap(paragraph string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(paragraph) {
		switch {
		case line == "":
			line = word
		case text.StringWidthWithoutEscSequences(line+" "+word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
