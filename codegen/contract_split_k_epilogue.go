package codegen

import (
	"fmt"
	"slices"

	"github.com/fusec/fusec/ir"
)

// The epilogue of small tiles: the sums go through shared memory, and threads store neighbours.

// epilogueSide is one side of a tile of sums: its name, its ranges, and its places in the tile.
type epilogueSide struct {
	name   string
	ranges []*ir.Range
	tile   int
}

// tileEpilogue writes the epilogue, VECTOR neighbours of a result at a time.
func (e *contractSplitK) tileEpilogue(c *ir.Contract) {
	e.epilogueLane(c)
	alongN := e.lane == nil || slices.Contains(c.N, e.lane)
	f, row, parts := productFold(e.v), e.v.Sections[1], max(1, e.v.Schedule.Cluster)
	e.line("using Sums = SumTile<Total, %t>;", alongN)
	if e.v.Schedule.Run == 0 {
		e.line("Sums *const sums = reinterpret_cast<Sums *>(tiles);")
		for i := range c.B {
			if i > 0 {
				e.line("Sums *const %s = sums + %d;", ofFold("sums", i), i)
			}
			e.line("%s.each([&](int m, int n, Total x) { %s->put(m, n, x); });", ofFold("parts", i), ofFold("sums", i))
		}
	}
	switch {
	case e.splits():
		e.line("cluster_arrive();")
		e.line("cluster_wait();")
	case c.Slices != nil:
		sums, count := "sums->at[0]", "sizeof(Sums) / sizeof(Total)"
		if e.v.Schedule.Run > 0 {
			sums, count = "totals", "TILE_M * TILE_N"
		}
		e.line("if (!add_slices<%s>(%s, reinterpret_cast<Total *>(%s), %s, block, slice, slices)) return;", count, sums, e.workspace, e.counters)
	default:
		e.line("__syncthreads();")
	}
	if c.Symmetric {
		e.line("const INDEX straight_m = origin_m, straight_n = origin_n;")
		e.line("#pragma unroll 1")
		e.open("for (int mirrored = 0; mirrored < (straight_m == straight_n ? 1 : 2); ++mirrored)")
		e.line("const INDEX origin_m = mirrored ? straight_n : straight_m, origin_n = mirrored ? straight_m : straight_n;")
	}
	part := ""
	if e.splits() {
		part = "(turn * CLUSTER + split)"
	} else {
		part = "turn"
	}
	along, across := epilogueSide{"n", c.N, e.v.Schedule.TileN}, epilogueSide{"m", c.M, e.v.Schedule.TileM}
	if !alongN {
		along, across = across, along
	}
	// If one turn of all threads covers whole lines, a thread keeps its place along the lines.
	steady := len(along.ranges) > 1 && e.v.Schedule.Threads%(along.tile/max(1, e.v.Schedule.Vector)) == 0
	e.line("constexpr int CHUNKS = TILE_M * TILE_N / VECTOR, TURN = THREADS * %d;", parts)
	if steady {
		e.line("const int sum_at = threadIdx.x %% (Sums::WIDTH / VECTOR) * VECTOR;")
		e.line("const INDEX at_%s = origin_%s + sum_at;", along.name, along.name)
		e.sumPlace(along.ranges, "at_"+along.name, row)
	}
	e.line("#pragma unroll 2")
	e.open("for (int turn = 0; turn < (CHUNKS + TURN - 1) / TURN; ++turn)")
	e.line("const int chunk = %s * THREADS + threadIdx.x;", part)
	e.line("if (CHUNKS %% TURN != 0 && chunk >= CHUNKS) break;")
	e.line("const int sum_line = chunk / (Sums::WIDTH / VECTOR);")
	e.line("const INDEX at_%s = origin_%s + sum_line;", across.name, across.name)
	if !steady {
		e.line("const int sum_at = chunk %% (Sums::WIDTH / VECTOR) * VECTOR;")
		e.line("const INDEX at_%s = origin_%s + sum_at;", along.name, along.name)
	}
	e.line("if (at_m >= extent_m || at_n >= extent_n) continue;")
	e.line("Total total[VECTOR];")
	e.totalOf(c, alongN)
	for i, f := range e.v.Sections[0].Folds[1:] {
		name := ofFold("total", i+1)
		e.line("Total %s[VECTOR];", name)
		e.line("add_splits<1>(%s, &%s->at[sum_line][sum_at]);", name, ofFold("sums", i+1))
		if e.place[f.Result] = name + "[v]"; e.lane == nil {
			e.place[f.Result] = name + "[0]"
		}
	}
	e.sumPlace(across.ranges, "at_"+across.name, row)
	if !steady {
		e.sumPlace(along.ranges, "at_"+along.name, row)
	}
	e.storeSums(f, row)
	e.close()
	if c.Symmetric {
		e.close()
	}
	if e.splits() {
		e.line("cluster_arrive(); // no block leaves while another reads its sums")
		e.line("cluster_wait();")
	}
}

// totalOf writes how neighbouring results get their sums. The mirrored tile's are those of the transposed one.
func (e *contractSplitK) totalOf(c *ir.Contract, alongN bool) {
	parts := max(1, e.v.Schedule.Cluster)
	straight, mirrored := fmt.Sprintf("add_splits<%d>(total, &sums->at[sum_line][sum_at]);", parts), "for (int v = 0; v < VECTOR; ++v) total[v] = sums->at[sum_at + v][sum_line];"
	if e.v.Schedule.Run > 0 {
		totals := func(alongN bool) string {
			if alongN {
				return fmt.Sprintf("add_totals<%d, true, Parts>(total, totals, sum_line, sum_at);", parts)
			}
			return fmt.Sprintf("add_totals<%d, false, Parts>(total, totals, sum_at, sum_line);", parts)
		}
		straight, mirrored = totals(alongN), totals(!alongN)
	}
	if !c.Symmetric {
		e.line("%s", straight)
		return
	}
	e.open("if (mirrored)")
	e.line("%s", mirrored)
	e.close()
	e.open("else")
	e.line("%s", straight)
	e.close()
}
