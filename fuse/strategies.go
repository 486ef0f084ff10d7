package fuse

import (
	"slices"

	"github.com/fusec/fusec/ir"
)

// strategy is a row of the table: bodies of one family, as variants for classes of sizes. Whether it is legal for
// a kernel is one question. Which sizes its variants take, with which schedules, is another one, and only a
// matter of speed.
type strategy struct {
	makes    []ir.Strategy
	template ir.Template // template of a kernel that has variants of the row; with LoopTemplate the kernel keeps that of its region
	alone    bool        // a kernel for which the row is legal takes no rows after it
	legal    func(*kernel) bool
	variants func(*gathering) []*ir.Variant
}

// strategies are in order of preference: of the variants that take a size, the first runs.
var strategies = []strategy{
	{byStreams, ir.AttendTemplate, false, (*kernel).isStream,
		func(c *gathering) []*ir.Variant { return attendKernel{c.kernel}.attendVariants() }},
	{byLongHeads, ir.AttendTemplate, true, (*kernel).isStream, (*gathering).longHeads},
	{[]ir.Strategy{ir.ContractWarpgroup, ir.ContractTile}, ir.ContractTemplate, true, (*kernel).foldsTiles,
		func(c *gathering) []*ir.Variant { return foldKernel{c.warpgroupKernel()}.foldVariants() }},
	{[]ir.Strategy{ir.SortSelect, ir.SortPieces, ir.SortBlock, ir.SortMerge}, ir.SortTemplate, true, (*kernel).isOrder,
		func(c *gathering) []*ir.Variant { return sortKernel{c.kernel}.sortVariants() }},
	{[]ir.Strategy{ir.ContractRows}, ir.ContractTemplate, true, (*kernel).isRowProduct,
		func(c *gathering) []*ir.Variant { return c.rowProductKernel().rowProductVariants(c.r.product, nil) }},

	{[]ir.Strategy{ir.ContractRows}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.rowProductKernel().smallProductVariants() }},
	{byWeightedSums, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().along }},
	{[]ir.Strategy{ir.ContractSplitK}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().sliced }},
	{[]ir.Strategy{ir.ContractGemv}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().packed }},
	{[]ir.Strategy{ir.ContractWarpgroupSplitK}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().warpgroupSplitK }},
	{[]ir.Strategy{ir.ContractSplitK}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().splitK }},
	{[]ir.Strategy{ir.ContractWarpgroup}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().warpgroups }},
	{byWeightedSums, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().across }},
	{[]ir.Strategy{ir.ContractGemv}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().plain }},
	{[]ir.Strategy{ir.ContractSplitK}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().unaligned }},
	{[]ir.Strategy{ir.ContractTile}, ir.ContractTemplate, false, (*kernel).sums,
		func(c *gathering) []*ir.Variant { return c.product().tiles }},

	{byLongHeads, ir.LoopTemplate, false, (*kernel).storesPastEmpty, (*gathering).empty},
	{byScatters, ir.LoopTemplate, false, (*kernel).isScatter,
		func(c *gathering) []*ir.Variant { return scatterKernel{c.kernel}.scatterVariants() }},
	{byAccumulation, ir.LoopTemplate, true, (*kernel).accumulates,
		func(c *gathering) []*ir.Variant { return rowKernel{c.kernel}.accumulateVariants() }},
	{[]ir.Strategy{ir.ColumnLoop}, ir.LoopTemplate, true, (*kernel).reducesForNaN,
		func(c *gathering) []*ir.Variant { return c.columnKernel().nanVariants() }},
	{[]ir.Strategy{ir.RowTurn}, ir.LoopTemplate, false, (*kernel).hasColumns, (*gathering).turned},
	{byRows, ir.LoopTemplate, true, (*kernel).runsAlongRows, (*gathering).rows},
	{[]ir.Strategy{ir.ColumnStencil}, ir.LoopTemplate, false, (*kernel).hasColumns, (*gathering).stencils},
	{byColumns, ir.LoopTemplate, true, func(*kernel) bool { return true },
		func(c *gathering) []*ir.Variant { return c.columnKernel().flatVariants() }},
}

// Strategies that one row makes.
var (
	byStreams      = []ir.Strategy{ir.AttendWarpgroup, ir.AttendTile, ir.ChainWarpgroup, ir.ChainTile}
	byLongHeads    = []ir.Strategy{ir.ColumnLoop, ir.ColumnGroup, ir.ColumnChain, ir.ColumnSlab}
	byScatters     = []ir.Strategy{ir.ScatterHistogram, ir.ScatterOnce, ir.ScatterBins, ir.ScatterLists}
	byAccumulation = []ir.Strategy{ir.RowAccumulate, ir.RowAccumulateLoop, ir.RowAccumulatePipeline}
	byRows         = []ir.Strategy{ir.RowPersistent, ir.RowPipeline, ir.RowChunk, ir.RowLoop}
	byColumns      = []ir.Strategy{ir.PointwiseInterleaved, ir.PointwiseInterleaving, ir.PointwiseTile, ir.Pointwise, ir.PointwiseBatch, ir.PointwiseFlattened, ir.ColumnGroup, ir.ColumnPipeline, ir.ColumnSlab, ir.ColumnLoop, ir.ColumnChain}
	byWeightedSums = slices.Concat([]ir.Strategy{ir.ContractGemv}, byRows, byColumns) // for products one side of which has one row
)

// gathering is what is computed once while the variants of a kernel are gathered.
type gathering struct {
	*kernel
	bodies *productVariants // variants of products, once a row needs them
	cached []*ir.Local      // reads of tensors that the L2 cache holds
}

// variants makes the kernel's bodies, one for each class of sizes. template is the template of a kernel with
// these bodies; cached is the reads that some of them find in the L2 cache.
func (lo *kernel) variants() (template ir.Template, out []*ir.Variant, cached []*ir.Local) {
	c, template := &gathering{kernel: lo}, lo.k.Template
	for _, s := range strategies {
		if !s.legal(lo) {
			continue
		}
		found := s.variants(c)
		if s.template != ir.LoopTemplate && len(found) > 0 {
			template = s.template
		} else if template == ir.ContractTemplate && len(lo.folds) > 1 {
			halveUnroll(found)
		}
		if out = append(out, found...); s.alone {
			break
		}
	}
	return template, classes(out, lo.small()), c.cached
}

// halveUnroll makes room in registers where each column has the operands of several products.
func halveUnroll(variants []*ir.Variant) {
	for _, v := range variants {
		if v.Schedule.Unroll > 1 {
			v.Schedule.Unroll /= 2
		}
	}
}

// longHeads is the variant of streams whose heads are longer than any tile. Each column computes a whole product, which
// fills the registers.
func (c *gathering) longHeads() []*ir.Variant {
	flat := c.columnKernel().flatVariants()
	last := flat[len(flat)-1]
	last.Schedule.Unroll = 1
	return []*ir.Variant{last}
}

func (c *gathering) rows() (out []*ir.Variant) {
	out, c.cached = rowKernel{c.kernel}.rowVariants()
	return out
}

// turned are the variants with turned rows. Like stencils, they are not for products.
func (c *gathering) turned() []*ir.Variant {
	if c.bodies != nil && c.bodies.multiply() {
		return nil
	}
	return rowKernel{c.kernel}.turnVariants()
}

// empty is the body for sizes at which some rows of a scatter are empty: it stores the results that do not lie along these, in plain loops,
// because nobody waits for such sizes.
func (c *gathering) empty() []*ir.Variant {
	lo := scatterKernel{c.kernel}
	found := lo.leavingOut().columnKernel().flatVariants()
	return lo.forEmpty(found[len(found)-1])
}

// stencils are the variants of stencils. They are not for products, whose own variants are
// faster with channels.
func (c *gathering) stencils() []*ir.Variant {
	if c.bodies != nil && c.bodies.multiply() {
		return nil
	}
	return c.columnKernel().stencilVariants()
}

func (c *gathering) product() *productVariants {
	if c.bodies == nil {
		c.bodies = productKernel{c.kernel}.productVariants((*kernel).reductionVariants)
	}
	return c.bodies
}

func (c *gathering) warpgroupKernel() warpgroupKernel {
	return warpgroupKernel{productKernel{c.kernel}}
}

func (c *gathering) rowProductKernel() rowProductKernel {
	return rowProductKernel{productKernel{c.kernel}}
}

// What strategies are legal for.

func (lo *kernel) isStream() bool     { return lo.r.stream != nil }
func (lo *kernel) foldsTiles() bool   { return lo.r.folded != nil }
func (lo *kernel) isOrder() bool      { return lo.order != nil }
func (lo *kernel) isRowProduct() bool { return lo.r.product != nil }
func (lo *kernel) sums() bool         { return len(lo.folds) > 0 }
func (lo *kernel) accumulates() bool  { return len(lo.k.Accumulated) > 0 }

func (lo *kernel) isScatter() bool {
	own := scatterKernel{lo}
	return len(lo.k.Accumulated) == 0 && len(lo.parts) == 0 && own.scatter(own.scattered(lo.folds)) != nil
}

// storesPastEmpty reports whether a scatter has results to store where some of its rows have no element.
func (lo *kernel) storesPastEmpty() bool {
	return lo.isScatter() && scatterKernel{lo}.storesPastEmpty()
}

func (lo *kernel) hasColumns() bool { return len(lo.k.Cols) > 0 }

func (lo *kernel) runsAlongRows() bool {
	return len(lo.k.Cols) > 0 && lo.mapping() == ir.RowMapping
}
