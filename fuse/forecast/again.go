package forecast

// SlotsOfByte is the issue slots in the time in which memory moves a byte.
const SlotsOfByte = 10

// ComputesAgain reports whether so many issue slots, for computing something once more where it is read, take no longer than memory
// takes to move so many bytes.
func ComputesAgain(slots, bytes float64) bool { return slots <= SlotsOfByte*bytes }
