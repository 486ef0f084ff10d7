package forecast

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// What decides whether split-K fills a device.
const (
	MostSplits   = 8    // blocks of a cluster on every device that has clusters
	sliceTile    = 64   // rows of a tile of a small product
	shortSum     = 1024 // columns that one kernel sums in a few microseconds, however few its tiles
	SplitKPoints = 16   // least columns for tiles; rows of M times rows of N have to be at least its square
)

// Figures of products whose tiles are runs of memory, copied as they lie (ir.Band).
const (
	BandWidth = 128 // most rows that lie beside each other
	BandLeast = 256 // least rows of the longer side
	ShortBand = 128 // most columns
	LongBand  = 256 // most columns where a tile has all rows of the shorter side, so that the longer one is read once
)

// BandDepth is the most columns of such a product with so many rows of the shorter side.
func BandDepth(rows float64) int64 {
	if rows <= BandWidth {
		return LongBand
	}
	return ShortBand
}

// Figures of products in 16 bits whose sums are so long, and whose tiles are so few, that they are cut into slices.
const (
	SlicedColumns = 1 << 17 // least columns
	SlicedTile    = 64      // rows of a tile, either way
	SlicedTiles   = 1       // most tiles: the clusters of two and more read the columns as fast
	SlicedRows    = 8       // least rows of either side
)

// SplitKFills reports whether a sum of products needs no partial results: it has enough tiles
// to keep a device busy once their columns are split, or it is so short that a second kernel
// would take longer than it saves.
func SplitKFills(v *ir.Value, sizes map[string]int64) bool {
	m, n := form.Crossing(v)
	if m == nil {
		return false
	}
	blocks, points := float64(MostSplits), 1.0
	for _, r := range v.Axes {
		extent := algebra.Estimate(r.Extent, sizes)
		points *= extent
		if m[r] != n[r] {
			extent = math.Ceil(extent / sliceTile)
		}
		blocks *= extent
	}
	columns := algebra.Estimate(algebra.Product(v.Reduce.Ranges), sizes)
	return blocks >= ir.ReferenceSMs || columns <= shortSum && points >= SplitKPoints*SplitKPoints
}
