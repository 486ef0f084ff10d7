package parser

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir"
)

// What other languages write behind a dot, and how it is said here.

// foreignMembers are names that other languages write after a dot.
var foreignMembers = map[string]string{
	"T": "transpose(%s)", "mT": "transpose(%s)", "shape": theSizes, "size": theSizes, "dim": theSizes, "ndim": theSizes, "numel": "the product of its sizes, as N * M",
	"dtype": "the dtype of its declaration", "float": "f32(%s)", "half": "f16(%s)", "bfloat16": "bf16(%s)",
	"double": "f64(%s)", "int": "i32(%s)", "long": "i64(%s)", "bool": "bool(%s)", "to": "f32(%s), or another dtype",
	"type": "f32(%s), or another dtype", "astype": "f32(%s), or another dtype", "item": "%s",
	"view": "reshape(%s, ...)", "contiguous": "%s", "cuda": "%s", "cpu": "%s", "numpy": "%s", "requires_grad_": "%s", "grad": "graph f_grad = grad(f)", "backward": "graph f_grad = grad(f)",
	"detach": "%s", "clone": "%s",
}

// foreignModules are names of modules that functions belong to in other languages.
var foreignModules = []string{"np", "numpy", "torch", "jnp", "jax", "tl", "tf", "F", "nn", "math"}

// foreignMember words a dot between names.
func foreignMember(before []lexer.Token, after string) string {
	if len(before) == 0 {
		return ""
	}
	last := before[len(before)-1]
	name := after[:prefixLen(after, func(c byte) bool { return isLetter(c) || isDigit(c) })]
	if name == "" || !endsStatement(last) {
		return ""
	}
	if last.Type == tokIdent && slices.Contains(foreignModules, last.Value) {
		chain := after[:prefixLen(after, func(c byte) bool { return isLetter(c) || isDigit(c) || c == '.' })]
		return ofModule(chain[strings.LastIndexByte(chain, '.')+1:], strings.HasPrefix(after[len(chain):], "("))
	}
	of := last.Value
	if last.Type != tokIdent {
		of = "..."
	}
	form, known := foreignMembers[name]
	if dtype := castTo(name, after[len(name):]); dtype != "" {
		form = dtype + "(%s)"
	}
	switch {
	case known:
	case foreignFunctions[name] != "":
		form = foreignFunctions[name]
	case !isFunction(name):
		return "values have no members"
	case strings.HasPrefix(after[len(name):], "()"):
		form = name + "(%s)"
	default:
		form = name + "(%s, ...)"
	}
	return "values have no members: write " + strings.ReplaceAll(form, "%s", of)
}

// ofModule words a name behind that of a module, called or not.
func ofModule(name string, called bool) string {
	const no = "there are no modules of functions"
	_, isValue := predefined[name]
	_, isType := ir.DTypeNamed(name)
	switch {
	case foreignNames[name] != "":
		return no + ": write " + foreignNames[name]
	case isValue || isType && !called:
		return no + ": write " + name
	case foreignFunctions[name] != "":
		return no + ": write " + foreignFunctions[name]
	case isFunction(name):
		return no + ": write " + name + "(...)"
	}
	return no + ", and there is no " + name
}

// isFunction reports whether a name is that of an operation, a reduction, or a function that is built in or of the library.
func isFunction(name string) bool {
	if reserved(name) {
		return true
	}
	return libraryNames()[name]
}

var libraryFunction = regexp.MustCompile(`(?m)^fn (\w+)`)

// libraryNames are the functions of the library, by its texts alone: they may be asked for while it is read.
var libraryNames = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	files, _ := fs.Glob(stdFiles, "std/*.fuse")
	for _, name := range files {
		text, _ := stdFiles.ReadFile(name)
		for _, m := range libraryFunction.FindAllSubmatch(text, -1) {
			out[string(m[1])] = true
		}
	}
	return out
})

// castTo is the dtype that a member converts to, as in x.astype(np.float32); "" where it is none or not known.
func castTo(name, after string) string {
	if name != "astype" && name != "type" && name != "to" || !strings.HasPrefix(after, "(") {
		return ""
	}
	arg, _, closed := strings.Cut(after[1:], ")")
	arg = strings.Trim(arg[strings.LastIndexByte(arg, '.')+1:], ` "'`)
	if here, ok := foreignNames[arg]; ok {
		arg = here
	}
	if _, known := ir.DTypeNamed(arg); !closed || !known {
		return ""
	}
	return arg
}
