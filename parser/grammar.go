package parser

import (
	"fmt"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir/diag"
)

// The types below are the grammar and the syntax tree. It is LL(1): one token
// decides every choice, so that an error is reported at the token that is wrong.

type node struct{ Pos, EndPos diag.Pos }

func (n node) span() diag.Span { return diag.Span{Start: n.Pos, End: n.EndPos} }

type fileNode struct {
	node
	Decls []*declNode `parser:"EOL* ( @@ ( EOL @@? )* )?"`
}

type declNode struct {
	node
	Import *importNode `parser:"  @@"`
	Const  *constNode  `parser:"| @@"`
	Fn     *fnNode     `parser:"| @@"`
	Graph  *graphNode  `parser:"| @@"`
	broken bool        // a part of it could not be read, and is left out
}

type importNode struct {
	node
	Path string `parser:"'import' @String"`
}

type constNode struct {
	node
	Name  *identNode `parser:"'const' @@"`
	Value *exprNode  `parser:"'=' @@"`
}

type identNode struct {
	node
	Text string `parser:"@Ident"`
}

// discards reports whether a name on the left of = is the one that keeps no value.
func (n *identNode) discards() bool { return n.Text == "_" }

type fnNode struct {
	node
	Name    *identNode    `parser:"'fn' @@"`
	Params  []*paramNode  `parser:"'(' ( @@ ( ',' @@ )* )? ')'"`
	Results []*typeNode   `parser:"( '->' ( '(' @@ ( ',' @@ )* ')' | @@ ) )?"`
	Grad    *declaredNode `parser:"@@?"`
	Short   *exprNode     `parser:"( '=' @@"`
	Body    *blockNode    `parser:"| @@ )"`
}

type graphNode struct {
	node
	Notes   []*annotationNode `parser:"( @@ EOL* )*"`
	Name    *identNode        `parser:"'graph' @@"`
	Grad    *gradNode         `parser:"( '=' @@"`
	Params  []*paramNode      `parser:"| '(' ( @@ ( ',' @@ )* )? ')'"`
	Results []*paramNode      `parser:"  '->' '(' ( @@ ( ',' @@ )* )? ')'"`
	Body    *blockNode        `parser:"  @@ )"`
}

// gradNode is grad(graph, wrt=[x, w], values=true), or the same with jvp.
type gradNode struct {
	node
	Call *identNode     `parser:"@@ '('"`
	Of   *identNode     `parser:"@@"`
	Args []*gradArgNode `parser:"( ',' @@ )* ')'"`
}

type gradArgNode struct {
	node
	Name  *identNode   `parser:"@@ '='"`
	List  []*identNode `parser:"( '[' @@ ( ',' @@ )* ']'"`
	Value *identNode   `parser:"| @@ )"`
}

// declaredNode is @grad(name) behind a function's header: the function that is its derivative.
type declaredNode struct {
	node
	Name *identNode `parser:"'@' @@"`
	By   *identNode `parser:"'(' @@ ')'"`
}

type annotationNode struct {
	node
	Name string     `parser:"'@' @Ident"`
	Args []*argNode `parser:"( '(' ( @@ ( ',' @@ )* )? ')' )?"`
}

type paramNode struct {
	node
	State   bool       `parser:"@( 'state' (?= Ident) )?"`
	Name    *identNode `parser:"@@"`
	Type    *typeNode  `parser:"':' @@"`
	Default *exprNode  `parser:"( '=' @@ )?"`
}

type typeNode struct {
	node
	Name string    `parser:"@Ident"`
	Dims *dimsNode `parser:"@@?"`
}

type dimsNode struct {
	node
	Dims []*dimNode `parser:"'[' ( @@ ( ',' @@ )* )? ']'"`
}

type dimNode struct {
	node
	Leading bool      `parser:"( @'...'"`
	Name    string    `parser:"  @Ident? )"`
	Size    *exprNode `parser:"| @@"`
}

type blockNode struct {
	node
	Stmts []*stmtNode `parser:"'{' EOL* ( @@ ( EOL @@? )* )? '}'"`
}

type stmtNode struct {
	node
	For     *forNode     `parser:"  @@"`
	If      *ifNode      `parser:"| @@"`
	Return  *returnNode  `parser:"| @@"`
	Error   *errorNode   `parser:"| @@"`
	Require *requireNode `parser:"| @@"`
	Assign  *assignNode  `parser:"| @@"`
	broken  bool         // only its beginning could be read: no values
}

type forNode struct {
	node
	Var  *identNode `parser:"'for' @@"`
	From *exprNode  `parser:"'in' @@"`
	To   *exprNode  `parser:"'..' @@"`
	Body *blockNode `parser:"@@"`
}

type ifNode struct {
	node
	Cond *exprNode  `parser:"'if' @@"`
	Then *blockNode `parser:"@@"`
	Elif *ifNode    `parser:"( 'else' ( @@"`
	Else *blockNode `parser:"         | @@ ) )?"`
}

type returnNode struct {
	node
	Values []*exprNode `parser:"'return' @@ ( ',' @@ )*"`
}

type errorNode struct {
	node
	Text string `parser:"'error' '(' @String ')'"`
}

type requireNode struct {
	node
	Cond *exprNode `parser:"'require' '(' @@"`
	Why  string    `parser:"',' @String ')'"`
}

type assignNode struct {
	node
	Targets []*targetNode `parser:"@@ ( ',' @@ )*"`
	Value   *exprNode     `parser:"'=' @@"`
}

type targetNode struct {
	node
	Name  *identNode `parser:"@@"`
	Binds *bindsNode `parser:"@@?"`
}

type bindsNode struct {
	node
	Binds []*bindNode `parser:"'[' ( @@ ( ',' @@ )* )? ']'"`
}

type bindNode struct {
	node
	Leading bool       `parser:"  @'...'"`
	Name    *identNode `parser:"| @@"`
	Extent  *exprNode  `parser:"  ( ':' @@ )?"`
}

// exprNode is operands with binary operators between them; fold applies the precedence.
type exprNode struct {
	node
	First *unaryNode `parser:"@@"`
	Rest  []*opNode  `parser:"@@*"`
}

type opNode struct {
	node
	Op    string     `parser:"@Op"`
	Right *unaryNode `parser:"@@"`
}

type unaryNode struct {
	node
	Prefix []string     `parser:"@( '-' | '!' )*"`
	Base   *primaryNode `parser:"@@"`
	Index  []*indexNode `parser:"@@*"`
}

type primaryNode struct {
	node
	Reduce *reduceNode `parser:"  @@"`
	Number *string     `parser:"| @Number"`
	String *string     `parser:"| @String"`
	Name   *nameNode   `parser:"| @@"`
	Tuple  []*exprNode `parser:"| '(' @@ ( ',' @@ )* ')'"`
}

type nameNode struct {
	node
	Name *identNode `parser:"@@"`
	Call *callNode  `parser:"@@?"`
}

type callNode struct {
	node
	Args []*argNode `parser:"'(' ( @@ ( ',' @@ )* )? ')'"`
}

// argNode is a value or keyword=value; the keyword is parsed as an expression
// so that one token decides.
type argNode struct {
	node
	Value *exprNode `parser:"@@"`
	Named *exprNode `parser:"( '=' @@ )?"`
}

type reduceNode struct {
	node
	Op    string      `parser:"@Reduce"`
	Binds []*bindNode `parser:"'[' @@ ( ',' @@ )*"`
	Where *exprNode   `parser:"( 'where' @@"`
	Rank  *exprNode   `parser:"| 'at' @@ )? ']'"`
	Body  *exprNode   `parser:"@@"`
}

type indexNode struct {
	node
	Items []*itemNode `parser:"'[' ( @@ ( ',' @@ )* )? ']'"`
	Else  *unaryNode  `parser:"( 'else' @@ )?"`
}

type itemNode struct {
	node
	Leading bool       `parser:"  @'...'"`
	All     *sliceNode `parser:"| @@"`
	Start   *exprNode  `parser:"| @@"`
	Slice   *sliceNode `parser:"  @@?"`
}

type sliceNode struct {
	node
	Stop *exprNode `parser:"':' @@?"`
	Step *stepNode `parser:"@@?"`
}

type stepNode struct {
	node
	Value *exprNode `parser:"':' @@?"`
}

// grammar is what participle makes of the tags. It prints the syntax, and tests
// compare what it accepts with what the reader does; the reader itself is written
// by hand, as it is fifty times as fast and goes on after a mistake.
var grammar = sync.OnceValue(func() *participle.Parser[fileNode] {
	return participle.MustBuild[fileNode](
		participle.Lexer(language{DefaultLimits}),
		participle.Elide("Whitespace", "Comment"),
		participle.UseLookahead(0),
	)
})

// Grammar returns the syntax of .fuse in EBNF. Binary operators are listed flat;
// their precedence is in the language reference.
func Grammar() string { return strings.ReplaceAll(grammar().String(), "Node", "") }

// unexpected words a mistake of syntax: the token that is there, and what the grammar
// expects there; "" where a declaration is.
func unexpected(found lexer.Token, want string) string {
	if want == "" {
		want = "a declaration: import, const, fn or graph"
	}
	return "unexpected " + describe(found) + ", expected " + want
}

func describe(t lexer.Token) string {
	switch {
	case t.EOF():
		return "end of file"
	case t.Value == "\n":
		return "end of line"
	case t.Type == tokKeyword:
		return "keyword " + t.Value
	}
	return fmt.Sprintf("%q", t.Value)
}
