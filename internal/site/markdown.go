package site

import (
	"bytes"
	"html/template"
	"io/fs"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// markdown is the dialect of the pages: that of GitHub, whose names of headings the links use. The pages' own HTML
// is passed on: they come with the program.
func markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(html.WithUnsafe()))
}

// markdown makes a page of a text: links lead to pages of the site, or to the module's source.
func (b *builder) markdown(name string, source []byte) (*page, error) {
	p := &page{Name: strings.TrimSuffix(name, ".md") + ".html"}
	m := markdown()
	doc := m.Parser().Parse(text.NewReader(source))
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			h := heading{Page: p.Name, Text: plain(n, source), Level: n.Level}
			if id, ok := n.AttributeString("id"); ok {
				h.ID = string(id.([]byte))
			}
			if n.Level == 1 && p.Title == "" {
				p.Title = h.Text
			}
			p.Headings = append(p.Headings, h)
		case *ast.Link:
			n.Destination = []byte(b.destination(string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := m.Renderer().Render(&out, source, doc); err != nil {
		return nil, err
	}
	p.Body = template.HTML(out.String())
	return p, nil
}

// destination is where a link of a page leads on the site.
func (b *builder) destination(to string) string {
	if to == "" || strings.HasPrefix(to, "#") || strings.Contains(to, "://") {
		return to
	}
	file, anchor, found := strings.Cut(to, "#")
	if found {
		anchor = "#" + anchor
	}
	if program, ok := strings.CutPrefix(file, "../examples"); ok {
		program = strings.Trim(program, "/")
		if info, err := fs.Stat(b.options.Examples, path.Clean("./"+program)); err == nil {
			if info.IsDir() {
				return path.Join("examples", program, "index.html")
			}
			return path.Join("examples", program) + ".html"
		}
	}
	if outside, ok := strings.CutPrefix(file, "../"); ok {
		return b.options.Source + "/" + outside + anchor
	}
	if strings.HasSuffix(file, ".md") {
		return strings.TrimSuffix(file, ".md") + ".html" + anchor
	}
	return to
}

// plain is the text of a node without marks.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if t, ok := n.(*ast.Text); ok && entering {
			b.Write(t.Segment.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// groupsOf reads the list of pages out of the start page: a group for each heading, with the pages that it links to.
func groupsOf(index []byte, pages map[string]*page) []group {
	groups := []group{{Pages: []link{{"index.html", "Start"}}}}
	doc := markdown().Parser().Parse(text.NewReader(index))
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // never fails
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Heading:
			if n.Level > 1 {
				groups = append(groups, group{Title: plain(n, index)})
			}
		case *ast.Link:
			if p := pages[string(n.Destination)]; p != nil {
				last := &groups[len(groups)-1]
				last.Pages = append(last.Pages, link{p.Name, plain(n, index)})
			}
		}
		return ast.WalkContinue, nil
	})
	return groups
}
