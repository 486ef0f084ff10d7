package fuse

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// attentionGradient draws a gradient of attention in company: projections of any width in front of it and behind it, in one layer
// or two, with all gradients or a few.
func attentionGradient(rng *rand.Rand) string {
	oneOf := func(list ...string) string { return list[rng.IntN(len(list))] }
	t, depth := oneOf("bf16", "f16"), oneOf("32", "64", "128")
	params, wrt := []string{fmt.Sprintf("x: %s[B, S, %s]", t, depth)}, []string{"x"}
	weighted := func(expr string) string { // each W becomes a parameter
		for strings.Contains(expr, "W") {
			w := fmt.Sprintf("w%d", len(params))
			params = append(params, fmt.Sprintf("%s: %s[%s, %s]", w, t, depth, depth))
			if rng.IntN(3) > 0 {
				wrt = append(wrt, w)
			}
			expr = strings.Replace(expr, "W", w, 1)
		}
		return expr
	}
	var body strings.Builder
	in := "x"
	for layer := range 1 + rng.IntN(2) {
		side := func() string { return fmt.Sprintf(oneOf("%s", "%s @ W", "rms_norm(%s) @ W"), in) }
		out := fmt.Sprintf("attention(%s, %s, %s, causal=%s)", side(), side(), side(), oneOf("true", "false"))
		out = fmt.Sprintf(oneOf("%s", "%s @ W", "gelu(%s @ W) @ W", "rms_norm(%s)"), out)
		fmt.Fprintf(&body, "    y%d = %s + %s\n", layer, weighted(out), in)
		in = fmt.Sprintf("y%d", layer)
	}
	return fmt.Sprintf("graph f(%s, r: %s[B, S, %s]) -> (l: f32[]) {\n%s    l = sum(f32(%s * r))\n}\n@bench(B=32, S=1024)\ngraph g = grad(f, wrt=[%s])\n",
		strings.Join(params, ", "), t, depth, body.String(), in, strings.Join(wrt, ", "))
}

// TestGradientsOfAttentionStream: no scores of attention and no gradients of these go through memory, whatever is around it.
func TestGradientsOfAttentionStream(t *testing.T) {
	count := 8
	if inFull() {
		count = 120
	}
	for seed := range uint64(count) {
		src := attentionGradient(rand.New(rand.NewPCG(seed, 1)))
		file, err := parser.Parse("g.fuse", []byte(src), parser.Options{})
		require.NoError(t, err, src)
		g, err := file.Graph("g")
		require.NoError(t, err, src)
		p, err := Plan(g, Options{})
		require.NoError(t, err, src)
		sizes := algebra.DefaultSizes(g)
		for _, b := range p.At(sizes).Buffers {
			if b.Kind == ir.TempBuffer {
				n, _ := ir.EvalSize(b.Elements(), sizes)
				assert.Less(t, n, 32*1024*int64(1024), "seed %d: %s in\n%s", seed, b.Name, src)
			}
		}
	}
}
