package explain_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
)

// explained are programs of all kinds of kernels, whose sizes are all known. Each has a result y of floats.
var explained = map[string]string{
	"softmax": `@bench(N=640, M=512) graph g(x: bf16[N, M]) -> (y: bf16[N, M]) { y = softmax(x) }`,
	"norm and its gradient": `@bench(N=4096, M=768) graph g(x: bf16[N, M], d: bf16[N, M]) -> (y: f32[N, M], s: f32[M]) {
		y = f32(rms_norm(x)) * d
		s = sum(f32(x) * d, axis=0)
	}`,
	"mean of all":          `@bench(N=1000000) graph g(x: f32[N]) -> (y: f32[]) { y = mean(x * x) }`,
	"squares of few":       `@bench(N=1024, M=1024) graph g(x: bf16[N, M]) -> (y: f32[]) { y = sum(f32(x) * f32(x)) }`,
	"sums of rows":         `@bench(N=128, M=4096) graph g(x: f32[N, M]) -> (y: f32[N]) { y = softmax(sum(x, axis=1)) }`,
	"points":               `@bench(N=100000) graph g(x: f64[N], b: f64[]) -> (y: f64[N]) { y = tanh(x + b) * x }`,
	"product":              `@bench(M=512, K=1024) graph g(a: bf16[M, K], b: bf16[K, M], c: bf16[M]) -> (y: bf16[M, M]) { y = gelu(a @ b + c) }`,
	"product of floats":    `@bench(M=256) graph g(a: f32[M, M], b: f32[M, M]) -> (y: f32[M, M]) { y = a @ b }`,
	"product of products":  `@tf32 @bench(M=512) graph g(a: f32[M, M], b: f32[M, M], c: f32[M, M]) -> (y: f32[M, M]) { y = (a @ b) @ c }`,
	"convolution":          `@bench(B=4) graph g(x: bf16[B, 64, 28, 28], w: bf16[64, 64, 3, 3]) -> (y: bf16[B, 64, 28, 28]) { y = relu(conv2d(x, w, padding=1)) }`,
	"attention":            `@bench(S=1024) graph g(q: bf16[8, S, 64], k: bf16[8, S, 64], v: bf16[8, S, 64]) -> (y: bf16[8, S, 64]) { y = attention(q, k, v) }`,
	"rows chosen":          `@strict @bench(N=1000, V=500) graph g(x: f32[V, 64], at: i32[N]) -> (y: f32[N, 64]) { y = x[at] * 2 }`,
	"rows added":           `@bench(N=5000) graph g(x: f32[N, 64], at: i32[N]) -> (y: f32[500, 64]) { y[k: 500, j: 64] = sum[i: N where at[i] == k] exp(x[i, j]) }`,
	"side by side":         `@bench(N=500) graph g(a: f32[N, 64], b: f32[N, 32]) -> (y: f32[N, 96]) { y = concat(softmax(a), tanh(b), axis=1) }`,
	"sorted":               `@bench(N=50, M=3000) graph g(x: f32[N, M]) -> (y: f32[N, M], i: i64[N, M]) { y = exp(sort(x, axis=1)); i = argsort(x, axis=1) }`,
	"running sums":         `@bench(N=50, M=3000) graph g(x: f32[N, M]) -> (y: f32[N, M]) { y = log(cumsum(abs(x), axis=1)) }`,
	"rows, then all":       `@bench(N=3000, M=400) graph g(x: f32[N, M]) -> (y: f32[], z: f32[N, M]) { z = x - max(x, axis=1, keep=true); y = sum(max(z * z, axis=1)) }`,
	"the same in a column": `@bench(N=300, M=400) graph g(x: f32[N, M]) -> (y: f32[M, N]) { y = transpose(softmax(x)) + softmax(transpose(x), axis=0) }`,
}

// known are their explanations, of which each is made once.
var known = map[string]knownPlan{}

type knownPlan struct {
	explain.Explanation
	launched int // kernels of the plan that are launched
}

func eachExplained(t *testing.T, check func(t *testing.T, src string, d ir.Device, x knownPlan)) {
	for name, src := range explained {
		for _, device := range []string{"H200", "A100"} {
			t.Run(name+" on "+device, func(t *testing.T) {
				d, err := ir.DeviceNamed(device)
				require.NoError(t, err)
				x, ok := known[name+device]
				if !ok {
					g, plan := planOf(t, src, d)
					x = knownPlan{explain.Explain(g, plan, explain.Options{Device: d}), len(plan.At(explain.Sizes(g, nil)).Launched())}
					known[name+device] = x
				}
				check(t, src, d, x)
			})
		}
	}
}

// TestKernelsAddUp: the total of a plan is the sum over its kernels, and the bytes of a kernel are the
// sum over its tensors. A kernel moves at most all of a tensor, and all of each result.
func TestKernelsAddUp(t *testing.T) {
	eachExplained(t, func(t *testing.T, _ string, _ ir.Device, x knownPlan) {
		var read, written int64
		var seconds float64
		launches, stored := 0, map[string]int64{}
		names := map[string]bool{}
		for _, k := range x.Kernels {
			var in, out int64
			for _, r := range k.Reads {
				assert.LessOrEqual(t, *r.Bytes, wholeOf(t, r, x.Sizes), r.Name)
				assert.Contains(t, []string{"input", "output", "temporary"}, r.Kind)
				in += *r.Bytes
			}
			for _, w := range k.Writes {
				if w.Kind != "check" {
					stored[w.Name] += *w.Bytes
				}
				out += *w.Bytes
			}
			assert.Equal(t, in, *k.Read.Bytes)
			assert.Equal(t, out, *k.Written.Bytes)
			read, written, seconds = read+in, written+out, seconds+*k.Seconds
			names[k.Name] = true
			if k.LastBlockOf == "" {
				launches++
			} else {
				assert.True(t, names[k.LastBlockOf], "%s is run by %s, which is ahead of it", k.Name, k.LastBlockOf)
			}
		}
		for _, k := range x.Kernels {
			for _, w := range k.Writes {
				if w.Kind != "check" {
					assert.Equal(t, wholeOf(t, w, x.Sizes), stored[w.Name], w.Name)
				}
			}
		}
		assert.Equal(t, x.launched, launches)
		assert.Equal(t, x.launched, x.Fused.Kernels)
		assert.Equal(t, read, *x.Fused.Read.Bytes)
		assert.Equal(t, written, *x.Fused.Written.Bytes)
		assert.InEpsilon(t, seconds, *x.Fused.Seconds, 1e-9)
	})
}

// wholeOf is the bytes of a tensor.
func wholeOf(t *testing.T, r explain.Transfer, sizes map[string]int64) int64 {
	t.Helper()
	i := slices.IndexFunc(ir.DTypes(), func(d ir.DType) bool { return d.String() == r.DType })
	require.GreaterOrEqual(t, i, 0, r.DType)
	n := int64(ir.DTypes()[i].Size())
	for _, d := range r.Shape {
		if v, ok := sizes[d]; ok {
			n *= v
			continue
		}
		v, err := strconv.ParseInt(d, 10, 64)
		if err != nil { // of a tensor between kernels, which is cut at a size
			return *r.Bytes
		}
		n *= v
	}
	return n
}

// TestEstimatesFollowFromWork: the time of a kernel is the longest of the times of its bytes, its
// operations and its products, and the roof of the kernel names which of these it is.
func TestEstimatesFollowFromWork(t *testing.T) {
	eachExplained(t, func(t *testing.T, _ string, d ir.Device, x knownPlan) {
		for _, k := range x.Kernels {
			var flops, copies, special, products float64
			for _, w := range k.Work {
				n, ok := ir.EvalSize(w.Points, x.Sizes)
				require.True(t, ok)
				flops, copies = flops+w.Flops*float64(n), copies+w.Copies*float64(n)
				special, products = special+w.Special*float64(n), products+w.Products*float64(n)
			}
			moved := float64(*k.Read.Bytes + *k.Written.Bytes)
			bounds := map[string]float64{"memory": moved / d.Bandwidth, "arithmetic": (flops + copies) / d.F32Rate,
				"special functions": special / d.SpecialRate, "products": products / k.Rate, "launch": d.Launch}
			assert.InEpsilon(t, max(d.Time(moved, flops+copies, special), d.Launch+products/k.Rate)+k.Finding, *k.Seconds, 1e-2, k.Name)
			assert.InEpsilon(t, flops+products+1, *k.Flops+1, 1e-2, k.Name)
			require.Contains(t, bounds, k.Roof)
			for what, seconds := range bounds {
				assert.LessOrEqual(t, seconds, bounds[k.Roof]*1.01, what)
			}
			assert.InEpsilon(t, min(1, bounds[k.Roof] / *k.Seconds), *k.OfRoof, 1e-2)
		}
	})
}

// TestWorkOfOperations: an operation is counted once for each point of the ranges that it depends on, the last
// multiplication of a sum with its addition, and a fold whose terms go to rows once for each term.
func TestWorkOfOperations(t *testing.T) {
	cost := func(ops ...ir.Op) (n float64) {
		for _, op := range ops {
			n += 2 * float64(op.Info().Cost)
		}
		return n
	}
	const n, m = 1000, 64
	for _, c := range []struct {
		y                        string
		flops, special, products float64
	}{
		{"f32[N, 64]) { y = exp(x) * x", n * m * cost(ir.OpExp, ir.OpMul), n * m, 0},
		{"f32[N, 64]) { y = exp(x) * exp(x)", n * m * cost(ir.OpExp, ir.OpMul), n * m, 0},
		{"f32[N, 64]) { y = x * exp(w)", n*m*cost(ir.OpMul) + m*cost(ir.OpExp), m, 0},
		{"f32[N]) { y[i: N] = sum[j: 64] x[i, j] * abs(x[i, j])", n * m * cost(ir.OpAbs, ir.OpAdd), 0, 0},
		{"f32[N]) { y[i: N] = max[j: 64] x[i, j] * w[j]", n * m * cost(ir.OpMul, ir.OpMax), 0, 0},
		{"f32[500, 64]) { y[k: 500, j: 64] = sum[i: N where at[i] == k] exp(x[i, j])", n * m * cost(ir.OpExp, ir.OpAdd), n * m, 0},
		{"f32[N, N]) { y = x @ transpose(x)", 0, 0, 2 * n * n * m},
	} {
		x := Explain(t, "@onekernel @bench(N=1000) graph g(x: f32[N, 64], w: f32[64], at: i32[N]) -> (y: "+c.y+" }", explain.Options{})
		var flops, special, products float64
		for _, w := range x.Kernels[0].Work {
			points, _ := ir.EvalSize(w.Points, x.Sizes)
			flops, special, products = flops+w.Flops*float64(points), special+w.Special*float64(points), products+w.Products*float64(points)
		}
		assert.Equal(t, []float64{c.flops, c.special, c.products}, []float64{flops, special, products}, c.y)
		assert.InEpsilon(t, c.flops+c.products, *x.Kernels[0].Flops, 1e-9, c.y)
	}
}

// TestProductsInPartsTakeLonger: f32 products of an attention that are sums over parts of bf16 take the time of each pair of parts.
func TestProductsInPartsTakeLonger(t *testing.T) {
	const src = "@bench(S=4096) graph g(q: T[8, S, 64], k: T[8, S, 64], v: T[8, S, 64]) -> (y: T[8, S, 64]) { y = attention(q, k, v) }"
	half := Explain(t, strings.ReplaceAll(src, "T[", "bf16["), explain.Options{}).Kernels
	float := Explain(t, strings.ReplaceAll(src, "T[", "f32["), explain.Options{}).Kernels
	require.Len(t, half, 1)
	pairs := map[float64]bool{1: true, 3: true, 6: true} // of one, two, three parts
	assert.True(t, pairs[half[0].Rate/2/float[len(float)-1].Rate], "%v of %v", float[len(float)-1].Rate, half[0].Rate)
}

// TestOneOperationMore: without fusion, one more operation is one more kernel, which reads its operand
// and writes as many bytes.
func TestOneOperationMore(t *testing.T) {
	eachExplained(t, func(t *testing.T, src string, d ir.Device, x knownPlan) {
		kind := regexp.MustCompile(`y: (\w+)(\[[^\]]*\])`).FindStringSubmatch(src)
		more := strings.Replace(src, kind[0], "more: "+kind[1]+kind[2]+", "+kind[0], 1)
		end := strings.LastIndex(more, "}")
		more = more[:end] + "\n more = sin(y) }"
		then := Explain(t, more, explain.Options{Device: d})
		var bytes int64
		for _, k := range then.Kernels {
			for _, w := range k.Writes {
				if w.Name == "more" {
					bytes = *w.Bytes
				}
			}
		}
		require.NotZero(t, bytes)
		assert.Equal(t, x.Unfused.Kernels+1, then.Unfused.Kernels)
		assert.Equal(t, *x.Unfused.Read.Bytes+bytes, *then.Unfused.Read.Bytes)
		assert.Equal(t, *x.Unfused.Written.Bytes+bytes, *then.Unfused.Written.Bytes)
		elements := float64(bytes) / 4
		atLeast := d.Time(2*float64(bytes), 0, elements)
		assert.GreaterOrEqual(t, *then.Unfused.Seconds-*x.Unfused.Seconds, 0.9*min(atLeast, d.Launch))
	})
}

// TestOperationsAreInOrder: operations are listed in the order of their ends in the text, each at a place of it.
func TestOperationsAreInOrder(t *testing.T) {
	eachExplained(t, func(t *testing.T, _ string, _ ir.Device, x knownPlan) {
		for _, k := range x.Kernels {
			for i, o := range k.Operations {
				assert.Positive(t, o.Count)
				assert.Positive(t, o.Span.Start.Line, "%s of %s", o.Name, o.Value)
				if i > 0 {
					before := k.Operations[i-1].Span
					assert.LessOrEqual(t, fmt.Sprintf("%s %6d", before.Start.Filename, before.End.Offset), fmt.Sprintf("%s %6d", o.Span.Start.Filename, o.Span.End.Offset))
				}
			}
		}
	})
}

// TestRefusalsAreTrue: no kernel computes both values of a refused merge, and the names and places in
// the refusal are those of the program.
func TestRefusalsAreTrue(t *testing.T) {
	some := 0
	eachExplained(t, func(t *testing.T, src string, d ir.Device, x knownPlan) {
		for _, r := range x.Refused {
			some++
			for _, k := range x.Kernels {
				has := func(value string) bool {
					return slices.ContainsFunc(k.Operations, func(o explain.Operation) bool { return o.Value == value })
				}
				assert.False(t, has(r.Producer) && has(r.Consumer), "%s computes %s and %s", k.Name, r.Producer, r.Consumer)
			}
			assert.Contains(t, x.Places, r.Producer)
			assert.Contains(t, x.Places, r.Consumer)
			assert.Positive(t, r.Span.Start.Line)
			if r.Saved.Bytes != nil {
				assert.InEpsilon(t, 2*float64(*r.Saved.Bytes)/d.Bandwidth+1e-12, *r.Seconds+1e-12, 1e-6)
			}
		}
	})
	assert.Greater(t, some, 10)
}

// TestWhatIsMissingIsTrue: if a size keeps a product from warpgroups, explain names this size, and
// once the size is changed to fit, explain names another reason or none.
func TestWhatIsMissingIsTrue(t *testing.T) {
	multiple := regexp.MustCompile(`^(\w) = (\d+) is not a multiple of (\d+)`)
	least := regexp.MustCompile(`^(\w) = (\d+) is less than (\d+)`)
	for _, src := range []string{
		"graph f(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = a @ b }",
		"graph f(a: f16[K, M], b: f16[N, K]) -> (y: f16[M, N]) { y = relu(transpose(a) @ transpose(b)) }",
		"@tf32 graph f(a: f32[M, K], b: f32[N, K]) -> (y: f32[M, N]) { y = a @ transpose(b) }",
		"graph f(a: i8[M, K], b: i8[N, K]) -> (y: i64[M, N]) { y[i: M, j: N] = sum[k: K] i32(a[i, k]) * i32(b[j, k]) }",
	} {
		g, plan := planOf(t, src, ir.Device{})
		at := func(sizes map[string]int64) string {
			kernels := explain.Explain(g, plan, explain.Options{Sizes: sizes}).Kernels
			return kernels[len(kernels)-1].Slower
		}
		for i := range 27 {
			some := []int64{9, 512, 1017}
			sizes := map[string]int64{"M": some[i%3], "N": some[i/3%3], "K": some[i/9]}
			for range 4 { // mends a size after the other
				slower := at(sizes)
				if slower == "" {
					break
				}
				m, mend := multiple.FindStringSubmatch(slower), int64(0)
				if m != nil {
					by, _ := strconv.ParseInt(m[3], 10, 64)
					assert.NotZero(t, sizes[m[1]]%by, slower)
					mend = (sizes[m[1]]/by + 1) * by
				} else if m = least.FindStringSubmatch(slower); m != nil {
					mend, _ = strconv.ParseInt(m[3], 10, 64)
					assert.Less(t, sizes[m[1]], mend, slower)
				} else {
					break
				}
				assert.Equal(t, m[2], strconv.FormatInt(sizes[m[1]], 10), slower)
				sizes[m[1]] = mend
				after := at(sizes)
				assert.False(t, strings.HasPrefix(after, m[1]+" = ") && multiple.MatchString(after) == multiple.MatchString(slower), "%s, then with %d %s", slower, mend, after)
			}
		}
	}
}

// TestPlacesSayWhatReductionsAre: the place of a value in a library function names its reduction; for
// a value of the program this is not needed.
func TestPlacesSayWhatReductionsAre(t *testing.T) {
	is := func(body string) (out []string) {
		for _, p := range Explain(t, "graph g(x: f32[N, M]) -> (y: f32[N, M]) { "+body+" }", explain.Options{}).Places {
			if p.Is != "" {
				out = append(out, p.Is)
			}
		}
		slices.Sort(out)
		return out
	}
	assert.Equal(t, []string{"max", "sum"}, is("y = softmax(x)"))
	assert.Empty(t, is("m[i] = max[j] x[i, j]; s[i] = sum[j] exp(x[i, j] - m[i]); y = exp(x - m[:, none]) / s[:, none]"))
}
