package fuse

// Figures of the schedules; measured on an H200, see docs/performance.md.
const (
	scanUnroll      = 32  // columns a thread reads ahead of its scan in flat mapping
	scanThreads     = 64  // of a block there: all multiprocessors take part when rows are few
	scanAccess      = 4   // bytes of an access there
	unrolledSlots   = 600 // work up to which a short column loop is unrolled
	flatThreads     = 256
	pointThreads    = 128  // of a pointwise kernel; of one that moves little a point, starting blocks would take longer
	gatherUnroll    = 2    // vectors in flight of a thread whose reads wait for indices that are read
	fillUnroll      = 4    // and of one that moves one tensor: starting blocks would take longer
	smallColumns    = 64   // a constant number of columns up to this is worked on in flat mapping
	threadColumns   = 16   // and up to this is a loop in the thread
	keptRegisters   = 56   // of a thread, for what it holds of a row: more costs occupancy
	fullThread      = 32   // columns a thread holds from which registers limit the blocks in flight
	residentThreads = 1024 // of a multiprocessor working on persistent rows: 64 registers each
	otherRegisters  = 36   // addresses, indices and temporaries
	scalarItems     = 4    // single elements a thread holds in place of one vector
	largestScalar   = 16   // and the most of them: each has an address of its own
	warpThreads     = 32
	laneBlock       = 128  // threads of a block whose rows take a warp each, or share one
	passRegisters   = 32   // of a thread, for the vectors in flight of a longer one
	passValues      = 64   // and at most so many elements, which take a register each once they are converted
	shortRow        = 1024 // columns up to which such a row takes a warp
	scanColumns     = 32   // of a thread on a row that is scanned, at once
	scanRegisters   = 64   // of a thread, for those
	scanWork        = 16   // of a wide element that is scanned; beyond that issuing it takes longer than memory does
	groupRegisters  = 32   // of a thread, for the columns in flight in flat mapping: more costs occupancy
	groupGuarded    = 32   // elements in flight of a thread where some are left out: each takes a register
	groupSums       = 16   // of a thread, for its sums there: with more, fewer columns are in flight
	streamUnroll    = 4
	loopRegisters   = 16 // of a thread, for the vectors in flight of a pass of a looped reduction: more costs occupancy
)
