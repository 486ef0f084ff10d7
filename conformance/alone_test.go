package conformance

import (
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// aloneColumns are folds over a middle axis of a few dozen elements, beside so many others that a thread has each row alone.
var aloneColumns = map[string]string{
	"places":     `graph g(x: f32[N, C, M]) -> (y: i64[N, M]) { y = argmax(x, axis=1) }`,
	"softmax":    `graph g(x: f32[N, C, M]) -> (y: f32[N, C, M]) { y = softmax(x, axis=1) }`,
	"normalised": `graph g(x: bf16[N, C, M], w: bf16[C]) -> (y: bf16[N, C, M]) { y = normalize(x) * w[none, :, none] }`,
	"two folds": `graph g(x: f16[N, C, M], b: f16[M]) -> (y: f16[N, M], z: f16[N, M]) {
		y = sum(x, axis=1) + b
		z = max(abs(x), axis=1) }`,
	"moments": `graph g(x: f32[N, C, M]) -> (y: f32[N, M], z: f32[N, M]) {
		y = mean(x, axis=1)
		z = var(x, axis=1) }`,
	"losses": `graph g(x: bf16[N, C, M], t: i32[N, M]) -> (y: f32[N, M]) { y[n, m] = logsumexp(f32(x), axis=1)[n, m] - f32(x[n, t[n, m], m] else 0) }`,
}

// aloneRows are the programs by symbols and by numbers.
func aloneRows() (out []row) {
	for name, program := range aloneColumns {
		out = append(out, row{name: name, src: "@bench(N=64, C=21, M=50625) " + program, sizes: [][]int64{{2, 21, 9}, {1, 1, 5}, {3, 33, 16}, {2, 5, 70}, {2, 0, 3}, {0, 4, 4}}})
		if name == "softmax" || name == "losses" { // which threads share where the number of columns is known
			continue
		}
		for _, sizes := range []string{"21, 15", "19, 9", "30, 5"} {
			c, m, _ := strings.Cut(sizes, ", ")
			numbers := strings.NewReplacer("C, M", sizes, ", M]", ", "+m+"]", "[C]", "["+c+"]", "[M]", "["+m+"]").Replace(program)
			out = append(out, row{name: name + " of " + sizes, src: "@bench(N=1048576) " + numbers, sizes: [][]int64{{3}, {70}, {0}}})
		}
	}
	slices.SortFunc(out, func(a, b row) int { return strings.Compare(a.name, b.name) })
	return out
}

func aloneFamilies() []family {
	return []family{{
		name: "columns_alone", rows: aloneRows(), plan: loopsAlone, planned: []string{"sm_90a", "sm_80"},
		on:      []pass{{engine: "cpu"}, {engine: "sm_80"}, {engine: "sm_90a"}, {engine: "gpu"}},
		compile: inTurn(false, "sm_90a", "sm_80"), variants: all,
	}}
}

// loopsAlone reports whether some kernel has a variant in which each thread loops over the columns of its rows.
func loopsAlone(p *ir.Plan) bool {
	return slices.ContainsFunc(p.Kernels, func(k *ir.Kernel) bool {
		return slices.ContainsFunc(k.Variants, func(v *ir.Variant) bool { return v.Strategy == ir.ColumnLoop })
	})
}
