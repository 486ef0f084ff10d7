package fuse

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// wideReads returns, by argument, whether the first variant reads it in vectors.
func wideReads(p *ir.Plan) map[string]bool {
	out := map[string]bool{}
	for _, l := range p.Kernels[0].Variants[0].Locals {
		if r := readIn(l.Def); r != nil {
			out[r.Arg.Name] = out[r.Arg.Name] || l.Wide
		}
	}
	return out
}

func TestOnlyContiguousReadsAreVectors(t *testing.T) {
	for _, c := range []struct {
		name, src string
		want      map[string]bool
	}{
		{"pointwise", `graph g(x: f32[N, 64], b: f32[64], s: f32[N, 1]) -> (y: f32[N, 64]) { y = x + b + s }`,
			map[string]bool{"x": true, "b": true, "s": false}},
		{"rows chosen by an index: each row is contiguous",
			`graph g(x: f32[K, 64], at: i64[N]) -> (y: f32[N, 64]) { y[i, j] = x[at[i], j] + 1 }`,
			map[string]bool{"x": true, "at": false}},
		{"an index that differs from lane to lane",
			`graph g(x: f32[K, 64], at: i64[N, 64]) -> (y: f32[N, 64]) { y[i, j] = x[at[i, j], j] }`,
			map[string]bool{"x": false, "at": true}},
		{"a guard that differs from lane to lane",
			`graph g(x: f32[K, 64], at: i64[64]) -> (y: f32[64, 64]) { y[i, j] = x[i + at[j], j] else 1 }`,
			map[string]bool{"x": false, "at": true}},
		{"a transposed read", `graph g(x: f32[64, N]) -> (y: f32[N, 64]) { y[i, j] = x[j, i] }`, map[string]bool{"x": false}},
		{"a shifted read starts at no multiple", `graph g(x: f32[N, 64]) -> (y: f32[N, 64]) { y[i, j] = x[i, j + 1] }`,
			map[string]bool{"x": false}},
		{"the row above is as aligned as this one",
			`graph g(x: f32[N, 64]) -> (y: f32[N, 64]) { y[i, j] = x[i + 1, j] + x[i, j] }`, map[string]bool{"x": true}},
		{"a reduction in each lane chooses the element", `graph g(x: f32[8, 64], t: f32[M, 64]) -> (y: f32[64]) {
			k = argmax(x, axis=0)
			y[j] = t[k[j], j]
		}`, map[string]bool{"x": true, "t": false}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := planOf(t, c.src)
			require.Len(t, p.Kernels, 1)
			assert.Equal(t, c.want, wideReads(p))
			compareAtSizes(t, c.src)
		})
	}
}
