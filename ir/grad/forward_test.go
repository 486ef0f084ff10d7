package grad_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// checkForward compares derivatives along a drawn direction v with central differences, and with
// the gradients of weights u: u . (J v) == (J' u) . v.
func checkForward(t *testing.T, p program, sizes map[string]int64) {
	all := graphs(t, p.text+"\ngraph along = jvp(g)\ngraph gradient = grad(g)\n")
	alongGraph(t, all["g"], all["along"], p, sizes)
	sameProduct(t, all["g"], all["along"], all["gradient"], p, sizes)
}

// checkForwardOfGradient does so for the gradient in place of the program: products of its
// Hessian with a vector. Reverse over forward, and forward over forward, give the same.
func checkForwardOfGradient(t *testing.T, p program, sizes map[string]int64) {
	all := graphs(t, p.text+`
graph first = grad(g)
graph along = jvp(first)
graph gradient = grad(first)
graph line = jvp(g)
graph line_gradient = grad(line)
graph line_along = jvp(line)
`)
	for of, ways := range map[string][2]string{"first": {"along", "gradient"}, "line": {"line_along", "line_gradient"}} {
		require.NoError(t, ir.Verify(all[ways[0]]), ir.Print(all[ways[0]]))
		alongGraph(t, all[of], all[ways[0]], p, sizes)
		sameProduct(t, all[of], all[ways[0]], all[ways[1]], p, sizes)
	}
}

// moved are the inputs of along that t_x moves: their places and those of t_x.
func moved(t *testing.T, forward, along *ir.Graph) map[int]int {
	out := map[int]int{}
	at := len(forward.Inputs)
	for i, v := range forward.Inputs {
		name := "t_" + v.Name // and t_x_2 where there is a t_x
		if at < len(along.Inputs) && (along.Inputs[at].Name == name || along.Inputs[at].Name == name+"_2") {
			out[i] = at
			at++
		}
	}
	require.Equal(t, len(along.Inputs), at, ir.Print(along))
	return out
}

// alongGraph compares tangents with central differences.
func alongGraph(t *testing.T, forward, along *ir.Graph, p program, sizes map[string]int64) {
	require.NoError(t, ir.Verify(along), ir.Print(along))
	in := directed(t, along, p, sizes)
	pairs := moved(t, forward, along)
	const h = 3e-6
	shifted := func(by float64) []*interp.Tensor {
		at := append([]*interp.Tensor(nil), in[:len(forward.Inputs)]...)
		for i, d := range pairs {
			x := interp.New(in[i].Type, in[i].Shape...)
			for k := range x.F {
				x.F[k] = in[i].F[k] + by*in[d].F[k]
			}
			at[i] = x
		}
		return run(t, forward, at)
	}
	up, down := shifted(h), shifted(-h)
	tangents := run(t, along, in)
	for i, o := range forward.Outputs {
		if !o.Value.Type.IsFloat() {
			continue
		}
		for k, got := range tangents[0].F {
			want := (up[i].F[k] - down[i].F[k]) / (2 * h)
			if math.IsInf(up[i].F[k], 0) && up[i].F[k] == down[i].F[k] {
				want = 0 // the maximum of nothing
			}
			allowed := 1e-6 * max(1, math.Abs(want), math.Abs(up[i].F[k])/10)
			if !assert.InDelta(t, want, got, allowed, "t_%s[%d] at %v\n%s", o.Name, k, sizes, ir.Print(along)) {
				return
			}
		}
		tangents = tangents[1:]
	}
	require.Empty(t, tangents)
}

// directed draws inputs; directions are of the size of 1 whatever the inputs are.
func directed(t *testing.T, g *ir.Graph, p program, sizes map[string]int64) []*interp.Tensor {
	in := inputs(t, g, p, sizes, 23)
	rnd := rand.New(rand.NewPCG(5, 6))
	for i, v := range g.Inputs {
		if strings.HasPrefix(v.Name, "t_") {
			for k := range in[i].F {
				in[i].F[k] = rnd.NormFloat64()
			}
		}
	}
	return in
}

// sameProduct: u . (J v) == (J' u) . v within rounding.
func sameProduct(t *testing.T, forward, along, gradient *ir.Graph, p program, sizes map[string]int64) {
	in := directed(t, along, p, sizes)
	pairs := moved(t, forward, along)
	back := append([]*interp.Tensor(nil), in[:len(forward.Inputs)]...)
	weights := inputs(t, gradient, p, sizes, 29)[len(forward.Inputs):]
	back = append(back, weights...)
	left, right, size := 0.0, 0.0, 1.0
	for i, y := range run(t, along, in) {
		for k, v := range y.F {
			u := 1.0
			if len(weights) > 0 {
				u = weights[i].F[k]
			}
			left += u * v
			size += math.Abs(u * v)
		}
	}
	grads, at := run(t, gradient, back), 0
	for i := range forward.Inputs {
		if d, ok := pairs[i]; ok {
			for k, v := range grads[at].F {
				right += v * in[d].F[k]
				size += math.Abs(v * in[d].F[k])
			}
			at++
		}
	}
	require.Equal(t, len(grads), at)
	assert.InDelta(t, left, right, 1e-11*size, "at %v\n%s\n%s", sizes, ir.Print(along), ir.Print(gradient))
}

// shorter reads more than it reduces over: the minimum of nothing has no place.
var shorter = program{name: "min of fewer than there are", sizes: append(sizesOf("NM"), map[string]int64{"N": 1, "M": 0}),
	text: "graph g(x: f64[N], z: f64[M]) -> (y: f64[], s: f64[]) {\n y = min[k: M] x[k]\n s = sum(z) + sum(x)\n}"}

func TestForwardOfRows(t *testing.T) {
	for _, p := range slices.Concat(rows, values, []program{shorter}) {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			for _, sizes := range p.sizes {
				checkForward(t, p, sizes)
				if t.Failed() {
					return
				}
			}
		})
	}
}

func TestForwardOfLibrary(t *testing.T) {
	for _, call := range calls {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			p := program{text: "graph g(x: f64[N, M]) -> (y: f64[N, M]) {\n    y = " + call + "\n}"}
			for _, sizes := range sizesOf("NM")[2:4] {
				checkForward(t, p, sizes)
				checkForwardOfGradient(t, p, sizes)
				if t.Failed() {
					return
				}
			}
		})
	}
}

// TestForwardAtEdges: at corners, and where functions overflow, both modes follow the same
// conventions. The functions are of one element each, so that tangents along 1 are gradients.
func TestForwardAtEdges(t *testing.T) {
	edges := []float64{0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 3, -3, 6, 100, -100, 1e30, -1e30, math.Inf(1), math.Inf(-1)}
	for _, call := range []string{"relu(x)", "relu6(x)", "hardtanh(x)", "clamp(x, lo=-0.5, hi=0.5)", "abs(x)", "max(x, 0)", "min(x, -x)",
		"sigmoid(x)", "silu(x)", "softplus(x)", "log_sigmoid(x)", "mish(x)", "gelu_tanh(x)", "where(x > 0, log(x), 0)", "x ** 2 + x ** 0", "x ** x",
		"atan2(x, x)", "sqrt(x)", "l2_norm(x[:, none], axis=-1)"} {
		all := graphs(t, "graph g(x: f32[N]) -> (y: f32[N]) {\n y = "+call+"\n}\ngraph along = jvp(g)\ngraph gradient = grad(g)\n")
		x, one := interp.New(ir.F32, len(edges)), interp.New(ir.F32, len(edges))
		copy(x.F, edges)
		for i := range one.F {
			one.F[i] = 1
		}
		got, want := run(t, all["along"], []*interp.Tensor{x, one})[0].F, run(t, all["gradient"], []*interp.Tensor{x, one})[0].F
		for i, w := range want {
			same := got[i] == w || got[i] != got[i] && w != w || math.Abs(got[i]-w) <= 1e-6*math.Abs(w)
			assert.True(t, same, "%s at %v: %v, not %v", call, edges[i], got[i], w)
		}
	}
}
