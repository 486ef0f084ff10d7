package forecast

import (
	"math"

	"github.com/fusec/fusec/ir"
)

// What orders take, as the operations of f32 that a device does in that time. A network takes 0.74 ms for 32768 rows
// of 4096 f32, a selection 0.19 ms for the first 64 of each, on an H200.
const (
	sortStep  = 5    // of a key in one step of a network
	selectKey = 90   // of a key in a selection
	sortDigit = 16   // bits of longer keys that a network sorts at a time
	mergeWait = 5e-6 // seconds that a level of merges takes at least, or the choice among what slices have: not measured
)

// SortFlops estimates how much the blocks of a variant work that orders rows, as operations of a whole device: where
// there are fewer blocks than multiprocessors, the others have nothing to do.
func SortFlops(v *ir.Variant, d ir.Device, rows, cols float64) float64 {
	s := v.Schedule
	size := float64(s.Threads * s.Items)
	chunks := math.Max(math.Ceil(cols/size), 1)
	blocks, keys := rows, rows*cols
	work := selectKey * keys
	switch s.Mapping {
	case ir.SortMapping:
		work = networkFlops(v.Sort, size) * rows * size
	case ir.MergeMapping:
		blocks, keys = rows*chunks, rows*chunks*size
		levels := math.Ceil(math.Log2(chunks))
		moved := 2 * float64(v.Sort.EntryBytes()) * keys / d.Bandwidth
		work = networkFlops(v.Sort, size)*keys + levels*math.Max(moved, mergeWait)*d.F32Rate
	case ir.PieceMapping:
		if s.Blocks > 0 {
			blocks = rows * math.Min(chunks, math.Max(float64(s.Blocks)/rows, 1))
			work += mergeWait * d.F32Rate
		}
	}
	waves := math.Ceil(blocks / float64(d.SMs))
	return work * waves * float64(d.SMs) / math.Max(blocks, 1)
}

// networkFlops is what a key takes among size keys of a network.
func networkFlops(s *ir.Sort, size float64) float64 {
	passes := 1.0
	if bits := 8 * s.Type.Size(); !s.OneWord() {
		passes = float64(bits / sortDigit)
	}
	levels := math.Log2(size)
	return passes * sortStep * levels * (levels + 1) / 2
}
