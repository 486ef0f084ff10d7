package ir

// Turned rows (RowTurn). Some reads or stores of a body are contiguous along the rows, and the others along the
// columns. A block takes TileM neighbouring rows, and has a tile in shared memory for each access of the first kind.
// In the tile, a row is contiguous vectors of its columns.

// TurnedPitch is the pitch of a tile's rows in vectors: one more than a row has. That number is odd, so threads that
// access the same vector of neighbouring rows use different banks.
func TurnedPitch(s Schedule) int { return s.RowThreads*s.Items + 1 }

// TurnedSkew is the number of vectors by which the rows of a tile are shifted further after every Vector rows. Threads
// that transpose squares as wide as a vector have rows that are a multiple of Vector apart; with the skew they use
// different banks too.
func TurnedSkew(s Schedule) int {
	if s.Vector == 1 {
		return 0
	}
	return max(1, turnedPhase*s.Vector/s.TileM)
}

// turnedPhase is how many threads access 16 bytes each of shared memory at a time.
const turnedPhase = 8

// TurnedVectors is the vectors of a tile.
func TurnedVectors(s Schedule) int {
	return s.TileM*TurnedPitch(s) + s.TileM/s.Vector*TurnedSkew(s)
}

// Turned lists the types of a body's tiles: those of the reads, then those of the stores.
func Turned(v *Variant) (types []DType) {
	if v.Across == nil || v.Schedule.Mapping != RowMapping {
		return nil
	}
	for _, l := range v.Staged {
		Walk(l.Def, func(e *Expr) bool {
			if e.Op == OpRead {
				types = append(types, e.Type)
			}
			return e.Op != OpRead
		})
	}
	for _, sec := range v.Sections {
		for _, st := range sec.Stores {
			if st.Staged {
				types = append(types, st.Arg.Type)
			}
		}
	}
	return types
}

// TurnedBytes is the shared memory of a body's tiles.
func TurnedBytes(v *Variant) (bytes int) {
	for _, t := range Turned(v) {
		bytes += TurnedTile(v.Schedule, t)
	}
	return bytes
}

// TurnedTile is the bytes of a tile of a type.
func TurnedTile(s Schedule, t DType) int {
	return (TurnedVectors(s)*s.Vector*t.Size() + turnedAlign - 1) / turnedAlign * turnedAlign
}

// turnedAlign is the alignment of tiles.
const turnedAlign = 16
