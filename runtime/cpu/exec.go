package cpu

import (
	"sync/atomic"
)

// launch is one run of a kernel.
type launch struct {
	*code
	bufs    [][]byte
	threads int
	call    *call
	number  int64        // another for each launch of the process; from 1
	lists   *columnLists // of a scatter; else every row has all columns
}

// smallLaunch is the most elements for which a second goroutine does not pay. Tests for the race detector set
// it to 0.
var smallLaunch int64 = 1 << 14

// run executes the kernel. Jobs are dealt out in order; none depends on another,
// and none on which goroutine runs it.
func (l *launch) run() {
	if l.items == 0 {
		return
	}
	if l.items*l.steps*l.tile < smallLaunch {
		l.threads = 1
	}
	if l.chunk >= l.steps {
		l.startRunning()
		l.each(l.items, func(w *worker, item int64) {
			l.eachRow(w, item, func() {
				for _, s := range l.sections {
					l.section(w, s, 0, l.steps)
					for _, f := range s.folds {
						f.finish(w)
					}
				}
			})
		})
		return
	}
	l.runSplit()
}

// each calls job for 0 to n-1, on as many goroutines as are allowed.
func (l *launch) each(n int64, job func(w *worker, i int64)) {
	grain := max(1, n/int64(8*l.threads))
	var next atomic.Int64
	work := func() {
		w := l.take(l.bufs)
		defer l.put(w)
		for !l.call.stop.Load() {
			from := next.Add(grain) - grain
			if from >= n {
				return
			}
			for i := from; i < min(n, from+grain) && !l.call.stop.Load(); i++ {
				job(w, i)
			}
		}
	}
	l.call.together(min(int64(l.threads), (n+grain-1)/grain), work)
}

// begin sets the indices of a job and computes what is the same in all passes.
func (l *launch) begin(w *worker, item int64) {
	w.n = int(l.tile)
	w.group = item/l.perGroup + 1
	rest := item
	if l.vecRow {
		outer := int64(1)
		for _, a := range l.rows {
			outer *= a.extent
		}
		l.seekTile(w, item/outer)
		rest = item % outer
	}
	seek(w, l.rows, rest)
	w.exec(l.job)
}

// seek sets the indices of axes to the point at a row-major position.
func seek(w *worker, axes []axis, n int64) {
	for d := len(axes) - 1; d > 0; d-- {
		w.at[axes[d].slot] = n % axes[d].extent
		n /= axes[d].extent
	}
	if len(axes) > 0 {
		w.at[axes[0].slot] = n
	}
}

// section runs the steps from lo to hi-1 of a section.
func (l *launch) section(w *worker, s *section, lo, hi int64) {
	for _, f := range s.folds {
		f.reset(w)
	}
	if !l.vecRow {
		w.n = int(l.tile)
	}
	w.exec(s.prologue)
	if !s.pass {
		w.exec(s.body)
		return
	}
	if l.lists != nil {
		l.listed(w, s)
		return
	}
	for n := lo; n < hi && !l.call.stop.Load(); n++ {
		w.step = n
		if s.reverse {
			w.step = hi - 1 - (n - lo)
		}
		l.seekStep(w)
		w.exec(s.body)
		if w.step%runSteps == runSteps-1 {
			s.settle(w, false)
		}
	}
	s.settle(w, true)
}

func (s *section) settle(w *worker, last bool) {
	for _, f := range s.folds {
		f.settle(w, last)
	}
}

// seekStep sets the column indices of the current step.
func (l *launch) seekStep(w *worker) {
	n := w.step
	if !l.vecRow {
		tiles := l.tiles()
		l.seekTile(w, n%tiles)
		n /= tiles
	}
	for d := len(l.cols) - 1; d >= 0; d-- {
		a := l.cols[d]
		i := n
		if d > 0 {
			i = n % a.extent
			n /= a.extent
		}
		w.at[a.slot] = i
	}
}

// runSplit runs each section over all parts of the pass at once, then merges
// the parts' folds in order.
func (l *launch) runSplit() {
	parts := (l.steps + l.chunk - 1) / l.chunk
	done := make([][]partial, l.items) // finished folds, by item and fold
	for i := range done {
		done[i] = make([]partial, len(l.folds))
	}
	for _, s := range l.sections {
		count := parts
		if !s.pass {
			count = 1
		}
		found := make([][]partial, l.items*count)
		l.each(l.items*count, func(w *worker, n int64) {
			item, part := n/count, n%count
			l.begin(w, item)
			for k, f := range l.folds {
				f.load(w, done[item][k])
			}
			l.section(w, s, part*l.chunk, min(l.steps, (part+1)*l.chunk))
			for _, f := range s.folds {
				found[n] = append(found[n], f.save(w))
			}
		})
		if len(s.folds) == 0 || l.call.stop.Load() {
			continue
		}
		l.each(l.items, func(w *worker, item int64) {
			l.begin(w, item)
			total := mergeParts(w, s.folds, found[item*count:(item+1)*count])
			for k, f := range s.folds {
				f.load(w, total[k])
			}
			for _, f := range s.folds {
				f.finish(w)
				done[item][f.index] = f.save(w)
			}
		})
	}
}
