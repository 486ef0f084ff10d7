package runtime

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
