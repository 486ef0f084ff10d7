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

// drawnAttention draws a program of attention in company.
type drawnAttention struct {
	rng              *rand.Rand
	dtype            string
	width, head, few int // of what layers take and give, of a head, and heads of keys
	params, wrt      []string
}

func (d *drawnAttention) oneOf(list ...string) string { return list[d.rng.IntN(len(list))] }

// times is x, sometimes normalised, times weights of its own.
func (d *drawnAttention) times(x string, wide int) string {
	w := fmt.Sprintf("w%d", len(d.params))
	d.params = append(d.params, fmt.Sprintf("%s: %s[%d, %d]", w, d.dtype, d.width, wide))
	if d.rng.IntN(3) > 0 {
		d.wrt = append(d.wrt, w)
	}
	return fmt.Sprintf(d.oneOf("%s @ %s", "rms_norm(%s) @ %s"), x, w)
}

// side is the queries, keys or values of heads.
func (d *drawnAttention) side(x string, heads int) string {
	all := d.width / d.head
	if all == 1 && d.rng.IntN(3) == 0 {
		return x
	}
	y := d.times(x, heads*d.head)
	if all == 1 {
		return y
	}
	y = fmt.Sprintf("transpose(reshape(%s, B, S, %d, %d), 1, 2)", y, heads, d.head)
	if heads < all {
		return fmt.Sprintf("repeat(%s, %d, axis=1)", y, all/heads)
	}
	return y
}

func (d *drawnAttention) layer(x string) string {
	all := d.width / d.head
	out := fmt.Sprintf("attention(%s, %s, %s, causal=%s)", d.side(x, all), d.side(x, d.few), d.side(x, d.few), d.oneOf("true", "false"))
	if all > 1 {
		out = fmt.Sprintf("reshape(transpose(%s, 1, 2), B, S, %d)", out, d.width)
	}
	switch d.rng.IntN(4) {
	case 0:
		out = d.times(out, d.width)
	case 1:
		out = d.times("gelu("+d.times(out, d.width)+")", d.width)
	case 2:
		out = "rms_norm(" + out + ")"
	}
	return out + " + " + x
}

// attentionGradient draws a gradient of attention in company: projections of any width in front of it and behind it, with heads that
// share keys, in one layer or two, with all gradients or a few.
func attentionGradient(rng *rand.Rand) string {
	d := &drawnAttention{rng: rng, head: []int{32, 64, 128}[rng.IntN(3)]}
	d.dtype, d.width = d.oneOf("bf16", "f16"), d.head*[]int{1, 2, 4}[rng.IntN(3)]
	d.few = max(1, d.width/d.head/[]int{1, 2, 4}[rng.IntN(3)])
	d.params, d.wrt = []string{fmt.Sprintf("x: %s[B, S, %d]", d.dtype, d.width)}, []string{"x"}
	var body strings.Builder
	in := "x"
	for layer := range 1 + rng.IntN(2) {
		fmt.Fprintf(&body, "    y%d = %s\n", layer, d.layer(in))
		in = fmt.Sprintf("y%d", layer)
	}
	return fmt.Sprintf("graph f(%s, r: %s[B, S, %d]) -> (l: f32[]) {\n%s    l = %s\n}\n@bench(B=32, S=1024)\ngraph g = grad(f, wrt=[%s])\n",
		strings.Join(d.params, ", "), d.dtype, d.width, body.String(), d.loss(in), strings.Join(d.wrt, ", "))
}

// loss is a loss of a result, behind which each element of it has a gradient of its own, or few do.
func (d *drawnAttention) loss(y string) string {
	return strings.ReplaceAll(d.oneOf("sum(f32(Y * r))", "sum(f32(Y * r))", "mean(f32(Y))", "sum(f32(Y * r[0, 0]))", "sum(f32(Y) * f32(r[:, :, :1]))",
		"sum(f32(mean(Y, axis=1) * r[:, 0]))", "sum(f32(max(Y, axis=1) * r[:, 0]))", "sum(f32(Y[:, 0] * r[:, 0]))", "sum(mean(f32(Y), axis=2) * f32(r[:, :, 0]))"), "Y", y)
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

// TestGradientsReadWhatIsStored: what attention gives is kept once, in the 16 bits of its type, and not in f32 for its gradient.
func TestGradientsReadWhatIsStored(t *testing.T) {
	for _, causal := range []string{"true", "false"} {
		file, err := parser.Parse("g.fuse", []byte(`graph f(q: bf16[B, 8, S, 64], k: bf16[B, 2, S, 64], v: bf16[B, 2, S, 64], w: bf16[512, 512], r: bf16[B, S, 512]) -> (l: f32[]) {
			y = attention(q, repeat(k, 4, axis=1), repeat(v, 4, axis=1), causal=`+causal+`)
			l = sum(f32((reshape(transpose(y, 1, 2), B, S, 512) @ w) * r)) }
			@bench(B=8, S=1024) graph g = grad(f, wrt=[q, k, v, w])`), parser.Options{})
		require.NoError(t, err)
		g, err := file.Graph("g")
		require.NoError(t, err)
		p, err := Plan(g, Options{})
		require.NoError(t, err)
		sizes := algebra.DefaultSizes(g)
		for _, b := range p.At(sizes).Buffers {
			n, _ := ir.EvalSize(b.Elements(), sizes)
			assert.False(t, b.Kind == ir.TempBuffer && b.Type == ir.F32 && n >= 8*8*1024*64, "causal=%s: %s", causal, b.Name)
		}
	}
}
