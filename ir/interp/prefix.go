package interp

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// A prefix is a fold over the points up to an index of the result, such as sum[k: N where k <= i] x[k], or over those from that
// index on. Each result continues that of its neighbour, so that a row of n results takes n steps in place of n * n.
type prefix struct {
	*fold
	over, axis int   // slots of the range and of the index that bounds it
	extent     int64 // of the range
	reverse    bool  // from the index on: points are folded from the last to the first
	exclusive  bool  // without the point at the index itself
	others     []int // slots of the other indices of the result

	row     []int64  // values of the others that results are for
	results []Scalar // after each number of points
}

// prefix compiles a value whose reduction is a prefix; nil where it is none, or where each result is sampled.
func (c *compiler) prefix(v *ir.Value) *prefix {
	if c.chooser != nil || len(v.Reduce.Ranges) != 1 || v.Reduce.Where == nil {
		return nil
	}
	over, terms := v.Reduce.Ranges[0], ir.Conjuncts(v.Reduce.Where)
	for i, term := range terms {
		for _, axis := range v.Axes {
			p := boundedBy(term, over, axis)
			if p == nil {
				continue
			}
			var where *ir.Expr
			for _, rest := range slices.Delete(slices.Clone(terms), i, i+1) {
				where = ir.Join(ir.OpAnd, where, rest)
			}
			if ir.DependsOn(v.Body, axis) || where != nil && ir.DependsOn(where, axis) {
				return nil
			}
			p.fold = c.newFold(v.Reduce.Op, where, v.Body)
			p.over, p.axis = c.slot(over), c.slot(axis)
			for _, other := range v.Axes {
				if other != axis {
					p.others = append(p.others, c.slot(other))
				}
			}
			return p
		}
	}
	return nil
}

// boundedBy reads a comparison of a range with an index; nil where it is none.
func boundedBy(term *ir.Expr, over, axis *ir.Range) *prefix {
	is := func(e *ir.Expr, r *ir.Range) bool { return e.Op == ir.OpRange && e.Range == r }
	if len(term.Args) != 2 {
		return nil
	}
	swapped := is(term.Args[0], axis) && is(term.Args[1], over)
	if !swapped && !(is(term.Args[0], over) && is(term.Args[1], axis)) {
		return nil
	}
	switch term.Op {
	case ir.OpLe, ir.OpLt:
		return &prefix{reverse: swapped, exclusive: term.Op == ir.OpLt}
	case ir.OpGe, ir.OpGt:
		return &prefix{reverse: !swapped, exclusive: term.Op == ir.OpGt}
	}
	return nil
}

// code compiles the prefix over a range of that extent, for results of type t.
func (p *prefix) code(extent int64, t ir.DType) code {
	p.extent = extent
	if t.IsFloat() {
		return code{float: func(f *frame) float64 { return p.at(f).F }}
	}
	return code{int: func(f *frame) int64 { return p.at(f).I }}
}

// at is the result at the current indices. It folds only points that the result depends on, because others may be outside what
// the terms read.
func (p *prefix) at(f *frame) Scalar {
	if p.row == nil || !slices.EqualFunc(p.others, p.row, func(slot int, at int64) bool { return f.at[slot] == at }) {
		p.reset()
		p.row, p.results = make([]int64, len(p.others)), append(p.results[:0], p.result())
		for i, slot := range p.others {
			p.row[i] = f.at[slot]
		}
	}
	count := p.count(f.at[p.axis])
	for n := int64(len(p.results)); n <= count && f.err == nil; n++ {
		point := n - 1
		if p.reverse {
			point = p.extent - n
		}
		f.at[p.over] = point
		f.now++
		p.step(f, point)
		p.results = append(p.results, p.result())
	}
	if f.err != nil {
		return Scalar{}
	}
	return p.results[count]
}

// count is how many points take part in the result at index i.
func (p *prefix) count(i int64) int64 {
	n := i + 1
	if p.reverse {
		n = p.extent - i
	}
	if p.exclusive {
		n--
	}
	return min(max(n, 0), p.extent)
}
