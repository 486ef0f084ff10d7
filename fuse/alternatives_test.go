package fuse

import (
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// alternativePrograms have products whose rows may be odd, alone and among other operations.
var alternativePrograms = []string{
	`graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = a @ b }`,
	`graph g(a: f16[M, K], b: f16[N, K]) -> (y: f32[M, N]) { y = f32(a @ transpose(b)) * 2 }`,
	`graph g(x: bf16[M, K], w: bf16[K, N], c: bf16[N]) -> (y: bf16[M, N], s: f32[M]) {
	     y = gelu(x @ w + c)
	     s = sum(f32(y) * 2, axis=1)
	 }`,
	`graph g(x: bf16[M, K], v: bf16[K, N], w: bf16[N, K]) -> (y: bf16[M, K]) { y = (relu(x @ v)) @ w }`,
}

// TestAlternatives: whatever the usual sizes are, whole accesses and odd ones each get the kernels for them:
// no copies where rows are whole, tensor cores where they are not, and no copies for small products.
func TestAlternatives(t *testing.T) {
	for _, usual := range []string{"", "@bench(M=4096, K=4096, N=4096)\n", "@bench(M=4095, K=4097, N=4099)\n"} {
		for _, src := range alternativePrograms {
			p, err := Plan(parse(t, usual+src), Options{})
			require.NoError(t, err)
			whole := p.At(map[string]int64{"M": 2048, "K": 1024, "N": 3072})
			odd := p.At(map[string]int64{"M": 2047, "K": 1025, "N": 3073})
			small := p.At(map[string]int64{"M": 47, "K": 25, "N": 73})
			assert.Less(t, len(whole.Kernels), len(odd.Kernels), usual+src)
			assert.Equal(t, len(whole.Kernels), len(small.Kernels), usual+src)
			for _, k := range odd.Kernels {
				if k.Template == ir.ContractTemplate {
					assert.True(t, onWarpgroups(k), "%s%s: kernel %s", usual, src, k.Name)
				}
			}
		}
	}
}

// onWarpgroups reports whether a kernel has a body on wgmma for rows of any length.
func onWarpgroups(k *ir.Kernel) bool {
	for _, v := range k.Variants {
		if v.Schedule.Mapping == ir.WarpgroupMapping && v.Schedule.Vector == 1 {
			return true
		}
	}
	return false
}

// bothWays is a graph as passes rewrite it at its usual sizes and at others; the second says for which sizes it is.
func bothWays(t *testing.T, g *ir.Graph) (opts Options, work, other *ir.Graph) {
	t.Helper()
	opts = Options{Device: ir.Devices()[0]}
	work, err := Normalize(g, opts)
	require.NoError(t, err)
	others, err := otherGraphs(g, work, opts)
	require.NoError(t, err)
	require.Len(t, others, 1, g.Name)
	require.NotNil(t, others[0].For, g.Name)
	return opts, work, others[0]
}

// TestJoinedPlans: the kernels of both plans give the interpreter's results, where the condition holds and where
// it does not; the verifier refuses conditions that leave sizes out.
func TestJoinedPlans(t *testing.T) {
	for _, src := range alternativePrograms {
		g := parse(t, src)
		opts, work, other := bothWays(t, g)
		when := ir.Apply(ir.OpEq, ir.Apply(ir.OpMod, ir.Sym("K"), ir.IntConst(2)), ir.IntConst(0))
		p := joinPlans([]*ir.Plan{runWhere(formed(work, opts, nil).plan(), when), runWhere(formed(other, opts, nil).plan(), ir.Apply(ir.OpNot, when))})
		require.NoError(t, ir.VerifyPlan(p), src)
		for _, sizes := range []map[string]int64{{"M": 5, "K": 7, "N": 3}, {"M": 9, "K": 8, "N": 11}, {"M": 16, "K": 1, "N": 8}} {
			inputs, err := drawInputs(g, sizes, 3)
			require.NoError(t, err)
			assert.Positive(t, comparePlan(t, g, p, inputs, sizes, src))
		}
		for _, k := range p.Kernels {
			k.When = when
		}
		assert.ErrorContains(t, ir.VerifyPlan(p), "0 of its 1 conditions on sizes hold at", src)
	}
}

// TestVariantsThatNoSizeTakes: a plan for some sizes has at these the variants of the plan for all, and fewer of them.
func TestVariantsThatNoSizeTakes(t *testing.T) {
	random, fewer := rand.New(rand.NewPCG(1, 2)), 0
	for _, src := range alternativePrograms {
		g := parse(t, src)
		opts, _, other := bothWays(t, g)
		all, some := formed(other, opts, nil).plan(), formed(other, opts, other.For).plan()
		for i, k := range all.Kernels {
			fewer += len(k.Variants) - len(some.Kernels[i].Variants)
		}
		seen := 0
		for range 2000 {
			sizes := map[string]int64{}
			for _, s := range g.Symbols {
				sizes[s.Name] = int64(1) << random.IntN(20)
				sizes[s.Name] += random.Int64N(sizes[s.Name])
			}
			if !holdsAt(other.For, sizes) {
				continue
			}
			seen++
			for i, k := range all.Kernels {
				want, got := k.Variants[chosenAt(k, sizes)], some.Kernels[i].Variants[chosenAt(some.Kernels[i], sizes)]
				require.Equal(t, want.Schedule, got.Schedule, "%s at %v", k.Name, sizes)
			}
		}
		assert.Greater(t, seen, 100, src)
	}
	assert.Positive(t, fewer)
}

// TestLongReductionsAlone: a size at which a reduction is long has the kernels of long reductions for what depends on
// it, and those of the usual sizes for all else, whichever of several sizes it is. Attention over a long cache is cut
// into chunks at any size, and so changes nothing.
func TestLongReductionsAlone(t *testing.T) {
	const src = `@bench(N=512, K=4096, E=4096, T=600) graph g(x: f32[N], z: f32[3, K], h: bf16[1, E], w: bf16[E, E],
		q: bf16[8, 1, 128], k: bf16[8, T, 128], v: bf16[8, T, 128]) -> (s: f32[], m: f32[3], y: bf16[1, E], a: bf16[8, 1, 128]) {
		s = sum(x * x)
		m = max(z, axis=1)
		y = h @ w
		a = attention(q, k, v)
	}`
	p, err := Plan(parse(t, src), Options{})
	require.NoError(t, err)
	const long = 1 << 22
	kernels := func(sizes map[string]int64) map[string]int { // that each result takes
		out := map[string]int{}
		for _, k := range p.At(sizes).Kernels {
			for _, at := range k.Args {
				name, _, _ := strings.Cut(at.Buffer.Value.Name, "_")
				if at.Write {
					out[name]++
				}
			}
		}
		return out
	}
	usual := map[string]int64{"N": 512, "K": 4096, "E": 4096, "T": 600}
	want := kernels(usual)
	for name, result := range map[string]string{"N": "s", "K": "m", "T": "a"} {
		sizes := maps.Clone(usual)
		sizes[name] = long
		got := kernels(sizes)
		if name != "T" {
			assert.Greater(t, got[result], want[result], "%s is long", name)
		}
		for other, n := range want {
			if other != result {
				assert.Equal(t, n, got[other], "kernels of %s where %s is long", other, name)
			}
		}
	}
}
