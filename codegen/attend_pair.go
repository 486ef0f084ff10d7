package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// pairWarpgroupLoop writes the loop over the keys for two sums whose accumulators leave registers for the scores of one
// tile, or for weights, and not for both. So the next scores are multiplied when the weights are free. One warpgroup
// multiplies while the other one computes weights.
func (e *attendEmitter) pairWarpgroupLoop(a *ir.Attend) {
	e.warpgroupRows(a)
	e.b.WriteString(`            auto multiply_scores = [&] {
                wgmma_fence();
#pragma unroll
                for (int product = 0; product < PRODUCTS; ++product)
                    scores_start<Half>(s[product], own_queries + product * QUERY_BYTES, keys + stage * STAGE_BYTES + product * KEY_BYTES);
                wgmma_wait<0>();
#pragma unroll
                for (int product = 0; product < PRODUCTS; ++product) wgmma_hold(s[product]);
            };
            barrier_wait(query_here, 0);
            barrier_wait(key_here, 0);
            multiply_scores();
            INDEX key = tile * TILE_N;
            for (tile = next(tile + 1); tile * TILE_N < extent_n; tile = next(tile + 1)) {
`)
	e.indent += 2
	e.pairValues(a)
	e.b.WriteString(`                const int used = stage;
                key = tile * TILE_N;
                if (++stage == STAGES) stage = 0, phase ^= 1;
                barrier_wait(key_here + 8 * stage, phase);
`)
	e.waitValues(a)
	e.line("if (lane == 0) barrier_arrive(key_free + 8 * used);")
	e.b.WriteString(`                multiply_scores();
            }
`)
	e.indent--
	e.pairValues(a)
	e.waitValues(a)
	e.close()
}

// pairValues writes the step from the scores of a tile to the start of the products with its values. Scores become
// operands two at a time, so that registers hold no weights beside them.
func (e *attendEmitter) pairValues(a *ir.Attend) {
	e.findBrought(a)
	body := func(name, inside string) {
		e.line("#pragma unroll")
		e.open("for (int i = 0; i < OWN_N / 2; i += 2)")
		e.line("[[maybe_unused]] const INDEX at = key + i / 4 * 8 + lane %% 4 * 2;")
		e.line("const Weights w = %s;", fmt.Sprintf(inside, "at", weightCall(a, name, "i", "at")))
		e.line("const Weights x = %s;", fmt.Sprintf(inside, "at + 1", weightCall(a, name, "i + 1", "at + 1")))
		e.line("weights[i / 2] = pack(w.first, x.first, Half{});")
		e.line("also_weights[i / 2] = pack(w.also, x.also, Half{});")
		e.close()
	}
	e.wholeOrPart(a, func(name string) { body(name, "%[2]s") }, func(name string) { body(name, "%s < extent_n ? %s : Weights{0.0f, 0.0f}") })
	e.line("wgmma_fence();")
	e.startValues(a, "stage")
}
