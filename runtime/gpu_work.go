package runtime

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/fusec/fusec/ir"
)

// gpuWork is a program at known sizes: launches that only lack pointers. Its tensors are
// numbered: parameters, then temporaries, then the counters of kernels, then the results of
// checks, which are next to each other.
type gpuWork struct {
	program   *gpuProgram
	binding   *binding
	launches  []gpuLaunch
	temps     []int64  // bytes of each temporary
	counterAt []int64  // for each of ir.Program.Counters, its offset in the run's counters, in bytes
	counters  int64    // bytes of all of those
	maps      []gpuMap // of ir.Program.TensorMaps; only those that launches use are set
	born      []int    // of each tensor: the first launch that names it
	dead      []int    // and the last
	reports   []KernelReport

	mu      sync.Mutex
	loaded  []UnitReport // units that binding brought to the device; nil once reported
	layouts []*layout    // that were used so far
	idle    []*gpuFrame
	retired bool // frames that are put back are closed
}

// takeLoaded returns what was loaded, the first time.
func (w *gpuWork) takeLoaded() []UnitReport {
	w.mu.Lock()
	defer w.mu.Unlock()
	loaded := w.loaded
	w.loaded = nil
	return loaded
}

// tensor is the number of the tensor that an argument points to.
func (w *gpuWork) tensor(a ir.LaunchArg) (item int, ok bool) {
	switch a.Kind {
	case ir.ArgParam:
		return a.Index, true
	case ir.ArgTemp:
		return len(w.binding.bytes) + a.Index, true
	case ir.ArgCounters:
		return len(w.binding.bytes) + len(w.temps) + a.Index, true
	case ir.ArgCheck:
		return w.firstCheck() + a.Index, true
	case ir.ArgTensorMap:
		return w.tensor(w.maps[a.Index].of)
	}
	return 0, false
}

// count places the counters of the launches; those of other variants get no place.
func (w *gpuWork) count(symbols []int64) error {
	w.counterAt = slices.Repeat([]int64{-1}, len(w.program.program.Counters))
	for _, l := range w.launches {
		for _, a := range l.args {
			if a.Kind != ir.ArgCounters || w.counterAt[a.Index] >= 0 {
				continue
			}
			const bytes, most = 4, 1 << 31 // bytes of a counter, and the most counters, which is the most blocks
			n, ok := w.program.program.Counters[a.Index].Eval(symbols)
			if !ok || n < 0 || n > most {
				return fmt.Errorf("BUG: a kernel with %d counters", n)
			}
			w.counterAt[a.Index] = w.counters
			w.counters += (n*bytes + 7) / 8 * 8 // some are words of 64 bits
		}
	}
	return nil
}

// firstCounters is the number of the first tensor of counters, firstCheck that of the
// first result of a check, and tensors is how many there are.
func (w *gpuWork) firstCounters() int { return len(w.binding.bytes) + len(w.temps) }
func (w *gpuWork) firstCheck() int    { return w.firstCounters() + len(w.counterAt) }
func (w *gpuWork) tensors() int       { return w.firstCheck() + 2*len(w.program.program.Checks) }

// checkBytes is the memory of all results of checks.
func (w *gpuWork) checkBytes() int { return ir.CheckBytes * len(w.program.program.Checks) }

// bytesOf is the memory of a tensor; counters are not included.
func (w *gpuWork) bytesOf(item int) int64 {
	switch n := item - len(w.binding.bytes); {
	case n < 0:
		return w.binding.bytes[item]
	case n < len(w.temps):
		return w.temps[n]
	case item >= w.firstCheck():
		return ir.CheckBytes / 2
	}
	return 0
}

// counts reports whether a tensor is the counters of a kernel, which stay where they
// are: they are zero between runs.
func (w *gpuWork) counts(item int) bool { return item >= w.firstCounters() && item < w.firstCheck() }

// lives finds when each tensor is needed: inputs from before the first launch, outputs
// until after the last.
func (w *gpuWork) lives() {
	const never = -2
	w.born, w.dead = slices.Repeat([]int{len(w.launches)}, w.tensors()), slices.Repeat([]int{never}, w.tensors())
	for i, l := range w.launches {
		for _, a := range l.args {
			if item, ok := w.tensor(a); ok {
				w.born[item], w.dead[item] = min(w.born[item], i), max(w.dead[item], i)
			}
		}
	}
	for i, p := range w.program.program.Params {
		if p.Output {
			w.dead[i] = len(w.launches)
		} else {
			w.born[i] = -1
			w.dead[i] = max(w.dead[i], -1)
		}
	}
}

// measure finds the bytes of the temporaries that launches use. The others are those of kernels that do not run at these
// sizes: they take no memory, and may be too large for any.
func (w *gpuWork) measure(symbols []int64) error {
	for i, temp := range w.program.program.Temps {
		if item := len(w.binding.bytes) + i; w.born[item] > w.dead[item] {
			continue
		}
		bytes, ok := temp.Bytes.Eval(symbols)
		if !ok || bytes < 0 {
			return fmt.Errorf("an intermediate tensor's size in bytes does not fit in 64 bits")
		}
		w.temps[i] = bytes
	}
	return nil
}

// layout is the places of the tensors of a run that have no memory of their own: temporaries,
// and arguments in host memory.
type layout struct {
	hosts   []bool  // which arguments are in host memory
	again   bool    // the launches are queued more than once on the same inputs
	offsets []int64 // of each tensor in the arena; -1 for one that is elsewhere
	bytes   int64   // of the arena
	fits    bool    // bytes is valid; otherwise the sum does not fit in 64 bits

	once  sync.Once
	order [][]int // dependences among launches, found when first asked for
}

// layoutFor plans the memory of a run with these arguments in host memory; again is
// whether its launches are queued more than once.
func (w *gpuWork) layoutFor(hosts []bool, again bool) *layout {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, known := range w.layouts {
		if known.again == again && slices.Equal(known.hosts, hosts) {
			return known
		}
	}
	l := &layout{hosts: slices.Clone(hosts), again: again, offsets: slices.Repeat([]int64{-1}, w.tensors())}
	list, items := w.residents(hosts, again)
	plan, ok := arenaFor(list)
	l.bytes, l.fits = plan.bytes, ok
	if ok {
		for i, item := range items {
			l.offsets[item] = plan.offsets[i]
		}
		for item := w.firstCheck() + 1; item < w.tensors(); item++ {
			l.offsets[item] = l.offsets[item-1] + ir.CheckBytes/2
		}
	}
	w.layouts = append(w.layouts, l)
	return l
}

// residents are the tensors that have no memory of their own. If launches are queued again,
// their inputs must still be there, so no other tensor may take the place of an input.
func (w *gpuWork) residents(hosts []bool, again bool) (list []resident, items []int) {
	params := w.program.program.Params
	for item := range w.tensors() {
		elsewhere := item < len(hosts) && !hosts[item] || w.counts(item) || item > w.firstCheck()
		if elsewhere || w.born[item] > w.dead[item] { // or no launch uses it
			continue
		}
		r := resident{w.bytesOf(item), w.born[item], w.dead[item]}
		if again && item < len(params) && !params[item].Output {
			r.last = len(w.launches)
		}
		if item == w.firstCheck() { // one resident for all results of checks
			r = resident{int64(w.checkBytes()), 0, len(w.launches)}
		}
		list, items = append(list, r), append(items, item)
	}
	return list, items
}

// dependences are the dependences among the launches, given the places of tensors.
func (w *gpuWork) dependences(l *layout) [][]int {
	l.once.Do(func() {
		spans := make([]span, w.tensors())
		for item := range spans {
			if at := l.offsets[item]; at >= 0 {
				spans[item] = span{at, at + w.bytesOf(item)}
			}
		}
		all := make([][]access, len(w.launches))
		for i, launch := range w.launches {
			for _, a := range launch.args {
				if item, ok := w.tensor(a); ok && launch.launch != nil {
					all[i] = append(all[i], access{w.replaced(item), a.Write})
				}
			}
		}
		l.order = dependences(all, spans)
	})
	return l.order
}

// replaced is the input whose memory an output may take; any other tensor is itself. The order of
// launches is computed as if the output always took it.
func (w *gpuWork) replaced(item int) int {
	params := w.program.program.Params
	if item >= len(params) || !params[item].InPlace {
		return item
	}
	return slices.IndexFunc(params, func(p ir.Param) bool { return p.Name == params[item].State && !p.Output })
}

// take returns a frame for a run on s, if possible the one that ran there last, because its
// pointers are right already.
func (w *gpuWork) take(s *gpuStream) *gpuFrame {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := len(w.idle) - 1
	if last < 0 {
		return newFrame(w)
	}
	at := last
	for i, f := range w.idle {
		if f.last == s {
			at = i
		}
	}
	f := w.idle[at]
	w.idle[at] = w.idle[last]
	w.idle = w.idle[:last]
	return f
}

// put keeps a frame for the next run.
func (w *gpuWork) put(f *gpuFrame) error {
	w.mu.Lock()
	if !w.retired {
		w.idle = append(w.idle, f)
		w.mu.Unlock()
		return nil
	}
	w.mu.Unlock()
	return f.close()
}

// retire frees what the frames hold, when no more runs begin.
func (w *gpuWork) retire() error {
	w.mu.Lock()
	idle := w.idle
	w.idle, w.retired = nil, true
	w.mu.Unlock()
	var errs []error
	for _, f := range idle {
		errs = append(errs, f.close())
	}
	return w.program.gpu.closing(errors.Join(errs...))
}
