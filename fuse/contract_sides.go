package fuse

import (
	"maps"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// sides divides the factors of a product in two by the rows they depend on: rows
// of one side alone are M, of the other N, of both the batch. Unlike splitProduct
// it takes a side without rows of its own, a vector. It returns nil where a factor
// depends on M and N at once, or where no factor lacks a row of another.
func (lo productKernel) sides(body *ir.Expr) *ir.Contract {
	factors := form.FactorsOf(body)
	rows := make([]map[*ir.Range]bool, len(factors))
	for i, f := range factors {
		rows[i] = lo.rowsIn(f)
	}
	a, b := lo.seeds(factors, rows)
	if a < 0 {
		return nil
	}
	s := form.Sides{A: []*ir.Expr{factors[a]}, B: []*ir.Expr{factors[b]}, RangesA: maps.Clone(rows[a]), RangesB: maps.Clone(rows[b])}
	for i, f := range factors {
		if i == a || i == b {
			continue
		}
		switch {
		case !meets(rows[i], s.RangesB, s.RangesA): // none of N
			s.A = append(s.A, f)
			maps.Copy(s.RangesA, rows[i])
		case !meets(rows[i], s.RangesA, s.RangesB):
			s.B = append(s.B, f)
			maps.Copy(s.RangesB, rows[i])
		default:
			return nil
		}
	}
	c := lo.contractOf(s)
	if c == nil || len(c.N) == 0 {
		return nil
	}
	return c
}

// seeds picks a factor for either side: for B the one that reads most, unless
// another stands before it and has rows of its own; for A one that lacks a row
// of B's. a is -1 where there is none.
func (lo productKernel) seeds(factors []*ir.Expr, rows []map[*ir.Range]bool) (a, b int) {
	for i := range factors {
		if lo.readsOf(factors[i]) > lo.readsOf(factors[b]) {
			b = i
		}
	}
	a = -1
	for i, f := range factors {
		if i != b && a < 0 && !algebra.Subset(rows[b], rows[i]) && lo.walksCols(f) {
			a = i
		}
	}
	if a > b && !algebra.Subset(rows[a], rows[b]) { // both have rows of their own: in the program's order
		a, b = b, a
	}
	return a, b
}

// readsOf is the bytes of the largest tensor an expression reads, estimated.
func (lo productKernel) readsOf(e *ir.Expr) float64 {
	most := 0.0
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op == ir.OpRead {
			most = max(most, lo.estimate(algebra.Bytes(e.Arg.Buffer.Value)))
		}
		return true
	})
	return most
}

func (lo productKernel) walksCols(e *ir.Expr) bool {
	free := ir.FreeRanges(e)
	for _, r := range lo.k.Cols {
		if free[r] {
			return true
		}
	}
	return false
}

// meets reports whether rows holds one that is in but not in except.
func meets(rows, in, except map[*ir.Range]bool) bool {
	for r := range rows {
		if in[r] && !except[r] {
			return true
		}
	}
	return false
}

// multiplier chooses what multiplies, and in which type: tensor cores where both
// sides are 16-bit floats (or what such a type holds, integers and 8-bit floats,
// beside one), on request where they are f32, else multiply-adds in the type of
// the sum.
func (lo productKernel) multiplier(c *ir.Contract, sum ir.DType) (ir.Multiplier, ir.DType) {
	tensor := lo.device.TensorCores() && sum == ir.F32
	a, b := elementType(c.A.Value), elementType(c.B[0].Value)
	if a == ir.Invalid {
		a = b
	}
	if b == ir.Invalid {
		b = a
	}
	switch {
	case tensor && a == b && (a == ir.BF16 || a == ir.F16):
		return ir.HalfUnit, a
	case tensor && lo.g.TF32:
		return ir.TF32Unit, ir.F32
	}
	return ir.FMAUnit, sum
}

// elementType is the float type that a side's elements have in memory: that of
// its reads with the most dims, where they agree; Invalid where those are
// integers or 8-bit floats, F32 where they are anything else.
func elementType(e *ir.Expr) ir.DType {
	rank := 0
	var types []ir.DType
	ir.Walk(e, func(e *ir.Expr) bool {
		if e.Op != ir.OpRead {
			return true
		}
		if n := len(e.Arg.Buffer.Shape); n > rank {
			rank, types = n, nil
		}
		if len(e.Arg.Buffer.Shape) == rank {
			types = append(types, e.Type)
		}
		return true
	})
	out := ir.Invalid
	for _, t := range types {
		switch {
		case !t.IsFloat() || t.Size() == 1:
		case out == ir.Invalid || out == t:
			out = t
		default:
			return ir.F32
		}
	}
	return out
}
