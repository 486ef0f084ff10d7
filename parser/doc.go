// Package parser turns .fuse text into ir.Graph, and lays .fuse text out.
//
// The steps are: bytes to tokens (lexer.go), tokens to a syntax tree
// (grammar.go, in the tags of participle; parse.go reads it), files to modules with their imports (source.go),
// and a syntax tree to graphs (the other files). The last step expands library and user
// functions, broadcasts, shape operations and static control flow, so that what
// it hands on is index functions alone.
//
// The package knows nothing of devices, kernels or fusion, opens no files, and
// keeps no state between calls; everything it exports is safe for concurrent
// use. Mistakes in a program are returned as diag.List, never as panics.
package parser
