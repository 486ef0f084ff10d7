package main

import (
	"math"
	"slices"

	"github.com/fusec/fusec/ir"
)

// drawnPoint is one point of a value: its indices, and what its expressions gave there.
// What does not depend on the reduced ranges stays the same from term to term.
type drawnPoint struct {
	*drawing
	at          map[*ir.Range]int64
	kept, terms map[uint64]float64 // by the hash of an expression: of the point, of one term
	varies      map[uint64]bool    // the expressions that depend on the reduced ranges
}

func (d *drawing) point(v *ir.Value) *drawnPoint {
	p := &drawnPoint{d, map[*ir.Range]int64{}, map[uint64]float64{}, map[uint64]float64{}, nil}
	if v.Reduce != nil {
		p.varies = varying(v)
	}
	return p
}

// varying finds the expressions of a reduction that depend on its ranges.
func varying(v *ir.Value) map[uint64]bool {
	out := map[uint64]bool{}
	var visit func(e *ir.Expr) bool
	visit = func(e *ir.Expr) bool {
		if known, ok := out[e.Hash()]; ok {
			return known
		}
		varies := e.Op == ir.OpRange && slices.Contains(v.Reduce.Ranges, e.Range)
		for _, a := range e.Args {
			varies = visit(a) || varies
		}
		out[e.Hash()] = varies
		return varies
	}
	visit(v.Body)
	if v.Reduce.Where != nil {
		visit(v.Reduce.Where)
	}
	return out
}

// term draws another term of a reduction; ok is false where it does not take part.
func (p *drawnPoint) term(v *ir.Value) (term float64, ok bool) {
	for _, r := range v.Reduce.Ranges {
		delete(p.at, r)
	}
	clear(p.terms)
	if v.Reduce.Where != nil && p.eval(v.Reduce.Where) == 0 {
		return 0, false
	}
	return p.eval(v.Body), true
}

// fold draws the result of a reduction other than a sum.
func (p *drawnPoint) fold(v *ir.Value) float64 {
	n := points(v.Reduce.Ranges, p.sizes)
	if v.Reduce.Op.IsArg() {
		return math.Floor(n * p.rng.Float64())
	}
	info := v.Reduce.Op.Info()
	out := info.Identity
	for range int(min(n, drawnTerms)) {
		if term, ok := p.term(v); ok {
			out = p.apply(info.Combine, v.Type.IsFloat(), out, term, 0)
		}
	}
	return out
}

// eval evaluates an expression; integers are held as floats, which is near enough.
func (p *drawnPoint) eval(e *ir.Expr) float64 {
	switch e.Op {
	case ir.OpConst:
		if e.Type.IsFloat() {
			return e.Val
		}
		return float64(e.Int)
	case ir.OpSym:
		return float64(p.sizes[e.Name])
	case ir.OpRange:
		return float64(p.index(e.Range))
	}
	known := p.kept
	if p.varies[e.Hash()] {
		known = p.terms
	}
	v, ok := known[e.Hash()]
	if !ok {
		v = p.compute(e)
		known[e.Hash()] = v
	}
	return v
}

// compute evaluates an expression that has not been evaluated at the point.
func (p *drawnPoint) compute(e *ir.Expr) float64 {
	switch e.Op {
	case ir.OpLoad:
		return p.load(e)
	case ir.OpSelect:
		if p.eval(e.Args[0]) != 0 {
			return p.eval(e.Args[1])
		}
		return p.eval(e.Args[2])
	case ir.OpCast:
		v := p.eval(e.Args[0])
		if e.Type == ir.Bool {
			return truth(v != 0)
		}
		if e.Type.IsInt() {
			return math.Trunc(v)
		}
		return v
	case ir.OpRandom:
		return float64(p.rng.Uint32())
	case ir.OpRandom16:
		return float64(p.rng.Uint32() >> 16)
	}
	var args [3]float64
	for i, a := range e.Args {
		args[i] = p.eval(a)
	}
	return p.apply(e.Op, e.Args[0].Type.IsFloat(), args[0], args[1], args[2])
}

func (p *drawnPoint) apply(op ir.Op, float bool, a, b, c float64) float64 {
	info := op.Info()
	if float && info.Float != nil {
		return info.Float(a, b, c)
	}
	if info.Int == nil {
		return math.NaN()
	}
	return float64(info.Int(int64(a), int64(b), int64(c)))
}

func (p *drawnPoint) index(r *ir.Range) int64 {
	at, ok := p.at[r]
	if !ok {
		if n, known := ir.EvalSize(r.Extent, p.sizes); known && n > 0 {
			at = p.rng.Int64N(n)
		}
		p.at[r] = at
	}
	return at
}

// load gives one of the numbers drawn from a value, or what the load gives outside.
func (p *drawnPoint) load(e *ir.Expr) float64 {
	v := p.drawn[e.From][p.rng.IntN(drawnNumbers)]
	if e.Fill != nil {
		for d, index := range e.Args {
			extent, _ := ir.EvalSize(e.From.Axes[d].Extent, p.sizes)
			if at := p.eval(index); at < 0 || at >= float64(extent) {
				v = p.eval(e.Fill)
				break
			}
		}
	}
	return v
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
