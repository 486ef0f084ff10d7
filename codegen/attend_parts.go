package codegen

import (
	"github.com/fusec/fusec/ir"
)

// Operands of f32 pass through registers, where each element becomes a sum of bf16. The elements of the next
// stage are read while the current one is multiplied, and stored after that.

// partPanels writes the panels of f32 operands and the functions that fill them.
func (e *attendEmitter) partPanels(a *ir.Attend) {
	e.line("using Queries = PartPanel<TILE_M, TILE_K>;")
	e.line("using Keys = PartPanel<TILE_N, TILE_K>;")
	e.line("using Values = PartPanel<TILE_N, TILE_V>;")
	e.placePanels()
	e.line("constexpr int QUERY_CHUNKS = (Queries::LINES * Queries::PER_LINE + THREADS - 1) / THREADS;")
	e.line("constexpr int KEY_CHUNKS = (Keys::LINES * Keys::PER_LINE + THREADS - 1) / THREADS;")
	e.line("constexpr int VALUE_CHUNKS = (Values::LINES * Values::PER_LINE + THREADS - 1) / THREADS;")
	for i, p := range e.panelsOf(a) {
		e.readPart(p, [...]string{"QUERY_CHUNKS", "KEY_CHUNKS", "VALUE_CHUNKS"}[i])
	}
}

// readPart writes a function that reads a thread's chunks of a panel into registers, with zeros where these are
// outside, and one that stores them.
func (e *attendEmitter) readPart(p panel, chunks string) {
	e.open("auto read_%s = [&](float (&to)[%s][8], INDEX origin)", p.name, chunks)
	e.line("#pragma unroll")
	e.open("for (int c = 0; c < %s; ++c)", chunks)
	e.chunkPlace(p)
	if p.o.Wide {
		read, tensor, offset := e.wideRead(p)
		if offset != "" {
			tensor += " + " + offset
		}
		e.line("Vec<float, 4> low{}, high{};")
		e.open("if (inside)")
		e.noted(read.Span, "low = *reinterpret_cast<const Vec<float, 4> *>(%s);", tensor)
		e.noted(read.Span, "high = *reinterpret_cast<const Vec<float, 4> *>(%s + 4);", tensor)
		e.close()
		e.line("#pragma unroll")
		e.line("for (int v = 0; v < 4; ++v) to[c][v] = low.v[v], to[c][v + 4] = high.v[v];")
	} else {
		e.line("#pragma unroll")
		e.open("for (int v = 0; v < 8; ++v)")
		e.panelElement(p, "", "to[c][v]")
		e.close()
	}
	e.close()
	e.closeWith(";")
	e.open("auto store_%s = [&](%s &panel, const float (&from)[%s][8])", p.name, p.class, chunks)
	e.line("#pragma unroll")
	e.open("for (int c = 0; c < %s; ++c)", chunks)
	e.chunkPlace(p)
	e.line("panel.store(line, column, from[c]);")
	e.close()
	e.closeWith(";")
}

// chunkPlace writes the line and the columns of a panel that the c-th chunk of a thread is. Neighbouring
// threads read neighbours in memory.
func (e *attendEmitter) chunkPlace(p panel) {
	e.line("constexpr int ROWS = %[1]s::LINES, PER_ROW = %[1]s::PER_LINE;", p.class)
	e.line("const int chunk = c * THREADS + threadIdx.x;")
	e.placeInPanel(p)
}

// partLoop writes the loop over the keys. Tensor cores truncate sums at the last bit, which over many tiles would
// lose precision against f32. So the sums of each tile are added to the totals by threads.
func (e *attendEmitter) partLoop(a *ir.Attend) {
	e.line("constexpr bool FACTORS = %t; // of weights, beside the exponentials", a.Weight != nil)
	e.b.WriteString(`    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_m = warp % WARPS_M * 16, warp_n = warp / WARPS_M * OWN_N;
    const INDEX row[2] = {min(origin_m + warp_m + lane / 4, extent_m - 1),
                          min(origin_m + warp_m + lane / 4 + 8, extent_m - 1)};
    Stream stream;
    float acc[TILE_V / 2] = {};
    float next_keys[KEY_CHUNKS][8], next_values[VALUE_CHUNKS][8];
    INDEX tile = next(0);
    {
        float some[QUERY_CHUNKS][8];
        read_queries(some, origin_m);
        store_queries(queries, some);
    }
    if (tile * TILE_N < extent_n) {
        read_keys(next_keys, tile * TILE_N);
        read_values(next_values, tile * TILE_N);
        store_keys(keys[0], next_keys);
        store_values(values[0], next_values);
    }
    for (int stage = 0; tile * TILE_N < extent_n; stage ^= 1) {
        const INDEX key = tile * TILE_N, next_tile = next(tile + 1);
        const bool more = next_tile * TILE_N < extent_n;
        __syncthreads(); // the keys are here, and everyone is done with those before
        if (more) read_keys(next_keys, next_tile * TILE_N);
        float s[OWN_N / 2] = {};
#pragma unroll 1
        for (int k = 0; k < TILE_K; k += 16) {
            unsigned q[PARTS][4], finite_q[4];
            queries.left(q, warp_m, k);
            finite_parts(finite_q, q);
#pragma unroll
            for (int j = 0; j < OWN_N / 8; j += 2) {
                unsigned b[PARTS][4];
                keys[stage].right(b, warp_n + 8 * j, k);
                multiply_parts(fragment(s, j), q, finite_q, b, 0);
                multiply_parts(fragment(s, j + 1), q, finite_q, b, 2);
            }
        }
        if (more) store_keys(keys[stage ^ 1], next_keys);
`)
	e.tileWeights(a)
	e.b.WriteString(`        __syncthreads(); // the values are here, and everyone is done with those before
        unsigned w[OWN_N / 16][PARTS][4];
#pragma unroll
        for (int k = 0; k < OWN_N / 16; ++k) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                unsigned parts[PARTS];
                split(parts, s[8 * k + 2 * i], s[8 * k + 2 * i + 1]);
#pragma unroll
                for (int p = 0; p < PARTS; ++p) w[k][p][i] = parts[p];
            }
        }
        if (more) read_values(next_values, next_tile * TILE_N);
#pragma unroll
        for (int j = 0; j < TILE_V / 8; j += 2) {
            float sums[8] = {};
#pragma unroll
            for (int k = 0; k < OWN_N / 16; ++k) {
                unsigned b[PARTS][4];
                values[stage].right_across(b, 8 * j, warp_n + 16 * k);
                unsigned finite_w[4] = {w[k][0][0], w[k][0][1], w[k][0][2], w[k][0][3]};
                if constexpr (FACTORS) finite_parts(finite_w, w[k]); // exponentials alone are at most 1, or NaN as the sum will be
                multiply_parts(fragment(sums, 0), w[k], finite_w, b, 0);
                multiply_parts(fragment(sums, 1), w[k], finite_w, b, 2);
            }
#pragma unroll
            for (int i = 0; i < 8; ++i) acc[4 * j + i] += sums[i];
        }
        if (more) store_values(values[stage ^ 1], next_values);
        tile = next_tile;
    }
    stream.finish();
    if constexpr (WARPS_N > 1) {
        merge_warps(stream, acc, SCALE, reinterpret_cast<float *>(tiles));
        if (warp_n > 0) return;
    }
`)
}
