package cpu

import "unsafe"

// The size of what the micro-kernel of matrix products keeps in registers: rows of one element of the left panel each, and
// two vectors of 32 bytes of the right panel.
const (
	microRows    = 6
	microColsF32 = 16
)

// microCols is the number of columns of the micro-kernel.
func microCols[T float]() int {
	var t T
	return microColsF32 * 4 / int(unsafe.Sizeof(t))
}

// microKernel is the micro-kernel without vector instructions, four columns of one row at a time. Each sum starts at zero
// and takes its terms in order; then it is added to c.
func microKernel[T float](c []T, stride int, a, b []T, k int) {
	cols := microCols[T]()
	a, b = a[:k*microRows], b[:k*cols]
	for i := range microRows {
		for j := 0; j < cols; j += 4 {
			var s0, s1, s2, s3 T
			for at, row := i, j; at < len(a) && row+4 <= len(b); at, row = at+microRows, row+cols {
				v, r := a[at], b[row:row+4:row+4]
				s0 += v * r[0]
				s1 += v * r[1]
				s2 += v * r[2]
				s3 += v * r[3]
			}
			out := c[i*stride+j:][:4]
			out[0] += s0
			out[1] += s1
			out[2] += s2
			out[3] += s3
		}
	}
}

func spread[T float](dst []T, stride int, line []T) {
	width := microCols[T]()
	for len(line) >= width {
		copy(dst[:width], line)
		if line = line[width:]; len(line) >= width {
			dst = dst[stride:]
		}
	}
}

func interleave[T float](dst []T, width int, lines [][]T) {
	for i := 0; i+2 <= len(lines); i += 2 {
		a, b, to := lines[i], lines[i+1], dst[i:]
		b = b[:len(a)]
		for k, v := range a {
			pair := to[k*width:][:2]
			pair[0], pair[1] = v, b[k]
		}
	}
	if i := len(lines) - 1; i&1 == 0 {
		for k, v := range lines[i] {
			dst[k*width+i] = v
		}
	}
}
