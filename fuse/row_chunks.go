package fuse

import (
	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
)

// Figures of rows in chunks. Some chunks of a row stay in registers, the others in ring buffers of
// single warps in shared memory, where the chunks of the next row follow them
// (ir.Schedule.RegisterChunks). There is one block on a multiprocessor.
const (
	chunkThreads   = 512
	chunkVectors   = 4   // most vectors of a thread in a chunk
	chunkRegisters = 56  // of a thread, for the chunks that it keeps and the one that it works on
	chunkBarrier   = 8   // bytes of shared memory for each place of a ring
	chunkReserve   = 512 // bytes of a block for everything but rings and exchanged results
	inHand         = 16  // most registers of a thread for the chunk that it works on
)

// leastStages is the places that a ring needs, so that one chunk arrives while another is worked
// on.
const leastStages = 2

// chunkClusters are the candidates: the numbers of blocks that share a row.
var chunkClusters = []int{1, 2, 4, 8}

// chunkSchedule is the schedule of a candidate, and the longest row that it takes. A block's share of
// that row fits the ring, so for each chunk in registers the ring has a free place for the next row.
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
			continue // many tensors leave too few places
		}
		v.Schedule = schedule
		v.When = algebra.And(ir.Apply(ir.OpLe, length, ir.IntConst(int64(longest))), h.needs)
		out = append(out, &v)
	}
	return out
}
