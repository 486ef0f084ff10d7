package num

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestConstantsBeyondTheirRange: a constant that is too large for its type is what a conversion makes of it. All engines then read
// the same number where it stands for elements outside a tensor.
func TestConstantsBeyondTheirRange(t *testing.T) {
	for _, dtype := range []ir.DType{ir.F8E4M3, ir.F8E5M2, ir.F16, ir.BF16, ir.F32} {
		most := dtype.Info().Max
		for _, v := range []float64{0, 1.5, most, math.Nextafter(most, math.Inf(1)), most * (1 + dtype.Info().Epsilon/8),
			most * (1 + dtype.Info().Epsilon), most * 3, 1e300, math.Inf(1)} {
			for _, v := range []float64{v, -v} {
				assert.Equal(t, Round(dtype, v), ir.Num(dtype, v).Val, "%v as %v", v, dtype)
			}
		}
		assert.True(t, math.IsNaN(ir.Num(dtype, math.NaN()).Val), dtype)
	}
}
