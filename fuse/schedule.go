package fuse

// Figures of the schedules; measured on an H200, see docs/performance.md.
const (
	scanUnroll      = 32  // columns of a scan that a thread of the flat mapping prefetches
	scanThreads     = 64  // threads of a block there: so few that all multiprocessors take part when there are few rows
	scanAccess      = 4   // bytes of an access there
	unrolledSlots   = 600 // most work for which a short loop over columns is unrolled
	flatThreads     = 256
	pointThreads    = 128  // threads of a block of a pointwise kernel that moves much for each point; others take flatThreads, because starting more blocks would take longer
	gatherUnroll    = 2    // vectors in flight in a thread whose reads depend on indices that it reads
	fillUnroll      = 4    // vectors in flight in a thread that writes or copies one tensor; with fewer, starting blocks would take longer
	smallColumns    = 64   // most columns, where their number is constant and they are no row in memory, for the flat mapping
	cachedColumns   = 32   // most of them that a thread passes over several times
	aloneUnroll     = 4    // columns that a thread reads together there, where their number is a symbol
	threadColumns   = 16   // most columns that are a loop in the thread
	keptRegisters   = 56   // registers of a thread for its part of a row; more would cost occupancy
	fullThread      = 32   // columns of a thread: with as many in registers, these limit how many blocks run at a time
	residentThreads = 1024 // threads of a multiprocessor with persistent rows, at 64 registers each
	otherRegisters  = 36   // registers of a thread for addresses, indices and temporaries
	scalarItems     = 4    // single elements that a thread keeps in place of one vector
	largestScalar   = 16   // most single elements of a thread: each has an address of its own
	warpThreads     = 32
	contractFolds   = 2    // most products that share an operand
	operandVector   = 8    // elements in 16 bytes of a 16-bit type
	lightWork       = 46   // most work of an element that leaves a thread registers for addresses, found by compiling and timing the examples
	laneBlock       = 128  // threads of a block whose rows take a warp each, or less
	passRegisters   = 32   // registers of a thread for the vectors in flight of a longer row
	passValues      = 64   // most elements in flight in a thread, each of which takes a register once it is converted
	shortRow        = 1024 // most columns of a row that takes a warp
	scanColumns     = 32   // columns of a scanned row that a thread takes at once
	scanRegisters   = 64   // registers of a thread for these
	scanWork        = 16   // most work of a wide element that is scanned; issuing more takes longer than memory does
	groupRegisters  = 32   // registers of a thread for the columns in flight in the flat mapping; more would cost occupancy
	groupGuarded    = 32   // elements in flight in a thread where some are left out: each takes a register
	groupSums       = 16   // registers of a thread for its sums there; with more, fewer columns are in flight
	streamUnroll    = 4
	loopRegisters   = 16 // registers of a thread for the vectors in flight in a pass of a looped reduction; more would cost occupancy
)
