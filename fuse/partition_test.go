package fuse

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// TestRegionsAreConvex makes regions of drawn sets of values. A set is refused exactly where a value
// outside it is computed from a member and feeds one, or where it has only some members of another
// region; regions that were made have ranks in an order of dependence.
func TestRegionsAreConvex(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 14).Draw(t, "values")
		g := largeGraph(n, func(g *ir.Graph, i int, values []*ir.Value) *ir.Value {
			from := func(what string) *ir.Value {
				return values[rapid.IntRange(0, i).Draw(t, fmt.Sprint(what, i))]
			}
			return pointwise(g, ir.OpAdd, from("a"), from("b"))
		})
		f := newFuser(g, Options{Device: ir.Devices()[0]})
		for step := range rapid.IntRange(1, 8).Draw(t, "sets") {
			set := &region{at: map[*ir.Value]map[*ir.Range]*ir.Expr{}, cols: map[*ir.Range]bool{}}
			chosen := rapid.SliceOfNDistinct(rapid.IntRange(1, n), 1, 4, rapid.ID).Draw(t, fmt.Sprint("set", step))
			whole := rapid.IntRange(0, 3).Draw(t, fmt.Sprint("whole", step)) > 0
			for i, v := range g.Values {
				for _, c := range chosen {
					with := g.Values[c]
					if i == c || whole && i > 0 && f.home[v] == f.home[with] {
						set.at[v] = map[*ir.Range]*ir.Expr{}
					}
				}
				if set.has(v) {
					set.members = append(set.members, v)
				}
			}
			want := convexByDefinition(f.partition, set)
			require.Equal(t, want, f.take(set), "members %v", chosen)
			for _, v := range set.members {
				require.Equal(t, want, f.home[v] == set)
			}
			requireOrdered(t, f.partition)
		}
	})
}

// convexByDefinition asks every value outside the set, with the whole of its region, whether it stands
// between members.
func convexByDefinition(f *partition, set *region) bool {
	for _, v := range set.members {
		for _, u := range f.home[v].members {
			if !set.has(u) {
				return false
			}
		}
	}
	home := func(v *ir.Value) *region {
		if set.has(v) {
			return set
		}
		return f.home[v]
	}
	var reaches func(r *region, seen map[*region]bool) bool
	reaches = func(r *region, seen map[*region]bool) bool {
		seen[r] = true
		for _, v := range r.members {
			for _, u := range f.readers[v] {
				next := home(u)
				if next == set && r != set || next != set && !seen[next] && reaches(next, seen) {
					return true
				}
			}
		}
		return false
	}
	return !reaches(set, map[*region]bool{})
}

// requireOrdered requires that every region ranks behind those that it reads.
func requireOrdered(t rapid.TB, f *partition) {
	t.Helper()
	ranks := map[int]*region{}
	for _, v := range f.g.Values {
		r := f.home[v]
		if r == nil {
			continue
		}
		require.Contains(t, []*region{nil, r}, ranks[r.rank], "two regions of one rank")
		ranks[r.rank] = r
		for _, from := range f.sources[v] {
			if other := f.home[from]; other != nil && other != r {
				require.Less(t, other.rank, r.rank, "%s is read by %s", from.Name, v.Name)
			}
		}
	}
}

// TestNoKernelWaitsForItself plans programs in which sets that the planner tries are not convex.
func TestNoKernelWaitsForItself(t *testing.T) {
	for _, c := range []struct{ name, src string }{
		// The maxima of columns of v4 and of z would share a kernel, and so would out0 and the maxima of
		// rows that v4 needs, which wait for those of z by way of kernels that stand later in the graph.
		{"two softmaxes over different axes", `graph g(x: f64[N, M], z: f64[N, M], w: f64[M]) -> (out0: f64[N, M], out1: f64[M]) {
		v3 = max(tanh(z / (1 + abs(w))), axis=1, keep=true)
		v4 = exp(tanh(z / (1 + abs(w))) - v3) / 64
		v7 = max(v4, axis=0)
		out0 = softmax(z, axis=0) + 0.5
		out1 = v7 * 2
	}`},
		// The weighted sum looks like attention only after the product that it sums was cut in two, with
		// the division by the sum of the weights still in its terms.
		{"softmax times a product", `@bench(N=64, K=2048) graph g(q: bf16[N, N], x: bf16[N, K], w: bf16[K, M]) -> (y: bf16[N, M]) {
		y = softmax(q @ q) @ (x @ w)
	}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := parse(t, c.src)
			work, err := Normalize(g, Options{})
			require.NoError(t, err)
			f := formed(work, Options{Device: ir.Devices()[0]}, nil)
			requireOrdered(t, f.partition)
			compareAtSizes(t, c.src)
		})
	}
}

// drawChain writes a chain of products, softmaxes, norms and projections. Its rows are as many as its
// name for them says, a symbol or a number; so are the columns of each step.
func drawChain(t *rapid.T) string {
	dtype := rapid.SampledFrom([]string{"bf16", "f16", "f32"}).Draw(t, "dtype")
	size := func(what string) int {
		return rapid.SampledFrom([]int{1, 7, 8, 16, 64, 65, 128, 512, 2048, 4096, 8192}).Draw(t, what)
	}
	literal := rapid.Bool().Draw(t, "literal")
	var bench []string
	named := func(name string) string {
		n := fmt.Sprint(size(name))
		if literal {
			return n
		}
		bench = append(bench, name+"="+n)
		return name
	}
	rows := named("R")
	cols := []string{named("A"), named("B")}
	params := []string{fmt.Sprintf("x0: %s[%s, %s]", dtype, rows, cols[0])}
	type value struct{ name, cols string }
	values := []value{{"x0", cols[0]}}
	var lines []string
	steps := rapid.IntRange(1, 6).Draw(t, "steps")
	for i := range steps {
		pick := func(what string) value {
			if rapid.Bool().Draw(t, fmt.Sprint("last ", what, i)) {
				return values[len(values)-1]
			}
			return rapid.SampledFrom(values).Draw(t, fmt.Sprint(what, i))
		}
		a := pick("a")
		name := fmt.Sprintf("v%d", i)
		text, out := "", a.cols
		switch rapid.IntRange(0, 7).Draw(t, fmt.Sprint("step", i)) {
		case 0, 1: // a projection
			out = rapid.SampledFrom(cols).Draw(t, fmt.Sprint("to", i))
			params = append(params, fmt.Sprintf("w%d: %s[%s, %s]", i, dtype, a.cols, out))
			text = fmt.Sprintf("%s @ w%d", a.name, i)
		case 2: // scores, and what they weigh
			b := pick("b")
			if b.cols != a.cols {
				b = a
			}
			v := pick("v")
			text, out = fmt.Sprintf("softmax(%s @ transpose(%s)) @ %s", a.name, b.name, v.name), v.cols
		case 3:
			text = fmt.Sprintf("softmax(%s)", a.name)
		case 4:
			text = fmt.Sprintf("layer_norm(%s)", a.name)
		case 5:
			text = fmt.Sprintf("rms_norm(%s) * sigmoid(%[1]s)", a.name)
		case 6:
			b := pick("c")
			if b.cols != a.cols {
				b = a
			}
			text = fmt.Sprintf("%s + gelu(%s)", a.name, b.name)
		case 7:
			text = fmt.Sprintf("%s - max(%[1]s, axis=0, keep=true)", a.name)
		}
		lines = append(lines, fmt.Sprintf("    %s = %s", name, text))
		values = append(values, value{name, out})
	}
	last := values[len(values)-1]
	annotation := rapid.SampledFrom([]string{"", "", "", "@strict "}).Draw(t, "numerics")
	used := strings.Join(params, " ")
	bench = slices.DeleteFunc(bench, func(b string) bool {
		name, _, _ := strings.Cut(b, "=")
		return !strings.Contains(used, name+"]") && !strings.Contains(used, name+",")
	})
	if len(bench) > 0 {
		annotation += "@bench(" + strings.Join(bench, ", ") + ") "
	}
	return fmt.Sprintf("%sgraph g(%s) -> (y: %s[%s, %s]) {\n%s\n    y = %s\n}\n",
		annotation, strings.Join(params, ", "), dtype, rows, last.cols, strings.Join(lines, "\n"), last.name)
}

// TestChainsOfProductsPlan plans drawn chains, at sizes for which the planner makes different choices:
// every region is behind those that it reads, and every kernel has a variant for all sizes.
func TestChainsOfProductsPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawChain(t)
		g := parse(t, src)
		d := rapid.SampledFrom(ir.Devices()).Draw(t, "device")
		_, err := Plan(g, Options{Device: d})
		require.NoError(t, err, src)
	})
}
