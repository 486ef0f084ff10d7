package fusec

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/tensor"
)

// Products are contractions in every order of their operands, with what may stand
// around them; T is the type of the operands.
var Products = map[string]string{
	"plain":     "(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a @ b }",
	"bt":        `(a: T[M, K], b: T[N, K]) -> (y: T[M, N]) { y = einsum("mk,nk->mn", a, b) }`,
	"at":        `(a: T[K, M], b: T[K, N]) -> (y: T[M, N]) { y = einsum("km,kn->mn", a, b) }`,
	"at_bt":     `(a: T[K, M], b: T[N, K]) -> (y: T[M, N]) { y = einsum("km,nk->mn", a, b) }`,
	"yt":        `(a: T[M, K], b: T[K, N]) -> (y: T[N, M]) { y = einsum("mk,kn->nm", a, b) }`,
	"wide":      "(a: T[M, K], b: T[K, N]) -> (y: f32[M, N]) { y = f32(a) @ f32(b) }",
	"batch":     `(a: T[3, M, K], b: T[3, K, N]) -> (y: T[3, M, N]) { y = a @ b }`,
	"broadcast": `(a: T[3, M, K], b: T[N, K]) -> (y: T[3, M, N]) { y = einsum("bmk,nk->bmn", a, b) }`,
	"heads":     `(a: T[M, 2, K], b: T[N, 2, K]) -> (y: T[2, M, N]) { y = einsum("mhk,nhk->hmn", a, b) }`,
	"slice":     "(a: T[M, K], b: T[K, N]) -> (y: T[M, N]) { y = a[:, 8:] @ b[8:, :] }",
	"gated":     `(a: T[M, K], b: T[K, N], c: T[K, N]) -> (y: T[M, N]) { y = silu(a @ b) * (a @ c) }`,
	"gated_bt": `(a: T[M, K], b: T[N, K], c: T[N, K], r: T[M, N]) -> (y: T[M, N], z: T[M, N]) {
		y = silu(einsum("mk,nk->mn", a, b)) * einsum("nk,mk->mn", c, a)
		z = r + y
	}`,
	"ffn": `(a: T[M, K], b: T[K, N], bias: T[N], r: T[M, N], s: f32[M]) -> (y: T[M, N], z: f32[M, N]) {
		t = a @ b + bias
		y = gelu(t) + r
		z = f32(t) * unsqueeze(s, 1)
	}`,
	"kept": `(a: T[M, K], b: T[K, N]) -> (y: T[M, N], z: T[M, N]) { y = a @ b
		z = gelu(y) }`,
	"biases": `(a: T[3, M, K], b: T[3, K, N], c: T[3, N], d: T[N]) -> (y: T[3, M, N]) { y = a @ b * d + unsqueeze(c, 1) }`,
}

// productSizes are M, N and K: whole tiles, parts of them, odd sizes that the copy
// engine does not take, no columns, many tiles.
var productSizes = [][3]int64{{128, 256, 64}, {129, 264, 72}, {63, 40, 1000}, {33, 520, 16}, {127, 129, 96},
	{129, 65, 33}, {64, 64, 0}, {7, 129, 63}, {1, 1, 1}, {300, 520, 24}}

// TestProductsOnGPU compares every product with the interpreter, and asks for the
// same bits in repetitions.
func TestProductsOnGPU(t *testing.T) {
	dev := openGPU(t, runtime.Options{OnWarning: func(err error) { t.Log("warning:", err) }})
	for name, text := range Products {
		for _, half := range []string{"bf16", "f16"} {
			src := "graph product" + strings.ReplaceAll(text, "T[", half+"[")
			p, f := loaded(t, dev, src)
			for _, n := range productSizes {
				if name == "slice" && n[2] < 16 {
					continue
				}
				sizes := map[string]int64{"M": n[0], "N": n[1], "K": n[2]}
				t.Run(fmt.Sprint(name, "/", half, n), func(t *testing.T) {
					compareWithInterpreter(t, p.Graph(), f, sizes)
					requireSameBits(t, p.Graph(), f, sizes)
				})
			}
		}
	}
}

// MixedProducts have an operand of integers, which tiles of 16-bit floats cannot take as
// memory holds it.
var MixedProducts = map[string]string{
	"right":     "(x: bf16[M, K], w: T[N, K]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k]) }",
	"left":      "(x: T[M, K], w: f16[K, N]) -> (y: f32[M, N]) { y[m, n] = sum[k] f32(x[m, k]) * f32(w[k, n]) }",
	"gated":     "(x: bf16[M, K], a: T[K, N], b: bf16[K, N]) -> (y: bf16[M, N]) { y = silu(x @ bf16(a)) * (x @ b) }",
	"epilogue":  "(x: bf16[M, K], w: T[N, K], s: f32[N]) -> (y: bf16[M, N]) { y[m, n] = bf16(sum[k] f32(x[m, k]) * f32(w[n, k]) * s[n]) }",
	"attention": "(q: bf16[2, M, 64], k: T[2, N, 64], v: bf16[2, N, 64], z: bf16[K]) -> (o: bf16[2, M, 64]) { o = attention(q * 0.125, bf16(k) * 0.125, v) + z[0] }",
	"keys":      "(q: bf16[2, M, 64], k: T[2, N, 64], v: bf16[2, N, 64], z: bf16[K]) -> (o: bf16[2, M, 64]) { o = attention(q, bf16(k), v) + z[0] }",
}

func TestMixedProductsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	for name, text := range MixedProducts {
		for _, dtype := range []string{"i8", "bool"} {
			t.Run(name+"/"+dtype, func(t *testing.T) {
				t.Parallel()
				src := "graph g" + strings.ReplaceAll(text, "T[", dtype+"[")
				p, f := loaded(t, dev, src)
				for _, n := range [][3]int64{{70, 136, 64}, {640, 648, 16}, {33, 40, 1000}, {129, 65, 33}} {
					compareWithInterpreter(t, p.Graph(), f, map[string]int64{"M": n[0], "N": n[1], "K": n[2]})
				}
			})
		}
	}
}

// TestProductsOfManySizesOnGPU runs products side by side at sizes around those of
// tiles, steps and vectors.
func TestProductsOfManySizesOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	sizes := []int64{1, 2, 7, 31, 70, 127, 128, 129, 130, 255, 257, 8, 24, 72, 136, 264, 32, 64, 200, 520}
	for name, src := range map[string]string{
		"plain":  "graph g(a: bf16[M, K], b: bf16[K, N]) -> (y: bf16[M, N]) { y = a @ b }",
		"ahead":  "graph g(a: bf16[M, K], b: bf16[N, K], s: bf16[M, K]) -> (y: bf16[M, N]) { y = einsum(\"mk,nk->mn\", a * s, b) }",
		"both":   "graph g(a: bf16[K, M], b: bf16[K, N], s: bf16[K]) -> (y: bf16[M, N]) { y = einsum(\"km,kn->mn\", a + 1, b * s[:, none]) }",
		"shared": "graph g(a: bf16[M, K], b: bf16[K, N], c: bf16[K, N]) -> (y: bf16[M, N]) { y = max(a @ b, a @ c) }",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := loaded(t, dev, src)
			for i := range 2 * len(sizes) {
				m, n, k := sizes[i%len(sizes)], sizes[i*7%len(sizes)], sizes[(i*3+i/len(sizes))%len(sizes)]
				if at := map[string]int64{"M": m, "N": n, "K": k}; work(p.Graph(), at) <= 1<<23 {
					compareProduct(t, p.Graph(), f, at, -3, 4)
				}
			}
		})
	}
}

// TestLongSumsOnGPU: sums of few tiles whose columns the blocks of a cluster share are those
// of loops, bit by bit where the operands are small integers.
func TestLongSumsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	load := func(src string) (*Program, *runtime.Function) {
		p, f := loaded(t, dev, src)
		return p, f
	}
	for name, text := range LongSums {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := load("graph g" + text)
			_, loops := load("@strict graph g" + text)
			for _, n := range [][3]int64{{24, 4360, 4104}, {136, 1544, 4160}, {64, 8192, 4096}, {24, 1160, 4104}, {200, 392, 4168},
				{72, 72, 16392}, {128, 128, 16384}, {24, 24, 20488}, {256, 256, 4096}, {17, 64, 65536}} {
				args, _ := integers(t, p.Graph(), f, map[string]int64{"M": n[0], "N": n[1], "K": n[2]}, -2, 3)
				want, err := loops.Call(context.Background(), args)
				require.NoError(t, err)
				for range 5 {
					got, err := f.Call(context.Background(), args)
					require.NoError(t, err)
					require.Equal(t, want["y"].Data, got["y"].Data, "%v", n)
				}
			}
		})
	}
}

// TestLongSumsInRunsOnGPU: products of f32 add up columns in slices and runs, so that the
// error of long sums is that of blocked summation, bit by bit.
func TestLongSumsInRunsOnGPU(t *testing.T) {
	mustEnd(t)
	dev := openGPU(t, runtime.Options{})
	if dev.Arch() != "sm_90a" {
		t.Skip("an sm_90 has clusters, and shared memory for totals beside large tiles; this is " + dev.Arch())
	}
	p, f := loaded(t, dev, "graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }")
	rng := rand.New(rand.NewPCG(1, 2))
	normal := func(rows, cols int) ([]float32, *tensor.Tensor) {
		data := make([]float32, rows*cols)
		for i := range data {
			data[i] = float32(rng.NormFloat64())
		}
		x, err := tensor.FromSlice(data, rows, cols)
		require.NoError(t, err)
		return data, x
	}
	for _, size := range [][3]int{
		{1412, 1287, 9001}, {2048, 2048, 8192}, {1024, 1024, 9000}, {520, 500, 8192}, {16, 8192, 8192}, {100, 1000, 4100},
	} {
		m, n, k := size[0], size[1], size[2] // rests of tiles, vectors, steps and runs
		a, left := normal(m, k)
		b, right := normal(k, n)
		got, err := f.Call(context.Background(), runtime.Args{"a": left, "b": right})
		require.NoError(t, err)
		y := got["y"].Float32s()
		schedule := scheduleAt(t, p, map[string]int64{"M": int64(m), "N": int64(n), "K": int64(k)})
		var inRuns, atOnce float64 // squares of errors
		for range 500 {
			i, j := rng.IntN(m), rng.IntN(n)
			exact, blocked, plain := sums(func(l int) (x, y float32) { return a[i*k+l], b[l*n+j] }, k, schedule)
			assert.Equal(t, blocked, y[i*n+j], "%v [%d, %d]", size, i, j)
			inRuns += (float64(blocked) - exact) * (float64(blocked) - exact)
			atOnce += (float64(plain) - exact) * (float64(plain) - exact)
		}
		assert.Less(t, inRuns, atOnce/4, "%v: half the error, at least", size)
	}
}

// scheduleAt is what the only kernel of a program runs as at some sizes.
func scheduleAt(t *testing.T, p *Program, sizes map[string]int64) ir.Schedule {
	for _, v := range p.Plan().Launched()[0].Variants {
		if v.When == nil {
			return v.Schedule
		}
		if holds, ok := ir.EvalSize(v.When, sizes); ok && holds != 0 {
			return v.Schedule
		}
	}
	require.Fail(t, "no variant", "%v", sizes)
	return ir.Schedule{}
}

// sums adds up n products: in f64, in f32 by the slices and runs of a schedule, and in f32
// one after the other.
func sums(at func(int) (x, y float32), n int, s ir.Schedule) (exact float64, blocked, plain float32) {
	add := func(sum float32, l int) float32 {
		x, y := at(l)
		return float32(math.FMA(float64(x), float64(y), float64(sum)))
	}
	for l := range n {
		x, y := at(l)
		exact += float64(x) * float64(y)
		plain = add(plain, l)
	}
	steps, slices := (n+s.TileK-1)/s.TileK, max(1, s.Cluster)
	for slice := range slices {
		total := float32(0)
		end := min(steps*(slice+1)/slices*s.TileK, n)
		for l := steps * slice / slices * s.TileK; l < end; {
			part := float32(0)
			for runEnd := min(l+s.Run, end); l < runEnd; l++ {
				part = add(part, l)
			}
			total += part
		}
		blocked += total
	}
	return exact, blocked, plain
}

// LongSums are products in every order of their operands; r is added in f32.
var LongSums = map[string]string{
	"plain":   "(a: bf16[M, K], b: bf16[K, N]) -> (y: f32[M, N]) { y = f32(a) @ f32(b) }",
	"bt":      "(a: f16[M, K], b: f16[N, K], r: f32[M, N]) -> (y: f32[M, N]) { y[m, n] = (sum[k] f32(a[m, k]) * f32(b[n, k])) * 2 + r[m, n] }",
	"at":      "(a: bf16[K, M], b: bf16[K, N], r: bf16[N]) -> (y: f32[M, N]) { y[m, n] = (sum[k] f32(a[k, m]) * f32(b[k, n])) + f32(r[n]) }",
	"yt":      "(a: bf16[M, K], b: bf16[K, N]) -> (y: f32[N, M]) { y[n, m] = sum[k] f32(a[m, k]) * f32(b[k, n]) }",
	"batched": "(a: bf16[2, M, K], b: bf16[2, N, K]) -> (y: f32[2, M, N]) { y[z, m, n] = sum[k] f32(a[z, m, k]) * f32(b[z, n, k]) }",
}

// mustEnd ends the process where a test does not end: a kernel that waits for ever
// cannot be taken back, and what else uses the device may wait for it.
func mustEnd(t *testing.T) {
	const limit = 2 * time.Minute
	timer := time.AfterFunc(limit, func() { panic(fmt.Sprintf("%s did not end in %v", t.Name(), limit)) })
	t.Cleanup(func() { timer.Stop() })
}
