package cpu

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
)

// bins is a scatter in which few rows share a key, such as a histogram, or sums of segments of
// scalars. A pointwise kernel computes the terms of all columns, tile by tile. Each term is
// then added to the running value of its place. Another pointwise kernel stores what is
// computed from the results.
type bins struct {
	keys         *columnKeys
	terms, store *code
	lanes        int64
	folds        []*bin
}

// bin is a fold of bins. Its terms and its running values are F64 or I64, which hold every type
// in which a fold is computed exactly.
type bin struct {
	op           ir.Monoid
	class        class
	narrow       bool // sums are rounded to f32 at each term: strict numerics
	identF       float64
	identI       int64
	term, result int // buffers behind the plan's
	index        int // of argmax and argmin: buffer of the indices of the terms
}

const binBytes = 8 // of a term, an index and a result

// lowerBins compiles the folds of v.Sections[0] as bins; first is the number of the
// plan's buffers, the first of which behind them holds the keys.
func lowerBins(k *ir.Kernel, v *ir.Variant, keys *columnKeys, symbols map[string]int64, first int) (step, error) {
	s := v.Scatter
	out := &bins{keys: keys}
	lanes := s.Lanes(k.Rows)
	out.lanes, _ = points(lanes, symbols)
	ranges := slices.Concat(s.Batch, lanes, k.Cols)
	offset, place := rowMajor(ranges), rowMajor(k.Rows)
	var terms, results []*ir.Arg
	var stores []*ir.Store
	buffers := 1
	add := func(args *[]*ir.Arg, t ir.DType) *ir.Arg {
		*args = append(*args, between(k, len(*args), first+buffers, t))
		buffers++
		return (*args)[len(*args)-1]
	}
	read := map[*ir.Local]*ir.Expr{}
	for _, f := range v.Sections[0].Folds {
		id := f.Op.Identity(f.Body.Type)
		b := &bin{op: f.Op, class: classOf(f.Body.Type), identF: id.Val, identI: id.Int}
		b.narrow = k.Numerics == ir.Strict && b.class == classF32
		t := ir.F64
		if b.class == classInt {
			t = ir.I64
		}
		b.term = buffers
		arg := add(&terms, t)
		stores = append(stores, &ir.Store{Arg: arg, Offset: offset, Value: ir.Cast(f.Body, t)})
		if f.Op.IsArg() {
			b.index, t = buffers, ir.I64
			arg := add(&terms, ir.I64)
			stores = append(stores, &ir.Store{Arg: arg, Offset: offset, Value: ir.Cast(f.Index, ir.I64)})
		}
		b.result = buffers
		read[f.Result] = ir.Cast(ir.Read(add(&results, t), place, nil, nil), f.Result.Type)
		out.folds = append(out.folds, b)
	}
	var err error
	if out.terms, err = everyPoint(k, ranges, terms, stores, symbols); err != nil {
		return nil, err
	}
	out.store, err = everyPoint(k, k.Rows, results, readingResults(v, read), symbols)
	return out, err
}

// readingResults is what v stores behind its folds, with their results read from memory.
func readingResults(v *ir.Variant, read map[*ir.Local]*ir.Expr) []*ir.Store {
	for _, l := range v.Locals {
		if l.Def == nil || l.Level != ir.RowLevel {
			continue
		}
		again := *l
		if again.Def = readInstead(l.Def, read); again.Def != l.Def {
			read[l] = ir.LocalRef(&again)
		}
	}
	var out []*ir.Store
	for _, s := range v.Sections[1:] {
		for _, st := range s.Stores {
			c := *st
			c.Value, c.Offset, c.Guard = readInstead(st.Value, read), readInstead(st.Offset, read), readInstead(st.Guard, read)
			out = append(out, &c)
		}
	}
	return out
}

// scratch is the keys, the terms, and the results twice: as they are folded and as they
// are stored.
func (s *bins) scratch(int) int64 {
	bytes, terms := s.keys.bytes(), times(s.keys.batch, s.lanes, s.keys.cols, binBytes)
	for _, f := range s.folds {
		each := plus(terms, times(2, s.keys.batch, s.keys.places, s.lanes, binBytes))
		if f.op.IsArg() {
			each = times(2, each)
		}
		bytes = plus(bytes, each)
	}
	return bytes
}

func (s *bins) run(memory [][]byte, threads int, call *call) {
	first := len(memory)
	memory = append(slices.Clone(memory), make([]byte, s.keys.bytes()))
	terms, results := s.keys.batch*s.lanes*s.keys.cols*binBytes, s.keys.batch*s.keys.places*s.lanes*binBytes
	for _, f := range s.folds {
		memory = append(memory, make([]byte, terms))
		if f.op.IsArg() {
			memory = append(memory, make([]byte, terms))
		}
		memory = append(memory, make([]byte, results))
	}
	s.keys.run(memory, threads, call)
	s.terms.run(memory, threads, call)
	s.fold(memory[first:], threads, call)
	s.store.run(memory, threads, call)
}

// fold adds the terms to their places. Points of the batch and lanes are apart from each
// other; where they are few, so are parts of the places, for which the keys are read again.
func (s *bins) fold(memory [][]byte, threads int, call *call) {
	rows := s.keys.batch * s.lanes
	if rows == 0 || s.keys.places == 0 {
		return
	}
	parts := min(s.keys.places, max(1, int64(threads)/rows))
	per := (s.keys.places + parts - 1) / parts
	eachOf(rows*parts, threads, call, func(i int64) {
		row, low := i/parts, i%parts*per
		part := &binPart{bins: s, memory: memory, row: row, low: low, places: max(0, min(per, s.keys.places-low)), call: call}
		for _, f := range s.folds {
			part.fold(f)
		}
	})
}

// binPart is the places low to low+places-1 of one point of the batch and of the lanes.
type binPart struct {
	*bins
	memory           [][]byte
	row, low, places int64
	call             *call
}

func (p *binPart) fold(f *bin) {
	switch {
	case f.class == classInt:
		foldBin(p, f, f.identI, combineInts(f.op), intBits, bitsInt)
	case f.narrow:
		exact := combineFloats(f.op)
		foldBin(p, f, f.identF, func(a, b float64) float64 { return float64(float32(exact(a, b))) },
			math.Float64frombits, math.Float64bits)
	default:
		foldBin(p, f, f.identF, combineFloats(f.op), math.Float64frombits, math.Float64bits)
	}
}

func intBits(w uint64) int64 { return int64(w) }

func bitsInt(i int64) uint64 { return uint64(i) }

// foldBin folds the terms of one fold and writes its results.
func foldBin[T float64 | int64](p *binPart, f *bin, ident T, combine func(a, b T) T, value func(uint64) T, bits func(T) uint64) {
	acc := make([]T, p.places)
	fill(acc, ident)
	terms := p.rowOf(f.term)
	if !f.op.IsArg() {
		p.eachColumn(func(n, place int64) { acc[place] = combine(acc[place], value(word(terms, n))) })
		p.write(f, func(place int64) uint64 { return bits(acc[place]) })
		return
	}
	best, indices := make([]int64, p.places), p.rowOf(f.index)
	fill(best, -1)
	p.eachColumn(func(n, place int64) {
		v, index := value(word(terms, n)), int64(word(indices, n))
		if beats(f.op, v, acc[place], index, best[place]) {
			acc[place], best[place] = v, index
		}
	})
	p.write(f, func(place int64) uint64 { return uint64(max(best[place], 0)) })
}

// rowOf is the row's part of a buffer of terms.
func (p *binPart) rowOf(buffer int) []byte {
	size := p.keys.cols * binBytes
	return p.memory[buffer][p.row*size:][:size]
}

func word(b []byte, n int64) uint64 { return binary.LittleEndian.Uint64(b[n*binBytes:]) }

// eachColumn calls take for the columns that go to the part's places, in order.
func (p *binPart) eachColumn(take func(n, place int64)) {
	const block = 1 << 16 // columns between two checks whether to stop
	size := p.keys.cols * keyBytes
	keys := p.memory[0][p.row/p.lanes*size:][:size]
	for from := int64(0); from < p.keys.cols && !p.call.stop.Load(); from += block {
		for n := from; n < min(from+block, p.keys.cols); n++ {
			place := int64(int32(binary.LittleEndian.Uint32(keys[n*keyBytes:]))) - p.low
			if uint64(place) < uint64(p.places) { // -1 is in no part, because low is at least 0
				take(n, place)
			}
		}
	}
}

// write stores the results of one fold.
func (p *binPart) write(f *bin, result func(place int64) uint64) {
	to := p.memory[f.result]
	first := p.row/p.lanes*p.keys.places + p.low
	for place := range p.places {
		binary.LittleEndian.PutUint64(to[((first+place)*p.lanes+p.row%p.lanes)*binBytes:], result(place))
	}
}
