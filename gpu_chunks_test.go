package fusec

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// TestSpecialValuesInChunksOnGPU: rows in chunks, whose maxima are folded two at a time, where
// a NaN, infinities or nothing but the least value are in one of them. The last warps have no
// last chunk, and blocks have several rows.
func TestSpecialValuesInChunksOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{})
	const rows, columns = 6, 66320
	for dtype, bits := range map[ir.DType]struct{ nan, inf, least uint16 }{
		ir.BF16: {0x7fc0, 0x7f80, 0xff80}, ir.F16: {0x7e00, 0x7c00, 0xfc00},
	} {
		t.Run(dtype.String(), func(t *testing.T) {
			p, f := loaded(t, dev, fmt.Sprintf(`graph g(x: %[1]s[N, M]) -> (y: %[1]s[N, M]) { y = softmax(x) }`, dtype))
			variants := p.Plan().Kernels[0].Variants
			at := slices.IndexFunc(variants, func(v *ir.Variant) bool { return v.Schedule.Held > 0 })
			require.Positive(t, at, "no rows in chunks")
			x, err := tensor.Random(dtype, 1, rows, columns)
			require.NoError(t, err)
			set := func(row, column int, to uint16) { binary.LittleEndian.PutUint16(x.Data[2*(row*columns+column):], to) }
			set(0, columns-1, bits.nan)
			set(1, 33001, bits.inf)
			for c := range columns {
				set(2, c, bits.least)
				if c%3 > 0 {
					set(3, c, bits.least)
				}
				set(4, c, uint16(c%2)<<15) // zeros of both signs
			}
			r := interpreted(t, p.Graph(), runtime.Args{"x": x})
			got, err := f.Call(context.Background(), r.args)
			require.NoError(t, err)
			diff, err := tensor.Compare(got["y"], r.want[0], tolerance(r.want[0], r.gaps[0]))
			require.NoError(t, err)
			assert.True(t, diff.OK(), "%v", diff)
		})
	}
}
