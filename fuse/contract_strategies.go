package fuse

import (
	"slices"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/fuse/form"
	"github.com/fusec/fusec/ir"
)

// The strategies of products are made together, because small tiles are for sizes at which they take fewer cycles than
// warpgroups. Warpgroups are made first and say how many cycles they take.

// productVariants are those of a kernel whose folds sum products.
type productVariants struct {
	along, across     []*ir.Variant // one side has one row: for reads along rows of memory, and across them
	packed, plain     []*ir.Variant // one side has few rows: with packed weights, and with others
	sliced            []*ir.Variant // long sums in 16 bits, in slices
	warpgroupSplitK   []*ir.Variant // warpgroups, the sum of a tile split over a cluster
	splitK, unaligned []*ir.Variant // small tiles and split-K: where they take fewer cycles than warpgroups, and where reads are not aligned
	warpgroups, tiles []*ir.Variant
}

// multiply reports whether there are variants that multiply tiles.
func (p *productVariants) multiply() bool {
	return len(p.sliced)+len(p.packed)+len(p.plain)+len(p.warpgroupSplitK)+len(p.splitK)+len(p.unaligned)+len(p.warpgroups)+len(p.tiles) > 0
}

// productVariants makes the variants of a kernel whose folds sum products. reduce makes those of sizes at which a product
// is a weighted sum.
func (lo productKernel) productVariants(reduce reducing) *productVariants {
	if taps := lo.absentTaps(); taps != nil {
		return lo.tapVariants(taps)
	}
	p := &productVariants{}
	if lo.loopsWindow() {
		return p
	}
	var rival *ir.Expr
	gates := lo.splitProducts(lo.contraction(), lo.tileType)
	if c := gates; c != nil {
		p.warpgroups, rival = warpgroupKernel{lo}.warpgroupVariants(*c)
		p.warpgroupSplitK = warpgroupKernel{lo}.warpgroupSplitVariants(*c)
		if c.Type != ir.F32 {
			p.tiles = lo.contractVariants(c)
		}
	} else if c := lo.byteContraction(); c != nil {
		p.warpgroups, rival = warpgroupKernel{lo}.warpgroupVariants(*c)
	}
	p.along, p.across = unitKernel{lo, reduce}.unitVariants()
	p.packed, p.plain = gemvKernel{lo}.gemvVariants()
	p.sliced, p.splitK, p.unaligned = splitKernel{lo}.splitVariants(rival)
	if gates != nil && len(gates.B) > 1 && len(p.warpgroups) == 0 {
		p.splitK = splitKernel{lo}.gateVariants(gates)
	}
	return p.precise()
}

// precise drops the variants through mma.sync if the operands hold parts of f32 numbers. Only warpgroups sum few terms
// at a time and add these sums up in f32.
func (p *productVariants) precise() *productVariants {
	if len(p.warpgroups) == 0 || p.warpgroups[0].Contract.Type != ir.BF16 || !p.warpgroups[0].Contract.InParts() {
		return p
	}
	return &productVariants{warpgroups: p.warpgroups}
}

// tapVariants are the variants of a product with absent taps that skip those taps. The fold keeps its condition.
func (lo productKernel) tapVariants(taps *tapCounts) *productVariants {
	u, f := *lo.kernel, *lo.folds[0]
	f.Where = nil
	u.folds, u.taps = []*ir.Fold{&f}, taps
	in, p := productKernel{&u}, &productVariants{}
	var rival *ir.Expr
	if c := in.splitProducts(in.contraction(), in.tileType); c != nil && in.device.Warpgroups() && in.isWindowed(c) && in.batchTaps(c) {
		p.warpgroups, rival = warpgroupKernel{in}.windowWarpgroups(*c)
	}
	p.sliced, p.splitK, p.unaligned = splitKernel{in}.splitVariants(rival)
	for _, v := range slices.Concat(p.warpgroups, p.splitK, p.unaligned) {
		v.Sections[0].Folds[0].Where = taps.where
	}
	return p.precise()
}

// loopsWindow reports whether it is faster to have one thread read the window of each result than to gather windows
// into tiles. That is so for few channels, on which only the weights depend, with enough results to fill the device.
// Windows that were laid out for the copy engine go through it, whatever their channels.
func (lo *kernel) loopsWindow() bool {
	p := productKernel{lo}
	f := p.tiledSum()
	if f == nil || lo.r.folded != nil || lo.r.product != nil || lo.r.stream != nil ||
		algebra.PointsAt(lo.k.Rows, lo.sizes) < ir.ReferenceSMs*loopedThreads {
		return false
	}
	product := exactlyWidened(f.Body)
	c := p.sides(product)
	if c == nil || len(c.B) != 1 || len(c.M) == 0 {
		return false
	}
	c.Unit, c.Type = p.multiplier(c, product.Type)
	few, read := algebra.Product(c.M), storedRead(c.B[0].Value, c.Type)
	if a := storedRead(c.A.Value, c.Type); a != nil && p.readsWindow(a, c.M) {
		few, read = algebra.Product(c.N), a
	}
	laidOut := c.Unit.TensorCores() && lo.device.Warpgroups() && (warpgroupKernel{p}).channelsLast(read)
	if laidOut && !few.IsConst(1) {
		return false
	}
	looped := few.Op == ir.OpConst && few.Int <= loopedChannels && p.isWindowed(c)
	return looped && (few.Int < form.HaloRows || len((splitKernel{p}).haloChoices(c)) == 0)
}
