package simtest

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/internal/ptxsim"
)

// Virtual is a source of kernels as PTX. It compiles them for the virtual architecture
// (compute_90a): the text is the same, and no time is spent on machine code.
type Virtual struct{ Compiler *runtime.Compiler }

// Compile implements runtime.KernelSource.
func (v Virtual) Compile(ctx context.Context, p *ir.Program, unit int, arch string) (runtime.Kernel, error) {
	k, err := v.Compiler.Compile(ctx, p, unit, "compute_"+strings.TrimPrefix(arch, "sm_"))
	k.Arch = arch
	return k, err
}

// marking is a source that marks kernels with the numbers of their units, for the simulator.
type marking struct {
	runtime.KernelSource
	s *Simulator
}

// mark begins the comment at a module's end that numbers its unit.
const mark = "\n// unit "

// Compile implements runtime.KernelSource.
func (m marking) Compile(ctx context.Context, p *ir.Program, index int, arch string) (runtime.Kernel, error) {
	k, err := m.KernelSource.Compile(ctx, p, index, arch)
	if err != nil {
		return k, err
	}
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	m.s.units = append(m.s.units, unit{p, index})
	k.PTX = append(slices.Clone(k.PTX), mark+strconv.Itoa(len(m.s.units))...)
	return k, nil
}

// marked removes the mark from a module.
func (s *Simulator) marked(ptx string) (text string, u unit) {
	text, number, _ := strings.Cut(ptx, mark)
	if n, err := strconv.Atoi(number); err == nil && n <= len(s.units) {
		return text, s.units[n-1]
	}
	return ptx, unit{}
}

// Unknown lists the instructions of a module that the simulator cannot run, each form
// once. The error is about what it cannot read at all.
func Unknown(ptx string) ([]string, error) { return ptxsim.Unknown(ptx) }
