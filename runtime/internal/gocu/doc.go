// Package gocu makes calls of the CUDA driver through gorgonia.org/cu, which links the
// driver through cgo. It is empty but for the build tag gorgonia: a program that links
// it does not start where there is no GPU. It must not know package cuda, whose tests
// run on it.
package gocu
