package fuse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
)

// summary tells what a kernel is in a few words: its mapping, the ranges of its
// rows and columns, and the sections of its first variant; where the last, which
// streams, differs, that one's too. An s for each sum that runs beside a maximum.
func summary(k *ir.Kernel) string {
	first, last := sections(k.Variants[0]), sections(k.Variants[len(k.Variants)-1])
	if first != last {
		first += " or " + last
	}
	return fmt.Sprintf("%s %dx%d: %s", k.Variants[0].Schedule.Mapping, len(k.Rows), len(k.Cols), first)
}

func sections(v *ir.Variant) string {
	streamed := 0
	for _, s := range v.Sections {
		for _, f := range s.Folds {
			if f.After != nil {
				streamed++
			}
		}
	}
	return fmt.Sprintf("%d%s", len(v.Sections), strings.Repeat("s", streamed))
}

func summaries(p *ir.Plan) []string {
	out := make([]string, len(p.Kernels))
	for i, k := range p.Kernels {
		out[i] = summary(k)
	}
	return out
}

func refusals(p *ir.Plan) []string {
	var out []string
	for _, r := range p.Refused {
		out = append(out, fmt.Sprintf("%s -> %s: %s", r.Producer, r.Consumer, r.Reason))
	}
	return out
}

// TestKernels says which programs become how many kernels, in which mapping, with
// how many passes, and for which reason no fewer.
func TestKernels(t *testing.T) {
	for _, c := range kernelTable {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			assert.Equal(t, c.kernels, summaries(p))
			assert.Equal(t, c.refused, refusals(p))
			compareAtSizes(t, c.src)
		})
	}
}

var kernelTable = []struct {
	name, src string
	kernels   []string
	refused   []string
}{
	{"softmax", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x) }`,
		[]string{"row 1x1: 3 or 2s"}, nil},
	{"softmax over the outer axis", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x, axis=0) }`,
		[]string{"flat 2x1: 2", "flat 1x1: 2", "flat 2x1: 2", "flat 1x1: 2", "flat 2x0: 1"}, []string{"softmax_e_sum_part -> softmax_e_sum: different-ranges",
			"softmax_x_max -> softmax_e_sum_part: different-ranges",
			"softmax_x_max_part -> softmax_x_max: different-ranges",
			"softmax_e_sum -> y: different-ranges",
			"softmax_x_max -> y: different-ranges"}},
	{"log_softmax", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = log_softmax(x) }`,
		[]string{"row 1x1: 3 or 2s"}, nil},
	{"logsumexp", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = logsumexp(x, axis=-1) }`,
		[]string{"row 1x1: 3 or 2s"}, nil},
	{"layer_norm", `graph g(x: f32[N, M], w: f32[M], b: f32[M]) -> (y: f32[N, M]) { y = layer_norm(x, w, b) }`,
		[]string{"row 1x1: 3"}, nil},
	{"group_norm", `graph g(x: f32[N, 6, H, W], w: f32[6], b: f32[6]) -> (y: f32[N, 6, H, W]) { y = group_norm(x, 3, w, b) }`,
		[]string{"row 2x2: 3"}, nil},
	{"instance_norm", `graph g(x: f32[N, C, H, W], w: f32[C], b: f32[C]) -> (y: f32[N, C, H, W]) { y = instance_norm(x, w, b) }`,
		[]string{"row 2x1: 3"}, nil},
	{"batch_norm in training", `@bench(N=64, C=512, L=4096) graph g(x: f32[N, C, L], w: f32[C]) -> (y: f32[N, C, L], v: f32[1, C, 1]) { m, v = moments(x, axis=(0, 2))
		y = (x - m) * rsqrt(v + 1e-5) * w[:, none] }`,
		[]string{"row 1x2: 4"}, nil},
	{"batch_norm of rows that no cluster holds", `@bench(N=65, C=512, L=4096) graph g(x: f32[N, C, L], w: f32[C]) -> (y: f32[N, C, L], v: f32[1, C, 1]) { m, v = moments(x, axis=(0, 2))
		y = (x - m) * rsqrt(v + 1e-5) * w[:, none] }`,
		[]string{"row 1x1: 3", "flat 1x1: 3", "flat 3x0: 1"}, []string{"mean_x_sum_part -> mean_x_sum: different-ranges",
			"mean_x_sum_2_part -> mean_x_sum_2: different-ranges",
			"moments_m -> y: different-ranges"}},
	{"batch_norm of rows that fit on chip", `@bench(N=64, C=512, L=256) graph g(x: f32[N, C, L], w: f32[C]) -> (y: f32[N, C, L]) { y, m, v = batch_norm_train(x, w) }`,
		[]string{"row 1x2: 3"}, nil},
	{"variance of everything", `graph g(x: f32[N, M]) -> (y: f32[]) { y = var(x) }`, []string{"row 1x1: 3", "row 0x1: 3"},
		[]string{"mean_x_sum_part -> mean_x_sum: different-ranges", "var_t_sum_part -> var_t_sum: different-ranges"}},
	{"what follows a group_norm", `graph g(x: f32[N, 6, L], s: f32[6], z: f32[N, 6, L]) -> (y: f32[N, 6, L]) {
		y = silu(group_norm(x, 2) * s[:, none] + z) }`,
		[]string{"row 2x2: 3"}, nil},
	{"blocks scaled by their largest", `graph g(x: f32[N, 4 * M]) -> (y: f32[N, 4 * M]) {
		m[i: N, k: M] = max[j: 4] abs(x[i, 4 * k + j])
		y[i, j] = x[i, j] / m[i, j / 4] }`,
		[]string{"row 1x1: 2"}, nil},
	{"blocks that are not those of the maximum", `graph g(x: f32[N, 4 * M]) -> (y: f32[N, 4 * M]) {
		m[i: N, k: M] = max[j: 4] abs(x[i, 4 * k + j])
		y[i, j] = x[i, j] / m[i, 3 * j % M] }`,
		[]string{"row 1x1: 2", "flat 2x0: 1"}, []string{"m -> y: index-mismatch"}},
	{"rms_norm", `graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N, M]) { y = rms_norm(x, w) }`,
		[]string{"row 1x1: 2"}, nil},
	{"swiglu", `graph g(x: f32[N, M], gate: f32[N, M]) -> (y: f32[N, M]) { y = silu(x) * gate }`,
		[]string{"flat 1x0: 1"}, nil},
	{"gelu chain", `graph g(x: f32[N, M], y: f32[N, M], z: f32[N, M]) -> (out: f32[N, M]) { out = gelu_tanh(x * y + z) * sigmoid(z) + x }`,
		[]string{"flat 1x0: 1"}, nil},
	{"weighted sum", `graph g(x: f32[N, M], w: f32[M], b: f32[]) -> (y: f32[N]) { y = sum(x * w, axis=-1) + b }`,
		[]string{"row 1x1: 2"}, nil},
	{"cross entropy", `graph g(x: f32[N, V], t: i64[N]) -> (mean_loss: f32[], loss: f32[N]) {
		loss = cross_entropy(x, t, reduction="none")
		mean_loss = sum(loss) / N
	}`,
		[]string{"row 1x1: 3 or 2s", "row 0x1: 2"}, []string{"loss -> loss_sum: different-ranges"}},
	{"blur", `graph g(img: f32[H, W]) -> (out: f32[H, W]) { out[y, x] = sum[i: 3, j: 3] img[y + i - 1, x + j - 1] / 9 }`,
		[]string{"flat 2x2: 2"}, nil},
	{"mean and variance", `graph g(x: f32[N, M]) -> (m: f32[N], v: f32[N]) { m = mean(x, axis=-1)
		v = var(x, axis=-1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"two results of one input", `graph g(x: f32[N, M]) -> (a: f32[N, M], b: f32[N, M]) { a = exp(x)
		b = tanh(x) }`,
		[]string{"flat 1x0: 1"}, nil},
	{"min and max", `graph g(x: f32[N, M]) -> (a: f32[N], b: f32[N]) { a = min(x, axis=1)
		b = max(x, axis=1) }`,
		[]string{"row 1x1: 2"}, nil},
	{"transpose", `graph g(x: f32[N, M]) -> (y: f32[M, N]) { y = exp(transpose(x, 0, 1)) }`,
		[]string{"tile 2x0: 1"}, nil},
	{"transpose of a cheap result", `graph g(x: f32[N, M]) -> (y: f32[M, N]) { y = transpose(x + 1, 0, 1) * 2 }`,
		[]string{"tile 2x0: 1"}, nil},
	{"softmax of a transpose", `graph g(x: f32[N, M]) -> (y: f32[M, N]) { y = softmax(transpose(x, 0, 1)) }`,
		[]string{"flat 2x1: 2", "flat 1x1: 2", "flat 2x1: 2", "flat 1x1: 2", "tile 2x0: 1"}, []string{"softmax_e_sum_part -> softmax_e_sum: different-ranges",
			"softmax_t_max -> softmax_e_sum_part: different-ranges",
			"softmax_t_max_part -> softmax_t_max: different-ranges",
			"softmax_e_sum -> y: different-ranges",
			"softmax_t_max -> y: different-ranges"}},
	{"stencil over a cheap producer", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { a = x * 2 + 1
		y[i, j] = a[i, j - 1] + a[i, j + 1] }`,
		[]string{"flat 2x0: 1"}, nil},
	{"stencil over a costly producer", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { a = erf(sin(x)) * tanh(exp(x)) * atan2(x, 2) * tan(x)
		y[i, j] = sum[k: 5, l: 5] a[i + k, j + l] }`,
		[]string{"flat 1x0: 1", "flat 2x2: 2"}, []string{"a -> y: index-mismatch"}},
	{"sums over both axes", `graph g(x: f32[N, M]) -> (a: f32[N], b: f32[M]) { a = sum(x, axis=1)
		b = sum(x, axis=0) }`,
		[]string{"row 2x1: 2", "flat 1x1: 2"}, []string{"b_part -> b: different-ranges"}},
	{"two ranges", `graph g(x: f32[N, M], z: f32[N, K]) -> (y: f32[N]) { y = max(x, axis=1) + sum(z, axis=1) }`,
		[]string{"row 1x1: 2", "row 1x1: 2"}, []string{"z_sum -> y: different-ranges"}},
	{"sum about a maximum over another range", `graph g(x: f32[N, M], z: f32[N, K]) -> (y: f32[N]) {
		m = max(x, axis=1, keep=true)
		y = sum(exp(z - m), axis=1) }`,
		[]string{"row 1x1: 2", "row 1x1: 2"}, []string{"m -> y: different-ranges"}},
	{"minimum", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(exp(x - min(x, axis=1, keep=true)), axis=1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"minimum of the negative", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(exp(min(x, axis=1, keep=true) - x), axis=1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"scaled", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(exp(0.5 * (x - max(x, axis=1, keep=true))), axis=1) }`,
		[]string{"row 1x1: 3 or 2s"}, nil},
	{"scaled by a negative", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(exp(-0.5 * (x - max(x, axis=1, keep=true))), axis=1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"predicate", `graph g(x: f32[N, M]) -> (y: f32[N]) { m = max(x, axis=1)
		y[i] = sum[j: M where x[i, j] > m[i] - 3] exp(x[i, j] - m[i]) }`,
		[]string{"row 1x1: 3"}, nil},
	{"masked with -inf", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(where(x > 0, x, -inf)) }`,
		[]string{"row 1x1: 3 or 2s"}, nil},
	{"masked with a finite fill", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(where(x > 0, x, -1e9)) }`,
		[]string{"row 1x1: 3 or 2s"}, nil},
	{"another exponent", `graph g(x: f32[N, M]) -> (y: f32[N]) { m = max(x, axis=1, keep=true)
		y = sum(exp((x - m) * (x - m)), axis=1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"weighted by the exponential's own argument", `graph g(x: f32[N, M]) -> (y: f32[N]) { m = max(x, axis=1, keep=true)
		y = sum(exp(x - m) * (x - m), axis=1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"strict softmax", `@strict graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x) }`,
		[]string{"row 1x1: 3"}, nil},
	{"a choice of the exponential or zero", `graph g(x: f32[N, M]) -> (y: f32[N]) { m = max(x, axis=1, keep=true)
		y = sum(where(x > 0, exp(x - m), 0), axis=1) }`,
		[]string{"row 1x1: 3"}, nil},
	{"attention", `@bench(S=256, D=256) graph g(q: f32[S, D], k: f32[S, D], v: f32[S, D]) -> (y: f32[S, D]) { y = softmax(q @ transpose(k, 0, 1)) @ v }`,
		[]string{"split-k 2x1: 2", "row 1x1: 3 or 2s", "row 2x1: 2"}, []string{"matmul -> softmax_matmul_max: different-ranges", "matmul -> y: index-mismatch", "t -> y: resources"}},
	{"product with an epilogue", `graph g(x: f32[N, K], w: f32[K, M], b: f32[M]) -> (y: f32[N, M]) { y = gelu(x @ w + b) }`,
		[]string{"flat 2x0: 1", "flat 2x0: 1", "warpgroup 2x1: 2"}, []string{"matmul_terms -> matmul: index-mismatch",
			"matmul_terms_2 -> matmul: index-mismatch"}},
	{"product of f32 with an epilogue in one kernel", `@onekernel graph g(x: f32[N, K], w: f32[K, M], b: f32[M]) -> (y: f32[N, M]) { y = gelu(x @ w + b) }`,
		[]string{"row 2x1: 2"}, nil},
	{"sum of everything beside a pointwise result", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = x / sum(x) }`,
		[]string{"row 1x1: 2", "row 0x1: 2", "flat 1x0: 1"}, []string{"x_sum_part -> x_sum: different-ranges", "x_sum -> y: different-ranges"}},
	{"cumsum", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = cumsum(x, axis=1) }`,
		[]string{"row 1x1: 1"}, nil},
	{"softmax of softmax", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(softmax(x) * 2) }`,
		[]string{"row 1x1: 5 or 4s"}, nil},
	{"a column sum between two readers of a row sum", `graph g(x: f32[N, M]) -> (y: f32[N, M]) { a = sum(x, axis=1, keep=true)
		b = sum(x * a, axis=0)
		y = x * a + b }`,
		[]string{"row 2x1: 3", "flat 1x1: 2", "flat 2x0: 1"}, []string{"b_part -> b: different-ranges",
			"a -> y: cycle",
			"b -> y: different-ranges"}},
}

func TestOneKernel(t *testing.T) {
	for _, src := range []string{
		`@onekernel graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x) }`,
		`@onekernel graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = softmax(x, axis=0) }`, // not split
	} {
		p := planOf(t, src)
		assert.Len(t, p.Kernels, 1, src)
		compareAtSizes(t, src)
	}
	g := parse(t, `@onekernel graph g(x: f32[N, M], z: f32[N, K]) -> (y: f32[N]) {
		y = max(x, axis=1) + sum(z, axis=1)
	}`)
	_, err := Plan(g, Options{Device: ir.Device{Name: "CPU"}})
	require.NoError(t, err, "the promise is one of GPUs")
	_, err = Plan(g, Options{})
	require.Error(t, err)
	var list diag.List
	require.ErrorAs(t, err, &list)
	text := diag.Render(err, func(string) (string, bool) { return "", false })
	assert.Contains(t, text, "graph g is @onekernel but needs 2 kernels")
	assert.Contains(t, text, "y cannot join the kernel of z_sum (different-ranges): "+
		"z_sum has to be complete before y begins: it is reduced along another axis than the kernel of y goes along")
}

// TestReductionsBehindReshapes: what is normalised in groups and then reduced is not written, and is read
// again without divisions, where sizes are differences too.
func TestReductionsBehindReshapes(t *testing.T) {
	p := planOf(t, `graph g(x: f32[N, 24, H, W]) -> (y: f32[N]) {
		t[n, c, p: H - 2, q: W - 2] = x[n, c, p + 1, q + 2]
		y = mean(group_norm(t, 8), axis=(1, 2, 3))
	}`)
	for _, b := range p.Buffers {
		assert.LessOrEqual(t, len(b.Shape), 4, b.Name)
		assert.False(t, b.Kind == ir.TempBuffer && slices.ContainsFunc(b.Shape, func(e *ir.Expr) bool { return strings.Contains(e.String(), "W") }), b.Name)
	}
}

// TestPlansAreDeterministic plans each program many times from scratch: one in three, which its text draws, unless
// FUSEC_TEST_FULL is set.
func TestPlansAreDeterministic(t *testing.T) {
	sources := examplePrograms(t)
	for _, c := range kernelTable {
		sources[c.name] = c.src
	}
	for name, src := range sources {
		if !draws(src, 3) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := ir.PrintPlan(planOf(t, src))
			require.NotEmpty(t, first)
			for range 2 {
				require.Equal(t, first, ir.PrintPlan(planOf(t, src)))
			}
		})
	}
}

// TestPlansOfOneGraphAtOnce: goroutines that plan the same graph do not get in each other's way. The race detector sees more.
func TestPlansOfOneGraphAtOnce(t *testing.T) {
	for seed := range uint64(3) {
		g := parseGraph(t, attentionGradient(rand.New(rand.NewPCG(seed, 1))), "g")
		var group errgroup.Group
		texts := make([]string, 4)
		for i := range texts {
			group.Go(func() error {
				p, err := Plan(g, Options{})
				if err == nil {
					texts[i] = ir.PrintPlan(p)
				}
				return err
			})
		}
		require.NoError(t, group.Wait())
		for _, text := range texts {
			require.Equal(t, texts[0], text)
		}
	}
}

// TestDefaultDevice: options that name no device plan for the first of those that are known.
func TestDefaultDevice(t *testing.T) {
	for _, c := range classPrograms {
		g := parse(t, c.src)
		want, err := Plan(g, Options{Device: ir.Devices()[0]})
		require.NoError(t, err)
		got, err := Plan(g, Options{})
		require.NoError(t, err)
		assert.Equal(t, ir.PrintPlan(want), ir.PrintPlan(got), c.name)
	}
}
