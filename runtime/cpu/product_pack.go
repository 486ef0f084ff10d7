package cpu

// window is the part of a factor that is packed at once: the points of m or n from first on, and those of the sum.
type window struct {
	axes, sum     []axis
	first, count  int64
	start, length int64 // along the sum
}

// packLines fills panels of so many elements with a window of a factor: element i of a panel lies at i, and at one panel's
// width more for each further step of the sum. What a panel has beyond the window is zero.
func packLines[T float](f *factor, w *worker, dst []T, width int, in window, lines []T, at bank[T]) {
	if rest := int(in.count) % width; rest > 0 {
		clear(dst[(int(in.count)-rest)*int(in.length):][:width*int(in.length)])
	}
	if !f.along {
		for step := range in.length {
			seek(w, in.sum, in.start+step)
			f.each(w, in.axes, in.first, in.count, func(offset int64) {
				spread(dst[int(step)*width:], at(w, f.line), int(offset), width, int(in.length))
			})
		}
		return
	}
	for first := int64(0); first < in.count; first += int64(width) {
		panel := dst[first*in.length:][:int64(width)*in.length]
		count := min(int64(width), in.count-first)
		for i := range count {
			seek(w, in.axes, in.first+first+i)
			f.each(w, in.sum, in.start, in.length, func(offset int64) {
				copy(lines[i*in.length+offset:], at(w, f.line))
			})
		}
		interleave(panel, lines, int(count), width, int(in.length))
	}
}

// each computes the lines of so many points of axes, from first on, and calls do for each with its place among them. Lines
// end where the innermost axis does.
func (f *factor) each(w *worker, axes []axis, first, count int64, do func(offset int64)) {
	for at := int64(0); at < count; {
		seek(w, axes, first+at)
		f.code.lineFrom(w, count-at)
		w.exec(f.code.job)
		for _, s := range f.code.sections {
			w.exec(s.prologue)
			w.exec(s.body)
		}
		do(at)
		at += int64(w.n)
	}
}

// lineFrom has the lanes go from the current index on, so many of them at most.
func (c *code) lineFrom(w *worker, most int64) {
	from := w.at[c.lane.slot]
	end := min(c.lane.extent, (from/c.block+1)*c.block)
	w.n = int(min(end-from, most, c.tile))
}

// spread puts a line across panels, of which each takes as many elements as it is wide; offset is that of the first element,
// and dst is the step's part of the first panel.
func spread[T float](dst, line []T, offset, width, length int) {
	for len(line) > 0 {
		panel, i := offset/width, offset%width
		n := min(width-i, len(line))
		to := dst[panel*width*length+i:]
		switch {
		case n == 16:
			*(*[16]T)(to) = *(*[16]T)(line)
		case n == 6:
			*(*[6]T)(to) = *(*[6]T)(line)
		default:
			copy(to[:n], line)
		}
		line, offset = line[n:], offset+n
	}
}

// interleave puts lines into one panel, each at one place of all steps.
func interleave[T float](panel, lines []T, count, width, length int) {
	i := 0
	for ; i+2 <= count; i += 2 {
		a, b := lines[i*length:][:length], lines[(i+1)*length:][:length]
		to := panel[i:]
		for k, v := range a {
			pair := to[k*width : k*width+2 : k*width+2]
			pair[0], pair[1] = v, b[k]
		}
	}
	if i < count {
		for k, v := range lines[i*length:][:length] {
			panel[k*width+i] = v
		}
	}
}
