package ir

// The layouts of dynamic shared memory for strategies of which the planner has to know what fits.
// The planner and the generator call the same functions. Bytes are those of a block.

// PanelBytes is the bytes of the queries of AttendTile or ChainTile, and of all stages of keys and values. Lines are
// padded by 8 elements, so that the threads of a warp use different banks.
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

// AttendWarpgroupBytes is the bytes of the queries of AttendWarpgroup, of all stages of keys and values, and of their alignment.
func AttendWarpgroupBytes(s Schedule, a *Attend) int {
	const alignment = 1024
	return alignment + a.Type.Size()*(s.TileM*s.TileK+s.Stages*s.TileN*(s.TileK+a.Width))
}

// ContractRowsWidth is the pitch, in elements, of rows of the left operand of ContractRows:
// neighbouring rows begin four banks apart.
func ContractRowsWidth(s Schedule) int { return (s.TileK+31)/32*32 + 4 }

// ContractRowsBytes is the bytes of the rows of the left operand of ContractRows and of the lines
// of the right one, for elements of a size. At the end the sums of each group of threads use the
// same memory.
func ContractRowsBytes(s Schedule, size int) int {
	const padding = 4
	groups := s.Threads / (s.TileM / s.PartM * (s.TileN / s.PartN))
	sums := groups * max(s.TileM*(s.TileN+padding), s.TileN*(s.TileM+padding))
	return size * max(s.TileM*ContractRowsWidth(s)+s.TileK*(s.TileN+padding), sums)
}

// ChainWarpgroupBytes is the bytes of the queries of ChainWarpgroup, of all stages of keys and values, and of the
// alignment of slabs.
func ChainWarpgroupBytes(s Schedule, a *Attend) int {
	const alignment = 1024
	products, values := 1+len(a.Others), a.Width
	if a.ValueIn > 0 {
		values = 0
	}
	return alignment + a.Type.Size()*(products*s.TileM*s.TileK+s.Stages*s.TileN*(products*s.TileK+values))
}
