package fusec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
)

// Options say what to compile and how. They are comparable and part of the key
// under which plans are cached; the zero value is right for a source with one
// graph.
type Options struct {
	Graph    string   // which graph of the source; "" for the only one
	Arch     string   // plan for this GPU, by architecture (sm_80) or name (A100); "" for an H200
	Numerics Numerics // AsWritten: what the source says
	// Specialize bakes sizes into the kernels: "N=8192,M=4096". The kernels then take
	// no others.
	Specialize string
	// LineInfo keeps in the kernels which lines of the source they are from, for Nsight Compute
	// and debuggers. The code is the same.
	LineInfo bool
}

// Numerics overrides what a source says about rounding.
type Numerics uint8

// The choices of Numerics.
const (
	AsWritten Numerics = iota // @strict or @fast, and fast where neither stands
	Fast                      // intermediates inside a kernel keep their full precision
	Strict                    // each operation rounds to its type
)

func (n Numerics) apply(g *ir.Graph) {
	switch n {
	case Fast:
		g.Numerics = ir.Fast
	case Strict:
		g.Numerics = ir.Strict
	}
}

var archName = regexp.MustCompile(`^sm_[1-9][0-9]{1,2}[af]?$`)

// device returns the figures to plan with. An architecture without figures gets those of the default
// device: such a plan is right on every GPU, but may not be the fastest.
func (o Options) device() (ir.Device, error) {
	if o.Arch == "" {
		return ir.Devices()[0], nil
	}
	d, err := ir.DeviceNamed(o.Arch)
	if err != nil && archName.MatchString(o.Arch) {
		d = ir.Devices()[0]
		d.Name, d.Arch = o.Arch, o.Arch
		return d, nil
	}
	if err != nil {
		return d, fmt.Errorf("%w: expected an architecture like sm_90a, or one of %s", err, deviceNames())
	}
	return d, nil
}

func deviceNames() string {
	var names []string
	for _, d := range ir.Devices() {
		names = append(names, d.Name)
	}
	return strings.Join(names, ", ")
}

// sizes reads Specialize.
func (o Options) sizes(g *ir.Graph) (map[string]int64, error) {
	if o.Specialize == "" {
		return nil, nil
	}
	out := map[string]int64{}
	for part := range strings.SplitSeq(o.Specialize, ",") {
		name, text, _ := strings.Cut(strings.TrimSpace(part), "=")
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil || v < 0 {
			return nil, fmt.Errorf("cannot specialize %q: expected a size like N=8192", part)
		}
		if g.Symbol(name) == nil {
			return nil, fmt.Errorf("cannot specialize %s: graph %s has no such size", name, g.Name)
		}
		out[name] = v
	}
	return out, nil
}

// Request is the key under which a cache keeps the program of a source for a device.
func (o Options) Request(src Source, device ir.Device, store *cache.Cache) runtime.Request {
	return o.request(src, device, choicesFor(store, device))
}

func (o Options) request(src Source, device ir.Device, measured choices) runtime.Request {
	return runtime.Request{Name: src.Name, Source: src.Text, Graph: o.Graph, Options: o, Device: device,
		Choices: measured.id}
}

// A Source is a .fuse text.
type Source struct {
	Name string // of the file, for positions and to resolve imports
	Text []byte
	// ReadFile gives the text of an imported file, whose name is the import's path
	// joined to the folder of the importing file. With nil, imports are errors. It decides
	// which files may be read: ImportsFrom reads those below given folders.
	ReadFile func(name string) ([]byte, error)
}

// recording notes the texts of imports in read.
func (s Source) recording(read map[string][]byte) Source {
	inner := s.ReadFile
	if inner == nil {
		return s
	}
	s.ReadFile = func(name string) ([]byte, error) {
		text, err := inner(name)
		if err == nil {
			read[name] = text
		}
		return text, err
	}
	return s
}
