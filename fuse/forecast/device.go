// Package forecast says how busy a kernel will keep a large device, from sizes alone: what graph passes may ask
// of schedules before there are any. The schedules use the same figures. They are those of one device, whatever a
// program runs on, so that sums are cut, and rounded, alike everywhere.
package forecast

import "github.com/fusec/fusec/ir"

// Fragment is the rows, or the depth, of one instruction of tensor cores.
const Fragment = 16

// FewQueries reports whether a number of queries, heads not counted, is a small
// constant.
func FewQueries(n *ir.Expr) bool { return n.Op == ir.OpConst && n.Int <= Fragment }

// ContractLeast is the rows of M and of N from which tiles pay.
const ContractLeast = 32

// HeavyWork is the work of a point beyond which the registers of threads that hold a row may not do.
const HeavyWork = 84

// Figures of devices, and of blocks that keep one busy.
const (
	FullDevice        = 2 * ir.ReferenceSMs // blocks that keep a large GPU busy
	SplitBlocks       = 8 * FullDevice      // blocks to aim for when splitting: many waves leave no long tail
	AccumulateColumns = 8192                // a row that occupies a block: with longer ones running values would be in memory
	ThreadsSM         = 2048                // of a multiprocessor at most
	RegistersSM       = 65536               // of a multiprocessor; a block of 1024 threads may use 64 each
	AccessBytes       = 16                  // the widest access of one thread
	WidestVector      = 8
	Largest32         = 1 << 31 // elements that 32-bit offsets reach
	LoopThreads       = 512
	PassUnroll        = 2 // vectors in flight of a thread on a row that is read once, at once
)

// CopyAlign is the bytes that the copy engine's addresses and strides are multiples of.
const CopyAlign = 16

// LineBytes is the bytes of a line of the L2 cache, which is what the copy engine asks for.
const LineBytes = 128
