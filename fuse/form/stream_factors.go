package form

import (
	"fmt"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// LargestHead is the largest depth of a score, and the most columns of a value, for which tiles fit
// on chip; LargestWideHead is the same for f32, which takes more room.
const (
	LargestHead     = 256
	LargestWideHead = 128
	ShortWideKeys   = 128 // most keys of f32 for which the rows of scores fit the shared memory of a row product
)

// Factors flattens a term of the sum into the factors that depend on the keys, and puts the others into the
// epilogue. The epilogue keeps a sum over no keys 0.
func (s *Stream) Factors(e *ir.Expr) []*ir.Expr {
	factors := s.split(e, algebra.RangeSet(s.Keys))
	s.overNothing()
	return factors
}

// split flattens a term into the factors that depend on the keys. Factors that do not depend on them go to
// the epilogue.
func (s *Stream) split(e *ir.Expr, bound map[*ir.Range]bool) []*ir.Expr {
	if e.IsConst(1) {
		return nil
	}
	if !algebra.DependsOnAny(e, bound) {
		s.Epilogue = append(s.Epilogue, func(sum *ir.Expr) *ir.Expr {
			return ir.Apply(ir.OpMul, sum, ir.Cast(e, ir.F32))
		})
		return nil
	}
	switch {
	case e.Op == ir.OpMul && len(ir.Flattened(e, multiplied)) > 1:
		return append(s.split(e.Args[0], bound), s.split(e.Args[1], bound)...)
	case e.Op == ir.OpDiv && !algebra.DependsOnAny(e.Args[1], bound) && !algebra.BySize(e.Args[1]):
		inner := s.split(e.Args[0], bound)
		s.Epilogue = append(s.Epilogue, func(sum *ir.Expr) *ir.Expr {
			return ir.Apply(ir.OpDiv, sum, ir.Cast(e.Args[1], ir.F32))
		})
		return inner
	case e.Op == ir.OpNeg:
		inner := s.split(e.Args[0], bound)
		s.Epilogue = append(s.Epilogue, func(sum *ir.Expr) *ir.Expr { return ir.Apply(ir.OpNeg, sum) })
		return inner
	case e.Op == ir.OpCast && e.Type.IsFloat() && e.Args[0].Type.IsFloat():
		return s.split(e.Args[0], bound)
	case !s.Chained && e.Op == ir.OpSelect && (e.Args[1].IsConst(0) || e.Args[2].IsConst(0)):
		return s.splitChoice(e, bound)
	}
	return []*ir.Expr{e}
}

// multiplied is what a product is made of, also where it is converted; nil for other expressions.
func multiplied(e *ir.Expr) []*ir.Expr {
	if e = WithoutCasts(e); e.Op == ir.OpMul {
		return e.Args
	}
	return nil
}

// splitChoice splits where(c, 0, x). Where c is the same for all keys it goes to the epilogue; otherwise
// it becomes where(c, 0, 1) times x.
func (s *Stream) splitChoice(e *ir.Expr, bound map[*ir.Range]bool) []*ir.Expr {
	at := 2
	if e.Args[2].IsConst(0) {
		at = 1
	}
	inner := s.split(e.Args[at], bound)
	if algebra.DependsOnAny(e.Args[0], bound) {
		parts := []*ir.Expr{e.Args[0], ir.Num(ir.F32, 0), ir.Num(ir.F32, 0)}
		parts[at] = ir.Num(ir.F32, 1)
		return append(inner, ir.Where(parts[0], parts[1], parts[2]))
	}
	s.Epilogue = append(s.Epilogue, func(sum *ir.Expr) *ir.Expr {
		parts := []*ir.Expr{e.Args[0], ir.Num(ir.F32, 0), ir.Num(ir.F32, 0)}
		parts[at] = sum
		return ir.Where(parts[0], parts[1], parts[2])
	})
	return inner
}

// overNothing keeps a sum over no keys 0: the sum of the weights, by which the epilogue divides, is 0
// there too.
func (s *Stream) overNothing() {
	if len(s.Epilogue) == 0 {
		return
	}
	for _, r := range s.Keys {
		none := ir.Apply(ir.OpEq, r.Extent, ir.IntConst(0))
		if ir.Decide(none, ir.Facts{}) != ir.False {
			s.Epilogue = append(s.Epilogue, func(sum *ir.Expr) *ir.Expr { return ir.Where(none, ir.Num(ir.F32, 0), sum) })
		}
	}
}

// classify divides the factors beside the exponential: those that depend on an axis of the result on which
// the weights do not depend are the value, the others are part of the weight.
func (s *Stream) classify(factors []*ir.Expr, weight *ir.Expr) {
	rows := AxesIn(s.Out, weight)
	s.Own = map[*ir.Range]bool{}
	for _, r := range algebra.Widened(s.Out.Axes) {
		if !rows[r] {
			s.Own[r] = true
		}
	}
	for _, f := range factors {
		switch {
		case Stripped(f) == weight:
		case algebra.DependsOnAny(f, s.Own):
			s.Value = times(s.Value, f)
		default:
			s.Factor = times(s.Factor, f)
		}
	}
}

func times(a, b *ir.Expr) *ir.Expr {
	if a == nil {
		return ir.Cast(b, ir.F32)
	}
	return ir.Apply(ir.OpMul, a, ir.Cast(b, ir.F32))
}

// check says why a recognised sum cannot run as a stream; "" where it can.
func (s *Stream) check(m *Recogniser) string {
	for _, l := range ir.Loads(s.Weight.Logit) {
		if l.From == s.Score.From && !ir.Equal(l, s.Score) {
			return "the exponent combines scores at several indices"
		}
	}
	for _, e := range []*ir.Expr{s.Factor, s.Value} {
		if e != nil && DependsOn(e, s.Score.From) {
			return "the scores stand in the sum outside of the exponential too"
		}
	}
	if t := TensorType(s.Value); t == ir.Invalid || t != TensorType(s.Score.From.Body) {
		return "queries, keys and values are not all of one type, bf16, f16 or f32"
	}
	if len(s.Keys) != 1 {
		return "the weights are normalised over several axes at once"
	}
	if !PlainIndices(s.Score) || !PlainIndices(s.Weight.Max) {
		return "the scores are sliced, shifted or reshaped before the softmax"
	}
	if _, _, ok := s.Sides(); !ok {
		return "the scores are no product of one tensor of queries and one of keys"
	}
	largest := float64(LargestHead)
	if TensorType(s.Value) == ir.F32 {
		largest = LargestWideHead
		if n := s.Keys[0].Extent; algebra.Estimate(n, algebra.DefaultSizes(m.Graph)) <= ShortWideKeys {
			return fmt.Sprintf("with as few as %s keys in f32, the products are faster as kernels of their own", n)
		}
	}
	depth, width := algebra.Product(s.Score.From.Reduce.Ranges), algebra.Product(algebra.RangesOf(s.Own))
	for _, e := range []*ir.Expr{depth, width} {
		if algebra.Estimate(e, algebra.DefaultSizes(m.Graph)) > largest {
			return fmt.Sprintf("a head of %s elements does not fit on chip: expected up to %.0f", e, largest)
		}
	}
	return ""
}

// DependsOn reports whether an expression reads a value, directly or through others.
func DependsOn(e *ir.Expr, v *ir.Value) bool {
	seen := map[*ir.Value]bool{}
	var reach func(loads []*ir.Expr) bool
	reach = func(loads []*ir.Expr) bool {
		for _, l := range loads {
			if l.From == v {
				return true
			}
			if !seen[l.From] {
				seen[l.From] = true
				if reach(l.From.Loads()) {
					return true
				}
			}
		}
		return false
	}
	return reach(ir.Loads(e))
}

// PlainIndices reports whether a load is indexed by distinct ranges, or zeros.
func PlainIndices(load *ir.Expr) bool {
	seen := map[*ir.Range]bool{}
	for _, a := range load.Args {
		if a.IsConst(0) {
			continue
		}
		if a.Op != ir.OpRange || seen[a.Range] {
			return false
		}
		seen[a.Range] = true
	}
	return load.Fill == nil
}

// Sides divides the factors of a score, over its own ranges, by whether they depend on the keys; ok is
// false where one depends on queries too.
func (s *Stream) Sides() (q, k *ir.Expr, ok bool) {
	score := s.Score.From
	value := AxesIn(s.Out, s.Value)
	keys, queries := map[*ir.Range]bool{}, map[*ir.Range]bool{}
	for d, a := range s.Score.Args {
		switch {
		case a.Op != ir.OpRange:
		case a.Range == s.Keys[0]:
			keys[score.Axes[d]] = true
		case !value[a.Range]:
			queries[score.Axes[d]] = true
		}
	}
	for _, f := range FactorsOf(Uncast(score.Body)) {
		switch {
		case !algebra.DependsOnAny(f, keys):
			q = times(q, f)
		case algebra.DependsOnAny(f, queries):
			return nil, nil, false
		default:
			k = times(k, f)
		}
	}
	return q, k, q != nil && k != nil
}
