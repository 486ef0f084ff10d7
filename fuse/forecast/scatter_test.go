package forecast_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/ir"
)

// The ways in which the rows below were run.
const (
	lists = iota
	once
	binned
	histogram
)

// measuredScatters are what docs/performance.md says of scatters and histograms: keys spread evenly, milliseconds. Where columns are
// cut, batch is the number of chunks, and another kernel adds up the partial results.
var measuredScatters = []struct {
	device                    string
	way                       int
	batch, to, lanes, columns int64 // of one chunk
	bytes                     int64 // of an element
	cut                       bool
	ms                        float64
}{
	{"H200", binned, 1, 131072, 1024, 131072, 4, false, 0.2873},
	{"H200", binned, 1, 131072, 1024, 131072, 2, false, 0.1633},
	{"H200", binned, 1, 32000, 2048, 131072, 4, false, 0.3422},
	{"H200", binned, 1, 32000, 2048, 131072, 2, false, 0.1910},
	{"H200", binned, 1, 16384, 512, 16384, 4, false, 0.0336},
	{"H200", binned, 1, 4096, 1024, 65536, 4, false, 0.1019},
	{"H200", binned, 1, 131072, 64, 131072, 4, false, 0.0521},
	{"H200", binned, 1, 50257, 1, 1048576, 4, false, 0.0898},
	{"H200", binned, 1, 10000, 8, 262144, 4, false, 0.1377},
	{"H200", binned, 1, 100000, 16, 319488, 4, false, 0.0431},
	{"H200", once, 1, 1024, 1024, 1024, 4, false, 0.0056},
	{"H200", once, 1, 1024, 256, 4096, 4, false, 0.0081},
	{"H200", once, 1, 2048, 1024, 2048, 4, false, 0.0115},
	{"H200", lists, 1, 2000, 2048, 131072, 4, false, 0.3928},
	{"H200", lists, 8, 2048, 64, 8192, 4, false, 0.0273},
	{"H200", lists, 1, 131072, 1024, 131072, 4, false, 0.5600},
	{"H200", lists, 1, 131072, 1024, 131072, 2, false, 0.4227},
	{"H200", lists, 1, 32000, 2048, 131072, 4, false, 0.5600},
	{"H100", lists, 256, 256, 64, 1024, 4, true, 0.0637},
	{"H200", histogram, 81, 50257, 1, 12946, 4, true, 0.0788},
	{"H200", histogram, 1024, 1024, 1, 1024, 4, true, 0.0333},
	{"H200", histogram, 42, 50257, 1, 24967, 8, true, 0.1306},
	{"H200", histogram, 81, 50257, 1, 207127, 4, true, 1.035},
	{"H200", histogram, 4, 1 << 20, 1, 262144, 4, true, 0.94},
	{"H100", histogram, 48, 256, 1, 262144, 8, false, 2.42},
}

// TestScattersAsMeasured: estimates of scatters are near to what was measured.
func TestScattersAsMeasured(t *testing.T) {
	const within = 1.5
	for _, m := range measuredScatters {
		size := ir.IntConst
		s := forecast.Scatter{Batch: size(m.batch), To: size(m.to), Lanes: size(m.lanes), Columns: size(m.columns)}
		tile := forecast.ScatterTile(float64(m.batch), float64(m.to), float64(m.columns))
		var column *ir.Expr
		switch m.way {
		case lists:
			column = s.Lists(tile)
		case once:
			column = s.Once(forecast.BinFew)
		case binned:
			column = s.Binned()
		case histogram: // those that were measured had no twice as large tiles
			column = s.Histogram(forecast.RunningRows(int(m.bytes)))
		}
		on, err := ir.DeviceNamed(m.device)
		require.NoError(t, err)
		keys, results := float64(m.batch*m.columns*8), float64(m.batch*m.to*m.lanes*m.bytes)
		seconds := on.Time(keys+float64(m.batch*m.columns*m.lanes*m.bytes)+results, 0, 0)
		seconds += forecast.Seconds(float64(m.columns), algebra.Estimate(column, nil))
		if m.cut {
			seconds += on.Time(results, 0, 0)
		}
		off := 1e3 * seconds / m.ms
		assert.LessOrEqual(t, math.Max(off, 1/off), within, "%v: estimated %.4f ms", m, 1e3*seconds)
	}
}
