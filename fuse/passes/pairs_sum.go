package passes

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// sumFirst sums one side of a product ahead where nothing but sums of the product along that side is read: the sum over j of the sum over k of
// a[i, k] b[k, j] is that over k of a[i, k] times the sum over j of b[k, j]. What is added to the product is summed by itself. It changes v, and
// returns the values that v then needs; none where it does nothing.
func (p *pairs) sumFirst(v *ir.Value) (made []*ir.Value) {
	if v.Reduce == nil || v.Reduce.Op != ir.Sum || v.Reduce.Where != nil || !v.Type.IsFloat() || v.Body.Type == ir.F64 {
		return nil
	}
	terms := p.terms(v.Body)
	var sums, rest []*ir.Expr
	for _, term := range terms {
		best := p.sideOf(v, term)
		switch {
		case best == nil:
			rest = append(rest, term)
			continue
		case len(terms) == 1:
			v.Body, v.Reduce = best.body, best.reduce
			return []*ir.Value{best.inner}
		}
		made = append(made, best.inner)
		if best.reduce != nil {
			outer, at := p.sumOver(v, best.body, best.reduce.Ranges)
			made, best.body = append(made, outer), ir.Load(outer, ir.Indices(at), nil)
		}
		sums = append(sums, best.body)
	}
	if made == nil {
		return nil
	}
	if len(rest) > 0 {
		outer, at := p.sumOver(v, added(rest), v.Reduce.Ranges)
		made, sums = append(made, outer), append(sums, ir.Load(outer, ir.Indices(at), nil))
	}
	v.Body, v.Reduce = ir.Cast(added(sums), v.Type).At(v.Body.Span), nil
	return made
}

// added is a sum of terms in f32.
func added(terms []*ir.Expr) (sum *ir.Expr) {
	for _, t := range wide(terms) {
		sum = ir.Join(ir.OpAdd, sum, t)
	}
	return sum
}

// terms writes an expression as a sum, through values that nothing else reads. Under fast, kernels do not round these.
// It is one term if there would be more than ir.MostOperands.
func (p *pairs) terms(e *ir.Expr) []*ir.Expr {
	var out []*ir.Expr
	var fits func(e *ir.Expr, by ...*ir.Expr) bool // by is what the term is multiplied by, the first last
	fits = func(e *ir.Expr, by ...*ir.Expr) bool {
		switch e = p.through(e); {
		case e.Op == ir.OpAdd:
			return fits(e.Args[0], by...) && fits(e.Args[1], by...)
		case e.Op == ir.OpSub:
			return fits(e.Args[0], by...) && fits(e.Args[1], append(slices.Clip(by), ir.Num(ir.F32, -1))...)
		case e.Op == ir.OpMul && e.Args[1].Op == ir.OpConst:
			return fits(e.Args[0], append(slices.Clip(by), e.Args[1])...)
		}
		for _, b := range slices.Backward(by) {
			e = ir.Apply(ir.OpMul, ir.Cast(e, ir.F32), ir.Cast(b, ir.F32))
		}
		out = append(out, e)
		return len(out) <= ir.MostOperands
	}
	if !fits(e) {
		return []*ir.Expr{p.through(e)}
	}
	return out
}

// through is what an expression loads from a value that is computed element by element for it alone, without what only rounds it.
func (p *pairs) through(e *ir.Expr) *ir.Expr {
	for e = form.Stripped(e); p.isOwn(e) && e.From.Reduce == nil; e = form.Stripped(form.BodyAt(e)) {
	}
	return e
}

// isOwn reports whether an expression loads a computed value that nothing else reads.
func (p *pairs) isOwn(e *ir.Expr) bool {
	return e.Op == ir.OpLoad && !e.From.IsInput() && e.Fill == nil && p.readers[e.From] == 1
}

// sumOver is the sum of a body, which is written over the ranges of v, with those of v's axes that it depends on, and these.
func (p *pairs) sumOver(v *ir.Value, body *ir.Expr, ranges []*ir.Range) (sum *ir.Value, axes []*ir.Range) {
	free := ir.FreeRanges(body)
	for _, r := range v.Axes {
		if free[r] {
			axes = append(axes, r)
		}
	}
	return p.sum(v, ir.Cast(body, ir.F32), axes, ranges), axes
}

// sideOf is the pair with which the sum of a term of v takes the least time, where the term is a product that is read for it alone; nil where
// none saves enough.
func (p *pairs) sideOf(v *ir.Value, term *ir.Expr) (best *pair) {
	product, flat, factors := p.flat(v, term)
	if product == nil {
		return nil
	}
	whole := p.multiplying(product)
	least := min(whole/pairGain, whole-pairBytes)
	for i := range factors {
		for j := range i + 1 {
			if i != j && len(factors) == 2 {
				continue // which is all of the product
			}
			pair := p.pair(flat, factors, j, i)
			if pair == nil || !p.mayLeave(product, flat, pair) {
				continue
			}
			outer := *flat
			outer.Body, outer.Reduce = pair.body, pair.reduce
			time := p.time(&outer) + p.written(product, pair)
			if !pair.exists {
				time += p.time(pair.inner)
			}
			if time < least {
				best, least = pair, time
			}
		}
	}
	return best
}

// flat writes the sum of a term of v as one over the ranges of v and of the product that the term reads, with its factors; nil where it reads
// none.
func (p *pairs) flat(v *ir.Value, term *ir.Expr) (product, flat *ir.Value, factors []*ir.Expr) {
	ranges := v.Reduce.Ranges
	for open := unrounded(term); len(open) > 0; open = open[1:] {
		f := p.through(open[0])
		switch {
		case f.Op == ir.OpMul:
			inside := unrounded(f)
			if len(inside) == 1 || len(factors)+len(open)+len(inside) > ir.MostOperands {
				return nil, nil, nil // too many
			}
			open = slices.Concat(open[:1], inside, open[1:])
		case product == nil && p.isOwn(f) && form.Crosses(f.From) && f.From.Reduce.Where == nil:
			product = f.From
			to, depth := map[*ir.Range]*ir.Expr{}, []*ir.Range(nil)
			for _, r := range product.Reduce.Ranges {
				fresh := p.graph.NewRange(r.Name, r.Extent)
				to[r], depth = fresh.At(), append(depth, fresh)
			}
			ranges = slices.Concat(ranges, depth)
			factors = append(factors, unrounded(ir.Substitute(form.BodyAt(f), to))...)
		default:
			factors = append(factors, f)
		}
	}
	if product == nil || len(factors) > pairFactors || slices.ContainsFunc(factors, func(f *ir.Expr) bool { return f.Type == ir.F64 || !f.Type.IsFloat() }) {
		return nil, nil, nil
	}
	factors = wide(factors)
	flat = &ir.Value{Name: v.Name, Type: v.Type, Axes: v.Axes, Body: ir.Cast(form.ProductOf(factors), v.Body.Type),
		Reduce: &ir.Reduction{Op: ir.Sum, Ranges: ranges}, Origin: v.Origin}
	return product, flat, factors
}

// unrounded is the factors of an expression, without what only rounds them.
func unrounded(e *ir.Expr) []*ir.Expr { return form.FactorsOf(form.Stripped(form.Uncast(e))) }

// mayLeave reports whether the factors beside a pair may multiply its sums instead of their terms: where tensor cores multiply all may, else those
// that are never infinite.
func (p *pairs) mayLeave(product, flat *ir.Value, pair *pair) bool {
	if form.IsTileProduct(product) {
		return true
	}
	for _, f := range form.FactorsOf(form.Stripped(pair.body)) {
		if f = form.Stripped(f); (f.Op != ir.OpLoad || f.From != pair.inner) && !p.reaches.safe(flat, factor{f, false}) {
			return false
		}
	}
	return true
}

// multiplying is how long a product takes whose results need not be written, in bytes moved.
func (p *pairs) multiplying(product *ir.Value) float64 {
	rate := float64(loopOperations)
	if form.IsTileProduct(product) {
		rate = chainOperations
	}
	return max(p.time(product)-algebra.BytesAt(product, p.sizes), multiplied(product, p.sizes)/rate)
}

// written is the bytes of operands that may have to be written where they are no longer those of a product, as the weights of attention.
func (p *pairs) written(product *ir.Value, pair *pair) (bytes float64) {
	of, kept := map[*ir.Value]bool{}, map[*ir.Value]bool{pair.inner: true}
	for _, o := range p.graph.Outputs {
		kept[o.Value] = true
	}
	for _, e := range []*ir.Expr{pair.body, pair.inner.Body} {
		for _, l := range ir.Loads(e) {
			of[l.From] = true
		}
	}
	for u := range writtenFor(product, of, kept) {
		bytes += 2 * algebra.BytesAt(u, p.sizes)
	}
	return bytes
}
