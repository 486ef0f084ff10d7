// Command sbom writes what a Go binary is made of: its module, the modules that it holds and the
// standard library, as a CycloneDX document on stdout. All of it is read from the binary, so it
// is true of that binary and the same for the same binary.
//
//	go run ./internal/sbom build/release/fusec v1.2.3
//
// The version is that of the binary's module, where it was built without one.
package main

import (
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
)

func main() {
	if len(os.Args) != 2 && len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY [VERSION]")
		os.Exit(2)
	}
	info, err := buildinfo.ReadFile(os.Args[1])
	if err == nil {
		if len(os.Args) == 3 {
			info.Main.Version = os.Args[2]
		}
		err = write(os.Stdout, info)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

// The parts of CycloneDX 1.6 that are written.
type document struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version,omitempty"`
	PURL       string     `json:"purl"`
	Hashes     []hash     `json:"hashes,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"` // in hex
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref string   `json:"ref"`
	On  []string `json:"dependsOn,omitempty"`
}

func write(w io.Writer, info *debug.BuildInfo) error {
	root := moduleOf("application", &info.Main)
	for _, s := range info.Settings {
		root.Properties = append(root.Properties, property{"go:build:" + s.Key, s.Value})
	}
	doc := document{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{root}}
	needs := dependency{Ref: root.Ref}
	add := func(c component) {
		doc.Components = append(doc.Components, c)
		needs.On = append(needs.On, c.Ref)
	}
	std := "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")
	add(component{Type: "library", Ref: std, Name: "std", Version: info.GoVersion, PURL: std})
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		add(moduleOf("library", m))
	}
	doc.Dependencies = []dependency{needs}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(doc)
}

// moduleOf describes a module. Its hash is that of go.sum, which is over its files' hashes.
func moduleOf(kind string, m *debug.Module) component {
	purl := "pkg:golang/" + m.Path
	if m.Version != "" {
		purl += "@" + m.Version
	}
	c := component{Type: kind, Ref: purl, Name: m.Path, Version: m.Version, PURL: purl}
	if sum, ok := strings.CutPrefix(m.Sum, "h1:"); ok {
		if b, err := base64.StdEncoding.DecodeString(sum); err == nil {
			c.Hashes = []hash{{"SHA-256", hex.EncodeToString(b)}}
		}
	}
	return c
}
