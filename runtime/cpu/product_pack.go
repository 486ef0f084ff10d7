package cpu

// window is the part of a factor that is packed at once: the points of m or n from first on, at some steps of the sum.
type window struct {
	axes, sum    []axis
	first, count int64
	steps        []span
	total        int64 // of all spans
}

// span is consecutive steps of a sum.
type span struct{ start, length int64 }

// pack fills panels of so many elements with a window of a factor: element i of a panel lies at i, and at one panel's width
// more for each further step. What a panel has beyond the window is zero.
func (p *matrixProduct[T]) pack(f *factor, w *worker, s *productScratch[T], dst []T, width int, in window) {
	if rest := in.count % int64(width); rest > 0 {
		clear(dst[(in.count-rest)*in.total:][:int64(width)*in.total])
	}
	for _, steps := range in.steps {
		if f.along {
			p.packAlong(f, w, s, dst, width, in, steps)
		} else {
			p.packAcross(f, w, dst, width, in, steps)
		}
		dst = dst[min(int(steps.length)*width, len(dst)):]
	}
}

// packAcross packs lines of one step each.
func (p *matrixProduct[T]) packAcross(f *factor, w *worker, dst []T, width int, in window, steps span) {
	for step := range steps.length {
		seek(w, in.sum, steps.start+step)
		f.each(w, in.axes, in.first, in.count, func(offset int64) {
			p.across(dst[int(step)*width:], p.at(w, f.line), int(offset), width, int(in.total))
		})
	}
}

// packAlong packs lines of many steps, those of a panel at once.
func (p *matrixProduct[T]) packAlong(f *factor, w *worker, s *productScratch[T], dst []T, width int, in window, steps span) {
	for first := int64(0); first < in.count; first += int64(width) {
		s.side = s.side[:0]
		for i := range min(int64(width), in.count-first) {
			seek(w, in.axes, in.first+first+i)
			s.side = append(s.side, p.line(f, w, in.sum, steps, s.lines[i*steps.length:][:steps.length]))
		}
		p.table.interleave(dst[first*in.total:], width, s.side)
	}
}

// line is a whole line along the sum: where it lies, or else in room.
func (p *matrixProduct[T]) line(f *factor, w *worker, sum []axis, steps span, room []T) (out []T) {
	f.each(w, sum, steps.start, steps.length, func(offset int64) {
		line := p.at(w, f.line)
		if out = line; !f.lasting || len(line) < len(room) {
			copy(room[offset:], line)
			out = room
		}
	})
	return out
}

// each computes the lines of so many points of axes, from first on, and calls do for each with its place among them. Lines
// end where the innermost axis does.
func (f *factor) each(w *worker, axes []axis, first, count int64, do func(offset int64)) {
	for at := int64(0); at < count; {
		seek(w, axes, first+at)
		f.code.lineFrom(w, count-at)
		f.code.execLine(w)
		do(at)
		at += int64(w.n)
	}
}

// execLine runs all instructions once, for the lanes of the present line.
func (c *code) execLine(w *worker) {
	w.exec(c.job)
	for _, s := range c.sections {
		w.exec(s.prologue)
		w.exec(s.body)
	}
}

// lineFrom has the lanes go from the current index on, so many of them at most.
func (c *code) lineFrom(w *worker, most int64) {
	from := w.at[c.lane.slot]
	end := min(c.lane.extent, (from/c.block+1)*c.block)
	w.n = int(min(end-from, most, c.tile))
}

// across puts a line across panels, of which each takes as many elements as it is wide; offset is that of the first element,
// and dst is the step's part of the first panel.
func (p *matrixProduct[T]) across(dst, line []T, offset, width, length int) {
	for len(line) > 0 {
		panel, i := offset/width, offset%width
		to := dst[panel*width*length+i:]
		n := min(width-i, len(line))
		switch {
		case n < width:
			copy(to[:n], line)
		case width == microRows:
			n = len(line) / width * width
			spreadRows(to, width*length, line[:n])
		default:
			n = len(line) / width * width
			p.table.spread(to, width*length, line[:n])
		}
		line, offset = line[n:], offset+n
	}
}

// spreadRows copies a line in parts of microRows elements, which are stride elements apart.
func spreadRows[T float](dst []T, stride int, line []T) {
	for len(line) >= microRows {
		to, from := dst[:microRows:microRows], line[:microRows:microRows]
		to[0], to[1], to[2], to[3], to[4], to[5] = from[0], from[1], from[2], from[3], from[4], from[5]
		if line = line[microRows:]; len(line) > 0 {
			dst = dst[stride:]
		}
	}
}

// taken lists the steps of a run that a term takes.
func (t *productTerm) taken(w *worker, s []int64, sum []axis, run span, out []span) []span {
	if t.where == nil {
		return append(out, run)
	}
	t.where.each(w, sum, run.start, run.length, func(offset int64) { copy(s[offset:], ints(w, t.where.line)) })
	for i, c := range s[:run.length] {
		at := run.start + int64(i)
		switch last := len(out) - 1; {
		case c == 0:
		case last >= 0 && out[last].start+out[last].length == at:
			out[last].length++
		default:
			out = append(out, span{at, 1})
		}
	}
	return out
}
