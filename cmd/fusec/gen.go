package main

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/cmd/fusec/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/sign"
)

type genCmd struct {
	File      string `arg:"" name:"file" help:"The program."`
	Output    string `short:"o" placeholder:"FILE" help:"The Go file; by default FILE_fuse.go beside the program."`
	Package   string `placeholder:"NAME" help:"Its package; by default what go generate says, that of the Go files beside it, or the folder's name."`
	Type      string `default:"Graphs" placeholder:"NAME" help:"The type that holds the graphs: ${default}."`
	Bundle    string `placeholder:"FILE" help:"Embed this bundle instead of the program's text."`
	PublicKey string `placeholder:"FILE" help:"The key that the bundle is signed with."`
}

// Help is the long help text.
func (*genCmd) Help() string {
	return `Writes a Go type with a method for each graph: sizes are fields of a struct, tensors are slices
of their element type, or buffers of a device. For go generate:

    //go:generate go tool fusec gen norms.fuse

Examples:

    fusec gen norms.fuse -o norms_fuse.go --package norms
    fusec gen norms.fuse --bundle norms.fbundle --public-key app.key.pub`
}

// Run writes the file.
func (c *genCmd) Run(a *app) error {
	if c.Output == "" {
		c.Output = strings.TrimSuffix(c.File, filepath.Ext(c.File)) + "_fuse.go"
	}
	graphs, err := a.graphs(c.File, "")
	if err != nil {
		return err
	}
	o, err := c.options(a)
	if err != nil {
		return err
	}
	if c.Bundle != "" {
		if o.Text, err = a.files.read(c.File); err == nil { // for its comments
			err = c.bundle(graphs, &o)
		}
	} else {
		err = c.text(a, &o)
	}
	if err != nil {
		return err
	}
	code, err := gen.Go(graphs, o)
	if err != nil {
		return err
	}
	return replaceFile(c.Output, code)
}

func (c *genCmd) options(a *app) (gen.Options, error) {
	o := gen.Options{File: c.Output, Package: c.Package, Type: c.Type, Source: filepath.Base(c.File),
		Command: "fusec gen " + filepath.Base(c.File)}
	if o.Package == "" {
		o.Package = a.getenv("GOPACKAGE")
	}
	if o.Package == "" {
		folder, err := filepath.Abs(filepath.Dir(c.Output))
		if err != nil {
			return o, err
		}
		if o.Package = packageIn(folder, c.Output); o.Package == "" {
			if o.Package = filepath.Base(folder); !token.IsIdentifier(o.Package) {
				return o, usagef("the folder's name, %s, cannot be that of a Go package: --package NAME gives another", o.Package)
			}
		}
	}
	if !token.IsIdentifier(o.Package) {
		return o, usagef("--package: expected the name of a Go package, found %q", o.Package)
	}
	if !token.IsExported(c.Type) || !token.IsIdentifier(c.Type) {
		return o, usagef("--type %s: expected an exported Go name", c.Type)
	}
	return o, nil
}

// text embeds the program and what it imports.
func (c *genCmd) text(a *app, o *gen.Options) (err error) {
	base, imports := filepath.Dir(c.File), a.files.imports(c.File)
	o.Imports = map[string][]byte{}
	read := func(name string) ([]byte, error) {
		text, err := imports(filepath.Join(base, name))
		if err == nil {
			o.Imports[name] = text
		}
		return text, err
	}
	if o.Text, err = a.files.read(c.File); err != nil {
		return err
	}
	// Compiled once under the name it will have, to learn what it imports by that name.
	_, err = parseText(o.Source, o.Text, read) // warnings were printed
	return err
}

// bundle refers to a bundle, which must hold the graphs.
func (c *genCmd) bundle(graphs []*ir.Graph, o *gen.Options) error {
	if c.PublicKey == "" {
		return usagef("--bundle %s: --public-key FILE says whose it is", c.Bundle)
	}
	key, err := sign.ReadPublic(c.PublicKey)
	if err != nil {
		return usagef("--public-key: %w", plainPathError(err))
	}
	b, err := fusec.OpenBundle(c.Bundle, key)
	if err != nil {
		return plainPathError(err)
	}
	defer b.Close()
	for _, g := range graphs {
		if len(b.Archs(g.Name)) == 0 {
			return fmt.Errorf("%s does not hold graph %s of %s: make it anew", c.Bundle, g.Name, c.File)
		}
	}
	at, err := filepath.Rel(filepath.Dir(c.Output), c.Bundle)
	if err != nil || !filepath.IsLocal(at) {
		return usagef("--bundle %s: go:embed takes files in the folder of %s or below it", c.Bundle, c.Output)
	}
	o.Bundle, o.Key = filepath.ToSlash(at), sign.FormatPublic(key)
	return nil
}

// packageIn is the package of the Go files in a folder, tests and the file that is to be written left out; "" where there
// are none.
func packageIn(folder, output string) string {
	files, _ := filepath.Glob(filepath.Join(folder, "*.go"))
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || filepath.Base(file) == filepath.Base(output) {
			continue
		}
		if f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly); err == nil {
			return f.Name.Name
		}
	}
	return ""
}
