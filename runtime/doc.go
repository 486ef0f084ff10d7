// Package runtime turns an ir.Program into results on a GPU, and an ir.Plan into
// results on the processor where there is none.
//
//	Open -> Device.Load -> Function.Run
//
// A Device is one GPU (package cuda) or the embedded engine (package cpu); the
// rest of a program need not know which. Kernels are compiled when sizes first
// need them, through the disk cache: a Compiler does that, and needs no device.
//
// The package must not know the language, nor how plans and CUDA text are made:
// it sees programs, sizes and bytes. It never prints; what is worth telling goes
// to Options.OnWarning and Options.Trace.
package runtime
