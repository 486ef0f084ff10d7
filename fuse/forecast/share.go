package forecast

const (
	chainLanes   = 16   // least threads beside each other along the rows: 256 bytes of each column
	chainSingles = 64   // the same where accesses are single elements
	ChainThreads = 1024 // threads of a block; two such blocks on a multiprocessor have 64 KiB under way
	ChainUnroll  = 2    // least accesses of a thread in its round
	ChainStrips  = 16   // number of strips with which chains are short
	chainRounds  = 8    // least rounds of reads of the columns for which chains pay
)

// part is how many columns one block reads in its round.
func (s Share) part(unroll int) int { return s.Groups * unroll }

// ChainShare divides a block of so many threads among rows in vectors.
func ChainShare(threads, vector int) Share {
	return Share{threads, threads / max(chainLanes, chainSingles/vector)}
}

// Chainable reports whether, for so many rows and columns, chains of blocks are better than
// blocks that have all columns of their rows.
func Chainable(rows, cols float64, vector int) bool {
	return ShareOf(cols).Blocks(rows, vector) < StripLeast && cols >= float64(chainRounds*ChainShare(ChainThreads, vector).part(ChainUnroll))
}

// A Share is how the threads of a block divide rows whose columns are not contiguous in memory.
type Share struct {
	Threads int // of the block
	Groups  int // threads that share the columns of the same rows
}

const (
	GroupUnroll  = 8          // columns in flight of a thread in flat mapping
	GroupThreads = 8          // threads that share the columns of one row there
	StripLanes   = 8          // threads that read neighbours on a line
	StripLeast   = FullDevice // least blocks; with fewer, partial sums and a second kernel are faster
)

// shares are tried in this order. The first that gives each thread GroupUnroll columns is
// taken.
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
