package cpu

import "sync/atomic"

// The sizes of blocks. A right panel of runSteps steps (16 KiB) stays in the first-level cache and a packed part of the left
// factor of packedRows rows (120 KiB) in the second.
const (
	packedRows = 120  // a multiple of microRows
	blockRows  = 1080 // a multiple of packedRows: rows of one job, at most
	blockCols  = 1024 // a multiple of microCols: columns of one job, at most
)

// grid divides the results of a product into jobs, of one block each.
type grid struct {
	rows, cols       int64 // of a block
	across, down     int64 // blocks along the columns and the rows
	leastRows, width int64
}

// gridFor makes blocks of about equal size, small enough that all threads have some.
func (p *matrixProduct[T]) gridFor(threads int) grid {
	width := int64(microCols[T]())
	g := grid{down: (p.rows + blockRows - 1) / blockRows, across: (p.cols + blockCols - 1) / blockCols, width: width}
	wanted := int64(2 * threads)
	if threads == 1 {
		wanted = 1
	}
	const least = 64 // rows or columns; packing costs more than it saves for fewer
	for p.blocks*g.down*g.across < wanted {
		rows, cols := p.rows/g.down, p.cols/g.across
		switch {
		case rows >= cols && rows >= 2*least:
			g.down *= 2
		case cols >= 2*least:
			g.across *= 2
		default:
			wanted = 0
		}
	}
	g.rows, g.cols = roundUp(p.rows, g.down, microRows), roundUp(p.cols, g.across, width)
	g.down, g.across = (p.rows+g.rows-1)/g.rows, (p.cols+g.cols-1)/g.cols
	return g
}

// roundUp is the size of n things in so many parts, as a multiple of unit.
func roundUp(n, parts, unit int64) int64 {
	size := (n + parts - 1) / parts
	return (size + unit - 1) / unit * unit
}

// productScratch is the memory of one goroutine.
type productScratch[T float] struct {
	left, right, lines []T
	side               [][]T // the lines of one panel
	sums               [][]T // a block for each term
}

// sizes is the elements of each part of a productScratch.
func (p *matrixProduct[T]) sizes(g grid) (left, right, lines, block int64) {
	steps := min(p.sum, runSteps)
	return min(packedRows, g.rows) * steps, g.cols * steps, max(microRows, g.width) * steps, g.rows * g.cols
}

func (p *matrixProduct[T]) scratch(threads int) int64 {
	const element = 8
	left, right, lines, block := p.sizes(p.gridFor(1))
	return times(int64(threads), element, left+right+lines+block*int64(len(p.terms)))
}

func (p *matrixProduct[T]) run(memory [][]byte, threads int, stop *atomic.Bool) {
	const perElement = 64 // multiplications that take as long as an element of other kernels
	if times(p.blocks, p.rows, p.cols, p.sum)/perElement < smallLaunch {
		threads = 1
	}
	l, g := p.rest.launch(memory, threads, stop), p.gridFor(threads)
	l.each(p.blocks*g.down*g.across, func(w *worker, job int64) {
		s, ok := p.scratchOf.Get().(*productScratch[T])
		if !ok {
			s = &productScratch[T]{}
		}
		s.fit(p.sizes(g))
		p.block(l, g, w, s, job)
		p.scratchOf.Put(s)
	})
}

func (s *productScratch[T]) fit(left, right, lines, block int64) {
	for part, size := range map[*[]T]int64{&s.left: left, &s.right: right, &s.lines: lines} {
		if int64(cap(*part)) < size {
			*part = make([]T, size)
		}
		*part = (*part)[:size]
	}
	for i := range s.sums {
		if int64(cap(s.sums[i])) < block {
			s.sums[i] = make([]T, block)
		}
		s.sums[i] = s.sums[i][:block]
	}
}

// block computes one block of all results.
func (p *matrixProduct[T]) block(l *launch, g grid, w *worker, s *productScratch[T], job int64) {
	col, row := job%g.across*g.cols, job/g.across%g.down*g.rows
	batch := job / g.across / g.down
	left := window{axes: p.m, sum: p.k, first: row, count: min(g.rows, p.rows-row)}
	right := window{axes: p.n, sum: p.k, first: col, count: min(g.cols, p.cols-col)}
	for len(s.sums) < len(p.terms) {
		s.sums = append(s.sums, make([]T, g.rows*g.cols))
	}
	for i, t := range p.terms {
		clear(s.sums[i])
		p.multiply(l, t, s, s.sums[i], batch, left, right, g)
	}
	seek(w, p.batch, batch)
	for i := int64(0); i < left.count && !l.stop.Load(); i++ {
		seek(w, p.m, row+i)
		p.finishRow(w, s, i*g.cols, right)
	}
}

// multiply adds the products of a block to sums.
func (p *matrixProduct[T]) multiply(
	l *launch, t productTerm, s *productScratch[T], sums []T, batch int64, left, right window, g grid,
) {
	lw, rw := t.left.code.take(l.bufs), t.right.code.take(l.bufs)
	defer t.left.code.put(lw)
	defer t.right.code.put(rw)
	seek(lw, p.batch, batch)
	seek(rw, p.batch, batch)
	width := int(g.width)
	for start := int64(0); start < p.sum && !l.stop.Load(); start += runSteps {
		right.start, right.length = start, min(runSteps, p.sum-start)
		p.pack(t.right, rw, s, s.right, width, right)
		for row := int64(0); row < left.count; row += packedRows {
			part := left
			part.first, part.count = left.first+row, min(packedRows, left.count-row)
			part.start, part.length = right.start, right.length
			p.pack(t.left, lw, s, s.left, microRows, part)
			p.panels(s, sums[row*g.cols:], int(g.cols), int(part.count), int(right.count), int(right.length))
		}
	}
}

// panels multiplies all packed panels; rows and cols count what is in them.
func (p *matrixProduct[T]) panels(s *productScratch[T], sums []T, stride, rows, cols, steps int) {
	width := microCols[T]()
	for col := 0; col < cols; col += width {
		right := s.right[col*steps:][:width*steps]
		for row := 0; row < rows; row += microRows {
			p.table.micro(sums[row*stride+col:], stride, s.left[row*steps:][:microRows*steps], right, steps)
		}
	}
}

// finishRow runs what stands behind the sums for a row of a block.
func (p *matrixProduct[T]) finishRow(w *worker, s *productScratch[T], from int64, in window) {
	for at := int64(0); at < in.count; at += int64(w.n) {
		seek(w, in.axes, in.first+at)
		p.rest.lineFrom(w, in.count-at)
		for i, t := range p.terms {
			p.point(w, t.result, s.sums[i][from+at:][:w.n])
		}
		w.exec(p.rest.job)
		for _, s := range p.rest.sections {
			w.exec(s.prologue)
			w.exec(s.body)
		}
	}
}
