package explain

import (
	"math"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// busyThreads are so many threads of a multiprocessor that it multiplies and adds as fast as with more.
const busyThreads = 256

// multiplyAddRate is the operations a second of a product by multiply-adds, of so many where all tiles are full and all multiprocessors
// have as much to do: tiles reach beyond the results, and one multiprocessor may have a block more than the others.
func (x *explainer) multiplyAddRate(v *ir.Variant, rate float64) float64 {
	c, s := v.Contract, v.Schedule
	if c == nil || s.Mapping != ir.SplitKMapping || c.Unit != ir.FMAUnit || c.Type != ir.F32 || c.B[0].Window != nil || c.B[0].WindowTiles != nil {
		return rate
	}
	m, knownM := x.eval(algebra.Product(c.M))
	n, knownN := x.eval(algebra.Product(c.N))
	batch, known := x.eval(algebra.Product(c.Batch))
	if !knownM || !knownN || !known || m*n*batch == 0 {
		return rate
	}
	splits := int64(max(1, s.Cluster))
	if c.Slices != nil {
		if splits, known = x.eval(c.Slices); !known {
			return rate
		}
	}
	tilesM, tilesN := math.Ceil(float64(m)/float64(s.TileM)), math.Ceil(float64(n)/float64(s.TileN))
	tiles := tilesM * tilesN
	if c.Symmetric {
		tiles = tilesM * (tilesM + 1) / 2
	}
	sms := float64(x.device.SMs)
	most := math.Ceil(float64(batch) * tiles * float64(splits) / sms) // blocks of a multiprocessor
	idle := max(1, busyThreads/(most*float64(s.Threads)))
	done := most * idle * sms * float64(s.TileM*s.TileN) / float64(splits) // points that there is time for, of a part of the sum each
	part := float64(m) * float64(n) * float64(batch) / done
	x.filled = min(x.filled, part*tiles/(tilesM*tilesN)) // no library knows of symmetry
	return rate * part
}
