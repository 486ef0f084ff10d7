package codegen

import (
	"fmt"
	"strings"

	"github.com/fusec/fusec/codegen/spell"
	"github.com/fusec/fusec/ir"
)

// What a mask leaves of a tile of scores, and the logits and weights that are computed from the scores.

// tileTests writes tests of a tile of keys, given where it starts: whether the mask leaves anything of it,
// and whether it leaves all of it.
func (e *attendEmitter) tileTests(a *ir.Attend) {
	any, all := "true", "false"
	if a.Skip.Any != nil {
		any = e.s.Bare(a.Skip.Any)
	}
	if a.Skip.All != nil {
		all = e.s.Bare(a.Skip.All)
	}
	query, key := spell.Identifier(a.Skip.Query), spell.Identifier(a.Skip.Key)
	e.line("[[maybe_unused]] const INDEX %s = origin_m;", query)
	e.line("auto visible = [&]([[maybe_unused]] INDEX %s) { return %s; };", key, any)
	if a.Skip.Table {
		e.tileTable(a, key, all)
		return
	}
	e.line("[[maybe_unused]] auto whole = [&]([[maybe_unused]] INDEX %s) { return %s; };", key, all)
	if len(a.Outer) > 0 {
		e.line("auto next = [&](INDEX tile) {")
		e.line("    for (;; tile = 0, ++outer) {")
		e.line("        while (tile * TILE_N < extent_n && !visible(tile * TILE_N)) ++tile;")
		e.line("        if (tile * TILE_N < extent_n || outer + 1 >= outers) return tile;")
		e.line("    }")
		e.line("};")
		return
	}
	e.line("auto next = [&](INDEX tile) {")
	e.line("    while (tile * TILE_N < extent_n && !visible(tile * TILE_N)) ++tile;")
	e.line("    return tile;")
	e.line("};")
}

// tileTable writes these tests if they read memory: the threads of the block compute them into a table
// together, and then wait for each other.
func (e *attendEmitter) tileTable(a *ir.Attend, key, all string) {
	e.line("const INDEX tiles_n = (extent_n + TILE_N - 1) / TILE_N;")
	e.line("__shared__ TileTable table;")
	e.line("TileTable::fill(table.visible, 0, tiles_n, false, visible);")
	e.line("TileTable::fill(table.whole, 1, tiles_n, true, [&]([[maybe_unused]] INDEX %s) { return %s; });", key, all)
	e.line("[[maybe_unused]] auto whole = [&](INDEX key) { return TileTable::at(table.whole, key, tiles_n); };")
	if a.Skip.Settled != nil {
		e.line("TileTable::fill(table.settled, 2, tiles_n, true, [&]([[maybe_unused]] INDEX %s) { return %s; });", key,
			e.s.Bare(a.Skip.Settled))
		e.line("auto settled = [&](INDEX key) { return TileTable::at(table.settled, key, tiles_n); };")
	}
	e.line("auto next = [&](INDEX tile) { return table.next(tile, tiles_n); };")
}

// logits writes the functions from a score to its logit, with and without the part of the mask that tile
// tests decide, and the factor by which a weight multiplies its exponential.
func (e *attendEmitter) logits(a *ir.Attend) {
	if a.Skip.Table {
		e.pointFunction("bool", "kept_at", a, a.Skip.Kept)
		if a.Skip.Settled != nil {
			e.pointFunction("bool", "placed_at", a, a.Skip.Placed)
		}
	} else {
		e.pointFunction("float", "logit", a, a.Max.Body)
	}
	if a.Skip.All != nil {
		e.pointFunction("float", "logit_whole", a, a.Skip.Clear)
	}
	if a.Weight != nil {
		e.pointFunction("float", "factor_of", a, a.Weight)
	}
}

// pointFunction writes a function of a score, its query and its key, that returns one number for each expression.
func (e *attendEmitter) pointFunction(result, name string, a *ir.Attend, xs ...*ir.Expr) {
	scores, given := "", map[*ir.Local]bool{}
	for i, p := range a.Products() {
		e.place[p.Score], given[p.Score] = scoreName(i), true
		scores += fmt.Sprintf("[[maybe_unused]] float %s, ", scoreName(i))
	}
	for i, l := range a.Numbers() {
		e.place[l], given[l] = fmt.Sprintf("number_%d", i), true
		scores += fmt.Sprintf("[[maybe_unused]] float number_%d, ", i)
	}
	e.open("auto %s = [&](%s[[maybe_unused]] INDEX at_m, [[maybe_unused]] INDEX at_n)", name, scores)
	var locals []*ir.Local
	for _, l := range e.operandLocals(xs...) {
		if !given[l] {
			locals = append(locals, l)
		}
	}
	uses := append(definitions(locals), xs...)
	e.take(a.M, "at_m", uses...)
	e.take(a.Keys(e.k), "at_n", uses...)
	e.take(a.Outer, "key_outer", uses...)
	for _, l := range locals {
		e.constant(l)
	}
	e.s.Eager = true // a branch for each score costs more than computing both sides
	if len(xs) == 1 {
		e.line("return (%s)(%s);", result, e.s.Bare(xs[0]))
	} else {
		var values []string
		for _, x := range xs {
			values = append(values, e.s.Expr(x))
		}
		e.line("return %s{%s};", result, strings.Join(values, ", "))
	}
	e.s.Eager = false
	for _, l := range append(locals, a.Numbers()...) {
		delete(e.place, l)
	}
	e.closeWith(";")
}

// scoreName is the name of the score of a product in the text.
func scoreName(i int) string {
	if i == 0 {
		return "score"
	}
	return fmt.Sprintf("score_%d", i)
}

// keep writes which of a thread's scores from key on the mask keeps, if that does not depend on the
// scores: all of them, those whose positions meet the mask, or those with a bit in the table.
func (e *attendEmitter) keep(a *ir.Attend, tile, key string) {
	if !a.Skip.Table {
		return
	}
	placed := "false"
	if a.Skip.Settled != nil {
		placed = fmt.Sprintf("inside && !all && settled(%s)", tile)
	}
	e.line("const bool inside = %[1]s + TILE_N <= extent_n, all = inside && whole(%[1]s);", tile)
	e.line("const bool placed = %s;", placed)
	e.line("Kept kept;")
	e.line("if (!all && !placed && inside) kept.fill<false>(%s, row, extent_n, kept_at);", key)
	e.line("if (!inside) kept.fill<true>(%s, row, extent_n, kept_at);", key)
}

// tileLogits writes the step from the scores that a warp has from key on to logits; keys outside get -inf.
func (e *attendEmitter) tileLogits(a *ir.Attend, tile, key string) {
	body := func(value string) {
		e.eachScore(key, func() { e.line("s[i] = %s;", value) })
	}
	whole := "logit_whole(s[i], row[i / 2 % 2], at)"
	if a.Skip.Table {
		body(whole)
		if a.Skip.Settled != nil {
			e.open("if (placed)")
			body("placed_at(0.0f, row[i / 2 % 2], at) ? s[i] : -infinity()")
			e.close()
		}
		e.open("if (!all && !placed)")
		body("kept.at(i) ? s[i] : -infinity()")
		e.close()
		return
	}
	inside, plain := tile+" + TILE_N <= extent_n", "logit(s[i], row[i / 2 % 2], at)"
	if a.Skip.All != nil {
		inside += " && whole(" + tile + ")"
		plain = whole
	}
	e.open("if (%s)", inside)
	body(plain)
	e.orElse()
	body("at < extent_n ? logit(s[i], row[i / 2 % 2], at) : -infinity()")
	e.close()
}

// tileFactors writes the factors of weights, which are applied after the weights are summed.
func (e *attendEmitter) tileFactors(a *ir.Attend, key string) {
	if a.Weight != nil {
		e.eachScore(key, func() { e.line("if (at < extent_n) s[i] *= factor_of(0.0f, row[i / 2 %% 2], at);") })
	}
}

// eachScore writes a loop over the scores of a tile that a thread holds.
func (e *attendEmitter) eachScore(key string, body func()) {
	e.line("#pragma unroll")
	e.open("for (int i = 0; i < OWN_N / 2; ++i)")
	e.line("[[maybe_unused]] const INDEX at = %s + i / 4 * 8 + lane %% 4 * 2 + i %% 2;", key)
	body()
	e.close()
}
