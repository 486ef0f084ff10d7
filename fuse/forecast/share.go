package forecast

const (
	chainLanes   = 16   // threads of a strip at least: 256 bytes of each column
	chainSingles = 64   // and of one of single elements
	ChainThreads = 1024 // of a block: two on a multiprocessor have 64 KiB under way
	ChainUnroll  = 2    // accesses of a thread in its round at least
	ChainStrips  = 16   // strips from which the chains are short
	chainRounds  = 8    // rounds of the columns from which it pays
)

// part is how many columns a part has.
func (s Share) part(unroll int) int { return s.Groups * unroll }

// ChainShare divides a block of so many threads among rows in vectors.
func ChainShare(threads, vector int) Share {
	return Share{threads, threads / max(chainLanes, chainSingles/vector)}
}

// Chainable reports whether a chain of blocks suits so many rows and columns, better than blocks
// that have all columns of their rows.
func Chainable(rows, cols float64, vector int) bool {
	return ShareOf(cols).Blocks(rows, vector) < StripLeast && cols >= float64(chainRounds*ChainShare(ChainThreads, vector).part(ChainUnroll))
}

// A share is how the threads of a block divide rows that lie across memory.
type Share struct {
	Threads int // of the block
	Groups  int // of those that share the columns of the same rows
}

const (
	GroupUnroll  = 8          // columns in flight of a thread in flat mapping
	GroupThreads = 8          // threads that share the columns of one row there
	StripLanes   = 8          // threads beside each other on a line
	StripLeast   = FullDevice // blocks below which partial sums and a second kernel are faster
)

// shares are tried in this order, until each thread has columns enough to have as many
// under way as it may.
var shares = []Share{{512, 64}, {512, 32}, {256, GroupThreads}}

// Blocks is the number of blocks for so many rows.
func (s Share) Blocks(rows float64, vector int) float64 {
	return rows / float64(vector*s.Threads/s.Groups)
}

// ShareOf chooses the share of rows with so many columns.
func ShareOf(cols float64) Share {
	for _, s := range shares {
		if float64(GroupUnroll*s.Groups) <= cols {
			return s
		}
	}
	return shares[len(shares)-1]
}
