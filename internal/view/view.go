// Package view makes a page of what a plan does: one HTML file that needs nothing else,
// with the graph before and after fusion, each kernel with all that is known of it, and
// a roofline. Everything is laid out here; the page draws and answers the user.
package view

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"strings"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
)

//go:embed page.html
var pageHTML string

//go:embed page.css
var pageCSS string

//go:embed page.js
var pageJS string

//go:embed draw.js
var drawJS string

//go:embed panel.js
var panelJS string

//go:embed timeline.js
var timelineJS string

// SomeSize is the first value on a page of a symbol without a size.
const SomeSize = 1024

// Graph is a graph with all that was decided about it.
type Graph struct {
	Graph   *ir.Graph // as written
	Plan    *ir.Plan
	Program *ir.Program // nil where there is no CUDA text
	Explain explain.Explanation
	Profile *Profile // what was measured of it; nil for nothing
	// Compiled is what the compiler made of units of Program, as far as any were compiled.
	Compiled map[int]Compiled
}

// Compiled is a unit after the compiler.
type Compiled struct {
	Registers int // of a thread
	Spills    int // bytes
	PTX       string
	SASS      string // "" where no tool for it was there
}

// Input is the data of a page.
type Input struct {
	Title  string
	Device ir.Device
	Graphs []Graph
	Source func(filename string) (text string, ok bool) // of files that positions name
	CPU    bool                                         // the plan is for the CPU engine: no CUDA text belongs to it
	Live   bool                                         // the page asks its server for newer ones
}

// Write writes the page.
func Write(w io.Writer, in Input) error {
	p := &page{in: in, exprs: map[string]int{}, files: map[string]int{}, sources: map[string]int{}}
	p.build()
	return p.write(w)
}

func (p *page) write(w io.Writer) error {
	data, err := json.Marshal(&p.out)
	if err != nil {
		return fmt.Errorf("writing the page: %w", err)
	}
	text := strings.NewReplacer(
		"{{title}}", html.EscapeString(p.in.Title),
		"{{css}}", pageCSS,
		"{{script}}", drawJS+timelineJS+panelJS+pageJS,
	).Replace(pageHTML)
	before, after, _ := strings.Cut(text, "{{data}}")
	for _, part := range []string{before, string(data), after} { // Marshal escapes <, so that no text ends the element
		if _, err := io.WriteString(w, part); err != nil {
			return err
		}
	}
	return nil
}

// The types below are the page's data. Their names are short where there are many.

type pageData struct {
	Title   string      `json:"title"`
	Live    bool        `json:"live,omitempty"`
	CPU     bool        `json:"cpu,omitempty"`
	Device  deviceData  `json:"device"`
	Files   []fileData  `json:"files"`
	Exprs   [][]any     `json:"exprs"` // sizes, in postfix form: numbers, names of symbols behind $, and operations
	Sources []string    `json:"sources"`
	Graphs  []graphData `json:"graphs"`
}

type deviceData struct {
	Name      string  `json:"name"`
	Bandwidth float64 `json:"bandwidth"`
	F32       float64 `json:"f32"`
	Tensor    float64 `json:"tensor"`
	Special   float64 `json:"special"`
	Launch    float64 `json:"launch"`
	Half      float64 `json:"half"`
	Shared    int     `json:"shared"`
	Threads   int     `json:"threads"` // of a multiprocessor
	Blocks    int     `json:"blocks"`
}

type fileData struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

type graphData struct {
	Name    string        `json:"name"`
	Symbols []symbolData  `json:"symbols"`
	Before  drawing       `json:"before"`
	After   drawing       `json:"after"`
	Kernels []kernelData  `json:"kernels"`
	Refused []refusalData `json:"refused"`
	Unfused totalData     `json:"unfused"`
	Profile *Profile      `json:"profile,omitempty"`
	Line    int           `json:"line"`
	File    int           `json:"file"`
}

type totalData struct {
	Kernels int      `json:"kernels"`
	Read    *int64   `json:"read"`
	Written *int64   `json:"written"`
	Seconds *float64 `json:"seconds"`
}

type symbolData struct {
	Name    string `json:"name"`
	Default int64  `json:"default"`
}

// drawing is a graph that is laid out.
type drawing struct {
	W     float64    `json:"w"`
	H     float64    `json:"h"`
	Nodes []nodeData `json:"nodes"` // from top to bottom
	Edges []edgeData `json:"edges"`
	Boxes []boxData  `json:"boxes"` // of kernels
}

type nodeData struct {
	Name  string  `json:"n"`
	Kind  string  `json:"k"` // input, point, reduce, product
	Type  string  `json:"t"` // f32[N, M]
	What  string  `json:"o"` // operations
	X     float64 `json:"x"`
	Y     float64 `json:"y"`
	W     float64 `json:"w"`
	Bytes int     `json:"b"` // in exprs
	Line  int     `json:"l,omitempty"`
	File  int     `json:"f,omitempty"`
	In    []int   `json:"in,omitempty"` // kernels
	Out   bool    `json:"out,omitempty"`
}

// edgeData is a tensor that is read.
type edgeData struct {
	From  int       `json:"a"`           // node
	To    int       `json:"b"`           // node; -1 where the edge leads to all of a kernel
	In    int       `json:"k"`           // the kernel that it leads to or is inside of; -1 for none
	Inner bool      `json:"i,omitempty"` // inside of a kernel: the tensor is not in memory
	Way   []float64 `json:"p"`           // its points: x and y in turns
}

type boxData struct {
	Kernel int     `json:"k"`
	X      float64 `json:"x"`
	Y      float64 `json:"y"`
	W      float64 `json:"w"`
	H      float64 `json:"h"`
}

type kernelData struct {
	Name     string         `json:"name"`
	Template string         `json:"template"`
	Space    string         `json:"space"`
	After    string         `json:"after,omitempty"` // the kernel whose last blocks run it
	Ops      []opData       `json:"ops"`
	Reads    []transferData `json:"reads"`
	Writes   []transferData `json:"writes"`
	Work     []workData     `json:"work"`
	Rate     float64        `json:"rate"`
	Plan     string         `json:"plan"`
	Classes  []classData    `json:"classes"`
	Slower   string         `json:"slower,omitempty"`
	Refused  []int          `json:"refused"`
}

type opData struct {
	Name  string `json:"n"`
	Count int    `json:"c"`
	Call  string `json:"call,omitempty"`
	File  int    `json:"f"`
	Line  int    `json:"l"`
	From  int    `json:"a"` // columns of the line, in characters from 0
	To    int    `json:"z"`
}

type transferData struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Kind  string `json:"kind"`
	Size  string `json:"size"`
	Bytes int    `json:"bytes"` // in exprs
}

type workData struct {
	Points   int     `json:"p"`
	Flops    float64 `json:"f"`
	Special  float64 `json:"s"`
	Products float64 `json:"m"`
}

type classData struct {
	When     int      `json:"when"` // in exprs; -1 for always
	Terms    []string `json:"terms"`
	Strategy string   `json:"strategy"`
	Doc      string   `json:"doc"`
	Schedule []string `json:"schedule"`
	Threads  int      `json:"threads"`
	Shared   int      `json:"shared"`
	Defines  string   `json:"defines"`
	Source   int      `json:"source"` // in sources; -1 for none
	Prelude  int      `json:"prelude"`

	Registers int `json:"registers,omitempty"` // 0 where it was not compiled
	Spills    int `json:"spills,omitempty"`
	PTX       int `json:"ptx,omitempty"` // in sources, from 1; 0 for none
	SASS      int `json:"sass,omitempty"`
}

type refusalData struct {
	Producer string `json:"producer"`
	Consumer string `json:"consumer"`
	Reason   string `json:"reason"`
	Detail   string `json:"detail"`
	File     int    `json:"f"`
	Line     int    `json:"l"`
	Saved    int    `json:"saved"` // in exprs; -1 where it is not known
}
