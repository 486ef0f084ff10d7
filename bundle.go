package fusec

import (
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/bundle"
	"github.com/fusec/fusec/runtime/cache"
)

// A Bundle is a signed file with graphs and their kernels, compiled: what an
// application ships so that it runs where there is neither NVRTC nor a cache. Its
// graphs also run on the CPU engine, unless it was made without their text. It is
// safe for concurrent use.
type Bundle struct {
	archive *bundle.Archive
	graphs  []string
	archs   map[string][]string // of each graph
}

// OpenBundle opens a file that fusec bundle, or WriteBundle, made and signed with
// one of the keys. It reads the file's index; graphs and kernels are read, and
// checked, when they are needed. Close it.
//
// A file that was changed, is cut short, is signed with another key
// (sign.ErrForeignKey, sign.ErrSignature) or was made for another version of fusec
// is refused.
func OpenBundle(path string, keys ...ed25519.PublicKey) (*Bundle, error) {
	archive, err := bundle.OpenFile(path, keys...)
	if err != nil {
		return nil, err
	}
	b, err := newBundle(archive)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// EmbeddedBundle is OpenBundle for a bundle in memory, as go:embed gives it. It keeps
// data, which must not change.
func EmbeddedBundle(data []byte, keys ...ed25519.PublicKey) (*Bundle, error) {
	archive, err := bundle.Open(data, keys...)
	if err != nil {
		return nil, err
	}
	return newBundle(archive)
}

func newBundle(archive *bundle.Archive) (*Bundle, error) {
	format, err := archive.Read(formatSection)
	if err == nil && string(format) != runtime.ProgramFormat() {
		err = fmt.Errorf("the bundle was made by another version of fusec (programs of form %s, expected %s): "+
			"make it again with this one", format, runtime.ProgramFormat())
	}
	if err != nil {
		return nil, errors.Join(err, archive.Close())
	}
	b := &Bundle{archive: archive, archs: map[string][]string{}}
	for _, name := range archive.Names() {
		kind, rest, _ := strings.Cut(name, "/")
		graph, arch, _ := strings.Cut(rest, "/")
		if kind == "program" {
			b.archs[graph] = append(b.archs[graph], arch)
			if !slices.Contains(b.graphs, graph) {
				b.graphs = append(b.graphs, graph)
			}
		}
	}
	return b, nil
}

// IsBundle reports whether a file begins like a bundle. It checks neither the content nor the
// signature, as OpenBundle does.
func IsBundle(path string) bool {
	f, _, err := regular.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	head := make([]byte, bundle.HeadSize)
	_, err = io.ReadFull(f, head)
	return err == nil && bundle.HasMagic(head)
}

// Graphs are the names of the bundle's graphs, sorted.
func (b *Bundle) Graphs() []string { return slices.Clone(b.graphs) }

// Archs are the architectures that a graph's kernels are compiled for, sorted.
func (b *Bundle) Archs(graph string) []string { return slices.Clone(b.archs[graph]) }

// Close closes the file. Functions need it open until Prepare, or their first run, has
// brought the kernels of their sizes to the device.
func (b *Bundle) Close() error {
	if b.archive == nil {
		return nil
	}
	return b.archive.Close()
}

// String names the graphs.
func (b *Bundle) String() string { return "a bundle of " + diag.Names(b.graphs) }

// Load readies a graph ("" for the only one) on a device. On a GPU the kernels are
// those compiled for its architecture, or for an earlier one of its generation;
// where there are none, the driver compiles the PTX of an older architecture.
// Nothing is compiled by NVRTC and no cache is used. On the CPU engine the graph is
// planned from its text.
func (b *Bundle) Load(ctx context.Context, dev *runtime.Device, graph string) (*runtime.Function, error) {
	graph, err := b.graph(graph)
	if err != nil {
		return nil, err
	}
	if dev.Kind() == runtime.CPU {
		src, opts, err := b.Source(graph)
		if err != nil {
			return nil, err
		}
		return Load(ctx, dev, src, opts)
	}
	end := dev.Trace().Step("bundle read", graph)
	program, kernels, err := b.compiled(graph, dev.Arch())
	end()
	if err != nil {
		return nil, err
	}
	return dev.LoadCompiled(ctx, program, kernels)
}

func (b *Bundle) graph(name string) (string, error) {
	switch {
	case name == "" && len(b.graphs) == 1:
		return b.graphs[0], nil
	case slices.Contains(b.graphs, name):
		return name, nil
	}
	if name == "" {
		return "", misuse{fmt.Errorf("the bundle holds %d graphs: name one of %s", len(b.graphs), diag.Names(b.graphs)), ErrNoGraph}
	}
	return "", misuse{fmt.Errorf("the bundle has no graph %s%s", name, diag.Choices(name, b.graphs)), ErrNoGraph}
}

// Source is the text of a graph ("" for the only one) and the options it was
// compiled with.
func (b *Bundle) Source(graph string) (src Source, opts Options, err error) {
	if graph, err = b.graph(graph); err != nil {
		return src, opts, err
	}
	if !b.archive.Has(sourceSection(graph)) {
		return src, opts, fmt.Errorf("graph %s: the bundle was made without the text, which the CPU engine "+
			"and checks need", graph)
	}
	data, err := b.archive.Read(sourceSection(graph))
	if err != nil {
		return src, opts, err
	}
	var s bundledSource
	if err := json.Unmarshal(data, &s); err != nil {
		return src, opts, fmt.Errorf("graph %s: malformed source in the bundle: %w", graph, err)
	}
	read := func(name string) ([]byte, error) {
		if text, ok := s.Imports[name]; ok {
			return text, nil
		}
		return nil, fmt.Errorf("the bundle holds no %s", name)
	}
	return Source{Name: s.Name, Text: s.Text, ReadFile: read}, s.Options, nil
}

// compiled is the program of a graph for a chip, and where its kernels are.
func (b *Bundle) compiled(graph, chip string) (*ir.Program, *bundledKernels, error) {
	arch, jit, ok := nearestArch(b.archs[graph], chip)
	if !ok {
		return nil, nil, fmt.Errorf("graph %s: the bundle holds code for %s, which does not run on %s: "+
			"make it with --arch %s", graph, strings.Join(b.archs[graph], ", "), chip, chip)
	}
	data, err := b.archive.Read(programName(graph, arch))
	if err != nil {
		return nil, nil, err
	}
	program, err := runtime.DecodeProgram(data)
	return program, &bundledKernels{b.archive, graph, arch, jit}, err
}

// bundledKernels gives the kernels of one graph, compiled for arch.
type bundledKernels struct {
	archive     *bundle.Archive
	graph, arch string
	jit         bool // the chip is a newer one: the driver compiles the PTX
}

// Compile implements runtime.KernelSource. It unpacks PTX only if the driver has to compile it.
func (s *bundledKernels) Compile(
	_ context.Context, p *ir.Program, unit int, chip string,
) (runtime.Kernel, error) {
	k := runtime.Kernel{Entry: p.Units[unit].Entry, Arch: chip, Outcome: cache.Shipped}
	facts, err := s.archive.Read(unitName("facts", s.graph, s.arch, unit))
	if errors.Is(err, bundle.ErrMissing) {
		return k, fmt.Errorf("kernel %s: the bundle was made for some sizes only, and these need another variant: "+
			"make it with these sizes, or with none for all", k.Entry)
	}
	if err == nil {
		err = json.Unmarshal(facts, &k.KernelFacts)
	}
	if err == nil && s.jit {
		k.PTX, err = s.ptx(unit)
	} else if err == nil {
		k.Cubin, err = s.archive.Read(unitName("cubin", s.graph, s.arch, unit))
	}
	if err != nil {
		return k, fmt.Errorf("kernel %s: %w", k.Entry, err)
	}
	return k, nil
}

func (s *bundledKernels) ptx(unit int) ([]byte, error) {
	data, err := s.archive.Read(unitName("ptx", s.graph, s.arch, unit))
	if err != nil {
		return nil, err
	}
	return inflate(data)
}

var archParts = regexp.MustCompile(`^sm_([1-9][0-9]*)([0-9])([af]?)$`)

// chipArch is an architecture taken apart: sm_90a is 9, 0, "a".
type chipArch struct {
	major, minor int
	letter       string
}

func parseArch(name string) (a chipArch, ok bool) {
	m := archParts.FindStringSubmatch(name)
	if m == nil {
		return a, false
	}
	a.major, _ = strconv.Atoi(m[1])
	a.minor, _ = strconv.Atoi(m[2])
	a.letter = m[3]
	return a, true
}

func (a chipArch) number() int { return 10*a.major + a.minor }

// nearestArch chooses the compiled architecture whose code a chip runs: the chip's own; else the
// newest earlier one of its generation, whose binaries also run on the chip; else the newest older
// one, whose PTX the driver compiles (jit). Code for an architecture with a letter, such as sm_90a,
// runs on that architecture alone.
func nearestArch(compiled []string, chip string) (arch string, jit, ok bool) {
	if slices.Contains(compiled, chip) {
		return chip, false, true
	}
	target, known := parseArch(chip)
	best := -1
	for _, name := range compiled {
		a, valid := parseArch(name)
		if known && valid && a.letter == "" && a.number() <= target.number() && a.number() > best {
			best, arch, jit = a.number(), name, a.major != target.major
		}
	}
	return arch, jit, best >= 0
}
