package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

// TestPartsArePickedInOneKernel: a choice among the parts of a stack by a sum with a mask, or by an einsum, is one kernel that
// writes neither the stack nor the mask; so is one among the parts of stacks of stacks, whose planes that kernel stores.
func TestPartsArePickedInOneKernel(t *testing.T) {
	const planes = `q = a * (1 - s)
		u = exp(a * s)
		at = (i32(floor(a)) % 3)[:, none] == i32(iota(3))[:, none]
		p = `
	for name, src := range map[string]string{
		"a stack": `graph g(a: f32[N, M], s: f32[N, M]) -> (y: f32[N, M]) { ` + planes + `stack(q, u, s, axis=1)
			y = sum(f32(at) * p, axis=1) }`,
		"the largest": `graph g(a: f32[N, M], s: f32[N, M]) -> (y: f32[N, M]) { ` + planes + `stack(q, u, s, axis=1)
			y = max(where(at, p, -1), axis=1) }`,
		"stacks": `graph g(a: f32[N, M], s: f32[N, M]) -> (y: f32[N, 2, M]) { ` + planes + `stack(stack(q, u, s, axis=1), stack(u, a, q, axis=1), axis=1)
			y = sum(f32(at)[:, none] * p, axis=2) }`,
		"an einsum": `graph g(a: f32[N, M], s: f32[N, M]) -> (y: f32[N, 2, M]) { ` + planes + `stack(stack(q, u, s, axis=1), stack(u, a, q, axis=1), axis=1)
			y = einsum("nim,ncim->ncm", f32(at), p) }`,
	} {
		t.Run(name, func(t *testing.T) {
			src := "@bench(N=128, M=50000) " + src
			assert.Len(t, planOf(t, src).Kernels, 1)
			compareAtSizes(t, src)
		})
	}
}

// TestPlanIsGraphForPickedParts compares plans with graphs on reductions over the parts of stacks, and of stacks of stacks, of which
// some are written or read elsewhere too.
func TestPlanIsGraphForPickedParts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := func() string {
			return rapid.SampledFrom([]string{"a", "s", "exp(a)", "a * s", "q", "q + s", "q * 0"}).Draw(t, "part")
		}
		n := rapid.IntRange(2, 9).Draw(t, "parts")
		stack := func() string {
			parts := make([]string, n)
			for i := range parts {
				parts[i] = part()
			}
			return "stack(" + strings.Join(parts, ", ") + ", axis=1)"
		}
		mask := fmt.Sprintf("(i32(floor(abs(a) * 3)) %% %d)[:, none] == i32(iota(%d))[:, none]", n, n)
		op := rapid.SampledFrom([]string{"sum", "max", "prod"}).Draw(t, "op")
		kind := rapid.SampledFrom([]string{"f32", "f16", "@strict f32"}).Draw(t, "type")
		kind, strict := strings.TrimPrefix(kind, "@strict "), strings.HasPrefix(kind, "@strict")
		src := fmt.Sprintf("graph g(a: %[1]s[N, 6], s: %[1]s[N, 6]) -> (y: %[1]s[N, 6]) {\n q = tanh(a) - s\n at = %[2]s\n p = %[3]s\n y = %[1]s(%[4]s(where(at, p, 0.5), axis=1))\n}",
			kind, mask, stack(), op)
		switch rapid.IntRange(0, 2).Draw(t, "readers") {
		case 1:
			src = fmt.Sprintf("graph g(a: %[1]s[N, 6], s: %[1]s[N, 6]) -> (y: %[1]s[N, 2, 6]) {\n q = tanh(a) - s\n at = %[2]s\n p = stack(%[3]s, %[4]s, axis=1)\n y = %[1]s(%[5]s(%[1]s(at)[:, none] * p, axis=2))\n}",
				kind, mask, stack(), stack(), op)
		case 2:
			src = fmt.Sprintf("graph g(a: %[1]s[N, 6], s: %[1]s[N, 6]) -> (y: %[1]s[N, 6], p: %[1]s[N, %[5]d, 6]) {\n q = tanh(a) - s\n at = %[2]s\n p = %[3]s\n y = %[1]s(%[4]s(where(at, p, 0.5), axis=1))\n}",
				kind, mask, stack(), op, n)
		}
		if strict {
			src = "@strict " + src
		}
		compareAt(t, src, rapid.SampledFrom(testSizes).Draw(t, "size"), 7)
	})
}
