package hunt

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	goruntime "runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/simtest"
)

// TestMain collects garbage less often: plans and the interpreter leave much of it and keep little.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

// inFull is whether tests take every program, as in .ci/run, and not what is enough while one works.
func inFull() bool { return os.Getenv("FUSEC_TEST_FULL") != "" }

// fullOr is a number where FUSEC_TEST_FULL is set, and else another.
func fullOr[T any](full, plain T) T {
	if inFull() {
		return full
	}
	return plain
}

var (
	huntFor     = flag.Duration("hunt.for", fullOr(5*time.Second, 2*time.Second), "how long to draw programs")
	huntCount   = flag.Int("hunt.count", 1<<30, "how many programs to draw at most")
	huntSeed    = flag.Uint64("hunt.seed", 0, "the first seed; 0 takes one from the clock")
	huntEngines = flag.String("hunt.engines", "cpu", "engines: cpu, sm_80, sm_90a (simulated), cuda")
	huntOut     = flag.String("hunt.out", "", "folder for what is found; its programs are shortened")
	huntGrad    = flag.Bool("hunt.grad", false, "the gradients of the programs drawn are tested")
	huntJVP     = flag.Bool("hunt.jvp", false, "the derivatives along a direction of the programs drawn are tested")
	huntState   = flag.Bool("hunt.state", false, "inputs of the programs drawn are state, and they are run again and again")
	huntJobs    = flag.Int("hunt.jobs", goruntime.GOMAXPROCS(0), "programs at a time")
)

// TestHunt draws programs and compares engines with the interpreter: for some seconds, or as
// flags say. A seed stands for one program, so that a failure is found again.
func TestHunt(t *testing.T) {
	h := &campaign{t: t, features: map[string]int{}, kinds: map[string]int{}}
	eachSeed(t, *huntFor, func() func(uint64) bool {
		engines := open(t, strings.Split(*huntEngines, ","))
		return func(seed uint64) bool {
			h.program(seed, engines)
			return true
		}
	})
	h.report()
}

// eachSeed runs jobs side by side, which take seeds one after the other, for so long or until one of them says that there is
// no more to do. begin is called for each job ahead of all of them, and returns what the job does with a seed.
func eachSeed(t *testing.T, long time.Duration, begin func() func(seed uint64) (more bool)) {
	first := *huntSeed
	if first == 0 {
		first = uint64(time.Now().UnixNano()) >> 16
	}
	t.Logf("-hunt.seed=%d", first)
	var next atomic.Int64
	var over atomic.Bool
	var group sync.WaitGroup
	end := time.Now().Add(long)
	for range *huntJobs {
		do := begin()
		group.Go(func() {
			for n := next.Add(1) - 1; n < int64(*huntCount) && time.Now().Before(end) && !over.Load(); n = next.Add(1) - 1 {
				if !do(first + uint64(n)) {
					over.Store(true)
				}
			}
		})
	}
	group.Wait()
}

// open opens engines by their names.
func open(t *testing.T, names []string) []Engine {
	var out []Engine
	for _, name := range names {
		opts := runtime.Options{Cache: cache.Open(cache.Options{Dir: t.TempDir()})}
		var dev *runtime.Device
		var err error
		switch name {
		case "cpu", "cuda":
			dev, err = runtime.Open(name, opts)
			require.NoError(t, err)
			t.Cleanup(func() { _ = dev.Close() })
		default:
			dev = simtest.New(t, simtest.Config{Arch: name}).Open(t, opts)
		}
		out = append(out, Engine{name, dev})
	}
	return out
}

// reopen opens an engine anew where it is a GPU: a fault ends its context.
func reopen(t *testing.T, engines []Engine, name string) {
	for i, e := range engines {
		if e.Name == name && name != "cpu" {
			_ = e.Device.Close()
			engines[i] = open(t, []string{name})[0]
		}
	}
}

// A campaign counts.
type campaign struct {
	t        *testing.T
	mu       sync.Mutex
	programs int
	failed   int
	features map[string]int
	kinds    map[string]int
}

func (h *campaign) program(seed uint64, engines []Engine) {
	p := gen.Draw(seed)
	p.Gradient, p.Tangent = *huntGrad, *huntJVP
	if *huntState {
		p = p.WithState()
	}
	slow := time.AfterFunc(time.Minute, func() { fmt.Fprintf(os.Stderr, "seed %d takes long:\n%s", seed, Found(p, "slow")) })
	f := try(p, engines)
	slow.Stop()
	if f != nil {
		reopen(h.t, engines, f.Engine)
	}
	h.mu.Lock()
	h.programs++
	for _, feature := range p.Features() {
		h.features[feature]++
	}
	h.mu.Unlock()
	if f == nil {
		return
	}
	kind := kindOf(f)
	h.mu.Lock()
	h.failed++
	h.kinds[kind]++
	again := h.kinds[kind] > 3
	h.mu.Unlock()
	if again && *huntOut != "" {
		h.t.Errorf("seed %d: %s", seed, kind)
		return // of a kind there are examples enough
	}
	if *huntOut != "" {
		f = shorten(h.t, f, engines)
		reopen(h.t, engines, f.Engine)
	}
	h.t.Errorf("seed %d: %v", seed, f)
	if *huntOut != "" {
		require.NoError(h.t, os.MkdirAll(*huntOut, 0o755))
		name := fmt.Sprintf("%s_%d.fuse", f.Engine, seed)
		require.NoError(h.t, os.WriteFile(filepath.Join(*huntOut, name), []byte(Found(f.Program, f.Err.Error()+" ("+f.Stage+")")), 0o644))
	}
}

// try is Try with panics as failures.
func try(p *gen.Program, engines []Engine) (f *Failure) {
	defer func() {
		if v := recover(); v != nil {
			f = &Failure{Program: p, Engine: "panic", Err: fmt.Errorf("panic: %v\n%s", v, debug.Stack())}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	return Try(ctx, p, engines)
}

// shorten looks for a shorter program that fails in the same way.
func shorten(t *testing.T, f *Failure, engines []Engine) *Failure {
	kind := kindOf(f)
	only := slices.DeleteFunc(slices.Clone(engines), func(e Engine) bool { return e.Name != f.Engine })
	end := time.Now().Add(time.Minute)
	gen.Shrink(f.Program, 400, func(p *gen.Program) bool {
		if time.Now().After(end) {
			return false
		}
		g := try(p, only)
		if g != nil {
			reopen(t, only, g.Engine)
		}
		if g == nil || kindOf(g) != kind {
			return false
		}
		f = g
		return true
	})
	if len(only) > 0 {
		f.Stage = Blame(f.Program, only[0].Device.Figures())
	}
	return f
}

// kindOf is what failures are counted by: their text without what varies.
func kindOf(f *Failure) string {
	if d, is := f.Err.(*Difference); is {
		return f.Engine + ": wrong " + map[bool]string{true: "all", false: "some"}[d.Count == d.Of]
	}
	text, _, _ := strings.Cut(f.Err.Error(), "\n")
	words := strings.Fields(text)
	for i, w := range words {
		if strings.ContainsAny(w, "0123456789") {
			words[i] = "#"
		}
	}
	return f.Engine + ": " + strings.Join(words, " ")
}

func (h *campaign) report() {
	h.t.Logf("%d programs, %d failed", h.programs, h.failed)
	for _, kind := range slices.Sorted(maps.Keys(h.kinds)) {
		h.t.Logf("%6d  %s", h.kinds[kind], kind)
	}
	var lines []string
	for _, f := range slices.Sorted(maps.Keys(h.features)) {
		lines = append(lines, fmt.Sprintf("%s %d", f, h.features[f]))
	}
	h.t.Logf("features: %s", strings.Join(lines, ", "))
}
