package fuse

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestCoverRows draws tiles and windows. Where a tile has a cover, each instruction finds its rows in it: groups of eight lines
// that follow each other, and the groups equally far apart; no row, at any tap, is past the end of the cover.
func TestCoverRows(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 0))
	found := 0
	for range 20000 {
		x := &covering{ofA: r.IntN(2) == 0, count: 1}
		dims := 1 + r.IntN(3)
		var tile []int
		rows := 1
		for d := range dims {
			n, stride := 1<<r.IntN(9), 1
			if d < dims-1 {
				n, stride = 1<<r.IntN(6), 1+r.IntN(3)
			}
			tile, rows = append(tile, n), rows*n
			x.along, x.stride, x.span, x.taps = append(x.along, d), append(x.stride, stride), append(x.span, r.IntN(8)), append(x.taps, ir.IntConst(0))
		}
		if rows < 64 || rows > 256 {
			continue
		}
		c := x.of(tile, 1)
		if c == nil {
			continue
		}
		found++
		line := func(row int) (at int) {
			for i := len(tile) - 1; i >= 0; i-- {
				at += row % tile[i] * c.Apart[i]
				row /= tile[i]
			}
			return at
		}
		last := 0 // tap
		for d := range dims {
			last += x.span[d] * c.Apart[d] / x.stride[d]
		}
		require.Less(t, line(rows-1)+last, c.Lines)
		require.Zero(t, rows%c.Rows)
		for instruction := range rows / c.Rows {
			first := instruction/c.Every*c.Every*c.Rows + instruction%c.Every*8
			for k := range c.Rows {
				require.Equal(t, line(first)+k/8*c.Group+k%8, line(first+k/8*c.Every*8+k%8), "row %d of instruction %d, tile %v", k, instruction, tile)
			}
		}
		require.True(t, !x.ofA || c.Every == 1 && c.Rows == 64)
	}
	require.Greater(t, found, 500)
}
