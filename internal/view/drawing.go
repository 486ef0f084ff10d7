package view

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// Measures of drawings, in pixels at zoom 1.
const (
	nodeHeight = 44
	charWidth  = 7.2
	nodePad    = 32
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
	w, h, bends := place(items, edges, gaps{26, 46})
	d := drawing{W: w, H: h, Nodes: nodes, Edges: []edgeData{}, Boxes: []boxData{}}
	for i, it := range items {
		nodes[i].X, nodes[i].Y = round(it.x), round(it.y)
	}
	for i, e := range edges {
		d.Edges = append(d.Edges, edgeData{From: e[0], To: e[1], In: -1, Way: way(bottom(nodes[e[0]]), items[e[0]], bends[i], items[e[1]], top(nodes[e[1]]))})
	}
	return sorted(d)
}

func top(n nodeData) point    { return point{n.X + n.W/2, n.Y} }
func bottom(n nodeData) point { return point{n.X + n.W/2, n.Y + nodeHeight} }

// way lists the coordinates of an edge. It leaves the layer of what it comes from, and enters
// that of what it leads to, straight down: beside them may be what is taller.
func way(from point, a item, bends []point, b item, to point) []float64 {
	points := []point{from, {from.x, a.row.to}}
	points = append(append(points, bends...), point{to.x, b.row.from}, to)
	var out []float64
	for i, p := range points {
		if i == 0 || p.y > points[i-1].y || p.x != points[i-1].x {
			out = append(out, round(p.x), round(p.y))
		}
	}
	return out
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

// outside is the graph of kernels in the making: inputs and kernels as boxes.
type outside struct {
	p      *page
	g      Graph
	d      drawing
	boxes  []item
	inner  [][]item // of a kernel's nodes
	edges  [][2]int // between boxes
	from   []int    // of edges: the node that is read
	first  []int    // of boxes: their first node
	at     map[*ir.Value]int
	box    map[*ir.Value]int // the box that writes a value
	inside []insideEdge
}

type insideEdge struct {
	box, from, to int
	bends         []point // in the box
}

// after draws kernels as boxes around what they compute, and tensors of the caller beside them.
func (p *page) after(g Graph) drawing {
	o := &outside{p: p, g: g, d: drawing{Nodes: []nodeData{}, Edges: []edgeData{}, Boxes: []boxData{}},
		at: map[*ir.Value]int{}, box: map[*ir.Value]int{}}
	for _, v := range g.Plan.Graph.Inputs {
		n := o.node(v, nil)
		o.at[v], o.box[v] = n, len(o.boxes)
		o.boxes = append(o.boxes, item{w: o.d.Nodes[n].W, h: nodeHeight})
		o.inner, o.first = append(o.inner, nil), append(o.first, n)
	}
	for i, k := range g.Plan.Kernels {
		o.kernel(i, k)
	}
	var bends [][]point
	o.d.W, o.d.H, bends = place(o.boxes, o.edges, gaps{40, 64})
	o.placeNodes()
	o.placeEdges(bends)
	return sorted(o.d)
}

func (o *outside) node(v *ir.Value, in []int) int {
	n := o.p.node(v)
	n.In = in
	for _, out := range o.g.Plan.Graph.Outputs {
		n.Out = n.Out || out.Value == v
	}
	o.d.Nodes = append(o.d.Nodes, n)
	return len(o.d.Nodes) - 1
}

// kernel adds a kernel's box, with what is in it laid out, and the edges that lead to it.
func (o *outside) kernel(i int, k *ir.Kernel) {
	box, first := len(o.boxes), len(o.d.Nodes)
	local := map[*ir.Value]int{}
	read := map[*ir.Value]bool{}
	var items []item
	var own [][2]int
	for _, v := range k.Members {
		n := o.node(v, []int{i})
		local[v] = n
		items = append(items, item{w: o.d.Nodes[n].W, h: nodeHeight})
		for _, r := range readsOf(v) {
			if from, ok := local[r]; ok {
				own = append(own, [2]int{from - first, n - first})
			} else if from, ok := o.at[r]; ok && !read[r] {
				read[r] = true
				o.edges = append(o.edges, [2]int{o.box[r], box})
				o.from = append(o.from, from)
			}
		}
	}
	for _, a := range k.Args {
		if v := a.Buffer.Value; a.Write && v != nil {
			if n, ok := local[v]; ok {
				o.at[v], o.box[v] = n, box
			}
		}
	}
	const least = 190 // of a title
	w, h, bends := place(items, own, gaps{18, 34})
	width := max(w, least, charWidth*float64(len(k.Name)+4))
	for j := range items {
		items[j].x += boxPad + (width-w)/2
		items[j].y += boxTitle
	}
	for j, e := range own {
		for b := range bends[j] {
			bends[j][b].x += boxPad + (width-w)/2
			bends[j][b].y += boxTitle
		}
		o.inside = append(o.inside, insideEdge{box, e[0] + first, e[1] + first, bends[j]})
	}
	o.inner, o.first = append(o.inner, items), append(o.first, first)
	o.boxes = append(o.boxes, item{w: width + 2*boxPad, h: h + boxPad + boxTitle})
}

// placeNodes moves what is inside of boxes to where these stand.
func (o *outside) placeNodes() {
	inputs := len(o.g.Plan.Graph.Inputs)
	for b, it := range o.boxes {
		if b < inputs {
			n := &o.d.Nodes[o.first[b]]
			n.X, n.Y = round(it.x), round(it.y)
			continue
		}
		o.d.Boxes = append(o.d.Boxes, boxData{b - inputs, round(it.x), round(it.y), round(it.w), round(it.h)})
		for j, in := range o.inner[b] {
			n := &o.d.Nodes[o.first[b]+j]
			n.X, n.Y = round(it.x+in.x), round(it.y+in.y)
		}
	}
}

// placeEdges has edges lead from the lower side of a box to the upper side of another,
// where they stand side by side in the order in which they come.
func (o *outside) placeEdges(bends [][]point) {
	inputs := len(o.g.Plan.Graph.Inputs)
	into := make([][]int, len(o.boxes))
	for i, e := range o.edges {
		into[e[1]] = append(into[e[1]], i)
	}
	arrive := func(i int) float64 { // where an edge comes from, last
		if n := len(bends[i]); n > 0 {
			return bends[i][n-1].x
		}
		return top(o.d.Nodes[o.from[i]]).x
	}
	for b, list := range into {
		slices.SortStableFunc(list, func(x, y int) int { return cmp.Compare(arrive(x), arrive(y)) })
		for place, i := range list {
			from := bottom(o.d.Nodes[o.from[i]])
			source := o.boxes[o.edges[i][0]]
			from.y = source.y + source.h
			const spread = 26
			step := min(spread, (o.boxes[b].w-2*boxPad)/float64(len(list)))
			to := point{o.boxes[b].x + o.boxes[b].w/2 + step*(float64(place)-float64(len(list)-1)/2), o.boxes[b].y}
			o.d.Edges = append(o.d.Edges, edgeData{From: o.from[i], To: -1, In: b - inputs, Way: way(from, source, bends[i], o.boxes[b], to)})
		}
	}
	for _, e := range o.inside {
		it := o.boxes[e.box]
		for b := range e.bends {
			e.bends[b].x += it.x
			e.bends[b].y += it.y
		}
		var rows [2]item // nodes are of one height: their layers are no taller
		rows[0].row.to, rows[1].row.from = bottom(o.d.Nodes[e.from]).y, top(o.d.Nodes[e.to]).y
		o.d.Edges = append(o.d.Edges, edgeData{From: e.from, To: e.to, In: e.box - inputs, Inner: true,
			Way: way(bottom(o.d.Nodes[e.from]), rows[0], e.bends, rows[1], top(o.d.Nodes[e.to]))})
	}
}

func round(x float64) float64 { return math.Round(x*2) / 2 }

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
	for i := range d.Edges {
		e := &d.Edges[i]
		e.From = place[e.From]
		if e.To >= 0 {
			e.To = place[e.To]
		}
	}
	d.Nodes = nodes
	d.W, d.H = round(d.W), round(d.H)
	return d
}
