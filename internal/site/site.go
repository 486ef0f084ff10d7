// Package site makes a web site of the documentation: pages that need no network, light and dark, with a search over all
// headings. It knows Markdown and HTML, and nothing of what the pages are about.
package site

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed page.html
var pageHTML string

//go:embed site.css
var siteCSS []byte

//go:embed site.js
var siteJS []byte

// Options say what a site is made of.
type Options struct {
	Pages    fs.FS  // Markdown, with index.md, whose lists order the others, and pictures
	Examples fs.FS  // programs, which pages link to below ../examples
	Source   string // the address of the module's folder, for links to what the site does not hold
	// Playground says that pages lead to playground/index.html, which somebody else has put there.
	Playground bool
}

// Site is a web site that is complete: files by their paths.
type Site struct{ files map[string][]byte }

// page is what the template of a page takes.
type page struct {
	Name       string // docs/x.md is x.html
	Title      string
	Root       string // the way from the page to the site's root, "" or "../"
	Body       template.HTML
	Groups     []group
	Headings   []heading // for its own contents
	Playground bool
}

// group is a part of the list of pages.
type group struct {
	Title string
	Pages []link
}

type link struct{ Name, Title string }

// heading is an entry of the search.
type heading struct {
	Page  string `json:"p"`
	ID    string `json:"i"`
	Text  string `json:"t"`
	Level int    `json:"l"`
}

// Build makes the site.
func Build(o Options) (*Site, error) {
	s := &Site{files: map[string][]byte{"site.css": siteCSS}}
	b := &builder{options: o, site: s, template: template.Must(template.New("page").Parse(pageHTML))}
	if err := b.build(); err != nil {
		return nil, fmt.Errorf("making the site: %w", err)
	}
	index, err := json.Marshal(b.headings)
	if err != nil {
		return nil, err
	}
	s.files["site.js"] = []byte("const headings = " + string(index) + ";\n" + string(siteJS))
	return s, nil
}

type builder struct {
	options  Options
	site     *Site
	template *template.Template
	groups   []group
	headings []heading
}

func (b *builder) build() error {
	names, err := fs.Glob(b.options.Pages, "*.md")
	if err != nil {
		return err
	}
	pages := map[string]*page{}
	for _, name := range names {
		text, err := fs.ReadFile(b.options.Pages, name)
		if err != nil {
			return err
		}
		if pages[name], err = b.markdown(name, text); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	index, err := fs.ReadFile(b.options.Pages, "index.md")
	if err != nil {
		return err
	}
	b.groups = groupsOf(index, pages)
	for _, name := range names {
		b.headings = append(b.headings, pages[name].Headings...)
		if err := b.add(pages[name]); err != nil {
			return err
		}
	}
	if err := b.pictures(); err != nil {
		return err
	}
	return b.examples()
}

// add renders a page into the site.
func (b *builder) add(p *page) error {
	p.Groups, p.Playground = b.groups, b.options.Playground
	var out bytes.Buffer
	if err := b.template.Execute(&out, p); err != nil {
		return err
	}
	b.site.files[p.Name] = out.Bytes()
	return nil
}

func (b *builder) pictures() error {
	return fs.WalkDir(b.options.Pages, "images", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b.site.files[name], err = fs.ReadFile(b.options.Pages, name)
		return err
	})
}

// examples adds a page for every program, and one with the list of each folder.
func (b *builder) examples() error {
	return fs.WalkDir(b.options.Examples, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		p := &page{Name: path.Join("examples", name) + ".html", Title: name}
		p.Root = strings.Repeat("../", strings.Count(p.Name, "/"))
		if d.IsDir() {
			p.Name = path.Join("examples", name, "index.html")
			p.Root = strings.Repeat("../", strings.Count(p.Name, "/"))
			p.Title = "examples"
			entries, err := fs.ReadDir(b.options.Examples, name)
			if err != nil {
				return err
			}
			p.Body = listing(entries)
			return b.add(p)
		}
		text, err := fs.ReadFile(b.options.Examples, name)
		if err != nil {
			return err
		}
		p.Body = template.HTML("<h1>" + template.HTMLEscapeString(name) + "</h1><pre><code class=\"language-fuse\">" +
			template.HTMLEscapeString(string(text)) + "</code></pre>")
		return b.add(p)
	})
}

func listing(entries []fs.DirEntry) template.HTML {
	var b strings.Builder
	b.WriteString("<h1>Examples</h1><ul>")
	for _, e := range entries {
		name := template.HTMLEscapeString(e.Name())
		to := name + ".html"
		if e.IsDir() {
			to = name + "/index.html"
		}
		fmt.Fprintf(&b, `<li><a href="%s">%s</a></li>`, to, name)
	}
	b.WriteString("</ul>")
	return template.HTML(b.String())
}

// Names lists the site's files.
func (s *Site) Names() []string {
	var names []string
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// File is the content of one of the files; nil where there is none of that name.
func (s *Site) File(name string) []byte { return s.files[name] }

// Export writes the site into a folder, which is made where it does not exist.
func (s *Site) Export(dir string) error {
	for _, name := range s.Names() {
		to := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(to, s.files[name], 0o666); err != nil {
			return err
		}
	}
	return nil
}

// types are those of the files that a site has.
var types = map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
	".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".png": "image/png"}

// ServeHTTP answers with the site's files.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
	if name == "" || strings.HasSuffix(r.URL.Path, "/") {
		name = path.Join(name, "index.html")
	}
	data, ok := s.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", types[path.Ext(name)])
	_, _ = w.Write(data) // the reader may be gone
}
