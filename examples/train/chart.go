package train

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// A Line is the losses of a run, over its steps.
type Line struct {
	Name   string
	Losses []float32
}

// lineColours are those of the lines of a chart, in turn.
var lineColours = []string{"#2060c0", "#d07020", "#208040"}

// writeChart writes the chart of a run, beside the losses that a file has.
func (t *Trainer) writeChart(o Options) error {
	lines := []Line{{"fusec", t.Losses}}
	if o.Beside != "" {
		text, err := os.ReadFile(o.Beside)
		if err != nil {
			return err
		}
		other := Line{Name: "PyTorch"}
		if err := json.Unmarshal(text, &other); err != nil {
			return fmt.Errorf("%s: %w", o.Beside, err)
		}
		lines = append(lines, other)
	}
	return os.WriteFile(o.Chart, Chart(lines...), 0o644)
}

// Chart draws losses over steps as an SVG image, with a legend where there are several lines.
func Chart(lines ...Line) []byte {
	const width, height, left, bottom, top = 640, 360, 50, 30, 15
	most, steps := float32(0), 1
	for _, line := range lines {
		steps = max(steps, len(line.Losses))
		for _, l := range line.Losses {
			if l-l == 0 {
				most = max(most, l)
			}
		}
	}
	if most == 0 {
		most = 1
	}
	x := func(step int) float64 { return left + float64(step)/float64(max(steps-1, 1))*(width-left-10) }
	y := func(loss float32) float64 { return top + (1-float64(loss/most))*(height-top-bottom) }
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n", width, height)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	for i := range 5 {
		v := most * float32(i) / 4
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.2f</text>`+"\n",
			left, y(v), width-10, y(v), left-6, y(v)+4, v)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d">step 1</text><text x="%d" y="%d" text-anchor="end">%d</text>`+"\n",
		left, height-10, width-10, height-10, steps)
	for i, line := range lines {
		colour := lineColours[i%len(lineColours)]
		if len(lines) > 1 {
			fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>`+"\n", width-20, top+20+16*i, colour, line.Name)
		}
		fmt.Fprintf(&b, `<polyline fill="none" stroke="%s" stroke-width="1.5" points="`, colour)
		for step, l := range line.Losses {
			if l-l == 0 {
				fmt.Fprintf(&b, "%.1f,%.1f ", x(step), y(l))
			}
		}
		b.WriteString(`"/>` + "\n")
	}
	b.WriteString("</svg>\n")
	return []byte(b.String())
}
