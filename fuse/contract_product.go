package fuse

import (
	"maps"
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The product of a kernel: the folds that sum products, the sides of each by the rows that they depend on,
// and the type that the sides' elements have in tiles. Graph passes and merging ask form about values
// instead: what counts here are the kernel's own expressions, over the rows that merging has given it.

// productKernel is a kernel that sums products: which factors form the sides of a matrix product, and how
// they are read.
type productKernel struct{ *kernel }

// columns is the ranges that products of the kernel sum over.
func (lo productKernel) columns() []*ir.Range {
	if lo.r.folded != nil {
		return lo.r.folded.depth
	}
	return lo.k.Cols
}

// sumOfProduct returns the kernel's only fold, where that is a plain float sum and all stores come after
// it; nil for other kernels.
func (lo productKernel) sumOfProduct() *ir.Fold {
	if len(lo.folds) != 1 || lo.k.Numerics != ir.Fast {
		return nil
	}
	f := lo.folds[0]
	if f.Op != ir.Sum || f.Where != nil || f.Body.Type != ir.F32 && f.Body.Type != ir.F64 {
		return nil
	}
	if !lo.storesRows() {
		return nil
	}
	return f
}

// contraction returns the kernel's folds where all are plain f32 sums, none depends on another's result,
// and all stores come after them; nil for other kernels.
func (lo productKernel) contraction() []*ir.Fold {
	if len(lo.folds) > contractFolds || lo.k.Numerics != ir.Fast || !lo.device.TensorCores() {
		return nil
	}
	for _, f := range lo.folds {
		waits := false
		ir.Walk(f.Body, func(e *ir.Expr) bool {
			waits = waits || e.Op == ir.OpLocal
			return !waits
		})
		if f.Op != ir.Sum || f.Prefix != ir.WholeRow || f.Where != nil || f.Body.Type != ir.F32 || waits {
			return nil
		}
	}
	if !lo.storesRows() {
		return nil
	}
	return lo.folds
}

// byteContraction splits the kernel's product of two operands of one 8-bit type into its sides; nil where
// there is none. A product of integers counts only where the program computes it in more than 8 bits: one
// that wraps in i8 is another number.
func (lo productKernel) byteContraction() *ir.Contract {
	if c := lo.splitProducts(lo.contraction(), lo.tileTypeOfBytes); c != nil {
		return c
	}
	if len(lo.folds) != 1 || !lo.device.Warpgroups() {
		return nil
	}
	f := lo.folds[0]
	body := exactProduct(f.Body)
	if body == nil || f.Op != ir.Sum || f.Prefix != ir.WholeRow || f.Where != nil {
		return nil
	}
	if !lo.storesRows() {
		return nil
	}
	return lo.splitProduct(body, lo.tileTypeOfBytes)
}

// storesRows reports whether all stores come after the sums.
func (lo *kernel) storesRows() bool {
	return !slices.ContainsFunc(lo.stores, func(s *storing) bool { return s.level != ir.RowLevel })
}

// splitProducts splits every fold's product into its sides, so that all folds share the left one; nil
// where they do not. typed returns the type that tiles of a product hold.
func (lo productKernel) splitProducts(folds []*ir.Fold, typed func(*ir.Expr) ir.DType) *ir.Contract {
	var c *ir.Contract
	for i, f := range folds {
		next := lo.splitProduct(f.Body, typed)
		switch {
		case next == nil:
			return nil
		case i == 0:
			c = next
			continue
		case i == 1 && !sharesLeft(c, next) && !sharesLeft(c, swapped(next)):
			c = swapped(c)
		}
		if !sharesLeft(c, next) {
			next = swapped(next)
		}
		if !sharesLeft(c, next) || c.Type != next.Type || ir.Equal(c.B[0].Value, next.B[0].Value) { // both folds sum the same product
			return nil
		}
		c.B = append(c.B, next.B[0])
	}
	return c
}

// sharesLeft reports whether two products have the same left side and the same rows.
func sharesLeft(c, d *ir.Contract) bool {
	return ir.Equal(c.A.Value, d.A.Value) && slices.Equal(c.M, d.M) && slices.Equal(c.N, d.N) && slices.Equal(c.Batch, d.Batch)
}

// swapped is the transposed product.
func swapped(c *ir.Contract) *ir.Contract {
	out := &ir.Contract{Batch: c.Batch, M: c.N, N: c.M, A: c.B[0], B: []ir.Operand{c.A}, Type: c.Type}
	for _, s := range c.Segments {
		out.Segments = append(out.Segments, ir.Segment{Depth: s.Depth, A: s.B[0], B: []ir.Operand{s.A}})
	}
	return out
}

// splitProduct divides the factors of a product into two sides by the rows that they depend on. Rows of
// one side alone are M, rows of the other alone are N, and rows of both are the batch.
func (lo productKernel) splitProduct(body *ir.Expr, typed func(*ir.Expr) ir.DType) *ir.Contract {
	sides, ok := form.Split(form.FactorsOf(body), lo.rowsIn)
	if !ok {
		return nil // a factor depends on M and N at once, or there is one side only
	}
	c := lo.contractOf(sides)
	if c == nil {
		return nil
	}
	c.Type = typed(body)
	if len(c.M) == 0 || len(c.N) == 0 || c.Type == ir.Invalid || !lo.dependsOnCols(c.A.Value) || !lo.dependsOnCols(c.B[0].Value) {
		return nil // a side that does not depend on the columns is no matrix
	}
	return c
}

// sides divides the factors of a product into two sides by the rows that they depend on: rows of one side
// alone are M, of the other alone N, of both the batch. Unlike splitProduct it accepts a vector, a side
// without rows of its own. It returns nil where a factor depends on M and N at once, or where no factor
// lacks a row of another.
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
		case !meets(rows[i], s.RangesB, s.RangesA): // no rows of N alone
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

// seeds picks the first factor of each side. For B that is the factor that reads most, unless another with
// rows of its own comes before it; for A it is one that lacks a row of B's. a is -1 where there is none.
func (lo productKernel) seeds(factors []*ir.Expr, rows []map[*ir.Range]bool) (a, b int) {
	for i := range factors {
		if lo.readsOf(factors[i]) > lo.readsOf(factors[b]) {
			b = i
		}
	}
	a = -1
	for i, f := range factors {
		if i != b && a < 0 && !algebra.Subset(rows[b], rows[i]) && lo.dependsOnCols(f) {
			a = i
		}
	}
	if a > b && !algebra.Subset(rows[a], rows[b]) { // where both have rows of their own, they keep the program's order
		a, b = b, a
	}
	return a, b
}

// contractOf is the contraction of two sides, over the rows that each depends on; nil where neither side
// depends on some row of the kernel.
func (lo productKernel) contractOf(s form.Sides) *ir.Contract {
	c := &ir.Contract{A: ir.Operand{Value: form.ProductOf(s.A)}, B: []ir.Operand{{Value: form.ProductOf(s.B)}}}
	for _, r := range lo.k.Rows {
		switch {
		case s.RangesA[r] && s.RangesB[r]:
			c.Batch = append(c.Batch, r)
		case s.RangesA[r]:
			c.M = append(c.M, r)
		case s.RangesB[r]:
			c.N = append(c.N, r)
		default:
			return nil
		}
	}
	return c
}

// rowsIn returns the ranges of rows that an expression depends on, directly or through results of folds.
func (lo productKernel) rowsIn(e *ir.Expr) map[*ir.Range]bool {
	out, seen := map[*ir.Range]bool{}, map[*ir.Local]bool{}
	var add func(e *ir.Expr)
	add = func(e *ir.Expr) {
		if e == nil {
			return
		}
		free := ir.FreeRanges(e)
		for _, r := range lo.k.Rows {
			if free[r] {
				out[r] = true
			}
		}
		ir.Walk(e, func(e *ir.Expr) bool {
			if e.Op == ir.OpLocal && !seen[e.Local] {
				seen[e.Local] = true
				if f := lo.foldOf(e.Local); f != nil {
					add(f.Body)
					add(f.Where)
				}
			}
			return true
		})
	}
	add(e)
	return out
}

// foldOf returns the fold whose result a local is; nil for other locals.
func (lo productKernel) foldOf(l *ir.Local) *ir.Fold {
	at := slices.IndexFunc(lo.folds, func(f *ir.Fold) bool { return f.Result == l })
	if at < 0 {
		return nil
	}
	return lo.folds[at]
}

// readsOf estimates the bytes of the largest tensor that an expression reads.
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

func (lo productKernel) dependsOnCols(e *ir.Expr) bool {
	free := ir.FreeRanges(e)
	for _, r := range lo.k.Cols {
		if free[r] {
			return true
		}
	}
	return false
}

// meets reports whether rows and in have a range in common that is not in except.
func meets(rows, in, except map[*ir.Range]bool) bool {
	for r := range rows {
		if in[r] && !except[r] {
			return true
		}
	}
	return false
}

// tileType is the 16-bit float type in which all floats read are stored, or f32 where multiplying in tf32
// is allowed; Invalid where one of them is wider, or where they differ.
func (lo productKernel) tileType(body *ir.Expr) ir.DType {
	t := ir.Invalid
	ok := true
	ir.Walk(body, func(e *ir.Expr) bool {
		if e.Op == ir.OpRead && e.Type.IsFloat() {
			ok = ok && (form.IsHalf(e.Type) || e.Type == ir.F32 && lo.g.TF32) && (t == ir.Invalid || t == e.Type)
			t = e.Type
		}
		return true
	})
	if !ok {
		return ir.Invalid
	}
	return t
}

// tileTypeOfBytes is the 8-bit type of all elements read; Invalid where they have several types, or a
// wider one.
func (lo productKernel) tileTypeOfBytes(body *ir.Expr) ir.DType {
	t, ok := ir.Invalid, true
	ir.Walk(body, func(e *ir.Expr) bool {
		if e.Op == ir.OpRead {
			ok = ok && form.ByteTile(e.Type) && (t == ir.Invalid || t == e.Type)
			t = e.Type
		}
		return ok
	})
	if !ok {
		return ir.Invalid
	}
	return t
}

// exactProduct is a product of two i8 that is computed in enough bits, without the casts that widen it;
// nil for other expressions.
func exactProduct(e *ir.Expr) *ir.Expr {
	for e.Op == ir.OpCast && !e.Type.IsFloat() && e.Type.Size() >= e.Args[0].Type.Size() {
		e = e.Args[0]
	}
	if e.Op != ir.OpMul || e.Type.IsFloat() || e.Type.Size() < 2 || len(form.FactorsOf(e)) != 2 {
		return nil
	}
	for _, side := range e.Args {
		if read := algebra.ReadIn(side); read == nil || read.Type != ir.I8 {
			return nil
		}
	}
	return e
}

// multiplier chooses the unit that multiplies and the type in which it does. Tensor cores multiply where
// both sides are 16-bit floats, or one is and the other is held exactly by that type, as integers and
// 8-bit floats are; where tf32 is allowed they multiply f32 too, and sums in f64 are theirs. Otherwise threads
// multiply and add in the type of the sum.
func (lo productKernel) multiplier(c *ir.Contract, sum ir.DType) (ir.Multiplier, ir.DType) {
	switch {
	case !sum.IsFloat():
		return ir.IntegerUnit, sum
	case lo.k.Numerics == ir.Strict:
		return ir.FMAUnit, sum
	}
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
	case lo.device.TensorCores() && sum == ir.F64:
		return ir.DoubleUnit, ir.F64
	}
	return ir.FMAUnit, sum
}

// elementType is the float type of a side's elements in memory: that of its reads with the most dims,
// where they agree. It is Invalid where those are integers or 8-bit floats, and F32 where they are
// anything else.
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
