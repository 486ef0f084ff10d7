package lsp

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

// planned is the plan of a graph for one text of its declaration, in the editor's terms.
type planned struct {
	text   string // of the declaration
	offset int    // of the declaration in the file when it was planned
	line   int
	x      explain.Explanation
	errs   diag.List // an @onekernel that cannot be kept
	failed string    // why there is no plan
}

// planner makes plans of the open documents, one after the other, once nothing has
// changed for a while.
type planner struct {
	s     *server
	touch chan struct{}
	kept  map[[32]byte]*planned // by all that a plan depends on
}

func newPlanner(s *server) *planner {
	return &planner{s: s, touch: make(chan struct{}, 1), kept: map[[32]byte]*planned{}}
}

// changed says that some document did.
func (p *planner) changed() {
	select {
	case p.touch <- struct{}{}:
	default:
	}
}

func (p *planner) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.touch:
		}
		for quiet := false; !quiet; { // until nothing changes for a while
			select {
			case <-ctx.Done():
				return
			case <-p.touch:
			case <-time.After(p.s.opts.Wait):
				quiet = true
			}
		}
		p.all(ctx)
	}
}

// all plans every open document that a plan is missing of. It ends early when something
// changes: the next round has the new text.
func (p *planner) all(ctx context.Context) {
	p.s.mu.Lock()
	var docs []*document
	for _, d := range p.s.docs {
		docs = append(docs, d)
	}
	p.s.mu.Unlock()
	for _, d := range docs {
		if !p.document(ctx, d) {
			return
		}
	}
}

// document plans the graphs of one document; false where it was interrupted.
func (p *planner) document(ctx context.Context, d *document) bool {
	p.s.mu.Lock()
	a, version := p.s.analysis(d), d.version
	missing := false
	for _, decl := range a.Decls {
		missing = missing || decl.Kind == parser.GraphSymbol && p.s.planOf(d, decl) == nil
	}
	p.s.mu.Unlock()
	if !missing || a.Errors.Err() != nil {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, p.s.opts.Deadline)
	defer cancel()
	file, err := parser.Parse(a.Name, []byte(a.Text), parser.Options{ReadFile: p.reader(d)})
	if err != nil {
		return true
	}
	plans := map[string]*planned{}
	for _, decl := range a.Decls {
		if decl.Kind != parser.GraphSymbol {
			continue
		}
		if p.interrupted(ctx) {
			p.changed() // again, when nothing changes any more
			return false
		}
		if g, err := file.Graph(decl.Name); err == nil {
			plans[decl.Name] = p.graph(ctx, a, decl, g)
		}
	}
	p.s.mu.Lock()
	if d.version == version {
		d.plans = plans
		p.s.dirty[d.path] = true
		select {
		case p.s.wake <- struct{}{}:
		default:
		}
	}
	lenses, hints := p.s.lenses, p.s.hints
	p.s.mu.Unlock()
	if lenses {
		go func() { _, _ = p.s.conn.Call(context.Background(), "workspace/codeLens/refresh", nil, nil) }()
	}
	if hints {
		go func() { _, _ = p.s.conn.Call(context.Background(), "workspace/inlayHint/refresh", nil, nil) }()
	}
	return true
}

func (p *planner) reader(d *document) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		p.s.mu.Lock()
		defer p.s.mu.Unlock()
		if open := p.s.docs[filepath.Clean(name)]; open != nil {
			return []byte(open.text.src), nil
		}
		if p.s.opts.ReadFile == nil {
			return nil, errors.New("no files are at hand here")
		}
		return p.s.opts.ReadFile(name, filepath.Dir(d.path), p.s.roots)
	}
}

// interrupted reports whether a document changed, or the time is over.
func (p *planner) interrupted(ctx context.Context) bool { return len(p.touch) > 0 || ctx.Err() != nil }

var errInterrupted = errors.New("interrupted")

// graph plans one graph, or finds the plan of one that is the same.
func (p *planner) graph(ctx context.Context, a *parser.Analysis, decl parser.Decl, g *ir.Graph) (out *planned) {
	text := declText(a.Text, decl)
	key := sha256.Sum256([]byte(text + "\x00" + ir.Print(g)))
	if old := p.kept[key]; old != nil {
		return old
	}
	out = &planned{text: text, offset: decl.Span.Start.Offset, line: decl.Span.Start.Line}
	defer func() {
		if v := recover(); v != nil {
			out.failed = fmt.Sprint("internal error: ", v)
		}
	}()
	device := p.s.opts.Device
	if device.Name == "" {
		device = ir.Devices()[0]
	}
	observe := func(string, *ir.Graph) error {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return nil
	}
	plan, err := fuse.Plan(g, fuse.Options{Device: device, Observe: observe})
	switch {
	case errors.Is(err, errInterrupted):
		out.failed = "planning takes longer than " + p.s.opts.Deadline.String()
		return out
	case err != nil:
		out.errs = diag.All(err)
	}
	if plan != nil {
		out.x = explain.Explain(g, plan, explain.Options{Device: device})
	}
	const most = 500
	if len(p.kept) >= most {
		clear(p.kept)
	}
	p.kept[key] = out
	return out
}

func declText(src string, decl parser.Decl) string {
	return src[min(decl.Span.Start.Offset, len(src)):min(decl.Span.End.Offset, len(src))]
}

// planOf is the plan of a graph as it is written now; nil where there is none yet.
func (s *server) planOf(d *document, decl parser.Decl) *planned {
	p := d.plans[decl.Name]
	if p == nil || d.found == nil || p.text != declText(d.found.Text, decl) {
		return nil
	}
	return p
}

// lineNote is what the kernels do at one line of a graph.
type lineNote struct {
	kernels []int // positions in the explanation
	bytes   int64 // of tensors that kernels write, and that are made in this line
	written []string
}

// notes are by lines of the file, as it is now.
func (p *planned) notes(decl parser.Decl, file string) map[int]*lineNote {
	out := map[int]*lineNote{}
	at := func(line int) *lineNote {
		line += decl.Span.Start.Line - p.line
		if out[line] == nil {
			out[line] = &lineNote{}
		}
		return out[line]
	}
	last := p.line + strings.Count(p.text, "\n")
	for i, k := range p.x.Kernels {
		lines := map[string]int{} // of values
		for _, op := range k.Operations {
			line := op.Span.Start.Line
			if op.Span.Start.Filename != file || line < p.line || line > last {
				continue
			}
			lines[op.Value] = max(lines[op.Value], line)
			n := at(line)
			if len(n.kernels) == 0 || n.kernels[len(n.kernels)-1] != i {
				n.kernels = append(n.kernels, i)
			}
		}
		for _, w := range k.Writes {
			line, ok := lines[w.Name]
			if !ok || w.Bytes == nil {
				continue
			}
			n := at(line)
			n.bytes += *w.Bytes
			n.written = append(n.written, w.Name)
		}
	}
	return out
}
