package forecast

import "github.com/fusec/fusec/ir"

// What decides whether histograms pay, and into how many chunks of columns they are cut.
const (
	histogramBytes  = 16 << 10 // running values of a block
	histogramBlocks = 8        // that fit a multiprocessor beside each other
	HistogramLanes  = 31       // rows that share a key, at most; more are better listed
	HistogramPlaces = 128      // below which every row may as well ask every column
	HistogramLeast  = 1024     // columns of a chunk
	HistogramStep   = 1e-6     // seconds in which a block takes so many, an estimate
	HistogramGrid   = ir.ReferenceSMs * histogramBlocks
)

// RunningBytes is the size of a running value: its type, or a word, or a value and where it is.
func RunningBytes(op ir.Monoid, t ir.DType) int {
	if op.IsArg() {
		return 2 * ir.I64.Size()
	}
	return max(t.Size(), ir.I32.Size())
}

// RunningRows is how many rows a block has whose running values take so many bytes each.
func RunningRows(bytes int) int {
	rows := HistogramLanes + 1
	for 2*rows*bytes <= histogramBytes {
		rows *= 2
	}
	return rows
}

// ScatterWork is the conditions, of all rows on all columns, below which either way is quick.
const ScatterWork = 1 << 22
