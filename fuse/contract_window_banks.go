package fuse

import (
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
)

// What the threads of a warp read of a halo should be in different banks of shared memory.

const (
	haloPads    = 16 // tried paddings of lines
	sharedBanks = 32 // banks, each a word of four bytes wide
)

// padHalo chooses how many elements lines are padded by: as few as make the threads of a warp read the fewest words of one
// bank. With tensor cores they read eight windows at each of four columns, in multiply-adds one column of all their windows.
func (lo productKernel) padHalo(h *ir.Halo, c *ir.Contract) {
	least, best := math.MaxInt, 0
	for h.Pad = 0; h.Pad < haloPads; h.Pad++ {
		reads := 0
		if c.Unit == ir.FMAUnit {
			reads = windowReads(h, c.Type.Size())
		} else {
			reads = lo.fragmentReads(h, c.Type)
		}
		if reads < least {
			least, best = reads, h.Pad
		}
	}
	h.Pad = best
}

// fragmentReads is how many words of one bank are read at most for the fragments of tensor cores, summed over those.
func (lo productKernel) fragmentReads(h *ir.Halo, t ir.DType) (reads int) {
	pair, stride := 4/t.Size(), h.Dims[len(h.Dims)-1].Stride
	taps := lo.tapOffsets(h)
	for first := 0; first < len(taps); first += 4 * pair {
		for p := range pair {
			var banks bankReads
			for k := first + p; k < min(first+p+4*pair, len(taps)); k += pair {
				for n := range int64(8) {
					banks.read(taps[k]+n*stride, t.Size())
				}
			}
			reads += banks.most
		}
	}
	return reads
}

// windowReads is how many words of one bank are read at most where the threads of a warp read an element of so many windows.
func windowReads(h *ir.Halo, size int) int {
	var banks bankReads
	for place := range min(haloPart, h.Places()) {
		at, left := int64(0), place
		for d := len(h.Dims) - 1; d >= 0; d-- {
			at += int64(left%h.Dims[d].Tile) * h.ApartRows(d)
			left /= h.Dims[d].Tile
		}
		banks.read(at, size)
	}
	return banks.most
}

// bankReads counts the words that threads read at once of each bank, and the most of one bank.
type bankReads struct {
	words []int64
	of    [sharedBanks]int
	most  int
}

// read counts the word of an element at a place, if no other thread reads that.
func (b *bankReads) read(at int64, size int) {
	word := at * int64(size) / 4
	if slices.Contains(b.words, word) {
		return
	}
	b.words = append(b.words, word)
	b.of[word%sharedBanks]++
	b.most = max(b.most, b.of[word%sharedBanks])
}

// tapOffsets is where in shared memory the elements of columns are.
func (lo productKernel) tapOffsets(h *ir.Halo) []int64 {
	out := make([]int64, h.Columns())
	for d, apart := len(lo.k.Cols)-1, 1; d >= 0; d-- {
		r := lo.k.Cols[d]
		extent := len(out) // of the outermost, of which not all may be there at a time
		if d > 0 {
			extent = int(r.Extent.Int)
		}
		step := h.TapApart(r)
		for k := range out {
			out[k] += int64(k/apart%extent) * step
		}
		apart *= extent
	}
	return out
}
