// Package bench holds the suites of `fusec bench`: programs in the .fuse language
// with comments that say at which sizes to run each graph, and what a peer computes
// instead. Users' programs may carry the same comments.
//
// The package reads comments and nothing else: it must not know the language's
// grammar, devices, or how anything is measured.
package bench

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
)

//go:embed suite/*.fuse
var suite embed.FS

// TorchPeer is the program, in Python, that runs a case in PyTorch. It speaks the
// protocol that it describes at its top.
//
//go:embed peers/torch_peer.py
var TorchPeer []byte

// A Program is a source with its cases.
type Program struct {
	Name  string // of the file, for positions
	Text  string
	Cases []Case // in the order of the graphs
}

// Suite returns the built-in programs, by name.
func Suite() ([]Program, error) {
	files, err := fs.Glob(suite, "suite/*.fuse")
	if err != nil {
		return nil, err
	}
	var out []Program
	for _, name := range files {
		text, err := suite.ReadFile(name)
		if err != nil {
			return nil, err
		}
		p, err := Parse(path.Join("bench", name), string(text))
		if err != nil {
			return nil, fmt.Errorf("the built-in suite: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}
