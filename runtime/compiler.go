package runtime

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/cuda"
)

// A Compiler turns the units of programs into machine code, through the cache.
// It needs no GPU, and opens NVRTC only for what the cache does not have. It is
// safe for concurrent use.
type Compiler struct {
	store *cache.Cache
	find  cuda.FindOptions
	save  string
	trace *Trace
	never bool // compile

	identity func() (string, error)
	nvrtc    func() (*cuda.NVRTC, error)
	remember func() // stores which NVRTC made the kernels
}

// NewCompiler returns a compiler with the Cache, NVRTC, Trace, SaveSource and
// NoCompile of opts.
func NewCompiler(opts Options) *Compiler {
	c := &Compiler{store: opts.cache(), find: opts.NVRTC, save: opts.SaveSource, trace: opts.Trace,
		never: opts.NoCompile || forbidden(os.Getenv(NoCompileEnv))}
	c.identity = sync.OnceValues(c.identify)
	c.nvrtc = sync.OnceValues(c.openOnce)
	c.remember = sync.OnceFunc(c.rememberOnce)
	return c
}

// identify names the NVRTC of this machine, without opening it. A machine without NVRTC may
// still have kernels in its cache; then it is the NVRTC that made those.
func (c *Compiler) identify() (string, error) {
	defer c.trace.Step("nvrtc locate", "")()
	at, err := cuda.Locate(c.find)
	if err == nil {
		return at.Identity(), nil
	}
	if entry, outcome := c.store.Get(makerKey()); outcome.IsHit() {
		return string(entry.Section(cache.Meta)), nil
	}
	return "", err
}

// Cache is where the compiler keeps what it has compiled.
func (c *Compiler) Cache() *cache.Cache { return c.store }

// makerKey is the key of the entry that names the NVRTC which made the latest kernels.
func makerKey() cache.Key { return cache.NewKey(cache.Compiler).Sum() }

func (c *Compiler) rememberOnce() {
	identity, err := c.identity()
	if err != nil {
		return
	}
	entry, outcome := c.store.Get(makerKey())
	if !outcome.IsHit() || string(entry.Section(cache.Meta)) != identity {
		c.store.Put(makerKey(), cache.Entry{Sections: []cache.Section{{Name: cache.Meta, Data: []byte(identity)}}})
	}
}

func (c *Compiler) openOnce() (*cuda.NVRTC, error) {
	defer c.trace.Step("nvrtc open", "")()
	return cuda.FindNVRTC(c.find)
}

// A KernelSource gives the code of a program's units: a Compiler, or a file that
// holds them compiled. It must be safe for concurrent use.
type KernelSource interface {
	// Compile returns the code of a unit for an architecture (sm_90a). A Kernel
	// without a cubin has PTX that the driver can compile for it.
	Compile(ctx context.Context, p *ir.Program, unit int, arch string) (Kernel, error)
}

// A Kernel is a compiled unit.
type Kernel struct {
	Entry string // name of the __global__ function
	Arch  string // sm_90a
	Cubin []byte // code for Arch
	PTX   []byte
	// Options are the options that were asked for; those that a version of NVRTC does not have
	// were left out.
	Options []string
	KernelFacts
	Outcome cache.Outcome // where it came from
	Took    time.Duration // to get the code: read or compile
	// CompileTook is the time that the compiler took when it made the code, in this process or
	// an earlier one; 0 if that is not known. It is not one of the facts, because those are the
	// same every time.
	CompileTook time.Duration
}

// kernelMeta is stored beside the code.
type kernelMeta struct {
	KernelFacts
	CompileTook time.Duration `json:",omitempty"`
}

// KernelFacts is what the compiler said about a unit. It is stored beside the code.
type KernelFacts struct {
	Log       string // warnings, and the assembler's advice about speed; "" for none
	Registers int    // of 32 bits, in a thread
	Stack     int    // bytes of local memory in a thread
	Spills    int    // bytes stored to local memory for want of registers
	Again     int    // how often it was compiled again, so as to spill less
	Compiler  string // "NVRTC 12.4"
}

// A CompileError is generated code that NVRTC refused: a mistake of fusec, not of
// its user.
type CompileError struct {
	Kernel string
	Source string // path of the saved source; "" where Options.SaveSource is not set
	Err    error  // with the compiler's log
}

// Error says which kernel failed and how to look at it.
func (e *CompileError) Error() string {
	where := "set Options.SaveSource to keep the source"
	if e.Source != "" {
		where = "the source is in " + e.Source
	}
	return fmt.Sprintf("BUG: the CUDA text of kernel %s does not compile (%s): %v", e.Kernel, where, e.Err)
}

// Unwrap gives the compiler's error.
func (e *CompileError) Unwrap() error { return e.Err }

// compileOptions are the exact options with which a unit is compiled, before those that the
// NVRTC does not have are left out. Which ones it has follows from its identity, which is in
// the key.
func compileOptions(u ir.Unit, arch string) []string {
	// NVRTC's own disk cache loses the log, which has a kernel's registers and spills.
	options := []string{"--gpu-architecture=" + arch, "--std=c++17", "--minimal", "--no-cache",
		"--ptxas-options=-v", "--ptxas-options=--warn-on-local-memory-usage", "--ptxas-options=--warn-on-spills"}
	if u.Strict {
		options = append(options, "--fmad=false")
	}
	if u.LineInfo {
		options = append(options, "--generate-line-info")
	}
	return options
}

// factsVersion is the version of KernelFacts and of the checks of code: an entry of an older version lacks
// facts that are kept now, or may be wrong.
const factsVersion = 3

// Key is the key of a unit's code and facts, made of everything that they depend on. identity
// is that of NVRTC (cuda.Location.Identity).
func Key(p *ir.Program, unit int, arch, identity string) cache.Key {
	u := p.Units[unit]
	key := cache.NewKey(cache.Kernel).String("entry", u.Entry).String("defines", u.Defines).
		String("source", p.Sources[u.Source])
	for _, option := range compileOptions(u, arch) {
		key.String("option", option)
	}
	return key.String("arch", arch).String("nvrtc", identity).Int("facts", factsVersion).Sum()
}

// Key is the key that Compile would look for. It fails if there is no NVRTC, now or when the
// cache was filled.
func (c *Compiler) Key(p *ir.Program, unit int, arch string) (cache.Key, error) {
	identity, err := c.identity()
	return Key(p, unit, arch, identity), err
}

// Compile returns the code of a unit for an architecture (sm_90a).
func (c *Compiler) Compile(ctx context.Context, p *ir.Program, unit int, arch string) (Kernel, error) {
	return c.get(ctx, p, unit, arch, false)
}

// get is Compile; with fresh it compiles even what the cache has, and replaces it.
func (c *Compiler) get(ctx context.Context, p *ir.Program, unit int, arch string, fresh bool) (Kernel, error) {
	start := time.Now()
	identity, err := c.identity()
	if err != nil && !c.never {
		return Kernel{}, err
	}
	key := Key(p, unit, arch, identity)
	create := func(ctx context.Context) (cache.Entry, error) {
		if c.never {
			return cache.Entry{}, c.notCompiled(p.Units[unit].Entry, arch, key)
		}
		return c.create(ctx, p, unit, arch)
	}
	var entry cache.Entry
	outcome := cache.Created
	if fresh {
		if entry, err = create(ctx); err == nil && !c.store.Put(key, entry) {
			outcome = cache.Unstored
		}
	} else {
		end := c.trace.Step("kernel", p.Units[unit].Entry)
		entry, outcome, err = c.store.GetOrCreate(ctx, key, create)
		end()
		if err == nil && outcome.IsHit() && !c.never && spillsFreely(p.Sources[p.Units[unit].Source], kernelOf(entry).KernelFacts) {
			return c.get(ctx, p, unit, arch, true) // an earlier version left it so
		}
	}
	if err != nil {
		return Kernel{}, err
	}
	if outcome == cache.Created {
		c.remember()
	}
	k := kernelOf(entry)
	k.Entry, k.Arch, k.Options = p.Units[unit].Entry, arch, compileOptions(p.Units[unit], arch)
	k.Outcome, k.Took = outcome, time.Since(start)
	return k, nil
}

// kernelOf reads an entry. Facts that do not parse are left out, because only reports need
// them.
func kernelOf(e cache.Entry) Kernel {
	k := Kernel{Cubin: e.Section(cache.Cubin), PTX: e.Section(cache.PTX)}
	var meta kernelMeta
	_ = json.Unmarshal(e.Section(cache.Meta), &meta)
	k.KernelFacts, k.CompileTook = meta.KernelFacts, meta.CompileTook
	return k
}

// Stored is the kernel of a unit as the cache has it; ok is false where it has none. Nothing is
// compiled.
func (c *Compiler) Stored(p *ir.Program, unit int, arch string) (k Kernel, ok bool) {
	key, err := c.Key(p, unit, arch)
	if err != nil {
		return k, false
	}
	entry, outcome := c.store.Get(key)
	if !outcome.IsHit() {
		return k, false
	}
	k = kernelOf(entry)
	k.Entry, k.Arch, k.Outcome = p.Units[unit].Entry, arch, outcome
	return k, true
}

// create compiles a unit.
func (c *Compiler) create(ctx context.Context, p *ir.Program, unit int, arch string) (cache.Entry, error) {
	nvrtc, err := c.nvrtc()
	if err != nil {
		return cache.Entry{}, err
	}
	u := p.Units[unit]
	defer c.trace.Step("nvrtc compile", u.Entry)()
	start := time.Now()
	file := c.file(p, unit)
	request := cuda.Request{Name: file, Source: p.TextOf(unit, file), Options: nvrtc.SupportedOptions(compileOptions(u, arch)...)}
	request, result, err := withWideIndices(ctx, nvrtc, request)
	again := 0
	if err == nil {
		result, again, err = withoutSpills(ctx, nvrtc, request, result, u.Block[0])
	}
	var refused *cuda.CompileError
	if errors.As(err, &refused) {
		return cache.Entry{}, &CompileError{Kernel: u.Entry, Source: c.saveSource(p, unit), Err: err}
	}
	if err != nil {
		return cache.Entry{}, err
	}
	major, minor := nvrtc.Version()
	facts := factsOf(result.Log)
	facts.Again = again
	facts.Compiler = fmt.Sprintf("NVRTC %d.%d", major, minor)
	meta, err := json.Marshal(kernelMeta{facts, time.Since(start)})
	if err != nil {
		return cache.Entry{}, err
	}
	return cache.Entry{Sections: []cache.Section{{Name: cache.Cubin, Data: result.CUBIN},
		{Name: cache.PTX, Data: result.PTX}, {Name: cache.Meta, Data: meta}}}, nil
}

// file is the name that NVRTC gets for the text of a unit. If code records its lines, it is that of a file with the
// text, in the folder Options.SaveSource, so that a profiler finds it.
func (c *Compiler) file(p *ir.Program, unit int) string {
	u := p.Units[unit]
	if !u.LineInfo || c.save == "" {
		return u.Entry + ".cu"
	}
	sum := sha256.Sum256([]byte(p.Text(unit)))
	file := filepath.Join(c.save, fmt.Sprintf("%s.%x.cu", u.Entry, sum[:4]))
	if err := os.WriteFile(file, []byte(p.TextOf(unit, file)), 0o600); err != nil {
		return u.Entry + ".cu"
	}
	return file
}

// saveSource writes the text of a unit to the folder Options.SaveSource. It returns "" if it
// cannot, because the compile error matters more.
func (c *Compiler) saveSource(p *ir.Program, unit int) string {
	if c.save == "" {
		return ""
	}
	path := filepath.Join(c.save, fmt.Sprintf("%s.%d.cu", p.Units[unit].Entry, unit))
	if os.WriteFile(path, []byte(p.Text(unit)), 0o600) != nil {
		return ""
	}
	return path
}

// Patterns for the output of ptxas -v; every unit holds one entry function. Lines of "info"
// with a number, such as (C7510) for products that wait for each other, are advice; the other
// lines of info are statistics.
var (
	registersLine = regexp.MustCompile(`Used (\d+) registers`)
	stackLine     = regexp.MustCompile(`(\d+) bytes stack frame, (\d+) bytes spill stores`)
	adviceLine    = regexp.MustCompile(`^ptxas info\s*: (\(C\d+\)|Potential Performance Loss|Advisory)`)
)

// factsOf splits the compiler's log into numbers and the rest, which is warnings and advice.
func factsOf(log string) KernelFacts {
	var f KernelFacts
	if m := registersLine.FindStringSubmatch(log); m != nil {
		f.Registers, _ = strconv.Atoi(m[1])
	}
	for _, m := range stackLine.FindAllStringSubmatch(log, -1) {
		stack, _ := strconv.Atoi(m[1])
		spills, _ := strconv.Atoi(m[2])
		f.Stack, f.Spills = max(f.Stack, stack), f.Spills+spills
	}
	var rest []string
	for line := range strings.Lines(log) {
		statistic := strings.HasPrefix(line, "ptxas info") && !adviceLine.MatchString(line)
		if !statistic && !stackLine.MatchString(line) {
			rest = append(rest, line)
		}
	}
	f.Log = strings.TrimSpace(strings.Join(rest, ""))
	return f
}
