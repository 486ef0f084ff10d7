package norms_test

import (
	"context"
	"fmt"
	"log"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/examples/norms"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

func Example() {
	ctx := context.Background()
	device, err := fusec.Open("cpu")
	if err != nil {
		log.Fatal(err)
	}
	defer device.Close()
	graphs, err := norms.LoadGraphs(ctx, device)
	if err != nil {
		log.Fatal(err)
	}
	defer graphs.Close()
	x := []float32{3, 4, 0, 5}
	y, length := make([]float32, 4), make([]float32, 2)
	if err := graphs.Normalize(ctx, norms.NormalizeSizes{N: 2, M: 2}, norms.NormalizeArgs{X: x, Y: y, Length: length}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(y, length)
	// Output: [0.6 0.8 0 1] [5 5]
}

func TestPick(t *testing.T) {
	device, err := fusec.Open("cpu")
	require.NoError(t, err)
	defer device.Close()
	graphs, err := norms.LoadGraphs(t.Context(), device)
	require.NoError(t, err)
	defer graphs.Close()
	var table []tensor.BF16
	for i := range 12 {
		table = append(table, tensor.ToBF16(float32(i+1)))
	}
	out := make([]tensor.BF16, 8)
	sizes := norms.PickSizes{Rows: 3, N: 2}
	require.NoError(t, graphs.Pick(t.Context(), sizes, norms.PickArgs{Table: table, Index: []int32{2, 0}, Out: out}))
	assert.Equal(t, append(table[8:12:12], table[:4]...), out)
	assert.Equal(t, float32(9), out[0].Float32())
	err = graphs.Pick(t.Context(), sizes, norms.PickArgs{Table: table[1:], Index: []int32{2, 0}, Out: out})
	assert.ErrorContains(t, err, "graph pick: table: ")

	tableBuffer, err := device.NewBuffer(ir.BF16, 3, 4)
	require.NoError(t, err)
	index, err := device.NewBuffer(ir.I32, 2)
	require.NoError(t, err)
	picked, err := device.NewBuffer(ir.BF16, 2, 4)
	require.NoError(t, err)
	assert.NoError(t, graphs.PickBuffers(t.Context(), norms.PickBuffers{Table: tableBuffer, Index: index, Out: picked}))
}
