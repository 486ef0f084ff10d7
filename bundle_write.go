package fusec

import (
	"bytes"
	"compress/flate"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	goruntime "runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/bundle"
)

// A BundleGraph is a graph to put into a bundle. Options.Arch is ignored.
type BundleGraph struct {
	Source  Source
	Options Options
}

// BundleOptions say what to put into a bundle.
type BundleOptions struct {
	// Archs are the architectures to compile for; without any, sm_90a. The code for an architecture
	// without a letter also runs on later ones of its generation, and its PTX on all newer chips.
	Archs []string
	// Sizes, if there are any, are those that the bundle is for: only kernels that run at these sizes
	// are compiled. A size that is not named has its value in @bench.
	Sizes map[string]int64
	// NoSource leaves out the programs' text. Such a bundle does not run on the CPU
	// engine.
	NoSource bool
	Key      ed25519.PrivateKey      // to sign with
	Progress func(done, kernels int) // told of each kernel, by one goroutine at a time; may be nil
}

// WriteBundle compiles graphs and writes them as one signed file, which OpenBundle
// opens. No GPU is needed. The same graphs, options, key and compiler give the same
// bytes. Two graphs with one name are an error.
func WriteBundle(
	ctx context.Context, w io.Writer, c *runtime.Compiler, graphs []BundleGraph, o BundleOptions,
) error {
	if len(o.Key) != ed25519.PrivateKeySize {
		return errors.New("a bundle must be signed: give BundleOptions.Key, which fusec key makes")
	}
	if len(o.Archs) == 0 {
		o.Archs = []string{ir.Devices()[0].Arch}
	}
	b := &bundler{compiler: c, options: o}
	b.add(formatSection, []byte(runtime.ProgramFormat()))
	var names []string
	for _, g := range graphs {
		name, err := b.graph(g)
		if err != nil {
			return err
		}
		if slices.Contains(names, name) {
			return fmt.Errorf("two graphs of the bundle are called %s: rename one, or make two bundles", name)
		}
		names = append(names, name)
	}
	if err := b.compile(ctx); err != nil {
		return err
	}
	return bundle.Write(w, b.sections, o.Key)
}

// The names of a bundle's sections: a graph has one source, and for each
// architecture a program and the code of its units.
const formatSection = "format"

func sourceSection(graph string) string     { return "source/" + graph }
func programName(graph, arch string) string { return "program/" + graph + "/" + arch }
func unitName(kind, graph, arch string, unit int) string {
	return fmt.Sprintf("%s/%s/%s/%d", kind, graph, arch, unit)
}

// bundledSource is what the CPU engine needs of a graph.
type bundledSource struct {
	Name    string
	Text    []byte
	Imports map[string][]byte // by the names they are read by
	Options Options
}

// bundler collects the sections of a bundle.
type bundler struct {
	compiler *runtime.Compiler
	options  BundleOptions
	units    []bundleUnit

	mu       sync.Mutex
	sections []bundle.Section
	done     int
}

// bundleUnit is a unit to compile.
type bundleUnit struct {
	program     *ir.Program
	graph, arch string
	unit        int
}

func (b *bundler) add(name string, data []byte) {
	b.sections = append(b.sections, bundle.Section{Name: name, Data: data})
}

// graph plans a graph for every architecture and notes the units to compile.
func (b *bundler) graph(g BundleGraph) (name string, err error) {
	imports := map[string][]byte{}
	source := g.Source.recording(imports)
	for _, arch := range b.options.Archs {
		g.Options.Arch = arch
		device, err := g.Options.device()
		if err != nil {
			return "", err
		}
		program, err := spell(source, g.Options, device, choicesFor(b.compiler.Cache(), device))
		if err != nil {
			return "", err
		}
		units, err := b.chosen(program)
		if err != nil {
			return "", err
		}
		name = program.Name
		for _, u := range units {
			b.units = append(b.units, bundleUnit{program, name, arch, u})
		}
		b.add(programName(name, arch), runtime.EncodeProgram(withoutText(program)))
	}
	if b.options.NoSource {
		return name, nil
	}
	g.Options.Graph, g.Options.Arch = name, ""
	text, err := json.Marshal(bundledSource{g.Source.Name, g.Source.Text, imports, g.Options})
	b.add(sourceSection(name), text)
	return name, err
}

// withoutText is a program without the CUDA text, which nothing compiles again.
func withoutText(p *ir.Program) *ir.Program {
	out := *p
	out.Sources = make([]string, len(p.Sources))
	return &out
}

// chosen lists the units that BundleOptions.Sizes choose; all without sizes.
func (b *bundler) chosen(p *ir.Program) ([]int, error) {
	var out []int
	if len(b.options.Sizes) == 0 {
		for u := range p.Units {
			out = append(out, u)
		}
		return out, nil
	}
	symbols := make([]int64, len(p.Symbols))
	for i, name := range p.Symbols {
		v, given := b.options.Sizes[name]
		if !given && i < len(p.Defaults) {
			v, given = p.Defaults[i], p.Defaults[i] > 0
		}
		if !given {
			return nil, fmt.Errorf("graph %s: no size for %s: give one, or none at all for every kernel", p.Name, name)
		}
		symbols[i] = v
	}
	for i := range p.Launches {
		if v := p.Launches[i].Choose(symbols); v != nil && !slices.Contains(out, v.Unit) {
			out = append(out, v.Unit)
		}
	}
	return out, nil
}

// compile compiles all units on all cores; the first failure ends it.
func (b *bundler) compile(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(goruntime.GOMAXPROCS(0))
	for _, u := range b.units {
		group.Go(func() error {
			k, err := b.compiler.Compile(ctx, u.program, u.unit, u.arch)
			if err != nil {
				return err
			}
			return b.kernel(u, k)
		})
	}
	return group.Wait()
}

func (b *bundler) kernel(u bundleUnit, k runtime.Kernel) error {
	k.KernelFacts.Log = "" // warnings concern those who build the bundle, not those who load it
	facts, err := json.Marshal(k.KernelFacts)
	if err != nil {
		return err
	}
	ptx, err := deflate(k.PTX)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.add(unitName("cubin", u.graph, u.arch, u.unit), k.Cubin)
	b.add(unitName("ptx", u.graph, u.arch, u.unit), ptx)
	b.add(unitName("facts", u.graph, u.arch, u.unit), facts)
	if b.done++; b.options.Progress != nil {
		b.options.Progress(b.done, len(b.units))
	}
	return nil
}

func deflate(data []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := flate.NewWriter(&out, flate.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(data)
	err = errors.Join(err, w.Close())
	return out.Bytes(), err
}

// inflate undoes deflate; limit bounds the memory that damaged data can take.
func inflate(data []byte) ([]byte, error) {
	const limit = 1 << 28
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(data)), limit))
	if err == nil && len(out) == limit {
		err = errors.New("it is too large")
	}
	return out, err
}
