package view

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Measures of drawings, in pixels at zoom 1.
const (
	nodeHeight = 44
	charWidth  = 7.2
	nodePad    = 22
	boxPad     = 18
	boxTitle   = 46
)

// node is a value as a box without a place.
func (p *page) node(v *ir.Value) nodeData {
	n := nodeData{Name: v.Name, Kind: kindOf(v), Type: typeOf(v), What: whatOf(v), Bytes: p.expr(bytesOf(v))}
	if s := v.Origin.Span; !s.IsZero() {
		n.File, n.Line = p.file(s), s.Start.Line
	}
	n.W = nodeWidth(n)
	return n
}

func nodeWidth(n nodeData) float64 {
	const least, most = 90, 260
	return min(most, max(least, charWidth*float64(max(len(n.Name), len(n.Type), len(n.What)))+nodePad))
}

func kindOf(v *ir.Value) string {
	switch {
	case v.IsInput():
		return "input"
	case v.Reduce == nil:
		return "point"
	case v.Reduce.Op == ir.Sum && multiplies(v.Body):
		return "product"
	}
	return "reduce"
}

// multiplies reports whether a body is a product of two tensors.
func multiplies(e *ir.Expr) bool {
	for e.Op == ir.OpCast {
		e = e.Args[0]
	}
	return e.Op == ir.OpMul && len(ir.Loads(e.Args[0])) > 0 && len(ir.Loads(e.Args[1])) > 0
}

func typeOf(v *ir.Value) string {
	var parts []string
	for _, d := range v.Shape() {
		parts = append(parts, d.String())
	}
	return v.Type.String() + "[" + strings.Join(parts, ", ") + "]"
}

// bytesOf is the memory of a value, over symbols.
func bytesOf(v *ir.Value) *ir.Expr {
	e := ir.IntConst(int64(v.Type.Size()))
	for _, d := range v.Shape() {
		e = ir.Apply(ir.OpMul, e, d)
	}
	return ir.Simplify(e, ir.Facts{Positive: true})
}

// whatOf names what a value computes.
func whatOf(v *ir.Value) string {
	if v.IsInput() {
		return "input"
	}
	const most = 4
	var names []string
	if v.Reduce != nil {
		names = append(names, v.Reduce.Op.String())
	}
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		name := e.Op.String()
		if e.Op >= ir.OpRandom && e.Type != ir.Index && e.Op != ir.OpCast && !slices.Contains(names, name) {
			names = append(names, name)
		}
		return e.Op != ir.OpLoad
	})
	if len(names) == 0 {
		return "moves elements"
	}
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("+%d", len(names)-most))
	}
	return strings.Join(names, " ")
}

// readsOf lists the values that v reads, each once.
func readsOf(v *ir.Value) []*ir.Value {
	var out []*ir.Value
	for _, l := range v.Loads() {
		if !slices.Contains(out, l.From) {
			out = append(out, l.From)
		}
	}
	return out
}

// before draws the graph as written, with the kernels that compute each value: those that
// do an operation of its place in the program.
func (p *page) before(g Graph) drawing {
	in := map[diag.Span][]int{}
	for i, k := range g.Explain.Kernels {
		for _, op := range k.Operations {
			if s := op.Span.Span; !slices.Contains(in[s], i) {
				in[s] = append(in[s], i)
			}
		}
	}
	at := map[*ir.Value]int{}
	var nodes []nodeData
	var items []item
	var edges [][2]int
	outputs := outputsOf(g.Graph)
	for _, v := range g.Graph.Values {
		n := p.node(v)
		n.In, n.Out = p.kernelsOf(v, in), outputs[v]
		at[v] = len(nodes)
		nodes = append(nodes, n)
		items = append(items, item{w: n.W, h: nodeHeight})
		for _, r := range readsOf(v) {
			if from, ok := at[r]; ok {
				edges = append(edges, [2]int{from, at[v]})
			}
		}
	}
	w, h := place(items, edges, gaps{26, 46})
	for i, it := range items {
		nodes[i].X, nodes[i].Y = round(it.x), round(it.y)
	}
	return sorted(drawing{W: w, H: h, Nodes: nodes, Edges: edges, Boxes: []boxData{}})
}

func outputsOf(g *ir.Graph) map[*ir.Value]bool {
	out := map[*ir.Value]bool{}
	for _, o := range g.Outputs {
		out[o.Value] = true
	}
	return out
}

// kernelsOf lists the kernels that do operations of a value.
func (p *page) kernelsOf(v *ir.Value, in map[diag.Span][]int) []int {
	var out []int
	add := func(s diag.Span) {
		for _, k := range in[s] {
			if !slices.Contains(out, k) {
				out = append(out, k)
			}
		}
	}
	if v.IsInput() {
		return nil
	}
	if v.Reduce != nil {
		add(v.Origin.Span)
	}
	ir.Walk(v.Body, func(e *ir.Expr) bool {
		if e.Op >= ir.OpRandom && e.Type != ir.Index {
			if e.Span.IsZero() {
				add(v.Origin.Span)
			} else {
				add(e.Span)
			}
		}
		return e.Op != ir.OpLoad
	})
	slices.Sort(out)
	return out
}

// after draws kernels as boxes around what they compute, and tensors of the caller beside them.
func (p *page) after(g Graph) drawing {
	d := drawing{Nodes: []nodeData{}, Edges: [][2]int{}, Boxes: []boxData{}}
	at := map[*ir.Value][]int{} // nodes of a value: several kernels may compute one
	var outer []item
	var inner [][]item
	outerOf := []int{} // of nodes
	outputs := outputsOf(g.Plan.Graph)
	home := map[*ir.Value]int{} // the kernel that writes a value
	for i, k := range g.Plan.Kernels {
		for _, a := range k.Args {
			if a.Write && a.Buffer.Value != nil {
				home[a.Buffer.Value] = i
			}
		}
	}
	add := func(v *ir.Value, in int) int {
		n := p.node(v)
		n.Out = outputs[v]
		at[v] = append(at[v], len(d.Nodes))
		d.Nodes = append(d.Nodes, n)
		outerOf = append(outerOf, in)
		return len(d.Nodes) - 1
	}
	for _, v := range g.Plan.Graph.Inputs {
		add(v, len(outer))
		outer = append(outer, item{w: nodeWidth(d.Nodes[len(d.Nodes)-1]), h: nodeHeight})
		inner = append(inner, nil)
	}
	inputs := len(outer)
	for i, k := range g.Plan.Kernels {
		first := len(d.Nodes)
		local := map[*ir.Value]int{}
		var items []item
		var own [][2]int
		for _, v := range k.Members {
			n := add(v, len(outer))
			d.Nodes[n].In = []int{i}
			local[v] = n
			items = append(items, item{w: d.Nodes[n].W, h: nodeHeight})
			for _, r := range readsOf(v) {
				if from, ok := local[r]; ok {
					own = append(own, [2]int{from - first, n - first})
					d.Edges = append(d.Edges, [2]int{from, n})
				}
			}
		}
		w, h := place(items, own, gaps{18, 34})
		title := charWidth*float64(len(k.Name)+4) + 2*boxPad
		inner = append(inner, items)
		outer = append(outer, item{w: max(w, title) + 2*boxPad, h: h + boxPad + boxTitle})
		for j := range items {
			items[j].x += (max(w, title) - w) / 2
		}
	}
	between := p.across(g, &d, at, home, outerOf)
	d.W, d.H = place(outer, between, gaps{40, 64})
	p.placeAll(&d, outer, inner, inputs)
	return sorted(d)
}

// across adds the edges between kernels, and returns those between boxes.
func (p *page) across(g Graph, d *drawing, at map[*ir.Value][]int, home map[*ir.Value]int, outerOf []int) (between [][2]int) {
	seen := map[[2]int]bool{}
	inputs := len(g.Plan.Graph.Inputs)
	for i, k := range g.Plan.Kernels {
		inside := map[*ir.Value]bool{}
		for _, v := range k.Members {
			inside[v] = true
		}
		for _, v := range k.Members {
			to := -1
			for _, n := range at[v] {
				if outerOf[n] == inputs+i {
					to = n
				}
			}
			for _, r := range readsOf(v) {
				if inside[r] || len(at[r]) == 0 {
					continue
				}
				from := at[r][0]
				for _, n := range at[r] {
					if h, ok := home[r]; ok && outerOf[n] == inputs+h {
						from = n
					}
				}
				d.Edges = append(d.Edges, [2]int{from, to})
				pair := [2]int{outerOf[from], outerOf[to]}
				if !seen[pair] && pair[0] < pair[1] {
					seen[pair] = true
					between = append(between, pair)
				}
			}
		}
	}
	return between
}

// placeAll moves what is inside of boxes to where these stand.
func (p *page) placeAll(d *drawing, outer []item, inner [][]item, inputs int) {
	n := 0
	for o, it := range outer {
		if o < inputs {
			d.Nodes[n].X, d.Nodes[n].Y = round(it.x), round(it.y)
			n++
			continue
		}
		d.Boxes = append(d.Boxes, boxData{o - inputs, round(it.x), round(it.y), round(it.w), round(it.h)})
		for _, in := range inner[o] {
			d.Nodes[n].X, d.Nodes[n].Y = round(it.x+boxPad+in.x), round(it.y+boxTitle+in.y)
			n++
		}
	}
}

func round(x float64) float64 { return float64(int(x*2)) / 2 }

// sorted puts nodes in order from top to bottom, so that a page finds those it shows.
func sorted(d drawing) drawing {
	order := make([]int, len(d.Nodes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case d.Nodes[a].Y < d.Nodes[b].Y:
			return -1
		case d.Nodes[a].Y > d.Nodes[b].Y:
			return 1
		}
		return 0
	})
	place := make([]int, len(order))
	nodes := make([]nodeData, len(order))
	for to, from := range order {
		place[from] = to
		nodes[to] = d.Nodes[from]
	}
	edges := make([][2]int, len(d.Edges))
	for i, e := range d.Edges {
		edges[i] = [2]int{place[e[0]], place[e[1]]}
	}
	d.Nodes, d.Edges = nodes, edges
	d.W, d.H = round(d.W), round(d.H)
	return d
}
