// Package forecast estimates, from sizes alone, how busy a kernel will keep a large device. Graph passes ask it,
// because they run before there are schedules; schedules use the same figures. The figures are those of one
// reference device, whichever device a program runs on, so that sums are cut and rounded in the same way
// everywhere.
package forecast

import "github.com/fusec/fusec/ir"

// Fragment is the rows, or the depth, of one instruction of tensor cores.
const Fragment = 16

// FewQueries reports whether a number of queries, heads not counted, is a small
// constant.
func FewQueries(n *ir.Expr) bool { return n.Op == ir.OpConst && n.Int <= Fragment }

// ContractLeast is the least rows of M, and of N, for which tiles pay.
const ContractLeast = 32

// HeavyWork is the work of a point beyond which threads that hold a row may run out of registers.
const HeavyWork = 84

// Figures of devices, and of blocks that keep one busy.
const (
	FullDevice        = 2 * ir.ReferenceSMs // blocks that keep a large GPU busy
	SplitLeast        = 32768               // points of one reduction below which one block is enough
	SplitBlocks       = 8 * FullDevice      // blocks to aim for when splitting: many waves leave no long tail
	AccumulateColumns = 8192                // columns of a row for one block: with longer rows, running values would have to be in memory
	ThreadsSM         = 2048                // most threads of a multiprocessor
	RegistersSM       = 65536               // of a multiprocessor; a block of 1024 threads may use 64 each
	AccessBytes       = 16                  // the widest access of one thread
	WidestVector      = 8
	Largest32         = 1 << 31 // elements that 32-bit offsets reach
	LoopThreads       = 512
	PassUnroll        = 2 // vectors in flight of a thread, on a row that is read once and all at once
)

// CopyAlign is the bytes that the copy engine's addresses and strides are multiples of.
const CopyAlign = 16

// SectorBytes is the bytes of memory that are read and written at once.
const SectorBytes = 32

// Figures of a multiprocessor of Hopper.
const (
	BytesL2  = 30      // bytes that the L2 cache gives it in a cycle, where all ask at once
	BytesTap = 48      // the same of boxes that a window reads again for each tap, as kernels of convolutions were measured
	Clock    = 1.755e9 // cycles a second
)

// LineBytes is the bytes of a line of the L2 cache, which is what the copy engine asks for.
const LineBytes = 128
