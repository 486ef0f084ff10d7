package fusec

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/simtest"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestErfOfEveryFloat takes erf in kernels that store 16 bits of every float of 16 bits: what its fast form
// adds to the rounding is small beside erf near zero, and beside 1 where 1 is added to it.
func TestErfOfEveryFloat(t *testing.T) {
	const count = 1 << 16
	const beside0, beside1 = 0x1p-14, 4e-7
	_, dev := openSimulated(t, simtest.Config{Arch: "sm_90a"})
	for typ, bits := range map[ir.DType]int{ir.F16: 10, ir.BF16: 7} {
		_, f := loaded(t, dev, fmt.Sprintf("graph g(x: %[1]s[N]) -> (y: %[1]s[N], z: %[1]s[N]) { y = erf(x)\nz = erf(x) + 1 }", typ))
		x, err := tensor.New(typ, count)
		require.NoError(t, err)
		for i := range count {
			binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(i))
		}
		got, err := f.Call(context.Background(), runtime.Args{"x": x})
		require.NoError(t, err)
		half := math.Ldexp(1, -bits-1) // of the last bit, relative
		for i := range count {
			v, y, z := x.At(i), got["y"].At(i), got["z"].At(i)
			if math.IsNaN(v) {
				require.True(t, math.IsNaN(y) && math.IsNaN(z), "%s 0x%04x", typ, i)
				continue
			}
			want := math.Erf(v)
			require.InDelta(t, want, y, math.Abs(want)*(half+beside0)+0x1p-25, "erf(%g) in %s", v, typ)
			require.InDelta(t, 1+want, z, (1+want)*half+beside1, "1 + erf(%g) in %s", v, typ)
		}
	}
}
