package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// Chained contractions: a tile of queries goes through all keys, as in attention. The weights are a function of the
// scores of one or more products, and there is no running maximum.

// chainKernel writes a kernel whose weights are made of products. A warp has 16 queries. It multiplies them by all
// keys of a stage, for each product, makes weights of the scores in registers, and multiplies the weights by the
// values. All tiles of a stage are copied while those of the one before it are multiplied.
func (e *attendEmitter) chainKernel() {
	a := e.v.Attend
	e.attendShape(a)
	for i, p := range a.Others {
		e.line("[[maybe_unused]] const int extent_depth_%d = %s;", i+1, e.size(p.Depth))
	}
	e.attendPosition(a)
	e.line("extern __shared__ __align__(16) unsigned char tiles[];")
	e.line("using Queries = %s;", e.chainPanel("TILE_M", e.v.Schedule.TileM, a, a.Q))
	e.line("using Keys = %s;", e.chainPanel("TILE_N", e.v.Schedule.TileN, a, a.K))
	e.productCount(a)
	e.line("Queries *const queries = reinterpret_cast<Queries *>(tiles);")
	e.line("Keys *const keys = reinterpret_cast<Keys *>(tiles + PRODUCTS * sizeof(Queries)); // two stages, of each product a tile")
	for i, p := range a.Products() {
		depth := chained("depth", i)
		e.fetchPanel(panel{chained("queries", i), "Queries", "m", depth, a.M, p.Depth, p.Q})
		e.fetchPanel(panel{chained("keys", i), "Keys", "n", depth, e.k.Cols, p.Depth, p.K})
	}
	if a.ValueIn == 0 {
		e.line("using Values = Panel<Half, TILE_N, TILE_V>;")
		e.line("Values *const values = reinterpret_cast<Values *>(tiles + PRODUCTS * (sizeof(Queries) + 2 * sizeof(Keys)));")
		e.fetchPanel(panel{"values", "Values", "n", "width", e.k.Cols, a.N, a.V})
	}
	e.tileTests(a)
	e.weightFunctions(a)
	e.chainLoop(a)
	e.attendEpilogue(a)
}

// chainPanel is the type of a panel of queries or keys.
func (e *attendEmitter) chainPanel(rows string, n int, a *ir.Attend, o ir.Operand) string {
	if o.Band == nil {
		return fmt.Sprintf("Panel<Half, %s, TILE_K>", rows)
	}
	depth := product(extents(a.Depth)).Int
	return fmt.Sprintf("BandPanel<Half, %s, TILE_K, %d, %d, %d, %d>", rows, depth, o.Band.Pitch, o.Band.Skip, bandLength(o, n, e.v.Schedule.TileK))
}

// fetchBand writes a function that copies a panel which is a run of memory.
func (e *attendEmitter) fetchBand(p panel) {
	read := e.operandRead(p.o.Value)
	e.open("auto fetch_%s = [&](%s &panel, INDEX origin)", p.name, p.class)
	e.line("const INDEX none = 0;")
	e.take(p.rows, "origin", read.Args[0])
	e.take(p.lanes, "none", read.Args[0])
	e.line("const int band = %d + ((int)min(extent_%[2]s - origin, (INDEX)%[3]s::LINES) - 1) * %[4]d + extent_%[5]s;", p.o.Band.Skip, p.row, p.class, p.o.Band.Pitch, p.lane)
	e.noted(read.Span, "panel.copy(%s + (%s - %d), band);", e.args[read.Arg], e.s.Expr(read.Args[0]), p.o.Band.Skip)
	e.closeWith(";")
}

// productCount writes how many products there are, and how many arrays hold their scores. For two sums there are
// at least two arrays, because the weights of each replace the scores in one.
func (e *attendEmitter) productCount(a *ir.Attend) {
	products := len(a.Products())
	e.line("constexpr int PRODUCTS = %d;", products)
	if a.Also != nil {
		e.line("constexpr int SCORES = %d;", max(products, 2))
	}
}

// alsoSums writes the accumulators of a second sum.
func (e *attendEmitter) alsoSums(a *ir.Attend) {
	if a.Also != nil {
		e.line("float also[TILE_V / 2] = {};")
	}
}

// weightFunctions writes the functions from scores to a weight, with and without the mask that tile tests decide.
func (e *attendEmitter) weightFunctions(a *ir.Attend) {
	result, weights, clear := "float", []*ir.Expr{a.Weight}, []*ir.Expr{a.Skip.Clear}
	if a.Also != nil { // one function for both weights, so that common parts are computed once
		e.line("struct Weights { float first, also; };")
		result, weights, clear = "Weights", append(weights, a.Also.Weight), append(clear, a.Also.Clear)
	}
	e.pointFunction(result, "weight_of", a, weights...)
	if a.Skip.All != nil {
		e.pointFunction(result, "weight_whole", a, clear...)
	}
}

// chained is a name with the number of a product.
func chained(name string, product int) string {
	if product == 0 {
		return name
	}
	return fmt.Sprintf("%s_%d", name, product)
}

// chainLoop writes the loop over the keys.
func (e *attendEmitter) chainLoop(a *ir.Attend) {
	e.open("auto fetch_stage = [&](int stage, INDEX key)")
	for i := range a.Products() {
		e.line("fetch_%s(keys[stage * PRODUCTS + %d], key);", chained("keys", i), i)
	}
	if a.ValueIn == 0 {
		e.line("fetch_values(values[stage], key);")
	}
	e.closeWith(";")
	e.b.WriteString(`    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int warp_m = warp * 16;
    const INDEX row[2] = {min(origin_m + warp_m + lane / 4, extent_m - 1),
                          min(origin_m + warp_m + lane / 4 + 8, extent_m - 1)};
    float acc[TILE_V / 2] = {};
    INDEX tile = next(0);
`)
	e.ofQuery(a)
	e.alsoSums(a)
	for i := range a.Products() {
		e.line("fetch_%s(queries[%d], origin_m);", chained("queries", i), i)
	}
	e.b.WriteString(`    if (tile * TILE_N < extent_n) fetch_stage(0, tile * TILE_N);
    copies_commit();
    for (int stage = 0; tile * TILE_N < extent_n; stage ^= 1) {
        const INDEX key = tile * TILE_N, next_tile = next(tile + 1);
        copies_wait<0>();
        __syncthreads(); // the tiles are here, and everyone is done with those before
        if (next_tile * TILE_N < extent_n) fetch_stage(stage ^ 1, next_tile * TILE_N);
        copies_commit();
`)
	if a.Also == nil {
		e.b.WriteString("        float s[PRODUCTS][TILE_N / 2] = {};\n")
	} else {
		e.b.WriteString("        float s[SCORES][TILE_N / 2] = {};\n")
	}
	e.b.WriteString(`#pragma unroll
        for (int product = 0; product < PRODUCTS; ++product)
            scores_of<Half>(s[product], queries[product], keys[stage * PRODUCTS + product], warp_m);
`)
	e.indent++
	e.chainWeights(a)
	if a.ValueIn == 0 {
		e.line("add_weighted<Half>(acc, s[0], values[stage]);")
	} else {
		e.line("add_weighted<Half>(acc, s[0], keys[stage * PRODUCTS + %d]);", a.ValueIn-1)
	}
	if a.Also != nil {
		e.line("add_weighted<Half>(also, s[1], keys[stage * PRODUCTS + %d]);", a.Also.ValueIn-1)
	}
	e.line("tile = next_tile;")
	e.close()
}

// ofQuery writes the numbers of a thread's two queries.
func (e *attendEmitter) ofQuery(a *ir.Attend) {
	for i := range a.OfQuery {
		e.line("float of_query_%d[2];", i)
	}
	if len(a.OfQuery) == 0 {
		return
	}
	e.line("#pragma unroll")
	e.open("for (int turn = 0; turn < 2; ++turn)")
	e.line("const INDEX at_m = row[turn];")
	e.take(a.M, "at_m", definitions(a.OfQuery)...)
	for i, l := range a.OfQuery {
		e.noted(l.Span, "of_query_%d[turn] = %s;", i, e.s.Bare(l.Def))
	}
	e.close()
}

// weightCall is a call of a function from the i-th scores of a thread, those of a key, to weights.
func weightCall(a *ir.Attend, name, i, at string) string {
	scores := ""
	for p := range a.Products() {
		scores += fmt.Sprintf("s[%d][%s], ", p, i)
	}
	for n := range a.Brought {
		scores += fmt.Sprintf("numbers.of[%d][%s %% 2], ", n, i)
	}
	for n := range a.OfQuery {
		scores += fmt.Sprintf("of_query_%d[%s / 2 %% 2], ", n, i)
	}
	return fmt.Sprintf("%s(%srow[%s / 2 %% 2], %s)", name, scores, i, at)
}

// eachOfKeys writes the reads of the numbers that were brought for keys, and then a loop over a thread's scores, step
// at a time.
func (e *attendEmitter) eachOfKeys(a *ir.Attend, step int, body func()) {
	loop := func(from, below string, step int) {
		e.line("#pragma unroll")
		e.open("for (int %[1]s; i < %[2]s; i += %[3]d)", from, below, step)
	}
	if len(a.Brought) == 0 {
		loop("i = 0", "OWN_N / 2", step)
	} else {
		e.line("#pragma unroll")
		e.open("for (int first = 0; first < OWN_N / 2; first += 4)")
		e.line("const Brought numbers = brought[stage][first + lane %% 4];")
		loop("i = first", "first + 4", step)
	}
	e.line("[[maybe_unused]] const INDEX at = key + i / 4 * 8 + lane %% 4 * 2 + i %% 2;")
	body()
	e.close()
	if len(a.Brought) > 0 {
		e.close()
	}
}

// chainWeights writes the step from the scores of a tile to weights, which replace the scores of the first product;
// those of a second sum replace the scores of the second. Keys outside get 0.
func (e *attendEmitter) chainWeights(a *ir.Attend) {
	call := func(name string) string { return weightCall(a, name, "i", "at") }
	none := "0.0f"
	body := func(value string) {
		e.eachOfKeys(a, 1, func() {
			if a.Also == nil {
				e.line("s[0][i] = %s;", value)
				return
			}
			e.line("const Weights w = %s;", value)
			e.line("s[0][i] = w.first, s[1][i] = w.also;")
		})
	}
	if a.Also != nil {
		none = "Weights{0.0f, 0.0f}"
	}
	e.wholeOrPart(a, func(name string) { body(call(name)) }, func(name string) { body("at < extent_n ? " + call(name) + " : " + none) })
}

// wholeOrPart writes the step from the scores of a tile to weights twice, with the function for each case: once for
// tiles whose keys all exist and are known not to be masked, and once for other tiles.
func (e *attendEmitter) wholeOrPart(a *ir.Attend, whole, part func(name string)) {
	inside, plain := "key + TILE_N <= extent_n", "weight_of"
	if a.Skip.All != nil {
		inside, plain = inside+" && whole(key)", "weight_whole"
	}
	e.open("if (%s)", inside)
	whole(plain)
	e.orElse()
	part("weight_of")
	e.close()
}

func chainTilePreludes(k *ir.Kernel, v *ir.Variant) string {
	text := attendTilePreludes(k, v) + skeleton.Text("chain_mma")
	if v.Attend.Q.Band != nil || v.Attend.K.Band != nil {
		text += skeleton.Text("bands", "band_panel")
	}
	return text
}
