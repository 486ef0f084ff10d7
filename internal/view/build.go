package view

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// page is a page in the making.
type page struct {
	in      Input
	out     pageData
	exprs   map[string]int // printed, to the place in Exprs
	files   map[string]int
	sources map[string]int
	texts   int // bytes of CUDA text so far
}

func (p *page) build() {
	d := p.in.Device
	const threads = 2048 // of a multiprocessor, where its architecture does not say less
	p.out.Title, p.out.Live, p.out.CPU = p.in.Title, p.in.Live, p.in.CPU
	p.out.Device = deviceData{d.Name, d.Bandwidth, d.F32Rate, d.TensorRate, d.SpecialRate, d.Launch, d.HalfTransfer,
		d.SharedBlock, threads, d.Blocks()}
	switch d.Arch {
	case "sm_75":
		p.out.Device.Threads = threads / 2
	case "sm_86", "sm_87", "sm_89", "sm_120":
		p.out.Device.Threads = threads * 3 / 4
	}
	for _, g := range p.in.Graphs {
		p.out.Graphs = append(p.out.Graphs, p.graph(g))
	}
}

func (p *page) graph(g Graph) graphData {
	x := g.Explain
	g.Plan = g.Plan.At(x.Sizes) // as the explanation has it
	out := graphData{Name: g.Graph.Name, Profile: g.Profile, Symbols: []symbolData{}, Kernels: []kernelData{}, Refused: []refusalData{}}
	out.File, out.Line = p.file(g.Graph.Span), g.Graph.Span.Start.Line
	for _, s := range g.Graph.Symbols {
		at := x.Sizes[s.Name]
		if at == 0 {
			at = SomeSize
		}
		out.Symbols = append(out.Symbols, symbolData{s.Name, at})
	}
	u := x.Unfused
	out.Unfused = totalData{u.Kernels, u.Read.Bytes, u.Written.Bytes, u.Seconds}
	for i := range x.Refused {
		out.Refused = append(out.Refused, p.refusal(&x.Refused[i]))
	}
	units := unitsOf(g.Program)
	for i, k := range g.Plan.Kernels {
		out.Kernels = append(out.Kernels, p.kernel(g, k, &x.Kernels[i], units[k.Name]))
	}
	out.Before = p.before(g)
	out.After = p.after(g)
	return out
}

// file is the place of a span's file in Files.
func (p *page) file(s diag.Span) int {
	name := s.Start.Filename
	if at, ok := p.files[name]; ok {
		return at
	}
	text := ""
	if p.in.Source != nil {
		text, _ = p.in.Source(name)
	}
	p.files[name] = len(p.out.Files)
	p.out.Files = append(p.out.Files, fileData{name, text})
	return p.files[name]
}

// expr is the place of a size in Exprs; -1 for none.
func (p *page) expr(e *ir.Expr) int {
	if e == nil {
		return -1
	}
	text := e.String()
	if at, ok := p.exprs[text]; ok {
		return at
	}
	var out []any
	var emit func(e *ir.Expr)
	emit = func(e *ir.Expr) {
		switch e.Op {
		case ir.OpConst:
			out = append(out, e.Int)
		case ir.OpSym:
			out = append(out, "$"+e.Name)
		case ir.OpCast:
			emit(e.Args[0])
		default:
			for _, a := range e.Args {
				emit(a)
			}
			out = append(out, e.Op.String())
		}
	}
	emit(e)
	p.exprs[text] = len(p.out.Exprs)
	p.out.Exprs = append(p.out.Exprs, out)
	return p.exprs[text]
}

func (p *page) refusal(r *explain.RefusalNote) refusalData {
	return refusalData{r.Producer, r.Consumer, r.Reason, r.Detail, p.file(r.Span.Span), r.Span.Start.Line, p.expr(r.Saved.Expr)}
}

// unit is the CUDA text of a class.
type unit struct {
	source, defines string
	shared          int
	at              int // in the program
}

// unitsOf lists the texts of each kernel's classes.
func unitsOf(prog *ir.Program) map[string][]unit {
	out := map[string][]unit{}
	if prog == nil {
		return out
	}
	for _, l := range prog.Launches {
		for _, v := range l.Variants {
			u := prog.Units[v.Unit]
			out[l.Kernel] = append(out[l.Kernel], unit{prog.Sources[u.Source], u.Defines, u.Shared, v.Unit})
		}
	}
	return out
}

func (p *page) kernel(g Graph, k *ir.Kernel, n *explain.KernelNote, units []unit) kernelData {
	out := kernelData{Name: k.Name, Template: n.Template, Space: space(n), After: n.LastBlockOf, Rate: n.Rate, Slower: n.Slower,
		Ops: []opData{}, Reads: p.transfers(n.Reads), Writes: p.transfers(n.Writes), Work: []workData{}, Refused: []int{}}
	body := k
	if k.Like == nil {
		out.Plan = ir.PrintKernel(g.Plan.Graph, k)
	} else {
		body = k.Like
		out.Plan = "the body of " + k.Like.Name + ", over other buffers\n"
	}
	for _, op := range n.Operations {
		out.Ops = append(out.Ops, p.op(op))
	}
	for _, w := range n.Work {
		out.Work = append(out.Work, workData{p.expr(w.Points), w.Flops + w.Copies, w.Special, w.Products})
	}
	for i, v := range body.Variants {
		c := classData{When: p.expr(v.When), Terms: n.Classes[i].Terms, Strategy: v.Strategy.String(), Doc: v.Strategy.Info().Doc,
			Schedule: scheduleOf(n.Classes[i].Schedule), Threads: v.Schedule.Threads, Source: -1}
		if len(units) == len(body.Variants) {
			u := units[i]
			own, shared := parts(u.source)
			c.Defines, c.Shared, c.Source, c.Prelude = u.defines, u.shared, p.source(own), p.source(shared)
			if x, ok := g.Compiled[u.at]; ok {
				c.Registers, c.Spills, c.PTX = x.Registers, x.Spills, p.source(x.PTX)+1
				if x.SASS != "" {
					c.SASS = p.source(x.SASS) + 1
				}
			}
		}
		if c.Terms == nil {
			c.Terms = []string{}
		}
		out.Classes = append(out.Classes, c)
	}
	members := map[string]bool{}
	for _, v := range k.Members {
		members[v.Name] = true
	}
	for i, r := range g.Explain.Refused {
		if members[r.Producer] || members[r.Consumer] {
			out.Refused = append(out.Refused, i)
		}
	}
	return out
}

// parts separates the text of a kernel, with the comment in front of it, from the prelude
// between the two, which many kernels share.
func parts(text string) (own, prelude string) {
	begin := strings.Index(text, "\n") + 1
	for strings.HasPrefix(text[begin:], "//  ") {
		begin += strings.Index(text[begin:], "\n") + 1
	}
	kernel := strings.LastIndex(text, "\nextern \"C\"")
	if begin == 0 || kernel < begin {
		return text, ""
	}
	return text[:begin] + text[kernel:], text[begin:kernel]
}

// source is the place of a CUDA text in Sources. A page with more text than a browser
// likes goes without the rest.
func (p *page) source(text string) int {
	if at, ok := p.sources[text]; ok {
		return at
	}
	const most = 24 << 20
	if p.texts += len(text); p.texts > most {
		return -1
	}
	p.sources[text] = len(p.out.Sources)
	p.out.Sources = append(p.out.Sources, text)
	return p.sources[text]
}

func space(n *explain.KernelNote) string {
	ranges := func(list []explain.RangeNote) string {
		var parts []string
		for _, r := range list {
			parts = append(parts, r.Name+": "+r.Extent)
		}
		return strings.Join(parts, ", ")
	}
	text := ranges(n.Rows)
	if text == "" {
		text = "one point"
	}
	if len(n.Cols) > 0 {
		text += ", reduced over " + ranges(n.Cols)
	}
	if len(n.Depth) > 0 {
		text += ", of sums over " + ranges(n.Depth)
	}
	return text
}

// scheduleOf lists the numbers of a schedule that are set.
func scheduleOf(s explain.Schedule) []string {
	raw, err := s.MarshalJSON()
	if err != nil {
		return []string{}
	}
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return []string{}
	}
	var out []string
	for name, v := range fields {
		if name != "mapping" {
			out = append(out, fmt.Sprintf("%s %v", strings.ReplaceAll(name, "_", " "), v))
		}
	}
	sort.Strings(out)
	return append([]string{s.Mapping.String() + " mapping"}, out...)
}

func (p *page) op(op explain.Operation) opData {
	s := op.Span.Span
	out := opData{Name: op.Name, Count: op.Count, Call: op.Call, File: p.file(s), Line: s.Start.Line, From: s.Start.Column - 1}
	out.To = out.From + 1
	if s.End.Line == s.Start.Line {
		out.To = s.End.Column - 1
	} else if lines := strings.SplitN(p.out.Files[out.File].Text, "\n", s.Start.Line+1); s.Start.Line > 0 && s.Start.Line <= len(lines) {
		out.To = utf8.RuneCountInString(lines[s.Start.Line-1])
	}
	return out
}

func (p *page) transfers(list []explain.Transfer) []transferData {
	out := []transferData{}
	for _, t := range list {
		out = append(out, transferData{t.Name, t.DType + "[" + strings.Join(t.Shape, ", ") + "]", t.Kind, t.Size, p.expr(t.Expr)})
	}
	return out
}
