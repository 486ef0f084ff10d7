package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// A Mutant is one mistake.
type Mutant struct {
	ID     int    `json:"id"`
	Where  string `json:"where"` // file:line:column, below the module's folder
	Kind   string `json:"kind"`
	Before string `json:"before"`         // the text that it changes
	Killed string `json:"killed"`         // the step that noticed; "" for none yet
	Lived  bool   `json:"lived,omitzero"` // all steps passed
}

// A site is a place where a mistake can be made.
type site struct {
	Mutant
	module     module
	path       string // of the file
	start, end int    // of what changes, in bytes
	edits      func(id int) []edit
}

// A module is the path by which others import it, and its folder.
type module struct{ path, dir string }

// An edit replaces the bytes of a file from at to end by text.
type edit struct {
	at, end int
	text    string
}

// sitesOf lists the places for mistakes in packages (with commas between them), without their tests.
func sitesOf(pattern string) ([]site, error) {
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedSyntax | packages.NeedTypes |
		packages.NeedTypesInfo | packages.NeedFiles | packages.NeedImports | packages.NeedDeps | packages.NeedModule}, strings.Split(pattern, ",")...)
	if err != nil {
		return nil, err
	}
	var out []site
	for _, p := range loaded {
		if len(p.Errors) > 0 {
			return nil, p.Errors[0]
		}
		for _, f := range p.Syntax {
			file := p.Fset.Position(f.Pos()).Filename
			text, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(p.Module.Dir, file)
			if err != nil {
				return nil, err
			}
			v := &visitor{module: module{p.Module.Path, p.Module.Dir}, fset: p.Fset, info: p.TypesInfo, text: text, path: file, name: name}
			ast.Inspect(f, v.visit)
			out = append(out, v.sites...)
		}
	}
	return out, nil
}

// visitor collects the sites of a file.
type visitor struct {
	module     module
	fset       *token.FileSet
	info       *types.Info
	text       []byte
	path, name string
	sites      []site
}

func (v *visitor) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GenDecl:
		return n.Tok == token.VAR // constants have no run time
	case *ast.IfStmt:
		v.condition(n.Cond)
	case *ast.SwitchStmt:
		v.cases(n)
	case *ast.BinaryExpr:
		v.binary(n)
	case *ast.CallExpr:
		if v.isMake(n) && len(n.Args) == 3 {
			ast.Inspect(n.Args[1], v.visit)
			return false
		}
	case *ast.BlockStmt:
		v.statements(n.List)
	case *ast.CaseClause:
		v.statements(n.Body)
	}
	return true
}

func (v *visitor) cases(n *ast.SwitchStmt) {
	if n.Tag != nil {
		return
	}
	for _, c := range n.Body.List {
		for _, e := range c.(*ast.CaseClause).List {
			v.condition(e)
		}
	}
}

// isMake reports whether a call makes a slice, a map or a channel. A capacity is no place for a mistake: a slice
// that grows in time holds the same.
func (v *visitor) isMake(n *ast.CallExpr) bool {
	id, ok := n.Fun.(*ast.Ident)
	return ok && v.info.Uses[id] == types.Universe.Lookup("make")
}

// condition may be the other way round. A comparison with nil is not: it would only crash.
func (v *visitor) condition(e ast.Expr) {
	if b, ok := e.(*ast.BinaryExpr); ok && (isNil(b.X) || isNil(b.Y)) {
		return
	}
	v.add("negate", e, func(id int) []edit {
		return v.around(e, fmt.Sprintf("mutantNot(%d, bool(", id), "))")
	})
}

func isNil(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "nil"
}

// binary: a comparison may hold at its bound or not, a sum be off by one, one side of a condition the other way.
func (v *visitor) binary(n *ast.BinaryExpr) {
	if v.info.Types[n].Value != nil { // a constant
		return
	}
	switch n.Op {
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if v.isInteger(n.X) && v.isInteger(n.Y) {
			v.add("boundary", n, func(id int) []edit {
				comma := edit{v.offset(n.OpPos), v.offset(n.OpPos) + len(n.Op.String()), ","}
				return append(v.around(n, fmt.Sprintf("mutantBound(%d, %q, ", id, n.Op), ")"), comma)
			})
		}
	case token.ADD, token.SUB:
		if v.isInteger(n) {
			of := "" // 1 << n has the type that is asked of it: it must be said
			if b, ok := v.info.TypeOf(n).(*types.Basic); ok {
				of = "[" + b.Name() + "]"
			}
			v.add("off by one", n, func(id int) []edit { return v.around(n, fmt.Sprintf("mutantOff%s(%d, ", of, id), ")") })
		}
	case token.LAND, token.LOR:
		v.condition(n.Y)
	}
}

func (v *visitor) isInteger(e ast.Expr) bool {
	b, ok := v.info.TypeOf(e).Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0
}

// statements may be left out, where the program still compiles without them.
func (v *visitor) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt:
			if call, ok := s.X.(*ast.CallExpr); !ok || v.text[v.offset(call.Pos())] == 'p' && isPanic(call) {
				continue
			}
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
		default:
			continue
		}
		v.add("drop", s, func(id int) []edit { return v.around(s, fmt.Sprintf("if !mutantIs(%d) { ", id), " }") })
	}
}

func isPanic(c *ast.CallExpr) bool {
	id, ok := c.Fun.(*ast.Ident)
	return ok && id.Name == "panic"
}

func (v *visitor) add(kind string, n ast.Node, edits func(id int) []edit) {
	at := v.fset.Position(n.Pos())
	start, end := v.offset(n.Pos()), v.offset(n.End())
	v.sites = append(v.sites, site{module: v.module, path: v.path, start: start, end: end, edits: edits, Mutant: Mutant{
		Where: fmt.Sprintf("%s:%d:%d", v.name, at.Line, at.Column), Kind: kind,
		Before: strings.Join(strings.Fields(string(v.text[start:end])), " ")}})
}

func (v *visitor) around(n ast.Node, before, after string) []edit {
	start, end := v.offset(n.Pos()), v.offset(n.End())
	return []edit{{start, start, before}, {end, end, after}}
}

func (v *visitor) offset(p token.Pos) int { return v.fset.Position(p).Offset }

// ofKinds returns the sites of kinds that are listed with commas between them; all where none is.
func ofKinds(sites []site, kinds string) []site {
	if kinds == "" {
		return sites
	}
	listed := strings.Split(kinds, ",")
	return slices.DeleteFunc(slices.Clone(sites), func(s site) bool { return !slices.Contains(listed, s.Kind) })
}

// draw adds n of the sites to some, as many of each kind while there are some, of which none is inside
// another, so that their edits do not meet.
func draw(out, sites []site, n int, seed uint64) []site {
	n += len(out)
	r := rand.New(rand.NewPCG(seed, 0))
	byKind := map[string][]site{}
	for _, i := range r.Perm(len(sites)) {
		byKind[sites[i].Kind] = append(byKind[sites[i].Kind], sites[i])
	}
	for len(out) < n && len(byKind) > 0 {
		for _, kind := range slices.Sorted(maps.Keys(byKind)) {
			s := byKind[kind][0]
			if byKind[kind] = byKind[kind][1:]; len(byKind[kind]) == 0 {
				delete(byKind, kind)
			}
			if len(out) < n && !slices.ContainsFunc(out, s.meets) {
				out = append(out, s)
			}
		}
	}
	return out
}

// lived returns the sites of the mutants that lived of an earlier list, whose kind and text are still there:
// in a file of the same name, or else in any, and of several the nearest to the earlier line.
func lived(sites []site, earlier []Mutant) (out []site) {
	top := func(m Mutant) string { return strings.Split(m.Where, "/")[0] }
	for _, m := range earlier {
		if !m.Lived || len(sites) == 0 || strings.Contains(m.Where, "/") && top(m) != top(sites[0].Mutant) {
			continue
		}
		far := func(s site) int {
			file, line := s.place()
			was, at := m.place()
			if path.Base(file) != path.Base(was) {
				return 1 << 20
			}
			return max(line-at, at-line)
		}
		best := -1
		for i, s := range sites {
			if s.Kind != m.Kind || s.Before != m.Before || slices.ContainsFunc(out, s.meets) {
				continue
			}
			if best < 0 || far(s) < far(sites[best]) {
				best = i
			}
		}
		if best < 0 {
			fmt.Printf("%s %s `%s` is gone\n", m.Where, m.Kind, m.Before)
			continue
		}
		out = append(out, sites[best])
	}
	return out
}

// place is the file and the line of a mutant.
func (m Mutant) place() (file string, line int) {
	parts := strings.Split(m.Where, ":")
	line, _ = strconv.Atoi(parts[1])
	return parts[0], line
}

// meets reports whether edits of two sites would overlap.
func (s site) meets(o site) bool { return o.path == s.path && o.start <= s.end && s.start <= o.end }
