//go:build !amd64

package cpu

// vectorF32 and vectorF64 have nothing to add on this architecture.
func vectorF32(t opTable[float32]) opTable[float32] { return t }

func vectorF64(t opTable[float64]) opTable[float64] { return t }
