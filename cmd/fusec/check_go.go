package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"

	"github.com/fusec/fusec/internal/regular"
)

// goProgram is a program that stands as a constant in a Go file.
type goProgram struct {
	name string // file:line of the constant
	text string
}

// maxGoFile is more bytes than anybody writes into a Go file.
const maxGoFile = 64 << 20

// programsIn finds what a Go file hands to Compile and MustCompile of package fusec:
// string literals, and constants of the file that are ones. What is computed, or
// comes from another file, is not looked at.
func programsIn(name string) ([]goProgram, error) {
	text, err := regular.ReadFile(name, maxGoFile)
	if err != nil {
		return nil, plainPathError(err)
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, text, 0)
	if err != nil {
		return nil, err
	}
	local := importedAs(file, "github.com/fusec/fusec")
	if local == "" {
		return nil, nil
	}
	constants := stringsOf(file)
	var out []goProgram
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !compiles(call, local) {
			return true
		}
		literal, _ := call.Args[1].(*ast.BasicLit)
		if id, ok := call.Args[1].(*ast.Ident); ok {
			literal = constants[id.Name]
		}
		if literal == nil || literal.Kind != token.STRING {
			return true
		}
		if text, err := strconv.Unquote(literal.Value); err == nil {
			p := goProgram{fmt.Sprintf("%s(line %d)", name, set.Position(literal.Pos()).Line), text}
			if !slices.Contains(out, p) {
				out = append(out, p)
			}
		}
		return true
	})
	return out, nil
}

// importedAs is the name under which a file imports a package; "" where it does not.
func importedAs(file *ast.File, want string) string {
	for _, spec := range file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil && p == want {
			if spec.Name != nil {
				return spec.Name.Name
			}
			return path.Base(want)
		}
	}
	return ""
}

// compiles reports whether a call is fusec.Compile(name, source, options) or
// fusec.MustCompile, perhaps of an explicit type.
func compiles(call *ast.CallExpr, local string) bool {
	fun := call.Fun
	if index, ok := fun.(*ast.IndexExpr); ok {
		fun = index.X
	}
	sel, ok := fun.(*ast.SelectorExpr)
	if !ok || len(call.Args) != 3 {
		return false
	}
	pkg, ok := sel.X.(*ast.Ident)
	return ok && pkg.Name == local && (sel.Sel.Name == "Compile" || sel.Sel.Name == "MustCompile")
}

// stringsOf lists the constants of a file that are string literals.
func stringsOf(file *ast.File) map[string]*ast.BasicLit {
	out := map[string]*ast.BasicLit{}
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		for _, s := range decl.Specs {
			spec := s.(*ast.ValueSpec)
			for i, value := range spec.Values {
				if literal, ok := value.(*ast.BasicLit); ok {
					out[spec.Names[i].Name] = literal
				}
			}
		}
	}
	return out
}
