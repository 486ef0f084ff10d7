package ir

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestInverseSinesNearTheirEnds: what asin and acos give has all its digits also where their argument
// is near 1 or -1, and their slope is steep.
func TestInverseSinesNearTheirEnds(t *testing.T) {
	asin, acos := OpAsin.Info().Float, OpAcos.Info().Float
	for _, x := range []float64{-0.99999, -0.5, 0, 1e-9, 0.3, 0.999, 0.9999999} {
		assert.InDelta(t, math.Pi/2-acos(x, 0, 0), asin(x, 0, 0), 4e-16, x)
		assert.InDelta(t, x, math.Cos(acos(x, 0, 0)), 2e-16, x)
	}
	// 1 - cos(a) = 2 sin(a/2)^2, and 1 - x is exact here.
	for _, x := range []float64{1 - 0x1p-53, 1 - 0x1p-40, 1 - 0x1p-20} {
		assert.InEpsilon(t, 2*math.Asin(math.Sqrt((1-x)/2)), acos(x, 0, 0), 1e-15, x)
		assert.InEpsilon(t, math.Pi-2*math.Asin(math.Sqrt((1-x)/2)), acos(-x, 0, 0), 1e-15, x)
	}
	for _, f := range []func(a, b, c float64) float64{asin, acos} {
		assert.True(t, math.IsNaN(f(1.5, 0, 0)) && math.IsNaN(f(-1.5, 0, 0)))
	}
	assert.Equal(t, 0.0, acos(1, 0, 0))
	assert.Equal(t, math.Pi, acos(-1, 0, 0))
	assert.True(t, math.Signbit(asin(math.Copysign(0, -1), 0, 0)))
}
