package runtime

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// TestFewerBlocks: each number of blocks leaves a thread more registers than the one before, and the last as many as it can have.
func TestFewerBlocks(t *testing.T) {
	for threads := 32; threads <= 1024; threads *= 2 {
		for registers := 16; registers <= mostRegisters; registers++ {
			tried := fewerBlocks(threads, registers)
			assert.True(t, slices.IsSortedFunc(tried, func(a, b int) int { return b - a }))
			for _, blocks := range tried {
				assert.GreaterOrEqual(t, blocks, 1)
				assert.Greater(t, fileRegisters/(blocks*threads), registers, "%d threads of %d registers: %v", threads, registers, tried)
			}
		}
	}
	assert.Equal(t, []int{12, 10, 8, 5, 3, 2}, fewerBlocks(128, 32))
	assert.Equal(t, []int{1}, fewerBlocks(512, 64))
	assert.Empty(t, fewerBlocks(1024, 64))
}

// TestSpillsAreCompiledAgain: a kernel for which the compiler is not free to choose stays as it is, and so does one that spills
// nothing.
func TestSpillsAreCompiledAgain(t *testing.T) {
	requireNVRTC(t)
	c := NewCompiler(Options{Cache: newCache(t, t.TempDir())})
	k, err := c.Compile(context.Background(), tripleProgram(), 0, "sm_90a")
	require.NoError(t, err)
	assert.Zero(t, k.Again)
	assert.False(t, spillsFreely(freeBound, k.KernelFacts))
	k.Spills = 4
	assert.True(t, spillsFreely(freeBound, k.KernelFacts))
	assert.False(t, spillsFreely(strings.Replace(freeBound, ")", ", MIN_BLOCKS)", 1), k.KernelFacts))
	k.Again = 1
	assert.False(t, spillsFreely(freeBound, k.KernelFacts))
}

// TestBlocksThatTheCompilerRefuses: products in f64 on tensor cores cannot be compiled for as many blocks as others, which is no
// reason to refuse the kernel.
func TestBlocksThatTheCompilerRefuses(t *testing.T) {
	requireNVRTC(t)
	nvrtc, err := cuda.FindNVRTC(cuda.FindOptions{})
	require.NoError(t, err)
	request := cuda.Request{Name: "double.cu", Options: nvrtc.SupportedOptions(compileOptions(ir.Unit{}, "sm_90a")...), Source: `
#define THREADS 128
extern "C" __global__ void __launch_bounds__(THREADS) f(double *x) {
    double d[4] = {};
    for (int i = 0; i < 8; ++i) {
        const double *a = x + 6 * (i * THREADS + threadIdx.x);
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                     : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3]) : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(a[4]), "d"(a[5]));
    }
    for (int i = 0; i < 4; ++i) x[4 * threadIdx.x + i] = d[i];
}`}
	spilling := cuda.Result{Log: "ptxas info    : Function properties for f\nptxas         .     8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n" +
		"ptxas info    : Used 24 registers, 8 bytes cumulative stack size\n"}
	refused := 0
	for _, blocks := range fewerBlocks(128, 24) {
		r := request
		r.Source = strings.Replace(r.Source, freeBound, fmt.Sprintf("__launch_bounds__(THREADS, %d)", blocks), 1)
		if _, err := nvrtc.Compile(context.Background(), r); err != nil {
			assert.ErrorContains(t, err, "mma with .f64 type")
			refused++
		}
	}
	require.Positive(t, refused, "the compiler takes any number of blocks")
	result, again, err := withoutSpills(context.Background(), nvrtc, request, spilling, 128)
	require.NoError(t, err)
	assert.Equal(t, refused+1, again)
	assert.NotEmpty(t, result.CUBIN)
}
