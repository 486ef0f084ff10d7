package codegen

import (
	"fmt"
	"maps"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// spelled is a row of the table of strategies: how the kernels of one strategy are spelled. A field
// that is not set means that the kernels have no such thing.
type spelled struct {
	traits
	body       func(e *emitter)                           // writes what the threads of a block do
	preludes   func(k *ir.Kernel, v *ir.Variant) string   // text before the kernel and after prelude.cuh
	defines    func(v *ir.Variant) string                 // macros beside those that all kernels have
	blocks     func(k *ir.Kernel, v *ir.Variant) *ir.Expr // blocks of the grid
	perCluster bool                                       // blocks counts clusters
	shared     func(v *ir.Variant) int                    // bytes of dynamic shared memory
	own        func(k *ir.Kernel, v *ir.Variant) workspace
	resident   bool // all blocks are on the device at once, and stay
	waits      bool // the body itself waits for earlier kernels, so it begins before they have ended
}

// strategies has a row for each ir.Strategy, by family. Nothing else in the package knows all families.
var strategies = allStrategies()

func allStrategies() map[ir.Strategy]spelled {
	all := map[ir.Strategy]spelled{}
	for _, family := range []map[ir.Strategy]spelled{
		pointwiseStrategies(), columnStrategies(), rowStrategies(),
		contractStrategies(), attendStrategies(), sortStrategies(), scatterStrategies(),
	} {
		maps.Copy(all, family)
	}
	return all
}

func pointwiseStrategies() map[ir.Strategy]spelled {
	pointwise := traits{hostDivides: true, mayMove: true, choosesInWords: true}
	tile := traits{hostDivides: true, mayMove: true}
	flattened := traits{hostDivides: true, mayMove: true, acrossRows: true}
	return map[ir.Strategy]spelled{
		ir.Pointwise: {traits: pointwise, body: func(e *emitter) { newPointwise(e).kernel() },
			preludes: pointwisePreludes, blocks: pointwiseBlocks},
		ir.PointwiseBatch: {traits: pointwise, body: func(e *emitter) { newPointwise(e).batch() },
			preludes: pointwisePreludes, defines: batchDefines, blocks: pointwiseBlocks},
		ir.PointwiseTile: {traits: tile, body: func(e *emitter) { newPointwise(e).tileKernel() },
			defines: tileDefines, blocks: tileGrid},
		ir.PointwiseFlattened: {traits: flattened, body: func(e *emitter) { newPointwise(e).flattened() },
			blocks: flattenedBlocks},
		ir.PointwiseInterleaved: {traits: tile, body: func(e *emitter) { newPointwise(e).interleaved() },
			preludes: func(*ir.Kernel, *ir.Variant) string { return skeleton.Text("runs") },
			defines:  tileDefines, blocks: interleavedGrid},
		ir.PointwiseInterleaving: {traits: flattened, body: func(e *emitter) { newPointwise(e).interleaving() },
			preludes: func(*ir.Kernel, *ir.Variant) string { return skeleton.Text("runs") },
			defines:  tileDefines, blocks: interleavingGrid},
	}
}

func columnStrategies() map[ir.Strategy]spelled {
	column := traits{hostDivides: true, columnsInOrder: true}
	posted := traits{hostDivides: true, columnsInOrder: true, lanesInVectors: true}
	return map[ir.Strategy]spelled{
		ir.ColumnLoop: {traits: column, body: func(e *emitter) { newColumn(e, false).kernel() },
			defines: columnDefines, blocks: columnBlocks},
		ir.ColumnStencil: {traits: column, body: func(e *emitter) { newColumnStencil(e).kernel() },
			defines: stencilDefines, blocks: stencilBlocks},
		ir.ColumnPipeline: {traits: column, body: func(e *emitter) { newColumn(e, true).kernel() },
			preludes: scanPreludes, defines: columnPipelineDefines, blocks: columnBlocks, shared: columnsShared},
		ir.ColumnGroup: {traits: column, body: func(e *emitter) { newColumnGroup(e).group() },
			preludes: scanPreludes, defines: groupDefines, blocks: groupBlocks, perCluster: true},
		ir.ColumnChain: {traits: posted, body: func(e *emitter) { newColumnChain(e).kernel() },
			preludes: chainPreludes, defines: chainDefines, blocks: chainBlocks, own: chainOwn},
		ir.ColumnSlab: {traits: posted, body: func(e *emitter) { newColumnSlab(e).kernel() },
			preludes: chainPreludes, defines: slabDefines, blocks: slabBlocks, own: slabOwn},
	}
}

func rowStrategies() map[ir.Strategy]spelled {
	row := traits{vectorsAlong: lastColumn, byPosition: true, columnsInOrder: true}
	inRegisters := traits{vectorsAlong: lastColumn, byPosition: true, columnsInOrder: true, lanesInVectors: true, branchlessHints: true}
	chunk := traits{vectorsAlong: lastColumn, byPosition: true, lanesInVectors: true}
	persistent, loop := inRegisters, row
	persistent.hostDivides, loop.hostDivides = true, true
	return map[ir.Strategy]spelled{
		ir.RowPersistent: {traits: persistent, body: func(e *emitter) { newRow(e, false).kernel() },
			preludes: rowPreludes, defines: rowDefines, blocks: rowBlocks, perCluster: true},
		ir.RowTurn: {traits: persistent, body: func(e *emitter) { newRowTurn(e).kernel() },
			preludes: rowPreludes, defines: turnDefines, blocks: rowBlocks, shared: ir.TurnedBytes},
		ir.RowLoop: {traits: loop, body: func(e *emitter) { newRow(e, true).kernel() },
			preludes: rowPreludes, defines: rowDefines, blocks: rowBlocks},
		ir.RowPipeline: {traits: inRegisters, body: func(e *emitter) { newRowPipeline(e).kernel() },
			preludes: pipelinePreludes, defines: pipelineDefines, blocks: rowBlocks, perCluster: true, shared: pipelineShared, own: schedulerOwn, resident: true},
		ir.RowChunk: {traits: chunk, body: func(e *emitter) { newRowChunk(e).kernel() },
			preludes: chunkPreludes, defines: chunkDefines, blocks: rowBlocks, perCluster: true, shared: pipelineShared, own: schedulerOwn, resident: true},
		ir.RowAccumulate: {traits: inRegisters, body: func(e *emitter) { newRowAccumulate(e, false).kernel() },
			preludes: rowPreludes, defines: rowDefines, blocks: accumulateBlocks},
		ir.RowAccumulateLoop: {traits: row, body: func(e *emitter) { newRowAccumulate(e, true).kernel() },
			preludes: rowPreludes, defines: rowDefines, blocks: accumulateBlocks},
		ir.RowAccumulatePipeline: {traits: inRegisters, body: func(e *emitter) { newRowRing(e).kernel() },
			preludes: pipelinePreludes, defines: pipelineDefines, blocks: accumulateBlocks, shared: ringShared},
	}
}

func contractStrategies() map[ir.Strategy]spelled {
	tile := traits{hostDivides: true}
	warpgroup := traits{vectorsAlong: warpgroupLane, hostDivides: true}
	return map[ir.Strategy]spelled{
		ir.ContractTile: {traits: tile, body: func(e *emitter) { newContractTile(e).kernel() },
			preludes: contractPreludes, defines: contractDefines, blocks: contractGrid, shared: contractShared},
		ir.ContractSplitK: {traits: tile, body: func(e *emitter) { newContractSplitK(e).kernel() },
			preludes: smallPreludes, defines: smallDefines, blocks: smallGrid, shared: smallShared, own: sliceOwn},
		ir.ContractGemv: {body: func(e *emitter) { newContractGemv(e).kernel() },
			preludes: text("small_tiles", "gemv"), defines: gemvDefines, blocks: gemvGrid},
		ir.ContractRows: {body: func(e *emitter) { newContractRows(e).kernel() },
			preludes: text("small_tiles", "row_product"), defines: rowProductDefines, blocks: contractGrid, shared: rowProductShared, waits: true},
		ir.ContractWarpgroup: {traits: warpgroup, body: func(e *emitter) { newContractWarpgroup(e, false).kernel() },
			preludes: warpgroupPreludes, defines: warpgroupDefines, blocks: warpgroupGrid, shared: warpgroupShared},
		ir.ContractWarpgroupSplitK: {traits: warpgroup, body: func(e *emitter) { newContractWarpgroup(e, true).kernel() },
			preludes: warpgroupPreludes, defines: warpgroupDefines, blocks: splitGrid, shared: splitShared},
	}
}

func attendStrategies() map[ir.Strategy]spelled {
	return map[ir.Strategy]spelled{
		ir.AttendTile: {body: func(e *emitter) { newAttend(e).tileKernel() },
			preludes: attendTilePreludes, defines: attendDefines, blocks: attendGrid, shared: attendShared},
		ir.ChainTile: {body: func(e *emitter) { newAttend(e).chainKernel() },
			preludes: chainTilePreludes, defines: attendDefines, blocks: attendGrid, shared: attendShared},
		ir.ChainWarpgroup: {body: func(e *emitter) { newAttend(e).chainWarpgroupKernel() },
			preludes: attendWarpgroupPreludes, defines: attendWarpgroupDefines, blocks: attendGrid, shared: chainWarpgroupShared},
		ir.AttendWarpgroup: {body: func(e *emitter) { newAttend(e).warpgroupKernel() },
			preludes: attendWarpgroupPreludes, defines: attendWarpgroupDefines, blocks: attendGrid, shared: attendWarpgroupShared},
	}
}

func sortStrategies() map[ir.Strategy]spelled {
	return map[ir.Strategy]spelled{
		ir.SortBlock:  sorts(blockSorter),
		ir.SortSelect: sorts(rowSelector, "select"),
		ir.SortPieces: pieceSelects(),
		ir.SortMerge:  mergeSorts(),
	}
}

func scatterStrategies() map[ir.Strategy]spelled {
	scatter := traits{vectorsAlong: scatterLane}
	return map[ir.Strategy]spelled{
		ir.ScatterLists: {traits: scatter, body: func(e *emitter) { newScatter(e).listsKernel() },
			preludes: text("scatter_fold", "scatter"), defines: scatterDefines, blocks: scatterGrid},
		ir.ScatterOnce: {traits: scatter, body: func(e *emitter) { newScatter(e).onceKernel() },
			preludes: text("scatter_fold", "scatter_once"), defines: scatterDefines, blocks: scatterGrid},
		ir.ScatterBins: {traits: scatter, body: func(e *emitter) { newScatter(e).binsKernel() },
			preludes: text("fresh", "scatter_fold", "scatter", "scatter_bins", "scatter_crowded"), defines: binDefines, blocks: scatterGrid, own: binOwn},
		ir.ScatterHistogram: {traits: traits{vectorsAlong: noRange}, body: func(e *emitter) { newScatter(e).histogramKernel() },
			preludes: text("scatter_histogram"), defines: histogramDefines, blocks: histogramGrid},
	}
}

// text is the preludes of a strategy that has the same for all kernels, by the names of their
// files.
func text(names ...string) func(*ir.Kernel, *ir.Variant) string {
	return func(*ir.Kernel, *ir.Variant) string { return skeleton.Text(names...) }
}

// ownOf is the workspace of each launch of a variant.
func ownOf(k *ir.Kernel, v *ir.Variant) workspace {
	if own := strategies[v.Strategy].own; own != nil {
		return own(k, v)
	}
	return workspace{}
}

// pieceSelects is the row of SortPieces, whose blocks may share rows.
func pieceSelects() spelled {
	s := sorts(pieceSelector, "select")
	alone, shared := s.preludes, sorts(pieceSelector, "select", "fresh", "last_block", "select_share").preludes
	s.preludes = func(k *ir.Kernel, v *ir.Variant) string {
		if v.Schedule.Blocks > 0 {
			return shared(k, v)
		}
		return alone(k, v)
	}
	s.body = func(e *emitter) { (&sortEmitter{e}).pieces() }
	s.blocks, s.own = selectGrid, selectOwn
	return s
}

// mergeSorts is the row of SortMerge, whose blocks share rows.
func mergeSorts() spelled {
	s := sorts(mergeSorter, "fresh", "select", "merge")
	s.body = func(e *emitter) { (&sortEmitter{e}).merge() }
	s.blocks, s.own, s.resident = mergeGrid, mergeOwn, true
	return s
}

// sorts is the row of a strategy whose work a class does, with preludes beside those of all sorts.
func sorts(class func(*ir.Variant) (string, int), preludes ...string) spelled {
	return spelled{
		traits: traits{vectorsAlong: noRange},
		body:   func(e *emitter) { (&sortEmitter{e}).kernel(class) },
		preludes: func(k *ir.Kernel, _ *ir.Variant) string {
			own := skeleton.Text("sort", "network") + skeleton.Text(preludes...)
			if findsPlaces(k) { // the kernel has the prelude of keys already
				return own
			}
			return skeleton.Text("keys") + own
		},
		defines: func(v *ir.Variant) string { return fmt.Sprintf("#define ITEMS %d\n", v.Schedule.Items) },
		blocks:  func(k *ir.Kernel, _ *ir.Variant) *ir.Expr { return product(extents(k.Rows)) },
		shared: func(v *ir.Variant) int {
			_, bytes := class(v)
			return bytes
		},
	}
}
