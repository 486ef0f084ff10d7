//go:build !amd64

package cpu

// vectorF32 has nothing to add on this architecture.
func vectorF32(t opTable[float32]) opTable[float32] { return t }
