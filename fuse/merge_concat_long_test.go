package fuse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// collected is a program whose loop computes states from each other, and collects one of them along an axis: behind the others or
// ahead of them.
func collected(steps, axis int, ahead bool, step, last string) string {
	shape, empty, part := fmt.Sprintf("f32[N, %d]", steps), "full(0.0, N, 0, dtype=f32)", "a[:, none]"
	if axis == 0 {
		shape, empty, part = fmt.Sprintf("f32[%d, N]", steps), "full(0.0, 0, N, dtype=f32)", "a[none]"
	}
	parts := "m, " + part
	if ahead {
		parts = part + ", m"
	}
	return fmt.Sprintf("graph g(x: %s, s: f32[N]) -> (m: %s%s) {\n a = s\n m = %s\n for t in 0..%d {\n  b = %s\n  a = %s\n  m = concat(%s, axis=%d)\n }\n%s\n}",
		shape, shape, map[bool]string{true: ", r: " + shape, false: ""}[last != ""], empty, steps, map[int]string{0: "x[t]", 1: "x[:, t]"}[axis], step, parts, axis, last)
}

// TestStatesAreStoredByTheirKernel: the states of a recurrence that a loop collects along the first axis are stored by the kernel
// that computes them. Along the last one they are stored one after another, and turned by one more kernel.
func TestStatesAreStoredByTheirKernel(t *testing.T) {
	for _, steps := range []int{longConcat, 40, mostConcatParts} {
		for axis, kernels := range []int{1, 2} {
			for _, ahead := range []bool{false, true} {
				src := collected(steps, axis, ahead, "(a + b) * 0.5 + a * 0.25", "")
				p := planOf(t, src)
				assert.Len(t, p.Kernels, kernels, src)
				assert.Equal(t, steps, partsStored(p), src)
			}
		}
	}
	p := planOf(t, collected(40, 0, false, "(a + b) * 0.5", " r = m + x"))
	assert.Len(t, p.Kernels, 2, "what reads the states is a kernel of its own")
	assert.Len(t, planOf(t, collected(mostConcatParts+1, 0, false, "(a + b) * 0.5", "")).Kernels, 2, "more parts than are looked for")
}

// partsStored counts the parts of concatenations that kernels store.
func partsStored(p *ir.Plan) (n int) {
	for _, k := range p.Kernels {
		for _, a := range k.Args {
			if a.Write {
				n += len(a.Buffer.Parts)
			}
		}
	}
	return n
}

// TestPlanIsGraphForCollectedStates compares plans with graphs on loops that collect states, along either axis and in either
// order, read again or not.
func TestPlanIsGraphForCollectedStates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := collected(rapid.SampledFrom([]int{2, 5, longConcat - 1, longConcat, 33}).Draw(t, "steps"), rapid.IntRange(0, 1).Draw(t, "axis"), rapid.Bool().Draw(t, "ahead"),
			rapid.SampledFrom([]string{"a * 0.5 + b", "tanh(a + b)", "b", "max(a, b) - a * s"}).Draw(t, "step"),
			rapid.SampledFrom([]string{"", " r = m + x", " r = cumsum(m, axis=0)", " r = softmax(m)", " r = flip(m, 0) * 2"}).Draw(t, "last"))
		compareAt(t, src, rapid.SampledFrom(testSizes).Draw(t, "size"), 7)
	})
}
