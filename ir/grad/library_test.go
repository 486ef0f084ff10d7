package grad_test

import "testing"

// calls are library functions of x: f64[N, M], each at a size for every one of TestLibrary.
var calls = []string{
	"relu(x)", "relu6(4 * x)", "leaky_relu(x)", "elu(x)", "selu(x)", "celu(x)", "gelu(x)", "gelu_tanh(x)", "sigmoid(x)",
	"log_sigmoid(x)", "silu(x)", "swish(x, beta=1.5)", "mish(x)", "softplus(x)", "softsign(x)", "tanhshrink(x)",
	"softshrink(x)", "hardshrink(x)", "hardtanh(x)", "hardsigmoid(4 * x)", "hardswish(4 * x)", "clamp(x, lo=-0.5, hi=0.7)",
	"lerp(x, x * x, 0.3)", "swiglu(x, x * x)", "geglu(x, x + 1)", "logaddexp(x, x * x)", "softmax(x)", "softmax(x, axis=0)",
	"softmin(x)", "log_softmax(x)", "cumsum(x, axis=0)", "cumprod(x)", "cummax(x)", "cummin(x, axis=0)",
	"cumsum(x, reverse=true, exclusive=true)", "logcumsumexp(x)", "sort(x)", "sort(x, descending=true, axis=0)", "layer_norm(x)",
	"rms_norm(x)", "tril(x)", "triu(x, diagonal=1)", "roll(x, 2)", "flip(x, axis=(0, 1))", "square(x)", "xlogy(x * x, x * x + 1)",
	"x - mean(x, axis=-1, keep=true)", "x * var(x, axis=0, keep=true, correction=0)", "x * std(x, correction=0)",
	"x * l1_norm(x, axis=0, keep=true)", "x * l2_norm(x, axis=-1, keep=true)", "x * l2_norm(x)", "x * linf_norm(x, axis=-1, keep=true)",
	"x * norm(x, p=3.0, axis=0, keep=true)", "x * frobenius_norm(x, keep=true)", "x * logsumexp(x, axis=-1, keep=true)",
	"dropout(x, 0.3, 5)", "x + dropout(x * x, 0.5, 1)",
}

func TestLibrary(t *testing.T) {
	for _, call := range calls {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			p := program{text: "graph g(x: f64[N, M]) -> (y: f64[N, M]) {\n    y = " + call + "\n}"}
			for _, sizes := range sizesOf("NM")[2:4] {
				checkDifferences(t, p, sizes)
				checkSecond(t, p, sizes)
				if t.Failed() {
					return
				}
			}
		})
	}
}
