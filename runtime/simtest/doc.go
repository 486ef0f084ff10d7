// Package simtest opens devices without a GPU on which kernels run: a CUDA driver made
// for tests (runtime/internal/fakecuda) whose launches go to a simulator of PTX
// (runtime/internal/ptxsim). Plans, kernel text, the placing of memory, launches, graphs,
// clusters and tensor maps are all those of a GPU; speed is not. It is for the tests of
// this module.
package simtest
