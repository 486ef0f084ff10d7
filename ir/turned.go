package ir

// Rows that are turned (RowTurn). Memory runs along the rows in some of what a body reads or stores, and along the
// columns in the rest. A block takes TileM neighbouring rows, and has a tile in shared memory for each access of the
// first kind, in which a row is a run of vectors of its columns.

// TurnedPitch is how many vectors the rows of a tile are apart: one more than a row has room for, which is an odd number,
// so that threads that have the same vector of neighbouring rows use different banks.
func TurnedPitch(s Schedule) int { return s.RowThreads*s.Items + 1 }

// TurnedSkew is how many vectors further a tile's rows begin after each Vector of them. Threads that turn squares of a
// vector's side have rows that are a multiple of Vector apart; with the skew they use different banks too.
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

// turnedAlign is what tiles are aligned to.
const turnedAlign = 16
