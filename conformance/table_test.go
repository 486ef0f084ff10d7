package conformance

import (
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// families is the table: all programs, by what they have in common.
func families(t testing.TB) []family {
	return slices.Concat(programFamilies(t), rowFamilies(), foldFamilies(), productFamilies(), sliceFamilies(), tileFamilies(),
		networkFamilies(t), attendFamilies(t), chainFamilies(t), moveFamilies(), placeFamilies(), checkFamilies(), scatterFamilies(),
		windowFamilies(), oddRowFamilies(), acrossFamilies(), shortScanFamilies(), aloneFamilies(), concatFamilies(), []family{clusterFamily()}, overFamilies(),
		stepFamilies(t), longRowFamilies(), exactFamilies(), symmetricFamilies(), boundedFamilies(), windowSumFamilies(), interleavedFamilies(), pairFamilies(), componentFamilies(), scaleFamilies(), totalFamilies(), inverseFamilies())
}

// A row is a program of the table.
type row struct {
	name, src string
	sizes     [][]int64 // at which it is compared; nil: those of its family
	graph     string    // of those in src; "" for the only one
	arch      string    // that it is planned and compiled for; "" for what its family says
}

// A family is programs that are compared, compiled and planned alike.
type family struct {
	name    string
	rows    []row
	symbols []string  // that sizes are for, in turn; nil: those of each graph
	sizes   [][]int64 // of rows without their own
	fill    Fill      // of inputs; nil: Random
	exact   exactness
	repeat  bool // runs on a GPU, again and again, must give the same bits
	// plan says what the programs are in the table for; nil for nothing but to be right. It is asked
	// of the plans for planned, or where that is nil for an sm_90a.
	plan    func(*ir.Plan) bool
	planned []string
	on      []pass
	compile []compiling
	// variants says whose variants, each by itself, run in TestVariantsSimulated too; nil for none.
	variants func(i int, name string) bool
}

// An exactness is how results are compared with the interpreter's.
type exactness int

const (
	tolerant  exactness = iota // within what roundings make of them
	rounded                    // of exact sums: within the rounding of the result
	identical                  // each bit
)

// A pass runs the programs of a family on an engine.
type pass struct {
	engine string
	sim    simtest.Config // where it is simulated
	most   int64          // points of work that the interpreter has time for; 0 for any number
	sizes  [][]int64      // in place of the row's
	rows   []string       // names of those that take part; nil for all
}

// A compiling is kernels that are compiled to machine code.
type compiling struct {
	archs []string // one for each row, in turn
	ends  bool     // the first and the last size class of each kernel only
	rows  func(i int, name string) bool
	keep  func(*ir.Variant) bool
	short bool // in short tests too
}

// inTurn is the compiling of each row for one of the architectures.
func inTurn(ends bool, archs ...string) []compiling { return []compiling{{archs: archs, ends: ends}} }

// onAll is the compiling of each row for each of the architectures.
func onAll(ends bool, archs ...string) (out []compiling) {
	for _, arch := range archs {
		out = append(out, compiling{archs: []string{arch}, ends: ends})
	}
	return out
}

// all, named and endsIn choose rows.
func all(int, string) bool { return true }

func named(names ...string) func(int, string) bool {
	return func(_ int, name string) bool { return slices.Contains(names, name) }
}

func endsIn(suffix string) func(int, string) bool {
	return func(_ int, name string) bool { return strings.HasSuffix(name, suffix) }
}

// races are passes on both simulated devices, which look for accesses that nothing puts in order.
func races(sizes [][]int64) (out []pass) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		out = append(out, pass{engine: arch, sim: simtest.Config{Order: simtest.Order{Races: true}}, sizes: sizes})
	}
	return out
}

// rowsOf makes rows of programs with names, in the order of these.
func rowsOf(programs map[string]string, text func(name, program string) string) (out []row) {
	for name, program := range programs {
		out = append(out, row{name: name, src: text(name, program)})
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return out
}

// TestPrograms takes every program of the table through its compile checks and compares it with the
// interpreter on every engine that is here: TestPrograms/FAMILY/PROGRAM/ENGINE/SIZES.
func TestPrograms(t *testing.T) {
	for _, f := range families(t) {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, f.rows)
			for i := range f.rows {
				t.Run(f.rows[i].name, func(t *testing.T) {
					t.Parallel()
					f.test(t, i)
				})
			}
		})
	}
}

func (f *family) test(t *testing.T, i int) {
	r, known := &f.rows[i], &references{}
	if f.plan != nil && (inFull() || hashDraws(r.graph+r.src+" plan", 4)) {
		archs := f.planned
		switch {
		case r.arch != "":
			archs = []string{r.arch}
		case archs == nil:
			archs = []string{"sm_90a"}
		}
		for _, arch := range archs {
			require.True(t, f.plan(known.program(t, r, arch).Plan()), "the plan for %s is not what the program is here for", arch)
		}
	}
	if len(f.compile) > 0 {
		t.Run("compile", func(t *testing.T) { f.compiled(t, i, known) })
	}
	left := f.left(r)
	for n, p := range f.on {
		if !p.takes(r) || left[p.engine] {
			continue
		}
		name := p.engine
		if slices.ContainsFunc(f.on[:n], func(o pass) bool { return o.engine == p.engine }) {
			name = fmt.Sprint(name, " ", n)
		}
		t.Run(name, func(t *testing.T) { f.pass(t, r, p, known) })
	}
}

// takes is whether a row takes part in a pass.
func (p *pass) takes(r *row) bool { return p.rows == nil || slices.Contains(p.rows, r.name) }

// left is the engines that a row is not run on. The text of a row draws one of the two simulated architectures where
// FUSEC_TEST_FULL is set, as in .ci/run, and otherwise neither in seven eighths of the draws: most of the time of a simulation is the
// compiler's. The CPU engine runs one row in three then, as most of that time is the interpreter's. None is
// left where it is "units".
func (f *family) left(r *row) map[string]bool {
	switch {
	case inUnits():
		return nil
	case inFull() && hashDraws(r.graph+r.src, 2):
		return map[string]bool{"sm_80": true}
	case inFull():
		return map[string]bool{"sm_90a": true}
	}
	return map[string]bool{
		"sm_80":  !hashDraws(r.graph+r.src+" ", 15),
		"sm_90a": !hashDraws(r.graph+r.src, 16),
		"cpu":    !hashDraws(r.graph+r.src+" cpu", 3),
	}
}

// planned compiles a row for an architecture.
func planned(t testing.TB, r row, arch string) *fusec.Program {
	t.Helper()
	p, err := fusec.CompileSource(source(r.name, r.src), fusec.Options{Graph: r.graph, Arch: arch})
	require.NoError(t, err, r.src)
	return p
}

// pass compares a row at its sizes. There is one size at least that suits the engine.
func (f *family) pass(t *testing.T, r *row, p pass, known *references) {
	e := passEngine(t, p)
	graph, function := known.load(t, r, e)
	sizes := f.sizesOf(r, p)
	fit := slices.DeleteFunc(slices.Clone(sizes), func(set []int64) bool {
		at, fit := f.at(graph, set)
		return !fit || p.most > 0 && Work(graph, at) > p.most
	})
	require.NotEmpty(t, fit, "none of %v is for this engine", sizes)
	if p.engine != "gpu" {
		fit = drawnSizes(r, fit, p.engine != "cpu")
	}
	for _, set := range fit {
		at, _ := f.at(graph, set)
		t.Run(fmt.Sprint(set), func(t *testing.T) { f.check(t, e, function, known.at(t, f.fill, graph, at)) })
	}
	require.NoError(t, function.Close())
}

// drawnSizes are those of a row's sizes that it is run at: a third of them, which its text draws, and one at least. Where
// FUSEC_TEST_FULL is set, as in .ci/run, they are all, but half of them on a simulated device, and all there too where it is
// "units". Programs that do alike have others.
func drawnSizes(r *row, sizes [][]int64, simulated bool) [][]int64 {
	oneIn := uint32(3)
	switch {
	case inUnits() || inFull() && !simulated:
		return sizes
	case inFull():
		oneIn = 2
	}
	drawn := slices.DeleteFunc(slices.Clone(sizes), func(set []int64) bool { return !hashDraws(r.graph+r.src+fmt.Sprint(set), oneIn) })
	if len(drawn) == 0 {
		return sizes[:1]
	}
	return drawn
}

func (f *family) sizesOf(r *row, p pass) [][]int64 {
	switch {
	case p.sizes != nil:
		return p.sizes
	case r.sizes != nil:
		return r.sizes
	case f.sizes != nil:
		return f.sizes
	}
	return [][]int64{{0}} // of a graph without symbols
}

// named gives sizes their names; fit is false where the graph does not take them.
func (f *family) at(g *ir.Graph, set []int64) (sizes map[string]int64, fit bool) {
	if f.symbols == nil {
		return Sizes(g, set)
	}
	byName := map[string]int64{}
	for i, name := range f.symbols {
		byName[name] = set[i]
	}
	var own []int64
	for _, s := range g.Symbols {
		own = append(own, byName[s.Name])
	}
	if len(own) == 0 {
		return map[string]int64{}, true
	}
	return Sizes(g, own)
}

// check runs a program on an engine and compares it with the reference.
func (f *family) check(t *testing.T, e *Engine, loaded *runtime.Function, r *Reference) {
	got := call(t, e, loaded, r.Args)
	switch f.exact {
	case rounded, identical:
		assert.NoError(t, r.CompareExactly(got, f.exact == rounded))
	default:
		assert.NoError(t, r.Compare(got))
	}
	if f.repeat && e.Name == "gpu" {
		for range repetitions() {
			requireSame(t, got, call(t, e, loaded, r.Args))
		}
	}
}

// references are what the interpreter made of a program at sizes, once for all engines, and the program for an architecture,
// planned once for what compiles and runs it.
type references struct {
	known    map[string]*Reference
	programs map[string]*fusec.Program
}

// program is that of the row which the references are for.
func (r *references) program(t *testing.T, of *row, arch string) *fusec.Program {
	t.Helper()
	if r.programs[arch] == nil {
		if r.programs == nil {
			r.programs = map[string]*fusec.Program{}
		}
		r.programs[arch] = planned(t, *of, arch)
	}
	return r.programs[arch]
}

// load gives the row's graph and its function on an engine. The CPU engine plans for itself: no plan for a GPU is made for it.
func (r *references) load(t *testing.T, of *row, e *Engine) (*ir.Graph, *runtime.Function) {
	t.Helper()
	if e.Arch() != "" {
		p := r.program(t, of, e.Arch())
		loaded, err := p.Load(t.Context(), e.Device)
		require.NoError(t, err, of.src)
		return p.Graph(), loaded
	}
	file, err := parser.Parse(of.name, []byte(of.src), parser.Options{})
	require.NoError(t, err, of.src)
	graph, err := file.Graph(of.graph)
	require.NoError(t, err, of.src)
	loaded, err := fusec.Load(t.Context(), e.Device, source(of.name, of.src), fusec.Options{Graph: of.graph})
	require.NoError(t, err, of.src)
	return graph, loaded
}

func (r *references) at(t *testing.T, fill Fill, g *ir.Graph, sizes map[string]int64) *Reference {
	t.Helper()
	key := fmt.Sprint(sizes)
	if found := r.known[key]; found != nil {
		return found
	}
	if fill == nil {
		fill = Random
	}
	args, err := InputsBy(g, sizes, fill)
	require.NoError(t, err)
	found := interpreted(t, g, args)
	if r.known == nil {
		r.known = map[string]*Reference{}
	}
	r.known[key] = found
	return found
}

// call runs a function. A GPU's kernel that waits for ever cannot be taken back, and what else uses the
// device may wait for it: the process ends then.
func call(t *testing.T, e *Engine, f *runtime.Function, args runtime.Args) map[string]*tensor.Tensor {
	t.Helper()
	if e.Name == "gpu" {
		const limit = 2 * time.Minute
		timer := time.AfterFunc(limit, func() { panic(fmt.Sprintf("%s did not end in %v", t.Name(), limit)) })
		defer timer.Stop()
	}
	got, err := f.Call(t.Context(), args)
	require.NoError(t, err)
	return got
}

// The CPU engine and the GPU are opened once for the whole table.
var (
	sharedMutex   sync.Mutex
	sharedEngines = map[string]*Engine{}
)

// passEngine is the engine of a pass; a simulated one for itself, since a fault loses it.
func passEngine(t *testing.T, p pass) *Engine {
	t.Helper()
	if p.engine != "cpu" && (p.engine != "gpu" || os.Getenv("FUSEC_TEST_DEVICE") != "") {
		return Open(t, p.engine, Options{Sim: p.sim})
	}
	sharedMutex.Lock()
	defer sharedMutex.Unlock()
	if e := sharedEngines[p.engine]; e != nil {
		return e
	}
	device := map[string]string{"cpu": "cpu", "gpu": "cuda"}[p.engine]
	d, err := openDevice(device, Options{})
	if err != nil && p.engine == "gpu" {
		t.Skipf("no GPU to test on: %v", err)
	}
	require.NoError(t, err)
	e := &Engine{Name: p.engine, Device: d}
	sharedEngines[p.engine] = e
	return e
}

// TestMain closes what all tests share.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800) // simulations and references leave much garbage and keep little
	code := m.Run()
	for name, e := range sharedEngines {
		if err := e.Close(); err != nil {
			fmt.Fprintf(os.Stderr, "closing %s: %v\n", name, err)
			code = 1
		}
	}
	os.Exit(code)
}
