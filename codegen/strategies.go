package codegen

import (
	"fmt"

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

// strategies has a row for each ir.Strategy. init fills it, since a kernel that finishes another has a
// row too, and is spelled by the other's.
var strategies map[ir.Strategy]spelled

func init() {
	pointwise := traits{hostDivides: true, mayMove: true, choosesInWords: true}
	tile := traits{hostDivides: true, mayMove: true}
	column := traits{hostDivides: true, columnsInOrder: true}
	posted := traits{hostDivides: true, columnsInOrder: true, lanesInVectors: true}
	row := traits{vectorsAlong: lastColumn, byPosition: true, columnsInOrder: true}
	held := traits{vectorsAlong: lastColumn, byPosition: true, columnsInOrder: true, lanesInVectors: true, policyOnce: true}
	chunk := traits{vectorsAlong: lastColumn, byPosition: true, lanesInVectors: true}
	persistent, loop := held, row
	persistent.hostDivides, loop.hostDivides = true, true
	warpgroup, scatter := traits{vectorsAlong: warpgroupLane}, traits{vectorsAlong: scatterLane}

	strategies = map[ir.Strategy]spelled{
		ir.Pointwise: {traits: pointwise, body: func(e *emitter) { newPointwise(e).kernel() }, preludes: pointwisePreludes, blocks: pointwiseBlocks},
		ir.PointwiseBatch: {traits: pointwise, body: func(e *emitter) { newPointwise(e).batch() }, preludes: pointwisePreludes, defines: batchDefines,
			blocks: pointwiseBlocks},
		ir.PointwiseTile: {traits: tile, body: func(e *emitter) { newPointwise(e).tileKernel() }, defines: tileDefines, blocks: tileGrid},

		ir.ColumnLoop: {traits: column, body: func(e *emitter) { newColumn(e, false).kernel() }, defines: columnDefines, blocks: columnBlocks},
		ir.ColumnPipeline: {traits: column, body: func(e *emitter) { newColumn(e, true).kernel() }, preludes: scanPreludes, defines: columnPipelineDefines,
			blocks: columnBlocks, shared: columnsShared},
		ir.ColumnGroup: {traits: column, body: func(e *emitter) { newColumnGroup(e).group() }, preludes: scanPreludes, defines: groupDefines, blocks: groupBlocks},
		ir.ColumnChain: {traits: posted, body: func(e *emitter) { newColumnChain(e).kernel() }, preludes: chainPreludes, defines: chainDefines,
			blocks: chainBlocks, own: chainOwn},
		ir.ColumnSlab: {traits: posted, body: func(e *emitter) { newColumnSlab(e).kernel() }, preludes: chainPreludes, defines: slabDefines,
			blocks: slabBlocks, own: slabOwn},

		ir.RowPersistent: {traits: persistent, body: func(e *emitter) { newRow(e, false).kernel() }, preludes: rowPreludes, defines: rowDefines,
			blocks: rowBlocks, perCluster: true},
		ir.RowLoop: {traits: loop, body: func(e *emitter) { newRow(e, true).kernel() }, preludes: rowPreludes, defines: rowDefines, blocks: rowBlocks},
		ir.RowPipeline: {traits: held, body: func(e *emitter) { newRowPipeline(e).kernel() }, preludes: pipelinePreludes, defines: pipelineDefines,
			blocks: rowBlocks, perCluster: true, shared: pipelineShared, own: ticketsOwn, resident: true},
		ir.RowChunk: {traits: chunk, body: func(e *emitter) { newRowChunk(e).kernel() }, preludes: chunkPreludes, defines: chunkDefines,
			blocks: rowBlocks, perCluster: true, shared: pipelineShared, own: ticketsOwn, resident: true},
		ir.RowWalk:     {traits: held, body: func(e *emitter) { newRowWalk(e, false).kernel() }, preludes: rowPreludes, defines: rowDefines, blocks: walkBlocks},
		ir.RowWalkLoop: {traits: row, body: func(e *emitter) { newRowWalk(e, true).kernel() }, preludes: rowPreludes, defines: rowDefines, blocks: walkBlocks},
		ir.RowWalkPipeline: {traits: held, body: func(e *emitter) { newRowRing(e).kernel() }, preludes: pipelinePreludes, defines: pipelineDefines,
			blocks: walkBlocks, shared: aheadShared},

		ir.ContractTile: {body: func(e *emitter) { newContractTile(e).kernel() }, preludes: contractPreludes, defines: contractDefines,
			blocks: contractGrid, shared: contractShared},
		ir.ContractSlice: {body: func(e *emitter) { newContractSlice(e).kernel() }, preludes: always(skeleton.Text("slice")), defines: sliceDefines,
			blocks: sliceGrid, shared: sliceShared},
		ir.ContractGemv: {body: func(e *emitter) { newContractGemv(e).kernel() }, preludes: always(skeleton.Text("slice", "gemv")), defines: gemvDefines, blocks: gemvGrid},
		ir.ContractRows: {body: func(e *emitter) { newContractRows(e).kernel() }, preludes: always(skeleton.Text("slice", "row_product")), defines: rowProductDefines,
			blocks: contractGrid, shared: rowProductShared, waits: true},
		ir.ContractWarpgroup: {traits: warpgroup, body: func(e *emitter) { newContractWarpgroup(e, false).kernel() }, preludes: warpgroupPreludes, defines: warpgroupDefines,
			blocks: warpgroupGrid, shared: warpgroupShared},
		ir.ContractSplit: {traits: warpgroup, body: func(e *emitter) { newContractWarpgroup(e, true).kernel() }, preludes: warpgroupPreludes, defines: warpgroupDefines,
			blocks: splitGrid, shared: splitShared},

		ir.AttendTile: {body: func(e *emitter) { newAttend(e).tileKernel() }, preludes: attendTilePreludes, defines: attendDefines,
			blocks: attendGrid, shared: attendShared},
		ir.AttendWarpgroup: {body: func(e *emitter) { newAttend(e).warpgroupKernel() }, preludes: attendWarpgroupPreludes, defines: attendWarpgroupDefines,
			blocks: attendGrid, shared: attendWarpgroupShared},

		ir.SortBlock:  sorts("", blockSorter),
		ir.SortSelect: sorts(skeleton.Text("select"), rowSelector),
		ir.SortPieces: sorts(skeleton.Text("select"), pieceSelector),
		ir.SortWindow: sorts(skeleton.Text("select")+skeleton.Text("window"), windowSorter),

		ir.ScatterLists: {traits: scatter, body: func(e *emitter) { newScatter(e, false).listsKernel() }, preludes: always(skeleton.Text("scatter_fold", "scatter")),
			defines: scatterDefines, blocks: scatterGrid},
		ir.ScatterOnce: {traits: scatter, body: func(e *emitter) { newScatter(e, false).onceKernel() }, preludes: always(skeleton.Text("scatter_fold", "scatter_once")),
			defines: scatterDefines, blocks: scatterGrid},
		ir.ScatterBins: {traits: scatter, body: func(e *emitter) { newScatter(e, true).listsKernel() },
			preludes: always(skeleton.Text("fresh", "scatter_fold", "scatter", "scatter_bins")),
			defines:  scatterDefines, blocks: scatterGrid, own: binOwn},
		ir.ScatterHistogram: {traits: traits{vectorsAlong: histogramLane}, body: func(e *emitter) { newScatter(e, false).histogramKernel() }, defines: histogramDefines,
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

// sorts is the row of a strategy whose text needs preludes beside those of all sorts, and whose work a
// class does.
func sorts(preludes string, class func(*ir.Variant) (string, int)) spelled {
	return spelled{
		body: func(e *emitter) { (&sortEmitter{e}).kernel(class) },
		preludes: func(k *ir.Kernel, _ *ir.Variant) string {
			if findsPlaces(k) { // whose skeleton.Text("prelude") has the keys
				return skeleton.Text("sort", "network") + preludes
			}
			return skeleton.Text("keys", "sort", "network") + preludes
		},
		defines: func(v *ir.Variant) string { return fmt.Sprintf("#define ITEMS %d\n", v.Schedule.Items) },
		blocks:  func(k *ir.Kernel, _ *ir.Variant) *ir.Expr { return product(extents(k.Rows)) },
		shared: func(v *ir.Variant) int {
			_, bytes := class(v)
			return bytes
		},
		traits: traits{vectorsAlong: func(*ir.Kernel, *ir.Variant) *ir.Range { return nil }},
	}
}
