package ptxsim

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rowsAt is a scattered place of shared memory for each row of four matrices.
func rowsAt(row int) int { return (row*7%32 + row/5%2*40) * 16 }

func element16(matrix, row, col int) uint16 { return uint16(matrix<<12 | row<<8 | col<<4 | 5) }

// TestLoadMatrix loads one, two and four matrices, as they are and transposed.
func TestLoadMatrix(t *testing.T) {
	for _, count := range []int{1, 2, 4} {
		for _, trans := range []bool{false, true} {
			order := map[bool]string{true: ".trans"}[trans]
			op := fmt.Sprintf("ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16", count, order)
			// The first result takes the place of the address.
			got, err := simulate(op+" "+names("r", 0, count)+", [r0+32];", warpSize, 2048, func(c *cta) {
				for row := range 32 {
					for col := range 8 {
						binary.LittleEndian.PutUint16(c.shared[rowsAt(row)+2*col:], element16(row/8, row%8, col))
					}
				}
				for lane := range warpSize {
					c.warps[0].regs[0][lane] = uint64(sharedStart+rowsAt(lane)) - 32
					if lane >= 8*count {
						c.warps[0].regs[0][lane] = 3 // nobody looks at it
					}
				}
			})
			require.NoError(t, err)
			for lane := range warpSize {
				for i := range count {
					low, high := element16(i, lane/4, 2*(lane%4)), element16(i, lane/4, 2*(lane%4)+1)
					if trans {
						low, high = element16(i, 2*(lane%4), lane/4), element16(i, 2*(lane%4)+1, lane/4)
					}
					assert.Equal(t, uint64(low)|uint64(high)<<16, got.warps[0].regs[i][lane], "%s lane %d", op, lane)
				}
			}
		}
	}
}

// TestStoreMatrix stores what TestLoadMatrix loads, here by generic addresses.
func TestStoreMatrix(t *testing.T) {
	for _, count := range []int{1, 2, 4} {
		for _, trans := range []bool{false, true} {
			op := fmt.Sprintf("stmatrix.sync.aligned.m8n8.x%d%s.b16", count, map[bool]string{true: ".trans"}[trans])
			got, err := simulate(op+" [d0], "+names("r", 0, count)+";", warpSize, 2048, func(c *cta) {
				for lane := range warpSize {
					c.warps[0].regs[firstD][lane] = sharedWindow | uint64(sharedStart+rowsAt(lane))
					for i := range count {
						low, high := element16(i, lane/4, 2*(lane%4)), element16(i, lane/4, 2*(lane%4)+1)
						if trans {
							low, high = element16(i, 2*(lane%4), lane/4), element16(i, 2*(lane%4)+1, lane/4)
						}
						c.warps[0].regs[i][lane] = uint64(low) | uint64(high)<<16
					}
				}
			})
			require.NoError(t, err)
			for row := range 32 {
				for col := range 8 {
					want := uint16(0xffff) // not written
					if row < 8*count {
						want = element16(row/8, row%8, col)
					}
					have := binary.LittleEndian.Uint16(got.shared[rowsAt(row)+2*col:])
					assert.Equal(t, want, have, "%s row %d", op, row)
				}
			}
		}
	}
}

func TestMoveMatrix(t *testing.T) {
	got, err := simulate("movmatrix.sync.aligned.m8n8.trans.b16 r1, r1;", warpSize, 0, func(c *cta) {
		for lane := range warpSize {
			row, col := lane/4, 2*(lane%4)
			c.warps[0].regs[1][lane] = uint64(element16(0, row, col)) | uint64(element16(0, row, col+1))<<16
		}
	})
	require.NoError(t, err)
	for lane := range warpSize {
		row, col := 2*(lane%4), lane/4
		want := uint64(element16(0, row, col)) | uint64(element16(0, row+1, col))<<16
		assert.Equal(t, want, got.warps[0].regs[1][lane])
	}
}
