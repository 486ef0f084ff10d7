package fusec

import (
	"os"
	"testing"

	"github.com/fusec/fusec/runtime/cuda"
)

// Programs that tests with and without a GPU share.
var (
	ProductBodies     = productBodies
	TF32Graph         = tf32Graph
	ByteGraph         = byteGraph
	QuantisedProducts = quantised
	RowProducts       = rowProducts
	RowProduct        = rowProduct
	HistogramGraph    = histogramGraph
	ScatterGraph      = scatterGraph
	HeldRows          = heldRows
	CheckedGraphs     = checkedGraphs
)

// RequireNVRTC skips where there is no NVRTC, except in continuous integration.
func RequireNVRTC(t testing.TB) *cuda.NVRTC {
	t.Helper()
	n, err := cuda.FindNVRTC(cuda.FindOptions{})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if err != nil {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	}
	return n
}

// Chains are the programs of TestChainsOnGPU and TestSlabsOnGPU.
func Chains() []string {
	var out []string
	for _, c := range chains {
		out = append(out, c.src)
	}
	for _, c := range slabs {
		out = append(out, c.src)
	}
	return out
}

// SharedColumns are the programs of TestSharedColumnsOnGPU.
func SharedColumns() []string {
	var out []string
	for _, c := range shared {
		out = append(out, c.src)
	}
	return out
}
