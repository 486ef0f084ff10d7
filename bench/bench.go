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
)

//go:embed suite/*.fuse
var suite embed.FS

// TorchPeer is the program, in Python, that runs a case in PyTorch. It speaks the
// protocol that it describes at its top.
//
//go:embed peers/torch_peer.py
var TorchPeer []byte

// Start is the program that `fusec start` measures the start of a process with.
//
//go:embed start.fuse
var Start []byte

// TorchStart is the same, in Python, for PyTorch.
//
//go:embed peers/torch_start.py
var TorchStart []byte

// A Program is a source with its cases.
type Program struct {
	Name  string // of the file, for positions
	Text  string
	Cases []Case // in the order of the graphs
}

// suiteOrder is the order in which the suites run: simple graphs first.
var suiteOrder = [...]string{"pointwise", "softmax", "norms", "reductions", "scan", "sort", "backward", "layout"}

// Suite returns the built-in programs, simple ones first.
func Suite() ([]Program, error) {
	var out []Program
	for _, name := range suiteOrder {
		file := "suite/" + name + ".fuse"
		text, err := suite.ReadFile(file)
		if err != nil {
			return nil, err
		}
		p, err := Parse("bench/"+file, string(text))
		if err != nil {
			return nil, fmt.Errorf("the built-in suite: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}
