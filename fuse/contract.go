package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/forecast"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// Figures of the tensor core mapping: a block of eight warps computes a tile of
// 128 by 128, each warp 64 by 32 of it.
const (
	contractThreads = 256
	contractTile    = 128
	contractDepth   = 32 // deeper tiles meet at fewer barriers, but their addresses spill registers
	contractStages  = 4
	contractBlocks  = 2  // on a multiprocessor, of 128 registers a thread
	contractColumns = 16 // and columns
	operandVector   = 8  // 16 bytes of a 16-bit type
	contractFolds   = 2  // products that share an operand
)

// productKernel is a kernel that sums products: which factors are sides of a matrix product, and how they are read.
type productKernel struct{ *kernel }

// productVariants are those of a kernel whose folds sum products.
type productVariants struct {
	along, across     []*ir.Variant // of one row, along memory and across it
	packed, plain     []*ir.Variant // of few rows, by weights that are packed, or are not
	split             []*ir.Variant // of warpgroups, the sum of a tile split over a cluster
	slices, unaligned []*ir.Variant // slices that cost less than warpgroups; and others
	warpgroups, tiles []*ir.Variant
}

// productVariants makes the variants of a kernel whose folds sum products.
func (lo productKernel) productVariants() *productVariants {
	p := &productVariants{}
	var rival *ir.Expr
	if c := lo.splitProducts(lo.contraction(), lo.tileType); c != nil {
		p.warpgroups, rival = warpgroupKernel{lo}.warpgroupVariants(*c)
		if c.Type != ir.F32 {
			p.split, p.tiles = warpgroupKernel{lo}.slicedVariants(*c), lo.contractVariants(c)
		}
	} else if c := lo.byteContraction(); c != nil {
		p.warpgroups, rival = warpgroupKernel{lo}.warpgroupVariants(*c)
	}
	p.along, p.across = unitKernel{lo}.unitVariants()
	p.packed, p.plain = gemvKernel{lo}.gemvVariants()
	p.slices, p.unaligned = sliceKernel{lo}.sliceVariants(rival)
	return p
}

// contractVariants makes the mma.sync variants of a product that splits into two
// sides, with and without aligned vectors.
func (lo productKernel) contractVariants(c *ir.Contract) []*ir.Variant {
	var out []*ir.Variant
	for _, wide := range []bool{true, false} {
		if v, any := lo.contractVariant(*c, wide); any || !wide {
			out = append(out, v)
			if v.Facts.Divisible == nil && wide {
				break // always aligned
			}
		}
	}
	return out
}

// contraction returns the kernel's folds where they are plain f32 sums, none of which
// waits for another, and all stores come after them.
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
	for _, s := range lo.stores {
		if s.level != ir.RowLevel {
			return nil
		}
	}
	return lo.folds
}

// splitProducts splits every fold's product so that all have one left side; typed says
// what tiles of a product hold.
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
		if !sharesLeft(c, next) || c.Type != next.Type {
			return nil
		}
		c.B = append(c.B, next.B[0])
	}
	return c
}

// sharesLeft reports whether two products have one left side and the same rows.
func sharesLeft(c, d *ir.Contract) bool {
	return ir.Equal(c.A.Value, d.A.Value) && slices.Equal(c.M, d.M) && slices.Equal(c.N, d.N) && slices.Equal(c.Batch, d.Batch)
}

// swapped is the transposed product.
func swapped(c *ir.Contract) *ir.Contract {
	return &ir.Contract{Batch: c.Batch, M: c.N, N: c.M, A: c.B[0], B: []ir.Operand{c.A}, Type: c.Type}
}

// contractBody lowers the folds and stores of a contraction over locals.
func (lo productKernel) contractBody(c *ir.Contract) *ir.Variant {
	sum, row := &ir.Section{Level: ir.FullLevel}, &ir.Section{Level: ir.RowLevel}
	for i, f := range lo.folds {
		fold := *f
		fold.Body = ir.Cast(ir.Apply(ir.OpMul, c.A.Value, c.B[i].Value), f.Body.Type)
		sum.Folds = append(sum.Folds, &fold)
	}
	for _, s := range lo.stores {
		row.Stores = append(row.Stores, s.Store)
	}
	b := newBody(lo.kernel)
	return &ir.Variant{Sections: b.sections([]*ir.Section{sum, row}), Locals: b.locals}
}

// splitProduct divides the factors of a product in two sides by the rows they
// depend on: those of one side alone are M, of the other N, of both the batch.
func (lo productKernel) splitProduct(body *ir.Expr, typed func(*ir.Expr) ir.DType) *ir.Contract {
	sides, ok := form.Split(form.FactorsOf(body), lo.rowsIn)
	if !ok {
		return nil // a factor touches M and N at once, or there is one side only
	}
	c := lo.contractOf(sides)
	if c == nil {
		return nil
	}
	c.Type = typed(body)
	if len(c.M) == 0 || len(c.N) == 0 || c.Type == ir.Invalid || !lo.walksCols(c.A.Value) || !lo.walksCols(c.B[0].Value) {
		return nil // a side that is the same in every column is no matrix
	}
	return c
}

// contractOf is the contraction of two sides, over the rows that each depends on; nil
// where neither depends on some row.
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

// rowsIn returns the row ranges an expression depends on, itself or through results of folds.
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

// foldOf is the fold whose result a local is; nil for any other local.
func (lo productKernel) foldOf(l *ir.Local) *ir.Fold {
	at := slices.IndexFunc(lo.folds, func(f *ir.Fold) bool { return f.Result == l })
	if at < 0 {
		return nil
	}
	return lo.folds[at]
}

// tileType is the 16-bit float that all floats read are stored in, or f32 where that
// may be multiplied as tf32; Invalid where one of them is wider, or they differ.
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

// contractVariant builds one variant; any says whether an operand is read in
// vectors.
func (lo productKernel) contractVariant(c ir.Contract, wide bool) (v *ir.Variant, any bool) {
	v = lo.contractBody(&c)
	v.Contract = &c
	v.Schedule = ir.Schedule{Mapping: ir.ContractMapping, Threads: contractThreads, Vector: operandVector,
		TileM: contractTile, TileN: contractTile / len(c.B), TileK: contractDepth, Stages: contractStages}
	needs := algebra.NewNeeds(lo.positive(), wide)
	c.B = slices.Clone(c.B)
	allWide := true
	for i, f := range v.Sections[0].Folds {
		c.A.Value, c.B[i].Value = f.Body.Args[0], f.Body.Args[1]
		lo.operand(&c.B[i], c.N, c.Type, needs)
		any, allWide = any || c.B[i].Wide, allWide && c.B[i].Wide
		if c.B[i].KLast != c.B[0].KLast {
			c.B[i].KLast, c.B[i].Wide, allWide = c.B[0].KLast, false, false
		}
	}
	lo.operand(&c.A, c.M, c.Type, needs)
	switch {
	case c.A.Wide && allWide: // a prologue needs registers of its own
		v.Schedule.MinBlocks = contractBlocks
	case !c.A.Wide && !any && len(c.B) == 1: // two of them leave fewer for sums
		v.Schedule.TileN /= 2
	}
	v.When = lo.worthTiles(&c, forecast.ContractLeast)
	lo.require(v, needs)
	return v, any || c.A.Wide
}

// worthTiles is the condition under which tiles pay, from so many rows of either side.
func (lo productKernel) worthTiles(c *ir.Contract, least int64) *ir.Expr {
	atLeast := func(ranges []*ir.Range, n int64) *ir.Expr {
		return ir.Apply(ir.OpLe, ir.IntConst(n), algebra.Product(ranges))
	}
	return algebra.And(algebra.And(atLeast(c.M, least), atLeast(c.N, least)), atLeast(lo.columns(), contractColumns))
}

// operand says how one side is read: along which of its ranges memory runs, and
// whether whole vectors of type t are aligned, adding to needs what that takes.
func (lo productKernel) operand(o *ir.Operand, own []*ir.Range, t ir.DType, needs *algebra.Needs) {
	read := directRead(o.Value)
	main := read
	if main == nil {
		main = largestRead(o.Value)
	}
	o.KLast = true
	ranges := lo.columns()
	if main != nil && !algebra.UnitStride(main, algebra.Innermost(ranges)) && algebra.UnitStride(main, algebra.Innermost(own)) {
		o.KLast, ranges = false, own
	}
	if read = storedRead(o.Value, t); !needs.Assume || read == nil || read.Guard != nil {
		return
	}
	lane := algebra.Innermost(ranges)
	whole := []*ir.Expr{lane.Extent}           // multiples that vectors need
	sizes := []*ir.Expr{lane.Extent}           // whose symbols may be assumed to be such
	if lo.r.cols[lane] && lo.r.folded != nil { // a chunk of a longer range
		sizes = append(sizes, read.Args[0])
		if e := lo.r.folded.extent; e != nil {
			whole, sizes = append(whole, e), append(sizes, e)
		}
	}
	o.Wide = needs.Try(operandVector, sizes, func(f ir.Facts) bool {
		return algebra.Contiguous(read.Args[0], lane, operandVector, f) &&
			!slices.ContainsFunc(whole, func(e *ir.Expr) bool { return !ir.Multiple(e, operandVector, f) })
	})
}

// directRead returns the read an operand is, through a local and a cast.
func directRead(e *ir.Expr) *ir.Expr {
	if e.Op == ir.OpLocal && e.Local.Def != nil {
		e = e.Local.Def
	}
	return algebra.ReadIn(e)
}

// storedRead is the read an operand is where memory holds its elements as tiles do, in
// type t: only those may be copied. Others, such as integers beside 16-bit floats, are
// read through a conversion, and have other sizes.
func storedRead(e *ir.Expr, t ir.DType) *ir.Expr {
	if read := directRead(e); read != nil && read.Type == t && e.Type.IsFloat() == t.IsFloat() {
		return read
	}
	return nil
}

// largestRead returns the read with the most elements in an expression over locals.
func largestRead(e *ir.Expr) *ir.Expr {
	var best *ir.Expr
	ir.WalkThrough(func(e *ir.Expr) bool {
		if e.Op == ir.OpRead && (best == nil || len(e.Arg.Buffer.Shape) > len(best.Arg.Buffer.Shape)) {
			best = e
		}
		return true
	}, e)
	return best
}

// columns is what products of the kernel sum over.
func (lo productKernel) columns() []*ir.Range {
	if lo.r.folded != nil {
		return lo.r.folded.depth
	}
	return lo.k.Cols
}
