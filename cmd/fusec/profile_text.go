package main

import (
	"fmt"
	"math"
	"strings"
)

// printProfile prints the kernels and the lines.
func (a *app) printProfile(p *profile) {
	a.profileTitle(p)
	var rows [][]string
	for i, k := range p.Kernels {
		rows = append(rows, []string{fmt.Sprint(i + 1), millis(k.Time.Median), millis(k.Time.Min), percent(k.Share),
			byteText(k.Bytes), rate(float64(k.Bytes), k.Time.Median), rate(k.Flops, k.Time.Median), k.roofText(),
			byteText(k.Live), linesText(k.Lines), cutTo(k.Computes, 40)})
	}
	a.ui.table([]column{number(""), number("ms"), number("min"), number("share"), number("bytes"), number("GB/s"),
		number("GFLOP/s"), col("of the roof"), number("live"), col("line"), col("computes")}, rows)
	a.ui.printf("\n")
	a.printCounters(p)
	a.printLines(p)
	a.ui.printf("%s\n", a.ui.style(faint, p.memoryText()))
}

func (a *app) profileTitle(p *profile) {
	a.ui.printf("%s on %s", a.ui.style(bold, p.Graph), p.Device)
	if len(p.Sizes) > 0 {
		a.ui.printf(" at %s", sizesText(p.Sizes))
	}
	a.ui.printf("\n%s ms a run (min %s, %s), %s\n\n", millis(p.Run.Median), millis(p.Run.Min), count(p.Run.Count, "run"),
		p.beside())
}

// beside says what a run takes beside its kernels.
func (p *profile) beside() string {
	gaps := fmt.Sprintf("%s ms between kernels", millis(p.Gaps))
	if p.Gaps < 0 {
		gaps = fmt.Sprintf("kernels overlap by %s ms", millis(-p.Gaps))
	}
	return fmt.Sprintf("%s, %s ms on the host a call", gaps, millis(p.Host))
}

func (p *profile) memoryText() string {
	text := fmt.Sprintf("inputs %s (%s ms to upload), outputs %s", byteText(p.Inputs), millis(p.Upload), byteText(p.Outputs))
	if p.Arena > 0 {
		text += fmt.Sprintf(", %s between kernels", byteText(p.Arena))
	}
	if p.CopyRate > 0 {
		text += fmt.Sprintf("; a copy moves %.1f GB/s here", p.CopyRate/1e9)
	}
	return text
}

// printLines prints the costliest lines.
func (a *app) printLines(p *profile) {
	const most = 10
	var rows [][]string
	for _, l := range p.Lines[:min(len(p.Lines), most)] {
		var kernels []string
		for _, k := range l.Kernels {
			kernels = append(kernels, fmt.Sprint(k))
		}
		rows = append(rows, []string{fmt.Sprint(l.Line), millis(l.Seconds), percent(l.Share), strings.Join(kernels, ","),
			cutTo(l.Text, a.ui.width()-40)})
	}
	a.ui.table([]column{number("line"), number("ms"), number("share"), col("kernels"), col("program")}, rows)
	if more := len(p.Lines) - most; more > 0 {
		a.ui.printf("%s\n", a.ui.style(faint, fmt.Sprintf("and %s that take less", count(more, "line"))))
	}
	a.ui.printf("\n")
}

// printComparison prints what changed. Kernels go by their names: what has none in the other
// profile is new or gone.
func (a *app) printComparison(old, p *profile) {
	if old.Graph != p.Graph || old.Device != p.Device || sizesText(old.Sizes) != sizesText(p.Sizes) {
		a.ui.notef("the profiles are of different things: %s on %s at %s, and %s on %s at %s", old.Graph, old.Device,
			sizesText(old.Sizes), p.Graph, p.Device, sizesText(p.Sizes))
	}
	a.profileTitle(p)
	before := map[string]kernelProfile{}
	for _, k := range old.Kernels {
		before[k.Name] = k
	}
	rows := [][]string{changeRow("the run", "", &old.Run, &p.Run)}
	for i, k := range p.Kernels {
		was, ok := before[k.Name]
		delete(before, k.Name)
		name := fmt.Sprintf("kernel %d", i+1)
		if ok {
			rows = append(rows, changeRow(name, k.Computes, &was.Time, &k.Time))
		} else {
			rows = append(rows, changeRow(name, k.Computes, nil, &k.Time))
		}
	}
	for _, k := range old.Kernels {
		if _, gone := before[k.Name]; gone {
			rows = append(rows, changeRow("gone", k.Computes, &k.Time, nil))
		}
	}
	a.ui.table([]column{col(""), number("ms before"), number("ms now"), number("change"), col("computes")}, rows)
}

func changeRow(name, computes string, old, now *spread) []string {
	row := []string{name, "-", "-", "", cutTo(computes, 50)}
	if old != nil {
		row[1] = millis(old.Median)
	}
	if now != nil {
		row[2] = millis(now.Median)
	}
	switch {
	case old == nil:
		row[3] = "new"
	case now == nil:
		row[3] = "gone"
	case old.Median > 0:
		row[3] = fmt.Sprintf("%+.1f%%", 100*(now.Median/old.Median-1))
	}
	return row
}

func (k kernelProfile) roofText() string {
	if k.Roof == "" {
		return "-"
	}
	return percent(k.OfRoof) + " " + k.Roof
}

func millis(seconds float64) string {
	if math.Abs(seconds) < 1e-3 {
		return fmt.Sprintf("%.4f", seconds*1e3)
	}
	return fmt.Sprintf("%.3f", seconds*1e3)
}

func percent(part float64) string { return fmt.Sprintf("%.0f%%", 100*part) }

// rate is a number of things a nanosecond: of bytes, GB/s.
func rate(things, seconds float64) string {
	if seconds <= 0 || things <= 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", things/seconds/1e9)
}

func linesText(lines []int) string {
	switch n := len(lines); {
	case n == 0:
		return ""
	case n > 1:
		return fmt.Sprintf("%d-%d", lines[0], lines[n-1])
	}
	return fmt.Sprint(lines[0])
}

func cutTo(text string, width int) string {
	if line := []rune(text); len(line) > max(width, 10) {
		return string(line[:max(width, 10)-1]) + "…"
	}
	return text
}

// lineOf is a line of a text, from 1, without the blanks around it.
func lineOf(text string, line int) string {
	for l := range strings.Lines(text) {
		if line--; line == 0 {
			return strings.TrimSpace(l)
		}
	}
	return ""
}
