package forecast

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// What decides whether a scatter of rows pays in chunks of its columns, and in how many.
const (
	ScatterListed  = 1024 // columns that a block lists at a time; for more, it reads the keys again
	ScatterColumns = 2    // least columns of a chunk for each place
	ScatterPlaces  = 256  // most places of a block
	ScatterBinned  = 32   // most columns for each place that go through bins, where no block reads the keys of another
	ScatterOnce    = 4096 // most columns whose keys a block reads at once; fewer have no bins
	ScatterGrid    = ir.ReferenceSMs * ScatterBlocks
	ScatterBlocks  = 4 // blocks on a multiprocessor
)

// Places of a block that has a bin: BinMany where places have up to BinLanes rows and up to BinColumns columns, else BinPlaces, of
// either only where there are enough for every multiprocessor, or else BinFew.
const (
	BinMany    = 128
	BinPlaces  = 32
	BinFew     = 8
	BinLanes   = 16
	BinColumns = 4
)

// Picoseconds of the scatter mappings on an H200, fitted to what was measured: see TestScattersAsMeasured.
const (
	writtenPoints = 15        // a hundred conditions of rows on columns where all threads are busy
	writtenColumn = 20_000    // the conditions of all rows on a column, at least: the time with few threads
	listKey       = 1_100     // a key, each time that a block reads it
	listBlock     = 2_500_000 // a block that lists columns: barriers, and trips to memory that wait for each other
	onceBlock     = 1_000_000 // a block that reads few keys at once: two barriers and two trips
	foldColumn    = 175_000   // a column of a place: four at a time wait for memory
	binChunk      = 3_500_000 // a chunk of keys that a block puts in bins
	binCounter    = 11_000    // a column of a tile: additions to one counter wait for each other; a guess
	binBlock      = 4_000_000 // a block that orders a bin and folds it
	binCrowded    = 4_000_000 // a column of a place of few rows, where many go to each
	binChunkKeys  = 512
)

// A Scatter is the sizes of a scatter, all of them expressions over symbols: the points of the rows that keys depend on, the
// places that keys name, the rows of each place, and the columns.
type Scatter struct{ Batch, To, Lanes, Columns *ir.Expr }

// ScatterOf is the sizes of a scatter of a kernel, or of a value, with such rows and columns.
func ScatterOf(s *ir.Scatter, rows, cols []*ir.Range) Scatter {
	return Scatter{Batch: algebra.Product(s.Batch), To: s.To.Extent, Lanes: algebra.Product(s.Lanes(rows)), Columns: algebra.Product(cols)}
}

// ScatterTiles are the numbers of places of a block that reads all keys, largest first. The
// more places a block has, the fewer blocks read the same keys.
var ScatterTiles = []int{ScatterPlaces, 64, 16, 8}

// ScatterTile is the places of a block, for so many batches of to places with cols columns
// each.
func ScatterTile(batch, to, cols float64) int {
	least := ScatterTiles[len(ScatterTiles)-1]
	for _, t := range ScatterTiles {
		places := float64(t)
		if t == least || batch*to >= ir.ReferenceSMs*places && cols*places <= to*2*ScatterListed {
			return t
		}
	}
	return least
}

// The estimates below are picoseconds for each column. They leave out what the columns themselves take to read, and the results
// to write, which is the same for all mappings.

// Written is the time of a loop in which each row evaluates its condition for all columns.
func (s Scatter) Written() *ir.Expr {
	rows := times(times(s.Batch, s.To), s.Lanes)
	return atLeast(over(scaled(rows, writtenPoints), 100), writtenColumn)
}

// Lists is the time of blocks of so many places that list their columns. Each reads all keys once to list them, or to count them
// and then once for each list.
func (s Scatter) Lists(places int) *ir.Expr {
	lists := quotient(scaled(s.Columns, int64(places)), scaled(s.To, ScatterListed))
	several := some(over(s.Columns, 2*ScatterListed+1)) // 1 where a list has no room for all
	readings := plus(times(several, plus(lists, 1)), 1)
	return times(s.turns(places), add(scaled(readings, listKey), s.block(listBlock)))
}

// Once is the time of blocks of so many places that read few keys at once.
func (s Scatter) Once(places int) *ir.Expr {
	return times(s.turns(places), s.block(onceBlock))
}

// block is the time of a block beside keys: what it takes whatever it has, and the folds of the columns of a place.
func (s Scatter) block(least int64) *ir.Expr {
	return add(quotient(ir.IntConst(least), s.Columns), quotient(ir.IntConst(foldColumn), s.To))
}

// Binned is the time of blocks that share the keys by way of bins.
func (s Scatter) Binned() *ir.Expr {
	places := plus(scaled(some(over(s.To, ir.ReferenceSMs*BinPlaces)), BinPlaces-BinFew), BinFew) // as scatterBins gives them
	few := times(some(quotient(ir.IntConst(BinLanes), s.Lanes)), some(quotient(scaled(s.To, BinColumns), s.Columns)))
	many := times(some(over(s.To, ir.ReferenceSMs*BinMany)), few)
	places = add(places, scaled(many, BinMany-BinPlaces))
	tiles := quotient(plus(add(s.To, places), -1), places)
	chunks := scaled(over(plus(s.Columns, ScatterGrid*binChunkKeys-1), ScatterGrid*binChunkKeys), binChunk)
	folds := scaled(over(plus(tiles, ScatterGrid-1), ScatterGrid), binBlock)
	crowded := times(some(quotient(ir.IntConst(BinLanes), s.Lanes)), some(quotient(s.Columns, scaled(s.To, BinColumns+1))))
	each := add(quotient(ir.IntConst(binCounter), tiles), quotient(scaled(crowded, binCrowded), s.To))
	return add(quotient(add(chunks, folds), s.Columns), each)
}

// Mapped is the time of blocks of so many places, or running values, in a mapping of scatters.
func (s Scatter) Mapped(m ir.Mapping, tile int) *ir.Expr {
	switch m {
	case ir.HistogramMapping:
		return s.Histogram(tile)
	case ir.ScatterBinsMapping:
		return s.Binned()
	case ir.ScatterOnceMapping:
		return s.Once(tile)
	}
	return s.Lists(tile)
}

// turns is how many blocks of so many places follow each other on a multiprocessor's share.
func (s Scatter) turns(places int) *ir.Expr {
	blocks := times(s.Batch, over(plus(s.To, int64(places-1)), int64(places)))
	return over(plus(blocks, ScatterGrid-1), ScatterGrid)
}

// Seconds is the time of all columns, where each takes so many picoseconds.
func Seconds(columns, picoseconds float64) float64 { return columns * picoseconds * 1e-12 }

func simple(e *ir.Expr) *ir.Expr { return ir.Simplify(e, ir.Facts{}) }

func add(a, b *ir.Expr) *ir.Expr { return simple(ir.Apply(ir.OpAdd, a, b)) }

func plus(e *ir.Expr, n int64) *ir.Expr { return add(e, ir.IntConst(n)) }

func times(a, b *ir.Expr) *ir.Expr { return simple(ir.Apply(ir.OpMul, a, b)) }

func scaled(e *ir.Expr, by int64) *ir.Expr { return times(e, ir.IntConst(by)) }

// quotient is a size divided by another, or by one where that is zero.
func quotient(a, b *ir.Expr) *ir.Expr { return simple(ir.Apply(ir.OpFloorDiv, a, atLeast(b, 1))) }

func over(e *ir.Expr, by int64) *ir.Expr { return quotient(e, ir.IntConst(by)) }

// some is 1 where a size is not zero.
func some(e *ir.Expr) *ir.Expr { return simple(ir.Apply(ir.OpMin, e, ir.IntConst(1))) }

func atLeast(e *ir.Expr, n int64) *ir.Expr { return simple(ir.Apply(ir.OpMax, e, ir.IntConst(n))) }
