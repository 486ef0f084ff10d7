package simtest

import (
	"context"
	"strings"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
)

// Virtual gives the PTX of kernels: it has them compiled for the virtual architecture
// (compute_90a), which is the same text and takes none of the time that machine code does.
type Virtual struct{ Compiler *runtime.Compiler }

// Compile implements runtime.KernelSource.
func (v Virtual) Compile(ctx context.Context, p *ir.Program, unit int, arch string) (runtime.Kernel, error) {
	k, err := v.Compiler.Compile(ctx, p, unit, "compute_"+strings.TrimPrefix(arch, "sm_"))
	k.Arch = arch
	return k, err
}
