package view

import (
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/fusec/fusec/ir"
)

// svgStyle has the colours of the page, light and dark, as a picture in another page can have them.
const svgStyle = `<style>
text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #1c2330; }
.name { font-weight: 600; } .type, .sum { fill: #667085; font-size: 11px; }
.box { fill: #e8eefb; stroke: #2858c5; } .node { fill: #ffffff; stroke: #2858c5; } .input { fill: #e7ebf2; stroke: #8a94a6; }
.way { fill: none; stroke: #8a94a6; stroke-width: 2.5; } .inner { stroke-width: 1; }
@media (prefers-color-scheme: dark) {
text { fill: #e3e8f0; } .type, .sum { fill: #97a3b6; }
.box { fill: #1b2436; stroke: #82aaff; } .node { fill: #1d232d; stroke: #82aaff; } .input { fill: #262d3a; stroke: #6b778c; }
.way { stroke: #6b778c; }
}
</style>
`

// WriteSVG writes a picture of one graph's kernels: the drawing that the page begins with, for documents.
func WriteSVG(w io.Writer, g Graph, device ir.Device) error {
	g.Plan = g.Plan.At(g.Explain.Sizes)
	p := &page{in: Input{Device: device, Graphs: []Graph{g}}, exprs: map[string]int{}, files: map[string]int{}, sources: map[string]int{}}
	d := p.after(g)
	var b strings.Builder
	const margin = 8
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%d %d %g %g" width="%g" height="%g" role="img">`+"\n",
		-margin, -margin, d.W+2*margin, d.H+2*margin, d.W+2*margin, d.H+2*margin)
	fmt.Fprintf(&b, "<title>the kernels of %s</title>\n%s", html.EscapeString(g.Graph.Name), svgStyle)
	for _, box := range d.Boxes {
		svgBox(&b, box, g)
	}
	for _, e := range d.Edges {
		svgEdge(&b, e)
	}
	for _, n := range d.Nodes {
		svgNode(&b, n)
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func svgBox(b *strings.Builder, box boxData, g Graph) {
	k := g.Explain.Kernels[box.Kernel]
	fmt.Fprintf(b, `<rect class="box" x="%g" y="%g" width="%g" height="%g" rx="10"/>`+"\n", box.X, box.Y, box.W, box.H)
	svgText(b, "name", box.X+14, box.Y+20, fmt.Sprintf("%d  %s", box.Kernel+1, k.Name))
	svgText(b, "sum", box.X+14, box.Y+36, "one kernel")
}

func svgEdge(b *strings.Builder, e edgeData) {
	class := "way"
	if e.Inner {
		class = "way inner" // a value that never reaches memory
	}
	fmt.Fprintf(b, `<polyline class="%s" points="`, class)
	for i := 0; i+1 < len(e.Way); i += 2 {
		fmt.Fprintf(b, "%g,%g ", e.Way[i], e.Way[i+1])
	}
	b.WriteString("\"/>\n")
}

func svgNode(b *strings.Builder, n nodeData) {
	class, radius := "node", 6
	if n.Kind == "input" {
		class, radius = "input", nodeHeight/2
	}
	fmt.Fprintf(b, `<rect class="%s" x="%g" y="%g" width="%g" height="%d" rx="%d"/>`+"\n", class, n.X, n.Y, n.W, nodeHeight, radius)
	inset := float64(radius) + 4
	if n.Kind == "input" {
		svgText(b, "name", n.X+inset, n.Y+19, n.Name)
		svgText(b, "type", n.X+inset, n.Y+33, n.Type)
		return
	}
	svgText(b, "name", n.X+inset, n.Y+15, n.Name)
	svgText(b, "", n.X+inset, n.Y+27.5, n.What)
	svgText(b, "type", n.X+inset, n.Y+39.5, n.Type)
}

func svgText(b *strings.Builder, class string, x, y float64, text string) {
	fmt.Fprintf(b, `<text class="%s" x="%g" y="%g">%s</text>`+"\n", class, x, y, html.EscapeString(text))
}
