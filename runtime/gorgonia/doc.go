// Package gorgonia lets programs that use gorgonia.org/cu run fused graphs on their own
// context, streams and device memory, without a copy. It is also a second way to the driver:
// Open makes the driver's calls through gorgonia.org/cu, which links the driver instead of
// loading it.
//
// It needs the build tag gorgonia, cgo, and cuda.h of CUDA 12 (scripts/get-cuda-headers
// fetches it):
//
//	eval "$(scripts/get-cuda-headers)" && CGO_ENABLED=1 go build -tags gorgonia ./...
//
// A program built so does not start where there is no GPU: gorgonia.org/cu ends it.
// That is why it is not the default. It must not know graphs or plans.
package gorgonia
