package runtime

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fusec/fusec/runtime/cuda"
)

// NVRTC 12.4 and 13.0 take constants out of 32-bit indices, as if adding them could never wrap around. A thread may hold
// several elements of a tensor with long strides, say those at s*(t - u), s*(t+512 - u) and s*(t+512+1 - u). The compiler
// computes s*(t - u) and adds 512*s or 513*s. If 512*s is just below 2^31, then 513*s wraps to a negative number, and one of the
// two elements is read 2^32 elements away from its place. In PTX the mistake is a distance of gigabytes. A kernel with
// 32-bit indices that has such a distance is compiled again with 64-bit indices, where nothing wraps.

const (
	farBytes  = 1 << 30               // distances from here on are looked at: few right programs have them
	mostBytes = 1 << 36               // and from here on they are no distances between elements
	narrow    = "#define INDEX int\n" // what the generator writes for kernels with 32-bit indices
	wide      = "#define INDEX long long\n"
)

// distances finds constants that PTX adds to an address, in an access or before it.
var distances = regexp.MustCompile(`\[%rd\d+\+(-?\d{10,})\]|\badd\.s64\s+%rd\d+, %rd\d+, (-?\d{10,});`)

// readsFar reports whether PTX adds a distance of farBytes or more to an address.
func readsFar(ptx []byte) bool {
	for _, found := range distances.FindAllSubmatch(ptx, -1) {
		bytes, err := strconv.ParseInt(string(found[1])+string(found[2]), 10, 64)
		if err == nil && max(bytes, -bytes) >= farBytes && max(bytes, -bytes) < mostBytes {
			return true
		}
	}
	return false
}

// withWideIndices compiles a request, and if the result may have a wrapped address, compiles it again with 64-bit indices.
// It returns the request of the result too.
func withWideIndices(ctx context.Context, nvrtc *cuda.NVRTC, request cuda.Request) (cuda.Request, cuda.Result, error) {
	result, err := nvrtc.Compile(ctx, request)
	if err != nil || !strings.Contains(request.Source, narrow) || !readsFar(result.PTX) {
		return request, result, err
	}
	request.Source = strings.Replace(request.Source, narrow, wide, 1)
	if result, err = nvrtc.Compile(ctx, request); err != nil {
		err = fmt.Errorf("with 64-bit indices: %w", err)
	}
	return request, result, err
}
