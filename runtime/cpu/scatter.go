package cpu

import (
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
)

// A fold that takes the columns whose key is its row's place (ir.Scatter) reads each column
// once: a pointwise kernel computes the keys, a counting sort lists the columns of each place
// in order, and a row folds those of its list. If few rows share a key, they are folded from
// tiles of terms instead; see bins. In both a row adds its terms in the order of the columns,
// so that results do not depend on the cores.

// scattered returns a variant whose folds are a scatter, and whose other conditions do not
// matter to this engine, because they are about blocks and vectors. It is nil if the kernel has
// none, or if evaluating the condition of every row is less work.
func scattered(k *ir.Kernel, symbols map[string]int64) *ir.Variant {
	const fewest = 1 << 14 // least conditions, of all rows and columns, for which a scatter pays
	at := slices.IndexFunc(k.Variants, func(v *ir.Variant) bool { return v.Scatter != nil })
	if at < 0 {
		return nil
	}
	rows, ok := points(k.Rows, symbols)
	cols, ok2 := points(k.Cols, symbols)
	to, ok3 := points([]*ir.Range{k.Variants[at].Scatter.To}, symbols)
	if !ok || !ok2 || !ok3 || max(cols, to) > math.MaxInt32 || cols > 0 && rows < fewest/cols {
		return nil
	}
	return k.Variants[at]
}

// points counts the points of ranges; ok is false where they do not fit in 62 bits.
func points(ranges []*ir.Range, symbols map[string]int64) (n int64, ok bool) {
	n = 1
	for _, r := range ranges {
		extent, known := ir.EvalSize(r.Extent, symbols)
		if !known || extent < 0 || extent > 0 && n > (1<<62)/extent {
			return 0, false
		}
		n *= extent
	}
	return n, true
}

// columnKeys computes which place each column goes to.
type columnKeys struct {
	code                *code
	batch, places, cols int64
}

// keyBytes is the size of a key, an I32: the place, or -1 for a column of no row.
const keyBytes = 4

func lowerKeys(k *ir.Kernel, s *ir.Scatter, symbols map[string]int64, buffer int) (*columnKeys, error) {
	out := &columnKeys{}
	out.batch, _ = points(s.Batch, symbols)
	out.places, _ = points([]*ir.Range{s.To}, symbols)
	out.cols, _ = points(k.Cols, symbols)
	key, nowhere := ir.Cast(s.Key, ir.I64), ir.IntNum(ir.I64, -1)
	inside := ir.Apply(ir.OpAnd, ir.Apply(ir.OpGe, key, ir.IntNum(ir.I64, 0)), ir.Apply(ir.OpLt, key, ir.IntNum(ir.I64, out.places)))
	if s.Rest != nil {
		inside = ir.Apply(ir.OpAnd, inside, s.Rest)
	}
	ranges := append(slices.Clone(s.Batch), k.Cols...)
	arg := between(k, 0, buffer, ir.I32)
	var err error
	out.code, err = everyPoint(k, ranges, []*ir.Arg{arg},
		[]*ir.Store{{Arg: arg, Offset: rowMajor(ranges), Value: ir.Cast(ir.Where(inside, key, nowhere), ir.I32)}}, symbols)
	return out, err
}

// run fills the buffer of keys.
func (c *columnKeys) run(memory [][]byte, threads int, call *call) {
	c.code.run(memory, threads, call)
}

// bytes is the size of the buffer of keys.
func (c *columnKeys) bytes() int64 { return times(c.batch, c.cols, keyBytes) }

// columnLists holds the columns of each place of each point of the batch.
type columnLists struct {
	places  int64
	start   []int64 // by batch places+2: the list of place p is from start[p] to start[p+1]
	columns []uint32
}

// list sorts the columns by their keys, those of one key in their order.
func (c *columnKeys) list(keys []byte, threads int, call *call) *columnLists {
	out := &columnLists{places: c.places, start: make([]int64, c.batch*(c.places+2)), columns: make([]uint32, c.batch*c.cols)}
	eachOf(c.batch, threads, call, func(b int64) {
		keys, start := keys[b*c.cols*keyBytes:][:c.cols*keyBytes], out.start[b*(c.places+2):][:c.places+2]
		for at := 0; at < len(keys); at += keyBytes {
			if p := int32(binary.LittleEndian.Uint32(keys[at:])); p >= 0 {
				start[p+2]++
			}
		}
		start[0], start[1] = b*c.cols, b*c.cols
		for p := range start[2:] {
			start[p+2] += start[p+1]
		}
		for n := range c.cols {
			if p := int32(binary.LittleEndian.Uint32(keys[n*keyBytes:])); p >= 0 {
				out.columns[start[p+1]] = uint32(n)
				start[p+1]++
			}
		}
	})
	return out
}

// of is the list of the i-th place, counted over the batch.
func (l *columnLists) of(i int64) []uint32 {
	start := l.start[i/l.places*(l.places+2)+i%l.places:]
	return l.columns[start[0]:start[1]]
}

// eachOf calls job for 0 to n-1 on as many goroutines as are allowed.
func eachOf(n int64, threads int, call *call, job func(i int64)) {
	var next atomic.Int64
	call.together(min(int64(threads), n), func() {
		for i := next.Add(1) - 1; i < n && !call.stop.Load(); i = next.Add(1) - 1 {
			job(i)
		}
	})
}

// lister folds the listed columns of each row, lanes along the rows that share a list.
type lister struct {
	keys *columnKeys
	rows *code
}

// lowerScatter compiles a scatter; first is the number of the plan's buffers.
func lowerScatter(k *ir.Kernel, v *ir.Variant, symbols map[string]int64, first int) (step, error) {
	keys, err := lowerKeys(k, v.Scatter, symbols, first)
	if err != nil {
		return nil, err
	}
	const fewLanes = 32 // so few lanes cost as much as many
	if lanes, _ := points(v.Scatter.Lanes(k.Rows), symbols); lanes < fewLanes && !placesKnown(v) {
		return lowerBins(k, v, keys, symbols, first)
	}
	listed := *v
	listed.Keep, listed.Sections = nil, slices.Clone(v.Sections)
	pass := *v.Sections[0]
	pass.Folds = nil
	for _, f := range v.Sections[0].Folds {
		taken := *f
		taken.Where = nil
		pass.Folds = append(pass.Folds, &taken)
	}
	listed.Sections[0] = &pass
	out := &lister{keys: keys}
	out.rows, err = lowerVariant(k, &listed, symbols, v.Scatter)
	return out, err
}

// placesKnown reports whether a term depends on the place it goes to.
func placesKnown(v *ir.Variant) bool {
	found, seen := false, map[*ir.Local]bool{}
	var visit func(e *ir.Expr) bool
	visit = func(e *ir.Expr) bool {
		switch {
		case e.Op == ir.OpRange:
			found = found || e.Range == v.Scatter.To
		case e.Op == ir.OpLocal && e.Local.Def != nil && !seen[e.Local]:
			seen[e.Local] = true
			ir.Walk(e.Local.Def, visit)
		}
		return !found
	}
	for _, f := range v.Sections[0].Folds {
		ir.Walk(f.Body, visit)
		if f.Index != nil {
			ir.Walk(f.Index, visit)
		}
	}
	return found
}

// scratch is the keys and the lists made of them.
func (s *lister) scratch(threads int) int64 {
	lists := plus(times(s.keys.batch, s.keys.places+2, 8), times(s.keys.batch, s.keys.cols, 4))
	return plus(plus(s.keys.bytes(), lists), s.rows.scratch(threads))
}

func (s *lister) run(memory [][]byte, threads int, call *call) {
	keys := make([]byte, s.keys.bytes())
	s.keys.run(append(slices.Clone(memory), keys), threads, call)
	if call.stop.Load() {
		return
	}
	l := s.rows.launch(memory, threads, call)
	l.lists = s.keys.list(keys, threads, call)
	l.run()
}

// listed runs the steps of a section for the columns of the row's list.
func (l *launch) listed(w *worker, s *section) {
	i := int64(0)
	for _, a := range l.places {
		i = i*a.extent + w.at[a.slot]
	}
	last := int64(0)
	for _, n := range l.lists.of(i) {
		if l.call.stop.Load() {
			break
		}
		w.step = int64(n)
		if w.step/runSteps != last/runSteps {
			s.settle(w, false)
		}
		last = w.step
		l.seekStep(w)
		w.exec(s.body)
	}
	s.settle(w, true)
}

// between is an argument of a kernel's step that is the memory between two of its steps:
// the n-th of the arguments that it has more than the kernel.
func between(k *ir.Kernel, n, buffer int, t ir.DType) *ir.Arg {
	return &ir.Arg{Index: len(k.Args) + n, Name: "between", Type: t, Buffer: &ir.Buffer{Index: buffer, Type: t}}
}

// rowMajor is the offset of a point of ranges in memory that holds one element for each.
func rowMajor(ranges []*ir.Range) *ir.Expr {
	shape := make([]*ir.Expr, len(ranges))
	for i, r := range ranges {
		shape[i] = r.Extent
	}
	return ir.Simplify(ir.FlatOffset(shape, ir.Indices(ranges)), ir.Facts{})
}
