package forecast

import "github.com/fusec/fusec/ir"

// What decides whether histograms pay, and into how many chunks of columns they are cut.
const (
	histogramBytes  = 16 << 10 // most bytes of running values in a block
	histogramBlocks = 8        // blocks that fit a multiprocessor
	HistogramLanes  = 31       // most rows that share a key; with more, lists of columns are faster
	HistogramPlaces = 128      // least places; with fewer, each row may as well look at every column
	HistogramLeast  = 1024     // least columns of a chunk
	HistogramStep   = 1e-6     // seconds that a block takes for so many columns, an estimate
	HistogramGrid   = ir.ReferenceSMs * histogramBlocks
)

// RunningBytes is the size of a running value: that of its type, but at least a word; for an
// argmax, the value and its place.
func RunningBytes(op ir.Monoid, t ir.DType) int {
	if op.IsArg() {
		return 2 * ir.I64.Size()
	}
	return max(t.Size(), ir.I32.Size())
}

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
