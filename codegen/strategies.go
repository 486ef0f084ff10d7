package codegen

import (
	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// spelled is a row of the table of strategies: how the kernels of one are spelled. What a row does not
// name its kernels do not have.
type spelled struct {
	traits
	body       func(e *emitter)                           // writes what the threads of a block do
	preludes   func(k *ir.Kernel, v *ir.Variant) string   // text of the kernel's, behind the common skeleton.Text("prelude")
	defines    func(v *ir.Variant) string                 // macros beside those that all kernels have
	blocks     func(k *ir.Kernel, v *ir.Variant) *ir.Expr // of the grid
	perCluster bool                                       // or clusters
	shared     func(v *ir.Variant) int                    // bytes of dynamic shared memory
	own        func(k *ir.Kernel, v *ir.Variant) workspace
	resident   bool // all blocks are on the device at once, and stay
	waits      bool // the body waits for the kernels ahead itself: it begins before they have ended
}

// workspace is memory that a launch has to itself: counters, which are 0 when it begins and when it ends,
// and bytes, which hold anything.
type workspace struct{ counters, bytes *ir.Expr }

// strategies has a row for each ir.Strategy. init fills it, since a kernel that finishes another has a
// row too, and is spelled by the other's.
var strategies map[ir.Strategy]spelled

func init() {
	pointwise := traits{hostDivides: true, moves: true, inWords: true}
	tile := traits{hostDivides: true, moves: true}
	column := traits{hostDivides: true, inOrder: true}
	posted := traits{hostDivides: true, inOrder: true, lanesInVectors: true}
	row := traits{lane: lastColumn, linear: true, inOrder: true}
	held := traits{lane: lastColumn, linear: true, inOrder: true, lanesInVectors: true, policyOnce: true}
	chunk := traits{lane: lastColumn, linear: true, lanesInVectors: true}
	persistent, loop := held, row
	persistent.hostDivides, loop.hostDivides = true, true
	warpgroup, scatter := traits{lane: warpgroupLane}, traits{lane: scatterLane}

	strategies = map[ir.Strategy]spelled{
		ir.Pointwise: {traits: pointwise, body: (*emitter).flatKernel, preludes: pointwisePreludes, blocks: pointwiseBlocks},
		ir.PointwiseBatch: {traits: pointwise, body: (*emitter).batch, preludes: pointwisePreludes, defines: batchDefines,
			blocks: pointwiseBlocks},
		ir.PointwiseTile: {traits: tile, body: (*emitter).tileKernel, defines: tileDefines, blocks: tileGrid},

		ir.ColumnLoop: {traits: column, body: (*emitter).flatKernel, defines: columnDefines, blocks: columnBlocks},
		ir.ColumnPipeline: {traits: column, body: (*emitter).flatKernel, preludes: scanPreludes, defines: columnPipelineDefines,
			blocks: columnBlocks, shared: columnsShared},
		ir.ColumnGroup: {traits: column, body: (*emitter).flatKernel, preludes: scanPreludes, defines: groupDefines, blocks: groupBlocks},
		ir.ColumnChain: {traits: posted, body: (*emitter).flatKernel, preludes: chainPreludes, defines: chainDefines,
			blocks: chainBlocks, own: chainOwn},
		ir.ColumnSlab: {traits: posted, body: (*emitter).flatKernel, preludes: chainPreludes, defines: slabDefines,
			blocks: slabBlocks, own: slabOwn},

		ir.RowPersistent: {traits: persistent, body: (*emitter).rowKernel, preludes: rowPreludes, defines: rowDefines,
			blocks: rowBlocks, perCluster: true},
		ir.RowLoop: {traits: loop, body: (*emitter).rowKernel, preludes: rowPreludes, defines: rowDefines, blocks: rowBlocks},
		ir.RowPipeline: {traits: held, body: (*emitter).rowKernel, preludes: pipelinePreludes, defines: pipelineDefines,
			blocks: rowBlocks, perCluster: true, shared: pipelineShared, own: ticketsOwn, resident: true},
		ir.RowChunk: {traits: chunk, body: (*emitter).rowKernel, preludes: chunkPreludes, defines: chunkDefines,
			blocks: rowBlocks, perCluster: true, shared: pipelineShared, own: ticketsOwn, resident: true},
		ir.RowWalk:     {traits: held, body: (*emitter).rowKernel, preludes: rowPreludes, defines: rowDefines, blocks: walkBlocks},
		ir.RowWalkLoop: {traits: row, body: (*emitter).rowKernel, preludes: rowPreludes, defines: rowDefines, blocks: walkBlocks},
		ir.RowWalkPipeline: {traits: held, body: (*emitter).rowKernel, preludes: pipelinePreludes, defines: pipelineDefines,
			blocks: walkBlocks, shared: aheadShared},

		ir.ContractTile: {body: (*emitter).contractKernel, preludes: contractPreludes, defines: contractDefines,
			blocks: contractGrid, shared: contractShared},
		ir.ContractSlice: {body: (*emitter).sliceKernel, preludes: always(skeleton.Text("slice")), defines: sliceDefines,
			blocks: sliceGrid, shared: sliceShared},
		ir.ContractGemv: {body: (*emitter).gemvKernel, preludes: always(skeleton.Text("slice", "gemv")), defines: gemvDefines, blocks: gemvGrid},
		ir.ContractRows: {body: (*emitter).rowProductKernel, preludes: always(skeleton.Text("slice", "row_product")), defines: rowProductDefines,
			blocks: contractGrid, shared: rowProductShared, waits: true},
		ir.ContractWarpgroup: {traits: warpgroup, body: (*emitter).warpgroupKernel, preludes: warpgroupPreludes, defines: warpgroupDefines,
			blocks: warpgroupGrid, shared: warpgroupShared},
		ir.ContractSplit: {traits: warpgroup, body: (*emitter).warpgroupKernel, preludes: warpgroupPreludes, defines: warpgroupDefines,
			blocks: splitGrid, shared: splitShared},

		ir.AttendTile: {body: (*emitter).attendKernel, preludes: attendTilePreludes, defines: attendDefines,
			blocks: attendGrid, shared: attendShared},
		ir.AttendWarpgroup: {body: (*emitter).attendWarpgroupKernel, preludes: attendWarpgroupPreludes, defines: attendWarpgroupDefines,
			blocks: attendGrid, shared: attendWarpgroupShared},

		ir.SortBlock:  sorts("", blockSorter),
		ir.SortSelect: sorts(skeleton.Text("select"), rowSelector),
		ir.SortPieces: sorts(skeleton.Text("select"), pieceSelector),
		ir.SortWindow: sorts(skeleton.Text("select")+skeleton.Text("window"), windowSorter),

		ir.ScatterLists: {traits: scatter, body: (*emitter).scatterKernel, preludes: always(skeleton.Text("scatter_fold", "scatter")),
			defines: scatterDefines, blocks: scatterGrid},
		ir.ScatterOnce: {traits: scatter, body: (*emitter).scatterOnceKernel, preludes: always(skeleton.Text("scatter_fold", "scatter_once")),
			defines: scatterDefines, blocks: scatterGrid},
		ir.ScatterBins: {traits: scatter, body: (*emitter).scatterKernel,
			preludes: always(skeleton.Text("fresh", "scatter_fold", "scatter", "scatter_bins")),
			defines:  scatterDefines, blocks: scatterGrid, own: binOwn},
		ir.ScatterHistogram: {traits: traits{lane: histogramLane}, body: (*emitter).histogramKernel, defines: histogramDefines,
			blocks: histogramGrid},
	}
}

// always is the same preludes for all kernels of a strategy.
func always(text string) func(*ir.Kernel, *ir.Variant) string {
	return func(*ir.Kernel, *ir.Variant) string { return text }
}

// ownOf is what launches of a variant have to themselves.
func ownOf(k *ir.Kernel, v *ir.Variant) workspace {
	if own := strategies[v.Strategy].own; own != nil {
		return own(k, v)
	}
	return workspace{}
}
