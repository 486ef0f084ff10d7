package lsp

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"

	"go.lsp.dev/jsonrpc2"

	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

func (s *server) formatting(p placeParams) (any, error) {
	d, _, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out, err := parser.Format(d.path, []byte(d.text.src))
	if err != nil || string(out) == d.text.src {
		return []textEdit{}, nil // with mistakes of syntax nothing is laid out
	}
	return []textEdit{minimal(d.text, string(out))}, nil
}

// minimal replaces what differs, in whole lines.
func minimal(t *text, want string) textEdit {
	from, n := 0, min(len(t.src), len(want))
	for from < n && t.src[from] == want[from] {
		from++
	}
	from = strings.LastIndexByte(t.src[:from], '\n') + 1
	back := 0
	for back < n-from && t.src[len(t.src)-1-back] == want[len(want)-1-back] {
		back++
	}
	to := len(t.src) - back
	if i := strings.IndexByte(t.src[to:], '\n'); back > 0 && i >= 0 {
		to += i + 1
	} else {
		to = len(t.src)
	}
	return textEdit{textRange{t.position(from), t.position(to)}, want[from : len(want)-(len(t.src)-to)]}
}

// codeActions are rewrites that messages suggest, and conditions on sizes to be stated.
func (s *server) codeActions(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out := []codeAction{}
	from, to := d.text.offset(p.Range.Start), d.text.offset(p.Range.End)
	for _, e := range a.Errors {
		if e.Span.Start.Filename != d.path || e.Span.Start.Offset > to || max(e.Span.End.Offset, e.Span.Start.Offset+1) < from {
			continue
		}
		for _, f := range fixes(d.text.src, e) {
			out = append(out, codeAction{Title: f.title, Kind: "quickfix", Diagnostics: []diagnostic{s.diagnostic(d, a, e)},
				Edit: edit(d, f.span, f.text), IsPreferred: true})
		}
	}
	for _, n := range a.Details().Needs {
		if n.Span.Start.Offset <= to && n.Span.End.Offset >= from {
			if c := stated(d, a, n); c != nil {
				out = append(out, *c)
			}
		}
	}
	return out, nil
}

func edit(d *document, at diag.Span, text string) *workspaceEdit {
	return &workspaceEdit{map[string][]textEdit{uriOf(d.path): {{d.text.span(at), text}}}}
}

// fix replaces a span of a program.
type fix struct {
	title string
	span  diag.Span
	text  string
}

var (
	meant   = regexp.MustCompile(`did you mean @?([A-Za-z_][A-Za-z0-9_]*)\?`)
	wrapped = regexp.MustCompile(`(?:write|cast(?: it)? with) ([a-z][a-z0-9]*)\(\.\.\.\)`)
	named   = regexp.MustCompile(`(?:unknown \w+|no parameter) @?([A-Za-z_][A-Za-z0-9_]*)`)
)

// fixes are the rewrites that the message of an error names.
func fixes(src string, e *diag.Error) []fix {
	from, to := e.Span.Start.Offset, e.Span.End.Offset
	if from > to || to > len(src) {
		return nil
	}
	text := src[from:to]
	if m := meant.FindStringSubmatch(e.Msg); m != nil {
		if wrong := named.FindStringSubmatch(e.Msg); wrong != nil {
			if i := strings.Index(text, wrong[1]); i >= 0 {
				at := e.Span
				at.Start.Offset, at.End.Offset = from+i, from+i+len(wrong[1])
				return []fix{{"Change to " + m[1], at, m[1]}}
			}
		}
	}
	if strings.Contains(e.Msg, "write else 0 behind the index") {
		if i := strings.IndexByte(src[to:], ']'); i >= 0 && !strings.ContainsAny(src[to:to+i], "\n[(") {
			at := e.Span
			at.Start.Offset, at.End.Offset = to+i+1, to+i+1
			return []fix{{"Read 0 outside: add else 0", at, " else 0"}}
		}
	}
	if out := foreignFixes(src, e); out != nil {
		return out
	}
	if m := wrapped.FindStringSubmatch(e.Msg); m != nil {
		return castFix(src, e, m[1])
	}
	return nil
}

// castFix wraps what is wrong in a cast; of a name that is being bound, its value.
func castFix(src string, e *diag.Error, dtype string) []fix {
	from, to := e.Span.Start.Offset, e.Span.End.Offset
	end := strings.IndexByte(src[to:], '\n')
	if end < 0 {
		end = len(src) - to
	}
	line := src[to : to+end]
	if eq := strings.Index(line, "= "); eq >= 0 && strings.Count(line[:eq], "[") == strings.Count(line[:eq], "]") &&
		!strings.ContainsAny(line[:eq], "=(") {
		value, _, _ := strings.Cut(line[eq+2:], "#")
		value = strings.TrimRight(value, " \t\r;}")
		if value == "" || strings.Count(value, "(") != strings.Count(value, ")") {
			return nil
		}
		from, to = to+eq+2, to+eq+2+len(value)
	}
	at := e.Span
	at.Start.Offset, at.End.Offset = from, to
	return []fix{{"Cast with " + dtype + "(...)", at, dtype + "(" + src[from:to] + ")"}}
}

// stated adds a require to the graph that relies on a condition.
func stated(d *document, a *parser.Analysis, n parser.Need) *codeAction {
	for _, decl := range a.Decls {
		if decl.Name != n.Graph || decl.Body.IsZero() {
			continue
		}
		at := decl.Body
		at.Start.Offset++
		at.End = at.Start
		indent := "\n    "
		text := indent + "require(" + n.Cond + ", " + fmt.Sprintf("%q", n.Why) + ")"
		if strings.Contains(d.text.src[decl.Body.Start.Offset:decl.Body.End.Offset], "require("+n.Cond) {
			return nil
		}
		return &codeAction{Title: "State it: require(" + n.Cond + ")", Kind: "refactor.rewrite", Edit: edit(d, at, text)}
	}
	return nil
}

const viewCommand = "fusec.view"

// codeLenses stand above graphs: what the plan takes, which opens the page of the program.
func (s *server) codeLenses(p placeParams) (any, error) {
	d, a, err := s.open(p)
	if err != nil {
		return nil, err
	}
	out := []codeLens{}
	for _, decl := range a.Decls {
		plan := s.planOf(d, decl)
		if plan == nil {
			continue
		}
		lens := codeLens{Range: d.text.span(decl.At), Command: command{Title: lensText(plan)}}
		if s.opts.View != nil && plan.failed == "" {
			lens.Command.Command, lens.Command.Arguments = viewCommand, []any{uriOf(d.path), decl.Name}
		}
		out = append(out, lens)
	}
	return out, nil
}

func lensText(p *planned) string {
	if p.failed != "" {
		return p.failed
	}
	text := plural(p.x.Fused.Kernels, "kernel")
	if p.x.Fused.Seconds != nil {
		text += fmt.Sprintf(", %s on %s", timeText(*p.x.Fused.Seconds), p.x.Device)
	}
	return text
}

// execute runs the command of a code lens: the page of a program is made and shown.
func (s *server) execute(ctx context.Context, raw []byte) (any, error) {
	var p struct {
		Command   string   `json:"command"`
		Arguments []string `json:"arguments"`
	}
	if err := json.Unmarshal(raw, &p); err != nil || p.Command != viewCommand || len(p.Arguments) == 0 || s.opts.View == nil {
		return nil, jsonrpc2.NewError(jsonrpc2.InvalidParams, "expected "+viewCommand+" and the URI of a program")
	}
	path := pathOf(p.Arguments[0])
	s.mu.Lock()
	var src []byte
	if d := s.docs[path]; d != nil {
		src = []byte(d.text.src)
	}
	s.mu.Unlock()
	graph := ""
	if len(p.Arguments) > 1 {
		graph = p.Arguments[1]
	}
	jsonrpc2.Async(ctx) // the page takes a while, and showing it asks the editor
	if src == nil {
		var err error
		if src, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	uri, err := s.opts.View(path, src, graph)
	if err != nil {
		return nil, err
	}
	_, _ = s.conn.Call(ctx, "window/showDocument", map[string]any{"uri": uri, "external": true}, nil)
	return uri, nil
}
