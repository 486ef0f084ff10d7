package parser

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// Sizes that are known at run time only are checked when they bind; the error names
// the tensors that gave them.
func TestGroupsAtRunTime(t *testing.T) {
	scales := "x: bf16[8, K], w: i8[K, 64], s: bf16[G, 64]) -> (y: bf16[8, 64]) {\n    "
	heads := "q: bf16[H, 16, 64], k: bf16[G, 16, 64]) -> "
	for _, c := range []struct {
		name, program string
		fit, unfit    [][][]int
		want          string // of the last that does not fit
	}{
		{"scales by reshape", scales + "y = x @ reshape(reshape(w, G, 32, 64) * s[:, none], K, 64)\n}",
			[][][]int{{{8, 96}, {96, 64}, {3, 64}}, {{8, 0}, {0, 64}, {0, 64}}},
			[][][]int{{{8, 96}, {96, 64}, {4, 64}}, {{8, 100}, {100, 64}, {3, 64}}},
			"sizes do not fit at in.fuse:2:21: reshape of w, i8[K, 64], to [G, 32, 64] needs K == G * 32; " +
				"found K=100 in dimension 1 of x, G=3 in dimension 0 of s"},
		{"scales of what is left", scales + "y = x @ reshape(reshape(w, G, -1, 64) * s[:, none], K, 64)\n}",
			[][][]int{{{8, 96}, {96, 64}, {4, 64}}, {{8, 96}, {96, 64}, {96, 64}}},
			[][][]int{{{8, 96}, {96, 64}, {0, 64}}, {{8, 100}, {100, 64}, {3, 64}}},
			"sizes do not fit at in.fuse:2:21: reshape of w, i8[K, 64], to [G, -1, 64] needs K divisible by G; " +
				"found K=100 in dimension 1 of x, G=3 in dimension 0 of s"},
		{"scales by index", scales + "y[m, n] = sum[k] x[m, k] * (bf16(w[k, n]) * s[k / 32, n])\n}",
			[][][]int{{{8, 96}, {96, 64}, {3, 64}}, {{8, 65}, {65, 64}, {3, 64}}, {{8, 0}, {0, 64}, {0, 64}}},
			[][][]int{{{8, 1}, {1, 64}, {0, 64}}, {{8, 100}, {100, 64}, {3, 64}}},
			"sizes do not fit at in.fuse:2:51: index k / 32 of axis 0 of s must stay inside: needs K <= G * 32, " +
				"where k runs over K, axis 1 of x; found G=3 in dimension 0 of s, K=100 in dimension 1 of x"},
		{"scales with a fill", scales + "y[m, n] = sum[k] x[m, k] * (bf16(w[k, n]) * (s[k / 32, n] else 1))\n}",
			[][][]int{{{8, 100}, {100, 64}, {3, 64}}}, nil, ""},
		{"scales with a predicate", scales + "y[m, n] = sum[k where k < G * 32] x[m, k] * bf16(w[k, n]) * s[k / 32, n]\n}",
			[][][]int{{{8, 100}, {100, 64}, {3, 64}}}, nil, ""},
		{"heads by index", heads + "(y: f32[H, 16]) {\n    y[h, i] = sum[d: 64] f32(q[h, i, d]) * f32(k[h / (H / G), i, d])\n}",
			[][][]int{{{6, 16, 64}, {3, 16, 64}}, {{6, 16, 64}, {6, 16, 64}}, {{0, 16, 64}, {4, 16, 64}}},
			[][][]int{{{2, 16, 64}, {4, 16, 64}}, {{6, 16, 64}, {0, 16, 64}}, {{6, 16, 64}, {4, 16, 64}}},
			"sizes do not fit at in.fuse:2:50: index h / (H / G) of axis 0 of k must stay inside: needs H <= H / G * G, " +
				"where h runs over H, the declaration of y; found H=6 in dimension 0 of q, G=4 in dimension 0 of k"},
		{"heads by split", "x: bf16[L, E]) -> (y: bf16[L, E / 3]) {\n    q, k, v = split(x, 3, axis=-1)\n    y = q * k + v\n}",
			[][][]int{{{5, 96}}, {{5, 0}}}, [][][]int{{{5, 100}}},
			"sizes do not fit at in.fuse:2:15: split of axis 1 of x, bf16[L, E], into 3 equal parts needs E divisible by 3; " +
				"found E=100 in dimension 1 of x"},
		{"heads of what is left", "x: bf16[L, E]) -> (y: bf16[L, 12, E / 12]) {\n    y = reshape(x, L, 12, -1)\n}",
			[][][]int{{{5, 96}}, {{0, 96}}}, [][][]int{{{0, 100}}, {{5, 100}}},
			"sizes do not fit at in.fuse:2:9: reshape of x, bf16[L, E], to [L, 12, -1] needs E divisible by 12; " +
				"found E=100 in dimension 1 of x"},
		{"channels of a convolution", "x: f32[N, C, 8], w: f32[O, C / 4, 3]) -> (y: f32[N, O, 6]) {\n    y = conv1d(x, w, groups=4)\n}",
			[][][]int{{{5, 8, 8}, {4, 2, 3}}}, [][][]int{{{5, 9, 8}, {4, 2, 3}}, {{5, 8, 8}, {6, 2, 3}}},
			"sizes do not fit at in.fuse:2:9: conv1d needs output channels divisible by groups; found O=6 in dimension 0 of w"},
		{"a group for each channel", "x: f32[N, 2 * C, 8], w: f32[2 * C, 1, 3]) -> (y: f32[N, 2 * C, 6]) {\n    y = conv1d(x, w, groups=2 * C)\n}",
			[][][]int{{{5, 8, 8}, {8, 1, 3}}, {{0, 2, 8}, {2, 1, 3}}}, [][][]int{{{5, 0, 8}, {0, 1, 3}}},
			"sizes do not fit at in.fuse:2:19: argument weight of conv1d needs C * 2 >= 1; found C=0 in dimension 1 of x"},
		{"windows of both axes", "x: f32[1, 1, M, M]) -> (y: f32[1, 9, (M - 2) * ((M + 1) / 2 - 2)]) {\n" +
			"    y = unfold2d(x, 3, dilation=(1, 2), stride=(1, 2))\n}",
			[][][]int{{{1, 1, 6, 6}}, {{1, 1, 3, 3}}}, [][][]int{{{1, 1, 2, 2}}, {{1, 1, 1, 1}}}, // -1 and -1 have a product of 1
			"sizes do not fit at in.fuse:2:9: size needs M - 2 >= 0; found M=1 in dimension 2 of x"},
		{"pairs of features", "x: f32[N, D]) -> (y: f32[N, D]) {\n    y = rope(x)\n}",
			[][][]int{{{5, 8}}, {{5, 0}}}, [][][]int{{{5, 7}}},
			"sizes do not fit at in.fuse:2:9: split of axis 1 of w, f32[N, D], into 2 equal parts needs D divisible by 2; " +
				"found D=7 in dimension 1 of x"},
	} {
		t.Run(c.name, func(t *testing.T) {
			file, err := Parse("in.fuse", []byte("graph f("+c.program), Options{})
			require.NoError(t, err)
			g := file.Graphs[0]
			again, err := Parse("again.fuse", []byte(ir.Print(g)), Options{})
			require.NoError(t, err)
			assert.Equal(t, ir.Print(g), ir.Print(again.Graphs[0]))
			for _, shapes := range c.fit {
				_, err := ir.BindGraph(g, shapes)
				assert.NoError(t, err, "%v", shapes)
			}
			for i, shapes := range c.unfit {
				_, err := ir.BindGraph(g, shapes)
				require.Error(t, err, "%v", shapes)
				if i == len(c.unfit)-1 {
					assert.EqualError(t, err, c.want)
				}
			}
		})
	}
}
