// Package bench holds the suites of `fusec bench`: programs in the .fuse language
// with comments that say at which sizes to run each graph, and what a peer computes
// instead. Users' programs may carry the same comments.
//
// The package reads comments, and where graphs begin, from the words of a text: it must not know more of the
// language's grammar, devices, or how anything is measured.
package bench

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed suite/*.fuse *.fuse
var files embed.FS

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

// Operators is the suite that is run where none is named: single operators, at the memory's limit.
const Operators = "operators"

// suites are the built-in programs by the name of their suite, simple graphs first.
var suites = []struct {
	name  string
	files []string
}{
	{Operators, []string{"suite/pointwise", "suite/softmax", "suite/norms", "suite/reductions", "suite/scan", "suite/sort",
		"suite/backward", "suite/layout"}},
	{"products", []string{"products"}},
	{"attention", []string{"attention"}},
	{"convolutions", []string{"convolutions"}},
	{"seeds", []string{"seeds"}},
}

// Suites lists the names of the built-in suites, Operators first.
func Suites() []string {
	var out []string
	for _, s := range suites {
		out = append(out, s.name)
	}
	return out
}

// Suite returns the programs of a built-in suite, simple ones first. A suite that is not there is an error.
func Suite(name string) ([]Program, error) {
	for _, s := range suites {
		if s.name == name {
			return parseAll(s.files)
		}
	}
	return nil, fmt.Errorf("there is no suite %s: there are %s", name, strings.Join(Suites(), ", "))
}

func parseAll(names []string) ([]Program, error) {
	var out []Program
	for _, name := range names {
		text, err := files.ReadFile(name + ".fuse")
		if err != nil {
			return nil, err
		}
		p, err := Parse("bench/"+name+".fuse", string(text))
		if err != nil {
			return nil, fmt.Errorf("the built-in suite: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}
