package ir

import "slices"

// Facts is what is known about symbols. The zero value says only that sizes
// are not negative.
type Facts struct {
	Divisible map[string]int64 // the symbol is a multiple of this
	Multiples []MultipleOf     // sizes that are multiples although their symbols need not be
	Positive  bool             // every symbol is at least 1, as inside a loop that runs
	AtLeast0  []*Expr          // sizes that are not negative, although their terms may be
	Within    []*Range         // loops around the expression: they run, so their extents are at least 1
}

// MultipleOf says that a size is a multiple of By, which is at least 1. If the size is a
// product such as H*W, every product with that factor is a multiple too.
type MultipleOf struct {
	Size *Expr
	By   int64
}

// Holds reports whether m is true at the given sizes.
func (m MultipleOf) Holds(symbols map[string]int64) bool {
	v, ok := EvalSize(m.Size, symbols)
	return ok && v%m.By == 0
}

// Truth is the answer to a question that may be beyond what can be proved.
type Truth uint8

// The answers.
const (
	Unknown Truth = iota
	True          // at every point
	False         // at no point
)

// String returns the answer as a word.
func (t Truth) String() string { return [...]string{"unknown", "true", "false"}[t] }

// The questions below are about every point of the ranges that occur in their
// arguments. A positive answer is always right; a negative one may only mean
// that no proof was found.

// SameIndex reports whether two index expressions are provably equal.
func SameIndex(a, b *Expr, f Facts) bool {
	if Equal(a, b) {
		return true
	}
	if sizeLeaf(a) && sizeLeaf(b) {
		return false
	}
	alg := newAlgebra(f, a, b)
	d := alg.sub(alg.poly(a), alg.poly(b))
	return len(d) == 0 && !alg.overflow
}

// sizeLeaf reports whether e is a constant or a symbol: two different ones are never equal for
// all values of the symbols.
func sizeLeaf(e *Expr) bool { return e.Op == OpConst || e.Op == OpSym }

// SameSize reports whether two sizes are equal for all values of their symbols.
func SameSize(a, b *Expr) bool { return SameIndex(a, b, Facts{}) }

// ProveNonNegative reports whether 0 <= e.
func ProveNonNegative(e *Expr, f Facts) bool { return Decide(Apply(OpLe, IntConst(0), e), f) == True }

// ProveLess reports whether a < b.
func ProveLess(a, b *Expr, f Facts) bool { return Decide(Apply(OpLt, a, b), f) == True }

// ProveInside reports whether 0 <= index < extent.
func ProveInside(index, extent *Expr, f Facts) bool {
	a := newAlgebra(f, index, extent)
	return a.within(a.poly(index), a.poly(extent)) && !a.overflow
}

// Decide says whether a condition always or never holds.
func Decide(cond *Expr, f Facts) Truth {
	if f.none() && depends(cond) {
		return Unknown
	}
	c := Simplify(cond, f)
	switch {
	case c.Op != OpConst:
		return Unknown
	case c.Int != 0:
		return True
	}
	return False
}

func (f Facts) none() bool {
	return len(f.Divisible) == 0 && len(f.Multiples) == 0 && len(f.Within) == 0 && len(f.AtLeast0) == 0
}

// sampledSizes are sizes at which conditions are evaluated before a proof is tried.
var sampledSizes = [...]int64{1, 8, 64, 1000, 4096, 1 << 20, 3, 17, 200, 30000}

// depends reports whether a condition on sizes holds at some sampled sizes and fails at others, so
// that it can be neither proved nor refuted. Most conditions are like this, and sampling is far faster
// than a search for a proof.
func depends(cond *Expr) bool {
	position := map[string]int{}
	sizes := true
	Walk(cond, func(e *Expr) bool {
		switch {
		case e.Op == OpSym:
			if _, ok := position[e.Name]; !ok {
				position[e.Name] = len(position)
			}
		case e.Op != OpConst && e.Op != OpCast && e.Op.Info().Int == nil:
			sizes = false
		}
		return sizes
	})
	if !sizes || len(position) == 0 {
		return false
	}
	s, values := SizeOf(cond, position), make([]int64, len(position))
	holds, fails := false, false
	for turn := range sampledSizes {
		for _, step := range []int{0, 1} { // first the same size for all symbols, then different ones
			for i := range values {
				values[i] = sampledSizes[(turn+step*i)%len(sampledSizes)]
			}
			v, ok := s.Eval(values)
			holds, fails = holds || ok && v != 0, fails || ok && v == 0
			if holds && fails {
				return true
			}
		}
	}
	return false
}

// Implies reports whether b holds wherever a does.
func Implies(a, b *Expr, f Facts) bool {
	if Equal(a, b) {
		return true
	}
	alg := newAlgebra(f, a, b)
	return alg.given(alg.simplify(a), alg.simplify(b)).IsConst(1)
}

// Bounds returns the least and the greatest value that e can be shown to stay
// within, both inclusive and over symbols only; nil where none is known.
func Bounds(e *Expr, f Facts) (lo, hi *Expr) {
	a := newAlgebra(f, e)
	return a.boundExpr(e, false), a.boundExpr(e, true)
}

func (a *algebra) boundExpr(e *Expr, up bool) *Expr {
	a.overflow = false
	p, ok := a.bound(a.poly(e), up)
	if !ok || a.overflow {
		return nil
	}
	return a.expr(p)
}

// Stride returns by how much e grows when r grows by 1, where that is the same
// everywhere: e = stride*r + (something free of r), the stride free of ranges.
func Stride(e *Expr, r *Range, f Facts) (stride *Expr, ok bool) {
	a := newAlgebra(f, e)
	slope, rest, ok := a.poly(e).linear(r.At())
	if !ok || a.dependsOn(rest, r) || !a.symbolic(slope) {
		return nil, false
	}
	return a.expr(slope), true
}

func (a *algebra) dependsOn(p poly, r *Range) bool {
	for _, atom := range p.atoms() {
		if DependsOn(atom, r) {
			return true
		}
	}
	return false
}

// Contiguous returns how many of the ranges, counted from the last, an offset passes through in
// the order of memory without gaps.
func Contiguous(offset *Expr, ranges []*Range, f Facts) int {
	n, inner := 0, IntConst(1)
	for _, r := range slices.Backward(ranges) {
		stride, ok := Stride(offset, r, f)
		if !ok || !SameSize(stride, inner) {
			break
		}
		n++
		inner = Simplify(Apply(OpMul, inner, r.Extent), f)
	}
	return n
}

// DependsOn reports whether r occurs in e as written.
func DependsOn(e *Expr, r *Range) bool {
	used, bound := false, false
	Walk(e, func(e *Expr) bool {
		used = used || e.Op == OpRange && e.Range == r
		bound = bound || e.Op == OpReduce && slices.Contains(e.Reduce.Ranges, r)
		return true
	})
	return used && !bound
}

// Multiple reports whether e is a multiple of n; n is at least 1.
func Multiple(e *Expr, n int64, f Facts) bool {
	a := newAlgebra(f, e)
	return a.multiple(a.poly(e), n)
}

func (a *algebra) multiple(p poly, n int64) bool {
	products := a.products()
	for _, t := range p {
		left, rest := n/gcd(n, t.coef), t.mono
		for _, known := range products {
			for q, ok := divMono(rest, known.mono); ok; q, ok = divMono(rest, known.mono) {
				left, rest = left/gcd(left, known.coef), q
			}
		}
		for _, atom := range rest {
			left /= gcd(left, a.atomFactor(atom, left))
		}
		if left != 1 {
			return false
		}
	}
	return true
}

// Factors splits a size that is a product into its constant and its other factors, with powers repeated. ok is false
// for a sum.
func Factors(e *Expr) (coefficient int64, factors []*Expr, ok bool) {
	a := newAlgebra(Facts{}, e)
	p := a.poly(e)
	if len(p) != 1 || a.overflow {
		return 0, nil, false
	}
	return p[0].coef, p[0].mono, true
}

// products are the monomials that are known to be multiples; the coefficient of each is the
// number. If c*m is a multiple of n, then m is a multiple of n/gcd(n, c).
func (a *algebra) products() []term {
	var out []term
	for _, known := range a.facts.Multiples {
		if p := a.poly(known.Size); len(p) == 1 && len(p[0].mono) > 0 {
			out = append(out, term{coef: known.By / gcd(known.By, p[0].coef), mono: p[0].mono})
		}
	}
	return out
}

// atomFactor returns a divisor of n that divides the atom.
func (a *algebra) atomFactor(v *Expr, n int64) int64 {
	switch v.Op {
	case OpMin, OpMax, OpSelect:
		g := n
		for _, arg := range v.Args[len(v.Args)-2:] {
			for _, t := range a.poly(arg) {
				g = gcd(g, t.coef)
			}
		}
		return g
	}
	return 1
}

// FlatOffset is the row-major element offset of an index tuple, not simplified.
func FlatOffset(shape, at []*Expr) *Expr {
	if len(at) == 0 {
		return IntConst(0)
	}
	out := at[0]
	for d := 1; d < len(at); d++ {
		out = Apply(OpAdd, Apply(OpMul, out, shape[d]), at[d])
	}
	return out
}

// Digits splits an index over all points of ranges into an index for each range; FlatOffset is the inverse. The
// index of the outermost range is bounded only by the bound of the index.
func Digits(ranges []*Range, index *Expr) map[*Range]*Expr {
	out := map[*Range]*Expr{}
	var inner *Expr // product of the extents of the inner ranges so far
	for d := len(ranges) - 1; d >= 0; d-- {
		r, digit := ranges[d], index
		if inner != nil {
			digit = Apply(OpFloorDiv, index, inner)
			inner = Apply(OpMul, inner, r.Extent)
		} else {
			inner = r.Extent
		}
		if d > 0 {
			digit = Apply(OpMod, digit, r.Extent)
		}
		out[r] = digit
	}
	return out
}

// Inside is the condition that an index tuple lies in a shape, simplified and
// without the parts that always hold; nil where it always holds.
func Inside(shape, at []*Expr, f Facts) (guard *Expr) {
	cond := truthExpr(true)
	for d := range at {
		low, high := Apply(OpLe, IntConst(0), at[d]), Apply(OpLt, at[d], shape[d])
		cond = Apply(OpAnd, cond, Apply(OpAnd, low, high))
	}
	if cond = Simplify(cond, f); cond.IsConst(1) {
		return nil
	}
	return cond
}
