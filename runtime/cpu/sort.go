package cpu

import (
	"encoding/binary"
	"math"
	"slices"
	"sync/atomic"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/num"
)

// sorter runs a sort kernel in three steps: a pointwise kernel that computes the keys, a radix
// sort of each row, and a pointwise kernel that stores the results at the places.
type sorter struct {
	keys, store  *code
	rows         int64
	cols, places int64
	keyType      ir.DType
	descending   bool
	none         uint64 // the word of a place past the last column
}

// The buffers between the steps, after the plan's own.
const (
	keyBuffer = iota
	valueBuffer
	indexBuffer
	sortBuffers
)

// lowerSort compiles a sort kernel; first is the number of the plan's buffers.
func lowerSort(k *ir.Kernel, s *ir.Sort, symbols map[string]int64, first int) (*sorter, error) {
	out := &sorter{keyType: s.Type, descending: s.Descending, rows: 1}
	for _, r := range k.Rows {
		n, _ := ir.EvalSize(r.Extent, symbols)
		out.rows *= n
	}
	out.cols, _ = ir.EvalSize(k.Cols[0].Extent, symbols)
	out.places, _ = ir.EvalSize(s.Places.Extent, symbols)
	op := ir.Min
	if s.Descending {
		op = ir.Max
	}
	none := op.Identity(s.Type)
	out.none = orderWord(s.Type, none.Val, none.Int)

	at := func(n, more int, t ir.DType, last *ir.Range) (*ir.Arg, *ir.Expr) {
		return between(k, more, first+n, t), rowMajor(append(slices.Clone(k.Rows), last))
	}
	var err error
	key, offset := at(keyBuffer, 0, s.Type, k.Cols[0])
	if out.keys, err = everyPoint(k, append(slices.Clone(k.Rows), k.Cols[0]), []*ir.Arg{key}, []*ir.Store{{Arg: key, Offset: offset, Value: s.Key}}, symbols); err != nil {
		return nil, err
	}
	value, place := at(valueBuffer, 0, s.Type, s.Places)
	index, _ := at(indexBuffer, 1, ir.I64, s.Places)
	read := map[*ir.Local]*ir.Expr{
		s.Value: ir.Cast(ir.Read(value, place, nil, nil), s.Value.Type),
		s.Index: ir.Read(index, place, nil, nil),
	}
	var stores []*ir.Store
	for _, st := range s.Stores {
		c := *st
		c.Value, c.Offset, c.Guard = readInstead(st.Value, read), readInstead(st.Offset, read), readInstead(st.Guard, read)
		stores = append(stores, &c)
	}
	out.store, err = everyPoint(k, append(slices.Clone(k.Rows), s.Places), []*ir.Arg{value, index}, stores, symbols)
	return out, err
}

// everyPoint compiles stores of a kernel's step at every point of ranges; more are its
// arguments behind the kernel's.
func everyPoint(k *ir.Kernel, ranges []*ir.Range, more []*ir.Arg, stores []*ir.Store, symbols map[string]int64) (*code, error) {
	return lowerVariant(&ir.Kernel{Name: k.Name, Rows: ranges, Args: append(slices.Clone(k.Args), more...), Numerics: k.Numerics},
		&ir.Variant{Sections: []*ir.Section{{Level: ir.RowLevel, Stores: stores}}}, symbols, nil)
}

// readInstead replaces locals in an optional expression.
func readInstead(e *ir.Expr, with map[*ir.Local]*ir.Expr) *ir.Expr {
	return ir.Rewrite(e, func(e *ir.Expr) *ir.Expr {
		if e.Op == ir.OpLocal && with[e.Local] != nil {
			return with[e.Local]
		}
		return e
	})
}

// scratch is the buffers between the steps, and the rows being sorted, each twice.
func (s *sorter) scratch(threads int) int64 {
	const item = 16
	size := int64(s.keyType.Size())
	between := plus(times(s.rows, s.cols, size), times(s.rows, s.places, size+8))
	return plus(between, times(min(int64(threads), s.rows), s.cols, 2*item))
}

// run sorts with the plan's buffers in memory.
func (s *sorter) run(memory [][]byte, threads int, call *call) {
	size := int64(s.keyType.Size())
	memory = append(append([][]byte(nil), memory...), make([]byte, s.rows*s.cols*size), make([]byte, s.rows*s.places*size),
		make([]byte, s.rows*s.places*8))
	between := memory[len(memory)-sortBuffers:]
	s.keys.run(memory, threads, call)
	var next atomic.Int64
	call.together(min(int64(threads), s.rows), func() {
		r := &rowSorter{sorter: s}
		for row := next.Add(1) - 1; row < s.rows && !call.stop.Load(); row = next.Add(1) - 1 {
			r.row(between, row)
		}
	})
	s.store.run(memory, threads, call)
}

// rowSorter is the memory of one goroutine that sorts rows.
type rowSorter struct {
	*sorter
	items, spare []sortItem
}

// sortItem is a key as a word whose order is the key's, and its column.
type sortItem struct {
	word uint64
	at   int64
}

func (r *rowSorter) row(between [][]byte, row int64) {
	if r.items == nil {
		r.items, r.spare = make([]sortItem, r.cols), make([]sortItem, r.cols)
	}
	size := int64(r.keyType.Size())
	keys := between[keyBuffer][row*r.cols*size:]
	var flip uint64
	if r.descending {
		flip = math.MaxUint64
	}
	for c := range r.cols {
		r.items[c] = sortItem{keyWord(r.keyType, keys[c*size:]) ^ flip, c}
	}
	r.radix()
	values, indices := between[valueBuffer][row*r.places*size:], between[indexBuffer][row*r.places*8:]
	for p := range r.places {
		at := int64(0)
		if p < r.cols { // the element itself, because zeros of either sign share a word
			at = r.items[p].at
			copy(values[p*size:(p+1)*size], keys[at*size:])
		} else {
			encodeWord(r.keyType, values[p*size:], r.none)
		}
		binary.LittleEndian.PutUint64(indices[p*8:], uint64(at))
	}
}

// radix sorts items by word, stable: eight bits at a time, the lowest first, without
// the digits that all items share.
func (r *rowSorter) radix() {
	var differ uint64
	for _, x := range r.items {
		differ |= x.word ^ r.items[0].word
	}
	for shift := 0; shift < 64; shift += 8 {
		if differ>>shift&0xff == 0 {
			continue
		}
		var start [257]int
		for _, x := range r.items {
			start[x.word>>shift&0xff+1]++
		}
		for d := range 256 {
			start[d+1] += start[d]
		}
		for _, x := range r.items {
			d := x.word >> shift & 0xff
			r.spare[start[d]] = x
			start[d]++
		}
		r.items, r.spare = r.spare, r.items
	}
}

// orderWord maps a value of type t to a word whose order is that of the values: zeros
// of either sign are one word, NaN is above all numbers.
func orderWord(t ir.DType, f float64, i int64) uint64 {
	const top = 1 << 63
	if !t.IsFloat() {
		return uint64(i) ^ top
	}
	switch u := math.Float64bits(f); {
	case f != f:
		return math.MaxUint64
	case f == 0:
		return top
	case u&top != 0:
		return ^u
	default:
		return u | top
	}
}

// keyWord is the word of a stored value.
func keyWord(t ir.DType, from []byte) uint64 {
	if t.IsFloat() {
		return orderWord(t, num.Load(t, from), 0)
	}
	return orderWord(t, 0, num.LoadInt(t, from))
}

// encodeWord stores the value of a word.
func encodeWord(t ir.DType, to []byte, word uint64) {
	const top = 1 << 63
	if !t.IsFloat() {
		num.StoreInt(t, to, int64(word^top))
		return
	}
	u := ^word
	if word&top != 0 {
		u = word &^ top
	}
	num.Store(t, to, math.Float64frombits(u))
}
