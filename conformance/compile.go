package conformance

import (
	"context"
	"errors"
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/simtest"
)

// Compiling a kernel takes far longer than all else about it, so what NVRTC says of one is kept in the
// user's cache of kernels, under the hash of all that it depends on: the text, the options, the
// architecture, and the identity of NVRTC (runtime.Key). Only kernels that compile are kept, with what
// the compiler said of them, and each use judges that anew: an entry can hide no failure.

// A Checker compiles kernels to machine code without a GPU and judges them. It is safe for concurrent use.
type Checker struct{ compiler *runtime.Compiler }

// NewChecker returns a checker with a cache and the NVRTC that opts name.
func NewChecker(opts runtime.Options) Checker { return Checker{runtime.NewCompiler(opts)} }

// Check compiles a unit of a program for an architecture (sm_90a). The error says that it does not
// compile, that the compiler warns or advises, that it spills registers or keeps variables in local
// memory, or that the simulator does not know one of its instructions.
func (c Checker) Check(ctx context.Context, p *ir.Program, unit int, arch string) error {
	k, err := c.compiler.Compile(ctx, p, unit, arch)
	if err != nil {
		return err
	}
	return judge(k)
}

// judge says what is wrong with a compiled kernel.
func judge(k runtime.Kernel) error {
	var errs []error
	if k.Log != "" {
		errs = append(errs, fmt.Errorf("the compiler says: %s", k.Log))
	}
	if k.Registers == 0 || len(k.Cubin) == 0 {
		errs = append(errs, errors.New("there is no machine code, or no report of what it uses"))
	}
	if k.Stack > 0 || k.Spills > 0 {
		errs = append(errs, fmt.Errorf("%d bytes of local memory, %d bytes of spilled registers", k.Stack, k.Spills))
	}
	unknown, err := simtest.Unknown(string(k.PTX))
	if err != nil || len(unknown) > 0 {
		errs = append(errs, fmt.Errorf("the simulator does not know %q %w", unknown, err))
	}
	return errors.Join(errs...)
}

// kernels gives simulated devices PTX: that of a kernel which was compiled to machine code before, by a
// Checker, and else of a compile that makes no machine code. The two are the same text.
type kernels struct {
	compiler *runtime.Compiler
	virtual  simtest.Virtual
}

func newKernels(opts runtime.Options) kernels {
	c := runtime.NewCompiler(opts)
	return kernels{compiler: c, virtual: simtest.Virtual{Compiler: c}}
}

// Compile implements runtime.KernelSource.
func (s kernels) Compile(ctx context.Context, p *ir.Program, unit int, arch string) (runtime.Kernel, error) {
	key, err := s.compiler.Key(p, unit, arch)
	if err != nil {
		return runtime.Kernel{}, err
	}
	if entry, outcome := s.compiler.Cache().Get(key); outcome.IsHit() {
		return runtime.Kernel{Entry: p.Units[unit].Entry, Arch: arch, PTX: entry.Section(cache.PTX), Outcome: outcome}, nil
	}
	return s.virtual.Compile(ctx, p, unit, arch)
}
