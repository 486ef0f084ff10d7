package grad_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

const called = `
fn cube(x: T[]) -> T[] = x * x * x

fn slope(x: T[]) -> T[] = grad(cube, x)

fn energy(x: T[N], w: T[N]) -> T[] = sum(silu(x * w) * x)

fn force(x: T[N], w: T[N]) -> T[N] = -grad(energy, x, w)

fn hill(x: T[N], v: T[N]) -> T[] = sum(force(x, v) * v)

fn spread(x: T[N]) -> T[] = var(x, correction=0)

fn held(x: T[N]) -> T[] = sum(x * stop_gradient(x))

`

// calls of grad in expressions, and what they are.
var calledPairs = []struct{ name, params, result, got, want string }{
	{"scalar", "x: f64[]", "f64[]", "y = grad(cube, x)", "y = 3 * x * x"},
	{"each element", "x: f64[N]", "f64[N]", "y[i] = grad(cube, x[i])", "y = 3 * x * x"},
	{"of a gradient", "x: f64[N]", "f64[N]", "y[i] = grad(slope, x[i]) * slope(x[i])", "y = 18 * x * x * x"},
	{"by the first", "x: f64[N], w: f64[N]", "f64[N]", "y = grad(energy, x, w)",
		"s = sigmoid(x * w)\n    y = x * w * s + x * w * (s + x * w * s * (1 - s))"},
	{"by the second", "x: f64[N], w: f64[N]", "f64[N]", "y = grad(energy, x, w, wrt=w)",
		"s = sigmoid(x * w)\n    y = x * x * (s + x * w * s * (1 - s))"},
	{"by both, in the order of wrt", "x: f64[N], w: f64[N]", "f64[N]", "dw, dx = grad(energy, x, w, wrt=(w, x))\n    y = dx - 2 * dw",
		"y = grad(energy, x, w) - 2 * grad(energy, x, w, wrt=w)"},
	{"with its value", "x: f64[N], w: f64[N]", "f64[N]", "l, d = grad(energy, x, w, values=true)\n    y = l * d", "y = energy(x, w) * grad(energy, x, w)"},
	{"one tensor for both", "x: f64[N]", "f64[N]", "y = grad(energy, x, x)", "s = sigmoid(x * x)\n    y = x * x * s + x * x * (s + x * x * s * (1 - s))"},
	{"adjoint of a tensor", "x: f64[N], u: f64[N]", "f64[N]", "y = grad(softmax, x, dy=u)", "p = softmax(x)\n    y = p * (u - sum(u * p))"},
	{"adjoint that is a number", "x: f64[N], w: f64[N]", "f64[N]", "y = grad(energy, x, w, dy=3)", "y = 3 * grad(energy, x, w)"},
	{"rows", "x: f64[N, M], w: f64[M]", "f64[N, M]", "y[n, m] = grad(energy, x[n], w)[m]",
		"s = sigmoid(x * w)\n    y = x * w * s + x * w * (s + x * w * s * (1 - s))"},
	{"rows by what they share", "x: f64[N, M], w: f64[M]", "f64[N, M]", "y[n, m] = grad(energy, x[n], w, wrt=w)[m]",
		"s = sigmoid(x * w)\n    y = x * x * (s + x * w * s * (1 - s))"},
	{"in a reduction", "x: f64[N, M], w: f64[M]", "f64[M]", "y[m] = sum[n: N] grad(energy, x[n], w, wrt=w)[m]",
		"s = sigmoid(x * w)\n    y = sum(x * x * (s + x * w * s * (1 - s)), axis=0)"},
	{"a constant part", "x: f64[N]", "f64[N]", "y = grad(held, x)", "y = x"},
	{"stationary", "x: f64[N]", "f64[N]", "y = grad(spread, x)", "y = 2 * (x - mean(x)) / N"},
	{"declared", "x: f64[N]", "f64[N]", "y[i] = grad(relu, x[i]) + grad(sigmoid, 400 * x[i])",
		"y = where(x > 0, 1, 0) + sigmoid(400 * x) * sigmoid(-400 * x)"},
	{"inside a function", "x: f64[N], v: f64[N]", "f64[N]", "y = grad(hill, x, v)", `t = x * v
    s = sigmoid(t)
    y = -v * (2 * v * (s + t * s * (1 - s)) + x * v * v * s * (1 - s) * (2 + t * (1 - 2 * s)))`},
}

func TestGradOfFunctions(t *testing.T) {
	for _, p := range calledPairs {
		t.Run(p.name, func(t *testing.T) {
			header := "(" + p.params + ") -> (y: " + p.result + ") {\n    "
			all := graphs(t, called+"graph got"+header+p.got+"\n}\n\ngraph want"+header+p.want+"\n}\n")
			require.NoError(t, ir.Verify(all["got"]), ir.Print(all["got"]))
			for _, sizes := range sizesOf("NM") {
				in := inputs(t, all["got"], program{}, sizes, 3)
				got, want := run(t, all["got"], in)[0].F, run(t, all["want"], in)[0].F
				require.Len(t, got, len(want))
				for k := range want {
					assert.InDelta(t, want[k], got[k], 1e-12*max(1, math.Abs(want[k])), "%v\n%s", sizes, ir.Print(all["got"]))
				}
			}
		})
	}
}

// TestDerivativesOfCalls: graphs that call grad are differentiated like others.
func TestDerivativesOfCalls(t *testing.T) {
	for _, p := range calledPairs {
		if p.name == "a constant part" { // all of it, for the second derivative
			continue
		}
		q := program{text: called + "graph g(" + p.params + ") -> (y: " + p.result + ") {\n    " + p.got + "\n}\n"}
		t.Run(p.name, func(t *testing.T) {
			for _, sizes := range sizesOf("NM")[2:4] {
				all := graphs(t, q.text+"\ngraph gradient = grad(g)\ngraph along = jvp(g)\n")
				differences(t, all["g"], all["gradient"], q, sizes)
				alongGraph(t, all["g"], all["along"], q, sizes)
				sameProduct(t, all["g"], all["along"], all["gradient"], q, sizes)
			}
		})
	}
}
