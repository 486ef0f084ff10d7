package runtime

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/fusec/fusec/runtime/cuda"
)

// The compiler weighs the registers of a thread against the threads that a multiprocessor then holds. Now and then it stores
// registers in local memory where a few more of them would have been enough. Such a kernel, if nothing in it bounds the
// number of blocks, is compiled again for fewer blocks, until nothing is stored.

const (
	fileRegisters = 65536 // registers of a multiprocessor
	registerStep  = 8     // threads have a multiple of so many
	mostRegisters = 256   // registers of a thread
)

// freeBound is what the generator writes for kernels whose number of blocks on a multiprocessor the compiler chooses.
const freeBound = "__launch_bounds__(THREADS)"

// fewerBlocks lists numbers of blocks of so many threads, the largest first, that leave a thread more registers than it has:
// one step more, then two, four and so on.
func fewerBlocks(threads, registers int) (out []int) {
	has := (registers + registerStep - 1) / registerStep * registerStep
	blocks := fileRegisters / max(1, has*threads)
	for more := registerStep; has+more < 2*mostRegisters; more *= 2 {
		next := max(1, fileRegisters/(min(has+more, mostRegisters)*threads))
		if next < blocks {
			out = append(out, next)
		}
		blocks = next
	}
	return out
}

// spillsFreely reports whether a kernel spills registers, has not been compiled again for that, and may be.
func spillsFreely(source string, facts KernelFacts) bool {
	return facts.Spills > 0 && facts.Again == 0 && strings.Contains(source, freeBound)
}

// withoutSpills compiles a request again for fewer blocks if its result spills registers, and returns the first result that does
// not, or that of the request itself if there is none; and how often it has compiled it. The compiler may refuse a number of blocks:
// what multiplies in f64 on tensor cores needs registers that others leave it, and is an error where it does not get them.
func withoutSpills(ctx context.Context, nvrtc *cuda.NVRTC, request cuda.Request, first cuda.Result, threads int) (result cuda.Result, again int, err error) {
	facts := factsOf(first.Log)
	if !spillsFreely(request.Source, facts) {
		return first, 0, nil
	}
	for _, blocks := range fewerBlocks(threads, facts.Registers) {
		r := request
		r.Source = strings.Replace(request.Source, freeBound, fmt.Sprintf("__launch_bounds__(THREADS, %d)", blocks), 1)
		result, err = nvrtc.Compile(ctx, r)
		var refused *cuda.CompileError
		if err != nil && !errors.As(err, &refused) {
			return result, again, err
		}
		again++
		if err == nil && factsOf(result.Log).Spills == 0 {
			return result, again, nil
		}
	}
	return first, again, nil
}
