package tensor_test

import (
	"fmt"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/tensor"
)

func Example() {
	x, err := tensor.FromSlice([]float32{1, 2, 3, 4.004}, 2, 2)
	if err != nil {
		panic(err)
	}
	y, err := x.Convert(ir.BF16)
	if err != nil {
		panic(err)
	}
	fmt.Println(y, y.At(0, 1), y.Float32s())
	diff, err := tensor.Compare(y, x, tensor.Tolerance{Rel: 1.0 / 256})
	fmt.Println(diff, err)
	// Output:
	// bf16[2, 2] 2 [1 2 3 4]
	// equal within tolerance (max abs error 0.004, max rel error 0.000999) <nil>
}
