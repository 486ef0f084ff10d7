package hunt

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse"
	"github.com/fusec/fusec/ir"
)

// What stands in front of projections to heads: windows of W rows of X channels.
var fronts = []string{"x", "x", "layer_norm(x)", "rms_norm(x, gx)", "permute(reshape(x, N, 1, W, X), (0, 2, 1, 3))", "silu(x)"}

// What a projection is made of, from F, a front, to C columns.
var projections = []string{"linear(F, w)", "linear(F, w, b)", "linear(F, w, b)", "relu(linear(F, w))", "gelu(linear(F, w, b))", "linear(F, w) + 1",
	"linear(F, w) * 0.5", "F @ transpose(w)"}

// Queries, keys and values of H heads of D columns from a projection P.
var headings = []string{
	"h = permute(reshape(P, N, W, 3, H, D), (2, 0, 3, 1, 4))\nq = h[0]\nk = h[1]\nv = h[2]",
	"h = permute(reshape(P, N, W, 3, H, D), (2, 0, 3, 1, 4))\nq = h[0]\nk = h[1]\nv = h[2]",
	"q0, k0, v0 = split(reshape(P, N, W, 3 * H * D), 3, axis=-1)\nq = permute(reshape(q0, N, W, H, D), (0, 2, 1, 3))\n" +
		"k = permute(reshape(k0, N, W, H, D), (0, 2, 1, 3))\nv = permute(reshape(v0, N, W, H, D), (0, 2, 1, 3))",
	"h = reshape(P, N, W, H, 3, D)\nq = permute(h[:, :, :, 0], (0, 2, 1, 3))\nk = permute(h[:, :, :, 1], (0, 2, 1, 3))\nv = permute(h[:, :, :, 2], (0, 2, 1, 3))",
	"h = permute(reshape(P, N, W, 3, H, D), (2, 0, 3, 1, 4))\nq = h[0]\nk = kin\nv = vin",
	"h = permute(reshape(P, N, W, 3, H, D), (2, 0, 3, 1, 4))\nq = h[0]\nk = h[1]\nv = vin",
	"h = permute(reshape(P, N, W, 3, H, D), (2, 0, 3, 1, 4))\nq = kin\nk = h[1]\nv = h[2]",
	"h = permute(reshape(P, N, W, 3, H, D), (2, 0, 3, 1, 4))\nq = h[0]\nk = h[0]\nv = h[0]",
}

// What is made of these.
var attentions = []string{
	"o = attention(q, k, v)",
	"o = attention(q, k, v, bias=mask)",
	"o = softmax((q * 0.25) @ transpose(k, -1, -2)) @ v",
	"o = softmax((q @ transpose(k, -1, -2)) * 0.25) @ v",
	"o = softmax((q @ transpose(k, -1, -2)) * 0.25 + mask) @ v",
	"o = softmax((relu(q) * 0.25) @ transpose(relu(k), -1, -2)) @ v",
	"o = relu(q @ transpose(k, -1, -2)) @ v",
	"o = relu(q) @ (transpose(relu(k), -1, -2) @ v)",
	"s = q @ transpose(k, -1, -2)\no = s @ v\ny = s",
	"o = sigmoid(q @ transpose(k, -1, -2)) * softmax(v @ transpose(k, -1, -2))",
}

// What follows: heads beside each other again, and a projection.
var behinds = []string{"z = o", "z = permute(o, (0, 2, 1, 3))", "z = o + 1",
	"z = reshape(permute(o, (0, 2, 1, 3)), N, W, E) * reshape(permute(o, (0, 2, 1, 3)), N, W, E)"}

// drawProjected draws attention of heads projected from one tensor, as transformers of windows have it. Sizes are numbers, but for the windows,
// of which plans expect many.
func drawProjected(r *rand.Rand) drawnCase {
	w, h, d, x := pick(r, 1, 2, 5, 7, 16, 49), pick(r, 1, 2, 3), pick(r, 4, 8, 16, 32), pick(r, 8, 12, 24, 96)
	attention, behind := pick(r, attentions...), pick(r, behinds...)
	width := d // of a head of the result
	if strings.Contains(attention, "softmax(v") {
		width = w
	}
	results := "z: T[" + map[string]string{behinds[0]: "N, H, W, L", behinds[1]: "N, W, H, L", behinds[2]: "N, H, W, L", behinds[3]: "N, W, E"}[behind] + "]"
	if strings.Contains(attention, "y =") {
		results = "y: T[N, H, W, W], " + results
	}
	body := strings.Join([]string{pick(r, headings...), attention, behind}, "\n")
	body = strings.NewReplacer("P", strings.ReplaceAll(pick(r, projections...), "F", pick(r, fronts...))).Replace(body)
	text := "@bench(N=4096)\ngraph projected(x: T[N, W, X], w: T[C, X], b: T[C], gx: T[X], kin: T[N, H, W, D], vin: T[N, H, W, D], mask: T[H, W, W]) -> (" +
		results + ") {\n" + body + "\n}\n"
	text = strings.NewReplacer("T[", pick(r, "bf16[", "bf16[", "f16[", "f32["), "W", fmt.Sprint(w), "H", fmt.Sprint(h), "D", fmt.Sprint(d), "X", fmt.Sprint(x),
		"C", fmt.Sprint(3*h*d), "L", fmt.Sprint(width), "E", fmt.Sprint(h*width)).Replace(text)
	return drawnCase{text: text, sizes: map[string]int64{"N": pick[int64](r, 1, 2)}}
}

// TestProjectedAttentionPlans: there is a plan of every such program for devices with and without tensor cores.
func TestProjectedAttentionPlans(t *testing.T) {
	t.Parallel()
	for _, arch := range []string{"sm_75", "sm_80", "sm_90a"} {
		device, err := ir.DeviceNamed(arch)
		require.NoError(t, err)
		for n := range fullOr[uint64](150, 15) {
			c := drawProjected(rand.New(rand.NewPCG(n, 19)))
			require.NotPanics(t, func() {
				_, err := fuse.Plan(graph(t, c.text), fuse.Options{Device: device})
				require.NoError(t, err, c.text)
			}, c.text)
		}
	}
}

// TestProjectedAttention: and it computes what the interpreter does.
func TestProjectedAttention(t *testing.T) {
	t.Parallel()
	compareDrawn(t, map[string]uint64{"cpu": fullOr[uint64](60, 6), "sm_80": fullOr[uint64](8, 1), "sm_90a": fullOr[uint64](8, 1)}, drawProjected)
}
