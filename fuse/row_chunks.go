package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Figures of rows in chunks: some of a row's chunks stay in registers, the others in the rings
// of its warps, with those of the next row behind them (ir.Schedule.RegisterChunks). A block has a
// multiprocessor to itself.
const (
	chunkThreads   = 512
	chunkVectors   = 4   // of a thread in a chunk at most
	chunkRegisters = 56  // of a thread, for the chunks that it holds and the one in hand
	chunkBarrier   = 8   // bytes of shared memory for each place of a ring
	chunkReserve   = 512 // and of a block for all else, beside what it exchanges
	inHand         = 16  // registers of a thread for what is read of a chunk
)

// leastStages is the places that a ring needs for one chunk to arrive while another is worked on.
const leastStages = 2

// chunkClusters are the candidates: blocks that share a row.
var chunkClusters = []int{1, 2, 4, 8}

// chunkSchedule is a candidate's for a kernel's rows, and the longest row that it takes: one of which
// the ring has room for a block's share, so that what registers hold is places for the next row.
func (lo rowKernel) chunkSchedule(h *pipelined, cluster, vectors, vector int) (ir.Schedule, int) {
	const warps = chunkThreads / 32
	chunk := vectors * 32 * vector // columns
	room := lo.device.SharedBlock - chunkReserve - (lo.exchanged()+schedulerBytes)*2*warps*cluster
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: chunkThreads, RowThreads: chunkThreads, Vector: vector, Unroll: vectors, MinBlocks: 1, Dynamic: true}
	s.RegisterChunks = max(0, int(chunkRegisters/(h.words*float64(vectors*vector)))-1)
	s.Stages = room / (warps * (chunk*h.bytes + chunkBarrier))
	s.Shared = warps * s.Stages * chunk * h.bytes
	if cluster > 1 {
		s.Cluster = cluster
	}
	return s, min(s.Stages, s.Stages+s.RegisterChunks-1) * warps * cluster * chunk
}

// chunkItems is the vectors of a thread in a chunk.
func (lo rowKernel) chunkItems(sections []*ir.Section, vector int) int {
	n := chunkVectors
	for words := lo.rowWords(sections); n > 1 && words*float64(n*vector) > inHand; {
		n /= 2
	}
	return n
}

// chunkVariants are the variants of these candidates.
func (lo rowKernel) chunkVariants(h *pipelined, sections []*ir.Section, vector int, length *ir.Expr) []*ir.Variant {
	var out []*ir.Variant
	vectors := lo.chunkItems(sections, vector)
	for _, cluster := range chunkClusters {
		v := *h.body
		schedule, longest := lo.chunkSchedule(h, cluster, vectors, vector)
		if schedule.Stages < leastStages {
			continue // of many tensors
		}
		v.Schedule = schedule
		v.When = algebra.And(ir.Apply(ir.OpLe, length, ir.IntConst(int64(longest))), h.needs)
		out = append(out, &v)
	}
	return out
}
