package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/simtest"
)

// turnedReads are kernels that read tensors across the range in which they write: elements of
// one size, of several, two tensors, ranges that are left over, and a batch.
var turnedReads = []string{
	"graph g(x: f32[N, M]) -> (y: f32[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: bf16[N, M]) -> (y: bf16[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: i8[N, M]) -> (y: i8[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: f64[N, M]) -> (y: f64[M, N]) {\n    y = transpose(x, 0, 1)\n}",
	"graph g(x: bf16[N, M], z: f32[N, M], w: f16[M, N]) -> (y: f32[M, N]) {\n" +
		"    y = f32(transpose(x, 0, 1)) * transpose(z, 0, 1) + f32(w)\n}",
	"graph g(x: f32[3, N, M]) -> (y: f32[3, M, N]) {\n    y = transpose(x, 1, 2) + 1\n}",
}

// TestTurnedReadsSimulated compares them with the interpreter, at whole tiles, whole vectors
// and what is left of both.
func TestTurnedReadsSimulated(t *testing.T) {
	_, dev := openSimulated(t, simtest.Config{Order: simtest.Order{Races: true}})
	for _, src := range turnedReads {
		p, f := loaded(t, dev, src)
		for _, set := range [][]int64{{64, 128}, {72, 136}, {70, 131}, {129, 17}, {24, 66}} {
			sizes, fit := sizesOf(p.Graph(), set)
			require.True(t, fit)
			t.Run(fmt.Sprint(src[:24], set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
		}
	}
}

// columnScans are scans along an axis that memory does not run along: both ways, of elements of
// several sizes, of products of two tensors, of sums of scans.
var columnScans = []string{
	"graph g(x: f32[N, M]) -> (y: f32[N, M]) {\n    y = cumsum(x, axis=0)\n}",
	"graph g(x: bf16[N, M]) -> (y: bf16[N, M]) {\n    y = cumsum(x, axis=0, reverse=true, exclusive=true)\n}",
	"graph g(x: i8[N, M]) -> (y: i64[N, M]) {\n    y = cumsum(i64(x), axis=0)\n}",
	"graph g(x: f64[2, N, M]) -> (y: f64[2, N, M]) {\n    y = cummax(x, axis=1)\n}",
	"graph g(x: bf16[N, M], z: f32[N, M], w: f32[M]) -> (y: f32[N, M], t: f32[N, M]) {\n" +
		"    t = cumsum(f32(x) * z + w, axis=0)\n    y = cumsum(t * 0.01, axis=0) - z\n}",
}

// TestColumnScansSimulated compares them with the interpreter: fewer columns than a stage, than
// all stages, and more; rows of whole vectors, and what is left.
func TestColumnScansSimulated(t *testing.T) {
	for _, arch := range []string{"sm_90a", "sm_80"} {
		_, dev := openSimulated(t, simtest.Config{Arch: arch, Order: simtest.Order{Races: true}})
		for _, src := range columnScans {
			p, f := loaded(t, dev, src)
			for _, set := range [][]int64{{1, 8}, {7, 64}, {130, 72}, {300, 260}, {33, 31}} {
				sizes, fit := sizesOf(p.Graph(), set)
				require.True(t, fit)
				t.Run(fmt.Sprint(arch, src[:24], set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
			}
		}
	}
}
