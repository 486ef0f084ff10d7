package num

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestElementsOutsideBeyondTheirRange: a constant that stands for elements outside a tensor, and is too large for its type, is what a
// conversion makes of it. All engines then read the same number.
func TestElementsOutsideBeyondTheirRange(t *testing.T) {
	for _, dtype := range []ir.DType{ir.F8E4M3, ir.F8E5M2, ir.F16, ir.BF16, ir.F32} {
		most, x := dtype.Info().Max, &ir.Value{Name: "x", Type: dtype}
		fill := func(v float64) float64 { return ir.Load(x, nil, ir.Num(dtype, v)).Fill.Val }
		for _, v := range []float64{0, 1.5, most, math.Nextafter(most, math.Inf(1)), most * (1 + dtype.Info().Epsilon/8),
			most * (1 + dtype.Info().Epsilon), most * 3, 1e300, math.Inf(1)} {
			for _, v := range []float64{v, -v} {
				assert.Equal(t, Round(dtype, v), fill(v), "%v as %v", v, dtype)
			}
		}
		assert.True(t, math.IsNaN(fill(math.NaN())), dtype)
	}
}
