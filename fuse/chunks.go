package fuse

import "github.com/fusec/fusec/ir"

// chunkRung is a rung of rows in chunks: some of a row's chunks stay in registers, the others
// in the rings of its warps, with those of the next row behind them (ir.Schedule.Held).
type chunkRung struct {
	threads, cluster int
	blocks           int // of a multiprocessor, which share its registers and shared memory
	vectors          int // of a thread in a chunk
	registers        int // of a thread, for the chunks that it holds and the one in hand
}

// Figures of rows in chunks.
const (
	chunkBarrier = 8   // bytes of shared memory for each place of a ring
	chunkReserve = 512 // and of a block for all else, beside what it exchanges
	chunkTicket  = 4   // and what a warp gives along with the folds
	inHand       = 16  // registers of a thread for what is read of a chunk
)

// leastStages is the places that a ring needs for one chunk to arrive while another is worked on.
const leastStages = 2

// The rungs, by clusters.
var chunkRungs = []chunkRung{{512, 1, 1, 4, 56}, {512, 2, 1, 4, 56}, {512, 4, 1, 4, 56}, {512, 8, 1, 4, 56}}

// schedule is the rung's for a kernel's rows, and the longest row that it takes: one of which the
// ring has room for a block's share, so that what registers hold is places for the next row.
func (r chunkRung) schedule(h *heldAhead, d ir.Device, vector, exchanged int) (ir.Schedule, int) {
	warps := r.threads / 32
	chunk := r.vectors * 32 * vector // columns
	room := (d.SharedBlock+blockReserve)/r.blocks - blockReserve - chunkReserve - (exchanged+chunkTicket)*2*warps*r.cluster
	s := ir.Schedule{Mapping: ir.RowMapping, Threads: r.threads, RowThreads: r.threads, Vector: vector, Unroll: r.vectors, MinBlocks: r.blocks}
	s.Held = max(0, int(float64(r.registers)/(h.words*float64(r.vectors*vector)))-1)
	s.Stages = room / (warps * (chunk*h.bytes + chunkBarrier))
	s.Shared = warps * s.Stages * chunk * h.bytes
	if r.cluster > 1 {
		s.Cluster = r.cluster
	}
	return s, min(s.Stages, s.Stages+s.Held-1) * warps * r.cluster * chunk
}

// chunkVariants are the variants of these rungs.
func (lo *lowering) chunkVariants(h *heldAhead, sections []*ir.Section, vector int, length *ir.Expr) []*ir.Variant {
	var out []*ir.Variant
	words := lo.rowWords(sections)
	for _, r := range chunkRungs {
		for r.vectors > 1 && words*float64(r.vectors*vector) > inHand {
			r.vectors /= 2
		}
		v := *h.body
		schedule, longest := r.schedule(h, lo.f.opts.Device, vector, lo.exchanged())
		if schedule.Stages < leastStages {
			continue // of many tensors
		}
		v.Schedule = schedule
		v.When = and(ir.Apply(ir.OpLe, length, ir.IntConst(int64(longest))), h.needs)
		out = append(out, &v)
	}
	return out
}
