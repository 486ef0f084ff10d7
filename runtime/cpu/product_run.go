package cpu

import (
	"unsafe"
)

// The sizes of blocks. A right panel of runSteps steps (16 KiB) stays in the first-level cache, and a packed part of the left
// factor of packedRows rows (120 KiB) in the second. The panels of the right factor are in the second or third.
const (
	packedRows = 120  // a multiple of microRows
	blockRows  = 1080 // a multiple of packedRows: rows of one job, at most
	blockCols  = 1024 // a multiple of microCols: columns of one job, at most
)

// Long sums of few rows are split into parts, whose sums are added in order in float64, as those of other kernels are.
const (
	partSteps = 1 << 11 // of a part, at least; a multiple of runSteps
	mostParts = 256
)

// grid divides the results of a product into blocks.
type grid struct {
	rows, cols   int64 // of a block
	across, down int64 // blocks along the columns and the rows
}

// gridFor makes blocks of about equal size, small enough that all threads have some.
func (p *matrixProduct[T]) gridFor(threads int) grid {
	g := grid{down: (p.rows + blockRows - 1) / blockRows, across: (p.cols + blockCols - 1) / blockCols}
	wanted := int64(2 * threads)
	if threads == 1 {
		wanted = 1
	}
	const least = 64                           // rows or columns; packing costs more than it saves for fewer
	kept := p.keepsRight() && p.rows >= p.cols // so blocks of few rows have no more to pack
	for p.points*g.down*g.across < wanted {
		rows, cols := p.rows/g.down, p.cols/g.across
		switch {
		case rows >= cols && rows >= 2*least, kept && rows >= least:
			g.down *= 2
		case cols >= 2*least:
			g.across *= 2
		default:
			wanted = 0
		}
	}
	g.rows, g.cols = roundUp(p.rows, g.down, microRows), roundUp(p.cols, g.across, int64(microCols[T]()))
	g.down, g.across = (p.rows+g.rows-1)/g.rows, (p.cols+g.cols-1)/g.cols
	return g
}

// keepsRight reports whether the panels of the right factor that a block was computed from serve for the next block as well,
// where that has the same columns: they are those of all steps.
func (p *matrixProduct[T]) keepsRight() bool { return p.sum <= runSteps && len(p.terms) == 1 }

// gridForParts makes blocks of which all parts together are enough for all threads.
func (p *matrixProduct[T]) gridForParts(threads int) grid {
	return p.gridFor(max(1, threads/int(p.parts())))
}

// roundUp is the size of n things in so many parts, as a multiple of unit.
func roundUp(n, parts, unit int64) int64 {
	size := (n + parts - 1) / parts
	return (size + unit - 1) / unit * unit
}

// partLength is the steps of a part of the sum, all where it is not split. It depends on the sizes only.
func (p *matrixProduct[T]) partLength() int64 {
	if p.sum < 2*partSteps || times(p.points, p.rows, (p.cols+tileLanes-1)/tileLanes) >= enoughItems {
		return p.sum
	}
	return max(partSteps, roundUp(p.sum, mostParts, runSteps))
}

// parts counts the parts.
func (p *matrixProduct[T]) parts() int64 {
	return max(1, (p.sum+p.partLength()-1)/max(1, p.partLength()))
}

// productScratch is the memory of one goroutine.
type productScratch[T float] struct {
	left, right, lines []T
	side               [][]T       // the lines of one panel
	sums               [][]T       // a block for each term
	packed             rightPanels // what right holds
	spans              []span
	mask               [runSteps]int64
}

// rightPanels says of what the right panels of a scratch are.
type rightPanels struct{ launch, batch, col int64 }

// sizes is the elements of each part of a productScratch.
func (p *matrixProduct[T]) sizes(g grid) (left, right, lines, block int64) {
	steps := min(p.sum, runSteps)
	return min(packedRows, g.rows) * steps, g.cols * steps, int64(max(microRows, microCols[T]())) * steps, g.rows * g.cols
}

// scratch is the most of what run takes with so many goroutines, and with one: blocks are larger then.
func (p *matrixProduct[T]) scratch(threads int) int64 {
	if p.parts() > 1 {
		g := p.gridForParts(threads)
		return plus(p.scratchOf(g, int64(threads), 0), p.scratchOf(g, 0, times(p.points, g.down, g.across, p.parts())))
	}
	return max(p.scratchOf(p.gridFor(threads), int64(threads), int64(threads)), p.scratchOf(p.gridFor(1), 1, 1))
}

// scratchOf is the bytes of the packed panels of so many goroutines, and of so many blocks of sums.
func (p *matrixProduct[T]) scratchOf(g grid, threads, blocks int64) int64 {
	var element T
	left, right, lines, block := p.sizes(g)
	return times(int64(unsafe.Sizeof(element)), plus(times(threads, left+right+lines), times(blocks, block, int64(len(p.terms)))))
}

// take returns the memory of a goroutine, and blocks for the sums.
func (p *matrixProduct[T]) take(g grid) *productScratch[T] {
	s, ok := p.idle.Get().(*productScratch[T])
	if !ok {
		s = &productScratch[T]{sums: make([][]T, len(p.terms))}
	}
	left, right, lines, block := p.sizes(g)
	s.left, s.right, s.lines = atLeast(s.left, left), atLeast(s.right, right), atLeast(s.lines, lines)
	if p.parts() > 1 {
		return s
	}
	for i := range s.sums {
		s.sums[i] = atLeast(s.sums[i], block)[:block]
	}
	return s
}

func atLeast[T any](room []T, n int64) []T {
	if int64(len(room)) < n {
		return make([]T, n)
	}
	return room
}

// task is a block of the results of a point of the batch.
type task struct {
	batch       int64
	left, right window
}

// task is a job's block. Those of the same columns follow each other.
func (p *matrixProduct[T]) task(g grid, job int64) task {
	row, col := job%g.down*g.rows, job/g.down%g.across*g.cols
	return task{job / g.across / g.down, window{axes: p.m, sum: p.k, first: row, count: min(g.rows, p.rows-row)},
		window{axes: p.n, sum: p.k, first: col, count: min(g.cols, p.cols-col)}}
}

func (p *matrixProduct[T]) run(memory [][]byte, threads int, call *call) {
	const perElement = 128 // multiplications that take as long as an element of other kernels
	l := p.rest.launch(memory, threads, call)
	if times(p.points, p.rows, p.cols, p.sum)/perElement < smallLaunch {
		l.threads = 1
	}
	if p.parts() > 1 {
		p.runSplit(l)
		return
	}
	g := p.gridFor(l.threads)
	l.each(p.points*g.down*g.across, func(w *worker, job int64) {
		s := p.take(g)
		defer p.idle.Put(s)
		t := p.task(g, job)
		p.multiply(l, g, t, s, s.sums, 0, p.sum)
		p.finish(l, g, t, w, s.sums)
	})
}

// runSplit computes all parts of the sums at once, then adds them in order.
func (p *matrixProduct[T]) runSplit(l *launch) {
	g, length, parts := p.gridForParts(l.threads), p.partLength(), p.parts()
	jobs := p.points * g.down * g.across
	found := make([][][]T, jobs*parts)
	l.each(jobs*parts, func(_ *worker, n int64) {
		s := p.take(g)
		defer p.idle.Put(s)
		for range p.terms {
			found[n] = append(found[n], make([]T, g.rows*g.cols))
		}
		from := n % parts * length
		p.multiply(l, g, p.task(g, n/parts), s, found[n], from, min(from+length, p.sum))
	})
	if l.call.stop.Load() {
		return
	}
	l.each(jobs, func(w *worker, job int64) {
		all := found[job*parts:][:parts]
		for i, total := range all[0] {
			for at := range total {
				sum := 0.0
				for _, part := range all {
					sum += float64(part[i][at])
				}
				total[at] = T(sum)
			}
		}
		p.finish(l, g, p.task(g, job), w, all[0])
	})
}

// multiply sets sums to the products of a block over the steps from from to to-1.
func (p *matrixProduct[T]) multiply(l *launch, g grid, t task, s *productScratch[T], sums [][]T, from, to int64) {
	for i := range p.terms {
		clear(sums[i])
		term := &p.terms[i]
		var workers [3]*worker
		for k, f := range []*factor{term.left, term.right, term.where} {
			if f != nil {
				workers[k] = f.code.take(l.bufs)
				seek(workers[k], p.batch, t.batch)
				defer f.code.put(workers[k])
			}
		}
		for start := from; start < to && !l.call.stop.Load(); start += runSteps {
			s.spans = term.taken(workers[2], s.mask[:], p.k, span{start, min(runSteps, to-start)}, s.spans[:0])
			p.addRun(l, g, t, s, term, workers, sums[i])
		}
	}
}

// addRun adds the products of a block over one run of steps.
func (p *matrixProduct[T]) addRun(l *launch, g grid, t task, s *productScratch[T], term *productTerm, workers [3]*worker, sums []T) {
	left, right := t.left, t.right
	for _, steps := range s.spans {
		left.total += steps.length
	}
	if left.total == 0 {
		return
	}
	left.steps, right.steps, right.total = s.spans, s.spans, left.total
	if of := (rightPanels{l.number, t.batch, right.first}); s.packed != of || !p.keepsRight() {
		p.pack(term.right, workers[1], s, s.right, microCols[T](), right)
		s.packed = of
	}
	for row := int64(0); row < t.left.count; row += packedRows {
		left.first, left.count = t.left.first+row, min(packedRows, t.left.count-row)
		p.pack(term.left, workers[0], s, s.left, microRows, left)
		p.panels(s, sums[row*g.cols:], int(g.cols), int(left.count), int(right.count), int(left.total))
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

// finish runs what stands behind the sums of a block, row by row.
func (p *matrixProduct[T]) finish(l *launch, g grid, t task, w *worker, sums [][]T) {
	seek(w, p.batch, t.batch)
	for i := int64(0); i < t.left.count && !l.call.stop.Load(); i++ {
		seek(w, p.m, t.left.first+i)
		for at := int64(0); at < t.right.count; at += int64(w.n) {
			seek(w, p.n, t.right.first+at)
			p.rest.lineFrom(w, t.right.count-at)
			for k, term := range p.terms {
				p.point(w, term.result, sums[k][i*g.cols+at:][:w.n])
			}
			p.rest.execLine(w)
		}
	}
}
