package forecast

import "github.com/fusec/fusec/ir"

// What decides whether histograms pay, and into how many chunks of columns they are cut.
const (
	histogramBytes  = 16 << 10 // most bytes of running values in a block
	histogramBlocks = 8        // blocks that fit a multiprocessor
	HistogramLanes  = 31       // most rows that share a key; with more, lists of columns are faster
	HistogramPlaces = 128      // least places; with fewer, each row may as well look at every column
	HistogramLeast  = 1024     // least columns of a chunk
	HistogramGrid   = ir.ReferenceSMs * histogramBlocks
	HistogramMany   = 1 << 18 // with more rows than this a block takes twice as many, so that fewer blocks read all keys
)

// Picoseconds of a histogram on an H200, fitted to what was measured: see TestScattersAsMeasured. The first figure of a pair is that
// of a block alone, the second that of one block more on a multiprocessor that has many.
const (
	histogramKey, histogramKeys   = 1_600, 450   // a key, which a block of each tile of rows reads
	histogramFold, histogramFolds = 7_600, 2_200 // a column that goes to a row of the block
	histogramBlock                = 3_000_000    // running values that are set and written
)

// Histogram is the picoseconds that a column takes where a block keeps the running values of so many rows.
func (s Scatter) Histogram(running int) *ir.Expr {
	each := quotient(ir.IntConst(int64(running)), s.Lanes)
	each = atLeast(each, 1)
	tiles := quotient(plus(add(s.To, each), -1), each)
	blocks := times(s.Batch, tiles)
	turns := over(plus(blocks, ir.ReferenceSMs-1), ir.ReferenceSMs)
	key := atLeast(scaled(turns, histogramKeys), histogramKey)
	fold := atLeast(scaled(turns, histogramFolds), histogramFold)
	ends := quotient(scaled(over(plus(blocks, HistogramGrid-1), HistogramGrid), histogramBlock), s.Columns)
	return add(add(key, quotient(times(s.Lanes, fold), tiles)), ends)
}

// RunningTile is how many rows a block has, as RunningRows says, or twice as many where there are many rows.
func RunningTile(bytes int, rows float64) int {
	if rows >= HistogramMany {
		return 2 * RunningRows(bytes)
	}
	return RunningRows(bytes)
}

// RunningBytes is the size of a running value: that of its type, but at least a word; for an
// argmax, the value and its place.
func RunningBytes(op ir.Monoid, t ir.DType) int {
	if op.IsArg() {
		return 2 * ir.I64.Size()
	}
	return max(t.Size(), ir.I32.Size())
}

// RunningWords is the registers of a running value.
func RunningWords(op ir.Monoid, t ir.DType) int { return RunningBytes(op, t) / ir.I32.Size() }

// SharedWords is the most registers of running values for each element of scatters that share a kernel: with more, a thread has
// fewer elements at a time, and a multiprocessor fewer threads.
const SharedWords = 4

// RunningRows is how many rows a block has if each running value takes so many bytes.
func RunningRows(bytes int) int {
	rows := HistogramLanes + 1
	for 2*rows*bytes <= histogramBytes {
		rows *= 2
	}
	return rows
}

// ScatterWork is the number of conditions, one for each row and column, below which either way
// is quick.
const ScatterWork = 1 << 22
