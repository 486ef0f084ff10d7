package train

import (
	"fmt"
	"strings"
)

// Chart draws losses over steps as an SVG image.
func Chart(losses []float32) []byte {
	const width, height, left, bottom, top = 640, 360, 50, 30, 15
	most := float32(0)
	for _, l := range losses {
		if l-l == 0 {
			most = max(most, l)
		}
	}
	if most == 0 {
		most = 1
	}
	x := func(step int) float64 {
		return left + float64(step)/float64(max(len(losses)-1, 1))*(width-left-10)
	}
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
		left, height-10, width-10, height-10, len(losses))
	b.WriteString(`<polyline fill="none" stroke="#2060c0" stroke-width="1.5" points="`)
	for i, l := range losses {
		if l-l == 0 {
			fmt.Fprintf(&b, "%.1f,%.1f ", x(i), y(l))
		}
	}
	b.WriteString(`"/>` + "\n</svg>\n")
	return []byte(b.String())
}
