package interp

import "github.com/fusec/fusec/ir"

// chunk is the rows of a kernel that the same threads work on one after the other;
// a kernel that accumulates nothing has chunks of one row.
type chunk struct {
	x        *kernel
	steps    box
	guard    func(*frame) int64 // nil: every row takes part
	partials []*partial
}

// partial is a result accumulated over rows: a state for each column.
type partial struct {
	fold   *fold
	states []fold
	store  func(*frame, Scalar)
}

func (x *kernel) chunk(k *ir.Kernel, sections []*section) (*chunk, error) {
	steps, err := x.box(k.Accumulated)
	if err != nil {
		return nil, err
	}
	w := &chunk{x: x, steps: steps}
	if k.Inside != nil {
		w.guard = x.root(k.Inside).int
	}
	for _, s := range sections {
		w.partials = append(w.partials, s.partials...)
	}
	return w, nil
}

// inside reports whether the current row takes part.
func (w *chunk) inside(f *frame) bool { return w.guard == nil || w.guard(f) != 0 }

// begin starts a chunk with fresh states.
func (w *chunk) begin() {
	for _, p := range w.partials {
		p.states = make([]fold, w.x.cols.len())
		for c := range p.states {
			p.states[c] = *p.fold
			p.states[c].reset()
		}
	}
}

// end stores the states.
func (w *chunk) end() {
	for _, p := range w.partials {
		w.x.cols.each(w.x.frame, func(c int64) {
			w.x.col = c
			p.store(w.x.frame, p.states[c].result())
		})
	}
}

func (x *kernel) partial(p *ir.Partial) *partial {
	offset, to := x.root(p.Offset).int, x.memory.buffers[x.bufferOf(p.Arg)]
	return &partial{fold: x.newFold(p.Op, nil, p.Body), store: func(f *frame, v Scalar) {
		if n := x.checked(f, p.Arg, offset(f), int64(to.Len())); f.err == nil {
			to.set(n, v)
			to.written[n] = true
		}
	}}
}

// step folds the current point into the state of its column.
func (p *partial) step(f *frame, column int64) { p.states[column].step(f, 0) }
