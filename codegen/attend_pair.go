package codegen

import (
	"fmt"

	"github.com/fusec/fusec/ir"
)

// pairWarpgroupLoop writes the loop over the keys for two sums. Their accumulators leave registers for the scores of
// one tile or for weights, but not for both. So the products for the next scores start when the weights are free. One
// warpgroup multiplies while the other one computes weights.
func (e *attendEmitter) pairWarpgroupLoop(a *ir.Attend) {
	e.warpgroupRows(a)
	multiply := func() {
		e.line("start_scores();")
		e.line("wgmma_wait<0>();")
		e.line("finish_scores();")
	}
	multiply()
	e.line("INDEX key = tile * TILE_N;")
	e.keyOuter(a)
	e.open("for (tile = next(tile + 1); tile * TILE_N < extent_n; tile = next(tile + 1))")
	e.pairValues(a)
	e.nextStage(a)
	e.waitValues(a)
	e.line("if (lane == 0) barrier_arrive(key_free + 8 * used);")
	multiply()
	e.close()
	e.pairValues(a)
	e.waitValues(a)
	e.lastStage(a)
	e.close()
}

// pairValues writes the step from the scores of a tile to the start of the products with its values. Scores become
// operands two at a time, so that registers hold no weights beside them.
func (e *attendEmitter) pairValues(a *ir.Attend) {
	body := func(name, inside string) {
		e.eachOfKeys(a, 2, func() {
			e.line("const Weights w = %s;", fmt.Sprintf(inside, "at", weightCall(a, name, "i", "at")))
			e.line("const Weights x = %s;", fmt.Sprintf(inside, "at + 1", weightCall(a, name, "(i + 1)", "at + 1")))
			e.line("weights[i / 2] = pack(w.first, x.first, Half{});")
			e.line("also_weights[i / 2] = pack(w.also, x.also, Half{});")
		})
	}
	e.wholeOrPart(a, func(name string) { body(name, "%[2]s") }, func(name string) { body(name, "%s < extent_n ? %s : Weights{0.0f, 0.0f}") })
	e.line("wgmma_fence();")
	e.startValues(a, "stage")
}
