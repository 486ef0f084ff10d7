package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestFitsUpToItsLimits: two regions that together are as large as a kernel may be are merged; one more tensor, or one more pass,
// is refused.
func TestFitsUpToItsLimits(t *testing.T) {
	f := &flow{program: newProgram(ir.NewGraph("g"), ir.Devices()[0])}
	refused := func(a, b extent) string {
		regionOf := func(x extent) *region { return &region{size: x, members: []*ir.Value{{Name: "v"}}} }
		if r := f.fits(regionOf(a), regionOf(b)); r != nil {
			return r.Detail
		}
		return ""
	}
	half := extent{passes: mostPasses / 2, args: mostArgs / 2}
	assert.Empty(t, refused(half, half), "all limits at once")
	f.g.OneKernel = true
	assert.Empty(t, refused(extent{passes: mostPasses}, extent{passes: 1}), "the program asks for one kernel")
}

// TestWorkUpToItsLimit: a kernel has as much work as it may have, what it needs several times counted once, and no more unless the
// program asks for one kernel. The refusal says how much there would be.
func TestWorkUpToItsLimit(t *testing.T) {
	step := ir.OpTanh.Info().Cost + ir.OpAdd.Info().Cost
	most := (mostSlots - 5) / step // the element, and its index, are there once
	text := func(n int) string {
		return fmt.Sprintf("graph g(x: f32[N]) -> (y: f32[N]) { y = x; for t in 0..%d { y = tanh(y) + x } }", n)
	}
	assert.Len(t, planOf(t, text(most)).Kernels, 1)
	p := planOf(t, text(most+1))
	assert.Len(t, p.Kernels, 2)
	require.NotEmpty(t, p.Refused)
	assert.Contains(t, p.Refused[0].Detail, fmt.Sprintf("would do %d operations", 5+step*(most+1)))
	assert.Len(t, planOf(t, "@onekernel "+text(most+1)).Kernels, 1)
}

// TestRecurrencesAreOneKernel: the steps of a loop in which states are computed from each other, however often each is read, are one
// kernel that has each step once.
func TestRecurrencesAreOneKernel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		states, steps := rapid.IntRange(1, 2).Draw(t, "states"), rapid.IntRange(8, 30).Draw(t, "steps")
		leaves := []string{"x[t]", "s", "a0", "a1"}[:2+states]
		forms := []string{"(%s + %s) * 0.5", "(%s - %s) * 0.5", "min(%s, %s)", "tanh(%s) * %s"}
		pick := func() string {
			leaf := func() any { return rapid.SampledFrom(leaves).Draw(t, "leaf") }
			inner := fmt.Sprintf(rapid.SampledFrom(forms).Draw(t, "form"), leaf(), leaf())
			return fmt.Sprintf(rapid.SampledFrom(forms).Draw(t, "form"), "("+inner+")", leaf())
		}
		src := "graph g(x: f32[32, N], s: f32[N]) -> (y: f32[N]) {\n a0 = x[0]\n a1 = x[1]\n"
		src += fmt.Sprintf(" for t in 0..%d {\n", steps)
		for i := range states {
			src += fmt.Sprintf("  a%d = %s\n", i, pick())
		}
		src += " }\n y = a0 + a1\n}"
		assert.Len(t, planOf(t, src).Kernels, 1, src)
		compareAt(t, src, 5)
	})
}

// TestLastBlocksOfManyTensors: the last blocks of a kernel run the next one up to the most tensors that a kernel has, and no
// further. The two have one list of parameters.
func TestLastBlocksOfManyTensors(t *testing.T) {
	met := map[int]bool{}
	for n := mostArgs - 6; n < mostArgs; n++ {
		var inputs, terms []string
		for i := range n {
			inputs, terms = append(inputs, fmt.Sprintf("x%d: f32[200, 500]", i)), append(terms, fmt.Sprintf("x%d", i))
		}
		p := planOf(t, fmt.Sprintf("graph g(%s) -> (y: f32[]) { y = max(sum(%s, axis=1)) }", strings.Join(inputs, ", "), strings.Join(terms, " * ")))
		require.GreaterOrEqual(t, len(p.Kernels), 2)
		first, then := p.Kernels[len(p.Kernels)-2], p.Kernels[len(p.Kernels)-1]
		args := len(first.Args) + len(then.Args)
		require.Equal(t, args <= mostArgs, first.LastBlock != nil, "%d tensors in %d kernels", args, len(p.Kernels))
		met[args] = true
	}
	assert.True(t, met[mostArgs] && met[mostArgs+1], "sizes on both sides of the limit: %v", met)
}
