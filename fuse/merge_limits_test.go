package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestFitsUpToItsLimits: two regions that together are as large as a kernel may be are merged; one operation more is refused, and
// the refusal says how many there would be.
func TestFitsUpToItsLimits(t *testing.T) {
	f := &flow{program: newProgram(ir.NewGraph("g"), ir.Devices()[0])}
	refused := func(a, b extent) string {
		regionOf := func(x extent) *region { return &region{size: x, members: []*ir.Value{{Name: "v"}}} }
		if r := f.fits(regionOf(a), regionOf(b)); r != nil {
			return r.Detail
		}
		return ""
	}
	for _, part := range []int{0, 1, mostSlots / 2, mostSlots} {
		a := extent{slots: part}
		assert.Empty(t, refused(a, extent{slots: mostSlots - part}))
		assert.Contains(t, refused(a, extent{slots: mostSlots - part + 1}), fmt.Sprintf("would do %d operations", mostSlots+1))
	}
	half := extent{slots: mostSlots / 2, passes: mostPasses / 2, args: mostArgs / 2}
	assert.Empty(t, refused(half, half), "all limits at once")
	f.g.OneKernel = true
	assert.Empty(t, refused(extent{slots: mostSlots}, extent{slots: 1}), "the program asks for one kernel")
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
