package codegen

import (
	"fmt"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
)

// Chained contractions: a tile of queries goes through all keys, as in attention. The weights are a function of the
// scores of one or more products, and there is no maximum to follow.

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
	e.line("using Queries = Panel<Half, TILE_M, TILE_K>;")
	e.line("using Keys = Panel<Half, TILE_N, TILE_K>;")
	e.line("constexpr int PRODUCTS = %d;", len(a.Products()))
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

// weightFunctions writes the functions from scores to a weight, with and without the mask that tile tests decide.
func (e *attendEmitter) weightFunctions(a *ir.Attend) {
	e.pointFunction("float", "weight_of", a, a.Weight)
	if a.Skip.All != nil {
		e.pointFunction("float", "weight_whole", a, a.Skip.Clear)
	}
}

// chained is a name that belongs to a product.
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
        float s[PRODUCTS][TILE_N / 2] = {};
#pragma unroll
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
	e.line("tile = next_tile;")
	e.close()
}

// chainWeights writes the step from the scores of a tile to weights, in place of the first scores; keys outside get 0.
func (e *attendEmitter) chainWeights(a *ir.Attend) {
	call := func(name string) string {
		scores := ""
		for i := range a.Products() {
			scores += fmt.Sprintf("s[%d][i], ", i)
		}
		return fmt.Sprintf("%s(%srow[i / 2 %% 2], at)", name, scores)
	}
	body := func(value string) {
		e.eachScore("key", func() { e.line("s[0][i] = %s;", value) })
	}
	inside, plain := "key + TILE_N <= extent_n", call("weight_of")
	if a.Skip.All != nil {
		inside, plain = inside+" && whole(key)", call("weight_whole")
	}
	e.open("if (%s)", inside)
	body(plain)
	e.orElse()
	body("at < extent_n ? " + call("weight_of") + " : 0.0f")
	e.close()
}

func chainTilePreludes(k *ir.Kernel, v *ir.Variant) string {
	return attendTilePreludes(k, v) + skeleton.Text("chain_mma")
}
