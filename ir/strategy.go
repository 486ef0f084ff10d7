package ir

// Strategy is how the body of a kernel computes. The planner chooses it, and the generator has a row for
// each. A Schedule has its numbers. The first word of the name is the family.
type Strategy uint8

// The strategies; strategies has a row for each.
const (
	NoStrategy Strategy = iota // of bodies for which none was chosen

	Pointwise
	PointwiseBatch
	PointwiseTile
	PointwiseFlattened
	PointwiseInterleaved
	PointwiseInterleaving

	ColumnLoop
	ColumnStencil
	ColumnPipeline
	ColumnGroup
	ColumnChain
	ColumnSlab

	RowPersistent
	RowTurn
	RowLoop
	RowPipeline
	RowChunk
	RowAccumulate
	RowAccumulateLoop
	RowAccumulatePipeline

	ContractTile
	ContractSplitK
	ContractGemv
	ContractRows
	ContractWarpgroup
	ContractWarpgroupSplitK

	AttendTile
	AttendWarpgroup
	ChainTile
	ChainWarpgroup

	SortBlock
	SortSelect
	SortPieces
	SortMerge

	ScatterLists
	ScatterOnce
	ScatterBins
	ScatterHistogram

	strategyCount
)

// StrategyInfo is one row of the table of strategies.
type StrategyInfo struct {
	Name     string
	Doc      string
	Template Template // whose kernels it is for; strategies of LoopTemplate take all kernels that pass over their columns
	Mapping  Mapping  // of its schedules
	Needs    Knobs    // knobs of Schedule, beside Threads and Vector, that it needs
	Takes    Knobs    // further knobs that it may have, beside anyKnobs
	Parts    Parts    // parts of Variant and Kernel that it needs
	May      Parts    // further parts that it may have
	// Apart says that threads do not share points: in each pass, one thread visits a point, and does the reads
	// of the point that are not staged at that time. So an element that is only read at one point may be
	// overwritten there.
	Apart bool
}

// anyKnobs are the knobs that every strategy takes.
const (
	everyKnob = KnobThreads | KnobVector
	anyKnobs  = everyKnob | KnobMinBlocks | KnobIndex64
)

// strategies has a row for each strategy.
var strategies = [strategyCount]StrategyInfo{
	NoStrategy: {Name: "none"},

	Pointwise: {Name: "pointwise", Doc: "each thread computes a vector of the innermost range",
		Mapping: FlatMapping, Apart: true},
	PointwiseBatch: {Name: "pointwise batch", Doc: "each thread computes several vectors, whose reads are under way together",
		Mapping: FlatMapping, Needs: KnobUnroll, Apart: true},
	PointwiseTile: {Name: "pointwise tile", Doc: "what is read across the innermost range is turned in shared memory, a tile a block",
		Mapping: TileMapping, Needs: KnobTileM | KnobTileN, Parts: PartAcross | PartStaged},
	PointwiseFlattened: {Name: "pointwise flattened", Doc: "each thread computes a vector of all rows together, which may run across the ends of rows",
		Mapping: FlattenedMapping, Apart: true},
	PointwiseInterleaved: {Name: "pointwise interleaved", Doc: "reads whose lanes alternate with a short range pass through shared memory, as the run that holds them",
		Mapping: InterleavedMapping, Needs: KnobTileM | KnobTileN, Parts: PartAcross | PartStaged},
	PointwiseInterleaving: {Name: "pointwise interleaving", Doc: "results that alternate along a short range are stored side by side; what runs along the range around it passes through shared memory",
		Mapping: InterleavingMapping, Needs: KnobTileM | KnobTileN, Parts: PartAcross | PartStaged},

	ColumnLoop: {Name: "column loop", Doc: "each thread folds the columns of its rows by itself",
		Mapping: FlatMapping, Takes: KnobUnroll, Parts: PartColumns, May: PartLastBlock, Apart: true},
	ColumnStencil: {Name: "column stencil", Doc: "each thread folds the windows of neighbouring rows, and reads what they share once",
		Mapping: FlatMapping, Needs: KnobTileM, Parts: PartColumns | PartStencil, Apart: true},
	ColumnPipeline: {Name: "column pipeline", Doc: "each thread scans its rows, whose next columns are on their way to shared memory",
		Mapping: FlatMapping, Needs: KnobUnroll | KnobStages, Parts: PartColumns | PartStaged},
	ColumnGroup: {Name: "column group", Doc: "several threads, of one block or of a cluster, share the columns of the rows that they have",
		Mapping: FlatMapping, Needs: KnobColThreads | KnobUnroll, Takes: KnobCluster, Parts: PartColumns, May: PartLastBlock, Apart: true},
	ColumnChain: {Name: "column chain", Doc: "blocks share the columns, and each adds its totals to those of the one ahead of it",
		Mapping: FlatMapping, Needs: KnobColThreads | KnobUnroll | KnobChain, Parts: PartColumns},
	ColumnSlab: {Name: "column slab", Doc: "blocks share the columns, and later ones fold the totals that they post (decoupled look-back)",
		Mapping: FlatMapping, Needs: KnobColThreads | KnobUnroll | KnobLookBack, Parts: PartColumns},

	RowPersistent: {Name: "row persistent", Doc: "the threads of a row hold it in registers between the passes over it",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobItems, Takes: KnobCluster, Parts: PartColumns,
		May: PartKeep | PartEarly | PartAhead | PartLeast | PartStaged | PartLastBlock, Apart: true},
	RowTurn: {Name: "row turn", Doc: "as row persistent; where memory runs along the rows, a block's are turned in shared memory",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobItems | KnobTileM, Parts: PartColumns | PartAcross,
		May: PartKeep | PartStaged},
	RowLoop: {Name: "row loop", Doc: "the threads of a row read it again in every pass, some vectors at a time",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobUnroll, Parts: PartColumns, May: PartAhead | PartLastBlock, Apart: true},
	RowPipeline: {Name: "row pipeline", Doc: "blocks stay, and hold a row while the next ones are on their way to shared memory",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobItems | KnobStages | KnobShared, Takes: KnobCluster | KnobDynamic,
		Parts: PartColumns | PartStaged | PartRun, May: PartKeep | PartAhead},
	RowChunk: {Name: "row chunk", Doc: "blocks stay, and each warp has chunks of a long row in registers and in a ring of shared memory",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobUnroll | KnobStages | KnobShared | KnobDynamic, Takes: KnobCluster | KnobRegisterChunks,
		Parts: PartColumns | PartStaged | PartRun, May: PartKeep | PartAhead},
	RowAccumulate: {Name: "row accumulate", Doc: "threads go through a chunk of rows one by one, hold each, and accumulate results over them in registers",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobItems, Parts: PartColumns | PartAccumulate, May: PartKeep},
	RowAccumulateLoop: {Name: "row accumulate loop", Doc: "threads go through a chunk of rows one by one, read each in pieces, and accumulate results over them in memory",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobUnroll, Parts: PartColumns | PartAccumulate},
	RowAccumulatePipeline: {Name: "row accumulate pipeline", Doc: "as row accumulate, with the next rows of each warp on their way to shared memory",
		Mapping: RowMapping, Needs: KnobRowThreads | KnobItems | KnobStages, Parts: PartColumns | PartAccumulate | PartStaged, May: PartKeep},

	ContractTile: {Name: "contract tile", Doc: "tiles of a product by tensor cores (mma), operands through a ring in shared memory",
		Template: ContractTemplate, Mapping: ContractMapping, Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages,
		Parts: PartColumns | PartContract, May: PartKeep},
	ContractSplitK: {Name: "contract split-k", Doc: "small tiles of a product by multiply-adds or tensor cores, the sum split over a cluster (split-K)",
		Template: ContractTemplate, Mapping: SplitKMapping, Needs: KnobTileM | KnobTileN | KnobTileK | KnobPartM | KnobPartN | KnobStages,
		Takes: KnobCluster | KnobRun, Parts: PartColumns | PartContract},
	ContractGemv: {Name: "contract gemv", Doc: "a product of few rows, whose other operand goes from memory to tensor core fragments",
		Template: ContractTemplate, Mapping: GemvMapping, Needs: KnobTileM | KnobTileN | KnobUnroll, Parts: PartColumns | PartContract},
	ContractRows: {Name: "contract rows", Doc: "tiles of a product whose left operand a block computes first, by folds over its rows",
		Template: ContractTemplate, Mapping: RowProductMapping,
		Needs: KnobTileM | KnobTileN | KnobTileK | KnobPartM | KnobPartN | KnobRowThreads, Takes: KnobItems | KnobUnroll,
		Parts: PartColumns | PartContract, May: PartKeep},
	ContractWarpgroup: {Name: "contract warpgroup", Doc: "tiles of a product by warpgroups (wgmma), operands by the tensor copy engine; blocks stay",
		Template: ContractTemplate, Mapping: WarpgroupMapping,
		Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages | KnobTurns, Takes: KnobCluster | KnobBlocks,
		Parts: PartColumns | PartContract | PartTensorMaps, May: PartKeep},
	ContractWarpgroupSplitK: {Name: "contract warpgroup split-k", Doc: "as contract warpgroup, the sum of each tile split over a cluster (split-K)",
		Template: ContractTemplate, Mapping: WarpgroupMapping,
		Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages | KnobTurns | KnobCluster | KnobSplitK,
		Parts: PartColumns | PartContract | PartTensorMaps},

	AttendTile: {Name: "attend tile", Doc: "keys stream past a tile of queries, scores and weighted sums by tensor cores (mma)",
		Template: AttendTemplate, Mapping: AttendMapping, Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages,
		Parts: PartColumns | PartAttend},
	AttendWarpgroup: {Name: "attend warpgroup", Doc: "as attend tile, by warpgroups (wgmma) and the tensor copy engine",
		Template: AttendTemplate, Mapping: AttendWarpgroupMapping, Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages,
		Parts: PartColumns | PartAttend | PartTensorMaps},

	ChainTile: {Name: "chain tile", Doc: "as attend tile, with weights that are any function of one or more products",
		Template: AttendTemplate, Mapping: ChainMapping, Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages,
		Parts: PartColumns | PartAttend},
	ChainWarpgroup: {Name: "chain warpgroup", Doc: "as chain tile, by warpgroups (wgmma) and the tensor copy engine",
		Template: AttendTemplate, Mapping: ChainWarpgroupMapping, Needs: KnobTileM | KnobTileN | KnobTileK | KnobStages, Takes: KnobBlocks,
		Parts: PartColumns | PartAttend | PartTensorMaps},

	SortBlock: {Name: "sort block", Doc: "a block holds a row and sorts it",
		Template: SortTemplate, Mapping: SortMapping, Needs: KnobRowThreads | KnobItems, Parts: PartColumns | PartSort},
	SortSelect: {Name: "sort select", Doc: "a block holds a row, finds its first places and sorts those",
		Template: SortTemplate, Mapping: SelectMapping, Needs: KnobRowThreads | KnobItems, Parts: PartColumns | PartSort},
	SortPieces: {Name: "sort pieces", Doc: "as sort select, for rows of any length, a piece at a time",
		Template: SortTemplate, Mapping: PieceMapping, Needs: KnobRowThreads | KnobItems, Takes: KnobBlocks, Parts: PartColumns | PartSort},
	SortMerge: {Name: "sort merge", Doc: "blocks share rows of any length: they sort chunks, then merge runs in memory, level by level",
		Template: SortTemplate, Mapping: MergeMapping, Needs: KnobRowThreads | KnobItems, Parts: PartColumns | PartSort},

	ScatterLists: {Name: "scatter lists", Doc: "a block lists the columns that go to its places, and folds each place's",
		Mapping: ScatterMapping, Needs: KnobTileM | KnobUnroll, Parts: PartColumns | PartScatter},
	ScatterOnce: {Name: "scatter once", Doc: "as scatter lists, for few columns, which are marked in one reading of the keys",
		Mapping: ScatterOnceMapping, Needs: KnobTileM | KnobItems, Parts: PartColumns | PartScatter},
	ScatterBins: {Name: "scatter bins", Doc: "blocks share the keys, put each column in the bin of its tile, and fold their own bins",
		Mapping: ScatterBinsMapping, Needs: KnobTileM | KnobUnroll, Parts: PartColumns | PartScatter},
	ScatterHistogram: {Name: "scatter histogram", Doc: "a block holds running values of its places in shared memory, and folds columns as they come",
		Mapping: HistogramMapping, Needs: KnobTileM, Parts: PartColumns | PartScatter},
}

// Strategies lists all strategies.
func Strategies() []Strategy {
	out := make([]Strategy, 0, strategyCount-1)
	for s := NoStrategy + 1; s < strategyCount; s++ {
		out = append(out, s)
	}
	return out
}

// Info returns the row of a strategy.
func (s Strategy) Info() *StrategyInfo { return &strategies[s] }

// String returns the strategy's name.
func (s Strategy) String() string { return strategies[s].Name }

// StrategyOf returns the strategy that a schedule of a kernel belongs to.
func StrategyOf(k *Kernel, s Schedule) Strategy {
	var has Parts
	set := s.Set()
	if len(k.Cols) > 0 {
		has |= PartColumns
	}
	if len(k.Accumulated) > 0 {
		has |= PartAccumulate
	}
	for at := range strategies {
		info := &strategies[at]
		if info.Mapping == s.Mapping && (info.Parts^has)&(PartColumns|PartAccumulate) == 0 && at > 0 && info.accepts(set) {
			return Strategy(at)
		}
	}
	return NoStrategy
}
