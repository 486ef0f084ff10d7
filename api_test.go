package fusec

import (
	"fmt"
	"go/types"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// TestExportedSurface holds what users can call to testdata/api.txt: a change of it is a change
// for them, and belongs into CHANGELOG.md. UPDATE=1 writes the file.
func TestExportedSurface(t *testing.T) {
	var patterns []string
	for _, folder := range []string{"", "/runtime", "/runtime/cache", "/runtime/sign", "/runtime/tensor"} {
		patterns = append(patterns, module+folder)
	}
	list, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports}, patterns...)
	require.NoError(t, err)
	require.Len(t, list, len(patterns))
	slices.SortFunc(list, func(a, b *packages.Package) int { return strings.Compare(a.PkgPath, b.PkgPath) })
	var text strings.Builder
	for _, p := range list {
		if len(p.Errors) > 0 {
			t.Skip("the test runs away from its sources: ", p.Errors[0])
		}
		fmt.Fprintf(&text, "package %s\n", p.PkgPath)
		for _, line := range surface(p.Types) {
			fmt.Fprintf(&text, "    %s\n", line)
		}
	}
	const golden = "testdata/api.txt"
	if os.Getenv("UPDATE") != "" {
		require.NoError(t, os.WriteFile(golden, []byte(text.String()), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	assert.Equal(t, string(want), text.String(), "UPDATE=1 go test -run ExportedSurface . writes %s", golden)
}

// surface lists what a package exports: constants, variables, functions, types with their
// exported fields and methods.
func surface(p *types.Package) []string {
	short := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	var out []string
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		named, isType := o.(*types.TypeName)
		if !isType {
			line := types.ObjectString(o, short)
			if c, is := o.(*types.Const); is {
				line += " = " + c.Val().ExactString()
			}
			out = append(out, line)
			continue
		}
		switch u := named.Type().Underlying().(type) {
		case *types.Struct:
			out = append(out, "type "+name+" struct")
			for f := range u.Fields() {
				if f.Exported() {
					out = append(out, fmt.Sprintf("type %s struct, %s %s", name, f.Name(), types.TypeString(f.Type(), short)))
				}
			}
		case *types.Interface:
			out = append(out, "type "+name+" interface")
			for m := range u.Methods() {
				if m.Exported() {
					out = append(out, fmt.Sprintf("type %s interface, %s", name, types.ObjectString(m, short)))
				}
			}
		default:
			out = append(out, "type "+name+" "+types.TypeString(u, short))
		}
		if types.IsInterface(named.Type()) {
			continue
		}
		methods := types.NewMethodSet(types.NewPointer(named.Type()))
		for m := range methods.Methods() {
			if m.Obj().Exported() {
				out = append(out, types.ObjectString(m.Obj(), short))
			}
		}
	}
	slices.Sort(out)
	return out
}
