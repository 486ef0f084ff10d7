package lsp

import (
	"context"

	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/parser"
)

// publisher sends the mistakes of documents as they change. Changes that come while it
// works are taken together.
func (s *server) publisher(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		}
		for _, p := range s.pending() {
			if s.conn.Notify(ctx, "textDocument/publishDiagnostics", p) != nil {
				return
			}
		}
	}
}

// pending makes what is to be sent for the documents that changed.
func (s *server) pending() []publishParams {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []publishParams
	for path := range s.dirty {
		delete(s.dirty, path)
		p := publishParams{URI: uriOf(path), Diagnostics: []diagnostic{}}
		if d := s.docs[path]; d != nil {
			p.Version = d.version
			p.Diagnostics = s.diagnostics(d)
		}
		out = append(out, p)
	}
	return out
}

// diagnostics are the mistakes of a document, and those that only its plans show. A broken
// invariant of the analysis is logged, and leaves the document without any.
func (s *server) diagnostics(d *document) (out []diagnostic) {
	defer func() {
		if v := recover(); v != nil {
			s.log("internal error in %s: %v", d.path, v)
			out = []diagnostic{}
		}
	}()
	a := s.analysis(d)
	out = make([]diagnostic, 0, len(a.Errors))
	for _, e := range a.Errors {
		out = append(out, s.diagnostic(d, a, e))
	}
	for _, e := range a.Warnings {
		out = append(out, s.diagnostic(d, a, e))
	}
	for _, decl := range a.Decls {
		if p := s.planOf(d, decl); p != nil {
			for _, e := range p.errs {
				out = append(out, s.diagnostic(d, a, moved(e, d.path, decl.Span.Start.Offset-p.offset)))
			}
		}
	}
	return out
}

func (s *server) diagnostic(d *document, a *parser.Analysis, e *diag.Error) diagnostic {
	const wrong, doubtful = 1, 2
	severity := wrong
	if e.Warning {
		severity = doubtful
	}
	out := diagnostic{Severity: severity, Source: "fusec", Message: e.Msg}
	if e.Span.Start.Filename != d.path { // of an import: shown there
		out.Message = e.Error()
		out.Related = append(out.Related, s.related(e.Span, e.Msg)...)
		for _, i := range a.Imports {
			out.Range = d.text.span(i.Span)
			if i.Name == e.Span.Start.Filename {
				break
			}
		}
		return out
	}
	out.Range = d.text.span(e.Span)
	if out.Range.Start == out.Range.End {
		out.Range.End.Character++
	}
	for _, n := range e.Notes {
		if n.Span.IsZero() {
			out.Message += "\n" + n.Msg
			continue
		}
		out.Related = append(out.Related, s.related(n.Span, n.Msg)...)
	}
	return out
}

// related points at a place of any file; nothing where it is in none, as in the library.
func (s *server) related(span diag.Span, msg string) []related {
	if _, library := parser.Source(span.Start.Filename); library || span.IsZero() {
		return nil
	}
	at := s.file(span.Start.Filename, "")
	if at == nil {
		return nil
	}
	return []related{{Location: location{uriOf(at.path), at.text.span(span)}, Message: msg}}
}

// moved is e with the places of a file moved by some bytes.
func moved(e *diag.Error, file string, by int) *diag.Error {
	shift := func(s diag.Span) diag.Span {
		if s.Start.Filename == file {
			s.Start.Offset += by
			s.End.Offset += by
		}
		return s
	}
	out := &diag.Error{Span: shift(e.Span), Msg: e.Msg}
	for _, n := range e.Notes {
		out.Notes = append(out.Notes, diag.Note{Span: shift(n.Span), Msg: n.Msg})
	}
	return out
}
