package ir

// How strategies lay out dynamic shared memory where the planner has to know what fits: it and the
// generator ask the same functions. Bytes are those of a block.

// PanelBytes is the queries of AttendTile or ChainTile, and all stages of keys and values: lines are 8 elements longer
// than what they hold, so that the threads of a warp do not meet in a bank.
func PanelBytes(s Schedule, a *Attend) int {
	const padding = 8
	size := a.Type.Size()
	if a.Parts > 0 {
		size = a.Parts * BF16.Size()
	}
	products, values := 1+len(a.Others), a.Width+padding
	if a.ValueIn > 0 {
		values = 0
	}
	return size * (products*(s.TileM+s.Stages*s.TileN)*(s.TileK+padding) + s.Stages*s.TileN*values)
}

// ContractRowsWidth is the elements from one row of the left operand of ContractRows to the next:
// neighbouring rows are four banks apart.
func ContractRowsWidth(s Schedule) int { return (s.TileK+31)/32*32 + 4 }

// ContractRowsBytes is the rows of the left operand of ContractRows and lines of the right one, of
// elements of a size; in the end the sums of each group of threads take their place.
func ContractRowsBytes(s Schedule, size int) int {
	const padding = 4
	groups := s.Threads / (s.TileM / s.PartM * (s.TileN / s.PartN))
	sums := groups * max(s.TileM*(s.TileN+padding), s.TileN*(s.TileM+padding))
	return size * max(s.TileM*ContractRowsWidth(s)+s.TileK*(s.TileN+padding), sums)
}

// ChainWarpgroupBytes is the queries of ChainWarpgroup, all stages of keys and values, and the alignment of slabs.
func ChainWarpgroupBytes(s Schedule, a *Attend) int {
	const alignment = 1024
	products, values := 1+len(a.Others), a.Width
	if a.ValueIn > 0 {
		values = 0
	}
	return alignment + a.Type.Size()*(products*s.TileM*s.TileK+s.Stages*s.TileN*(products*s.TileK+values))
}
