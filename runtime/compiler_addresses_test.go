package runtime

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

func TestDistancesOfGigabytes(t *testing.T) {
	for ptx, far := range map[string]bool{
		"ld.global.nc.u16 \t%rs145, [%rd4+8588886144];":                  true,
		"ld.global.nc.u16 \t%rs145, [%rd4+-8588886144];":                 true,
		"st.global.u16 \t[%rd4+1073741824], %rs1;":                       true,
		"add.s64 \t%rd9, %rd4, -4294443072;":                             true,
		"add.s64 \t%rd9, %rd4, 4611686293305294848;":                     false, // a descriptor of a tile
		"add.s64 \t%rd9, %rd4, 1073741823;":                              false,
		"ld.global.nc.u16 \t%rs145, [%rd4+7339136];":                     false,
		"ld.param.u64 \t%rd8, [f_param_0];\nmov.u64 \t%rd1, 8588886144;": false,
	} {
		assert.Equal(t, far, readsFar([]byte(ptx)), ptx)
	}
}

// TestIndicesThatWrap: two elements of a thread whose indices, but for what is the same in both, lie on both sides of 2^31. With
// 32-bit indices NVRTC 12.4 reads one of them at a wrong address.
func TestIndicesThatWrap(t *testing.T) {
	requireNVRTC(t)
	nvrtc, err := cuda.FindNVRTC(cuda.FindOptions{})
	require.NoError(t, err)
	request := cuda.Request{Name: "wrap.cu", Options: nvrtc.SupportedOptions(compileOptions(ir.Unit{}, "sm_90a")...), Source: narrow + `
extern "C" __global__ void f(const unsigned short *__restrict__ x, unsigned short *__restrict__ y, int rows, unsigned multiplier, unsigned shift) {
    unsigned short read[4][8];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
        const INDEX t = (blockIdx.x * 4 + u) * 256 + threadIdx.x;
        const INDEX outer = (int)((__umulhi(t, multiplier) + t) >> shift), first = (t - outer * rows) * 8;
#pragma unroll
        for (int v = 0; v < 8; ++v) read[u][v] = outer < 8191 ? x[outer + (first + v) * 524224] : 0;
    }
#pragma unroll
    for (int u = 0; u < 4; ++u)
#pragma unroll
        for (int v = 0; v < 8; ++v) y[((blockIdx.x * 4 + u) * 256 + threadIdx.x) * 8 + v] = read[u][v];
}
`}
	first, err := nvrtc.Compile(context.Background(), request)
	require.NoError(t, err)
	t.Logf("with 32-bit indices a wrong address: %v", readsFar(first.PTX)) // a later compiler may be mended
	again, result, err := withWideIndices(context.Background(), nvrtc, request)
	require.NoError(t, err)
	assert.False(t, readsFar(result.PTX))
	assert.Equal(t, readsFar(first.PTX), strings.Contains(again.Source, wide))
	if major, minor := nvrtc.Version(); major == 12 && minor == 4 {
		assert.True(t, readsFar(first.PTX), "the case that NVRTC 12.4 gets wrong")
	}
}
