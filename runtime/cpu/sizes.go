package cpu

import "math"

// plus and times add and multiply numbers that are not negative. A result that does not fit in
// 64 bits becomes the largest number, for which no memory has room.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func times(factors ...int64) int64 {
	product := int64(1)
	for _, f := range factors {
		if f == 0 {
			return 0
		}
		if product > math.MaxInt64/f {
			product = math.MaxInt64
			continue
		}
		product *= f
	}
	return product
}
