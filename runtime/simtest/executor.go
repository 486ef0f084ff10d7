package simtest

import (
	"fmt"
	"runtime/debug"

	"github.com/fusec/fusec/runtime/internal/fakecuda"
	"github.com/fusec/fusec/runtime/internal/ptxsim"
)

// executor is what the driver calls: fakecuda.Executor.
type executor struct{ s *Simulator }

// Load parses a module; the same text is parsed once.
func (x executor) Load(ptx string) (uint64, error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	text, unit := x.s.marked(ptx)
	m := x.s.parsed[text]
	if m == nil {
		var err error
		if m, err = ptxsim.Parse(text); err != nil {
			return 0, err
		}
		x.s.parsed[text] = m
	}
	x.s.modules = append(x.s.modules, module{m, unit})
	return uint64(len(x.s.modules)), nil
}

// Find finds a kernel.
func (x executor) Find(module uint64, name string) (k fakecuda.Kernel, err error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	if module == 0 || module > uint64(len(x.s.modules)) {
		return k, errUnknown
	}
	m := x.s.modules[module-1]
	e, err := m.Lookup(name)
	if err != nil {
		return k, err
	}
	x.s.kernels = append(x.s.kernels, kernel{e, m.unit})
	k.ID = uint64(len(x.s.kernels))
	k.Attributes = map[int]int{maxFunctionBlock: 1024, staticShared: e.StaticShared()}
	for _, p := range e.Params {
		k.Params = append(k.Params, fakecuda.Param{Offset: p.Offset, Size: p.Size})
	}
	return k, nil
}

// Launch runs a kernel.
func (x executor) Launch(w fakecuda.Work) error {
	x.s.mu.Lock()
	if w.Kernel == 0 || w.Kernel > uint64(len(x.s.kernels)) {
		x.s.mu.Unlock()
		return errUnknown
	}
	k, order := x.s.kernels[w.Kernel-1], x.s.order
	x.s.ran = append(x.s.ran, k.Name)
	x.s.mu.Unlock()
	l := ptxsim.Launch{Entry: k.Entry, Grid: w.Grid, Block: w.Block, Cluster: w.Cluster, Shared: w.Shared,
		Params: w.Params[:k.ParamBytes()], Early: order.Early, Backwards: order.Backwards,
		Races: order.Races, Limit: x.s.limit}
	return x.s.note(x.bounded(&l, k.unit, w.Allocations))
}

// bounded runs a launch that may only touch the memory of its arguments.
func (x executor) bounded(l *ptxsim.Launch, u unit, allocated []fakecuda.Allocation) error {
	var given []tensor
	pieces, known := allocated, false
	if u.program != nil {
		given, known = u.tensors(l.Entry, l.Params)
	}
	if known {
		var err error
		if pieces, err = within(given, allocated); err != nil {
			return fmt.Errorf("%s: %w", l.Entry.Name, err)
		}
	}
	l.Memory = &memory{pieces: pieces}
	err := x.run(l)
	if err != nil {
		return fmt.Errorf("%w%s", err, list(given))
	}
	return nil
}

// run turns a panic of the simulator into an error.
func (x executor) run(l *ptxsim.Launch) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the simulator failed in %s: %v\n%s", l.Entry.Name, v, debug.Stack())
		}
	}()
	return l.Run()
}

// The driver's numbers of swizzles (CUtensorMapSwizzle), in bytes.
var swizzles = []int{0, 32, 64, 128}

// Encode lays out a tensor map as the simulator's copies read it.
func (x executor) Encode(r fakecuda.TensorMap) (out [128]byte, err error) {
	if r.Interleave != 0 || r.Swizzle >= uint64(len(swizzles)) || r.Type > 12 {
		return out, fmt.Errorf("tensor maps of type %d, interleave %d and swizzle %d are not simulated", r.Type,
			r.Interleave, r.Swizzle)
	}
	m := ptxsim.TensorMap{Type: ptxsim.TensorMapType(r.Type), Rank: int(r.Rank), Address: r.Address, Dims: r.Dims,
		Strides: r.Strides, Swizzle: swizzles[r.Swizzle], NaNFill: r.Fill == 1}
	m.Strides[0] = uint64(m.Type.Size())
	for i := range m.Rank {
		m.Box[i], m.Steps[i] = uint32(r.Box[i]), uint32(r.Steps[i])
	}
	return m.Encode()
}
