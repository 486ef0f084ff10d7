package forecast

import (
	"math"

	"github.com/fusec/fusec/ir"
)

// What decides whether a scatter of rows pays in chunks of its columns, and in how many.
const (
	ScatterListed  = 1024 // columns that a block lists at a time; for more, it reads the keys again
	ScatterColumns = 2    // least columns of a chunk for each place
	ScatterPlaces  = 256  // most places of a block
	ScatterBinned  = 32   // most columns for each place that go through bins, where no block reads the keys of another
	ScatterGrid    = ir.ReferenceSMs * ScatterBlocks
	ScatterBlocks  = 4      // blocks on a multiprocessor
	ScatterKey     = 1.1e-9 // seconds in which a block reads a key
)

// ScatterTiles are the numbers of places of a block that reads all keys, largest first. The
// more places a block has, the fewer blocks read the same keys.
var ScatterTiles = []int{ScatterPlaces, 64, 16, 8}

// ScatterTile is the places of a block, for so many batches of to places with cols columns
// each.
func ScatterTile(batch, to, cols float64) float64 {
	least := ScatterTiles[len(ScatterTiles)-1]
	for _, t := range ScatterTiles {
		places := float64(t)
		if t == least || batch*to >= ir.ReferenceSMs*places && cols*places <= to*2*ScatterListed {
			return places
		}
	}
	return float64(least)
}

// ScatterTime estimates the seconds in which blocks that list columns read their keys: once
// to list all, or to count them, and then once for each list.
func ScatterTime(batch, to, cols float64) float64 {
	places := ScatterTile(batch, to, cols)
	readings := 1.0
	if cols > 2*ScatterListed {
		readings = 2 + math.Floor(cols*places/(to*ScatterListed))
	}
	waves := math.Ceil(batch * math.Ceil(to/places) / ScatterGrid)
	return waves * readings * cols * ScatterKey
}
