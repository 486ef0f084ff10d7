package fuse

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/passes"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// TestPassesKeepResults evaluates programs after every pass, and notes which passes
// changed one: each must, somewhere. It evaluates one program in three, which its text draws, unless FUSEC_TEST_FULL is set.
func TestPassesKeepResults(t *testing.T) {
	sources := examplePrograms(t)
	delete(sources, "group_norm.fuse") // 32 groups: no small size is a multiple
	for _, c := range append(passTable[:len(passTable):len(passTable)], passCase{name: "group_norm",
		src: `graph g(x: f32[N, 4, H, W]) -> (y: f32[N, 4, H, W]) { y = group_norm(x, 2) }`},
		passCase{name: "statistics", src: `graph g(x: f32[N, 4, H, W]) -> (y: f32[N]) { y = mean(group_norm(x, 2), axis=(1, 2, 3)) }`},
		passCase{name: "transposed", src: `graph g(x: f32[2, 3, S], w: f32[3, 4, 4]) -> (y: f32[2, 4, 2 * S + 2]) {
			y = conv_transpose1d(x, w, stride=2)
		}`},
		passCase{name: "behind a reshape", src: `graph g(x: f32[2, 8, S], w: f32[5, 8, 3]) -> (y: f32[2, 5, S]) {
			h[n: 2, g: 4, s: 2 * S] = tanh(x[n, g * 2 + s / S, s % S])
			t[n: 2, c: 8, s: S] = h[n, c / 2, c % 2 * S + s]
			y[n, o: 5, p: S] = sum[c: 8, i: 3] w[o, c, i] * t[n, c, p + i - 1]
		}`},
		passCase{name: "grouped", src: `graph g(x: f32[2, 24, S], w: f32[48, 8, 3]) -> (y: f32[2, 48, S]) { y = conv1d(x, w, padding=1, groups=3) }`},
		passCase{name: "transposed, uneven", src: `graph g(x: f32[2, 3, S, 4], w: f32[3, 4, 3, 5]) -> (y: f32[2, 4, 2 * S + 1, 15]) {
			y = conv_transpose2d(x, w, stride=(2, 3), output_padding=(0, 1))
		}`},
		passCase{name: "transposed, fewer taps than stride", src: `graph g(x: f32[2, 3, S], w: f32[3, 4, 2]) -> (y: f32[2, 4, 3 * S + 1]) {
			y = conv_transpose1d(x, w, stride=3, output_padding=2)
		}`},
		passCase{name: "transposed, phases together", src: `@tf32 @bench(S=4096) graph g(x: f32[2, 16, S], w: f32[16, 16, 5], b: f32[16]) -> (y: f32[2, 16, 2 * S + 3]) {
			y = conv_transpose1d(x, w, b, stride=2)
		}`},
		passCase{name: "transposed, phases stored at their places", src: `@tf32 @bench(S=4096) graph g(x: f32[2, 16, S], w: f32[16, 16, 5], r: f32[16]) -> (y: f32[2, 16, 2 * S + 3], z: f32[2, 16, 2 * S + 3]) {
			h = conv_transpose1d(x, w, stride=2)
			y = softmax(h, axis=1)
			z = (h - mean(h, axis=(0, 2), keep=true)) * r[:, none]
		}`},
		passCase{name: "transposed, phases read elsewhere too", src: `@tf32 @bench(S=4096) graph g(x: f32[2, 16, S], w: f32[16, 16, 5]) -> (y: f32[2, 16, 2 * S + 2]) {
			h = conv_transpose1d(x, w, stride=2)
			y = (h[:, :, 1:] - h[:, :, :-1]) / (1 + sum(h * h, axis=1, keep=true)[:, :, 1:])
		}`},
		passCase{name: "a gathered view, read outside", src: `graph g(x: i64[N, 2, 2, N], v: i64[N, 2, N], at: i64[N, 2, 2, N]) -> (y: i64[N, N, 2]) {
			t = v[at]
			y[i: N, j: N, l: 2] = argmax[k: 2] t[2 - j, j, l, 2 * j, k + 2, x[l, l, i, l]]
		}`},
		passCase{name: "transposed, short sums", src: `graph g(x: f32[2, 3, S, 4], w: f32[3, 4, 3, 2], r: f32[2, 4, 2 * S + 1, 8]) -> (y: f32[2, 4, 2 * S + 1, 8]) {
			y = relu(conv_transpose2d(x, w, stride=2)) * r
		}`},
		passCase{name: "products of images", src: `@bench(N=32, H=3136) graph g(dy: bf16[N, 64, H], x: bf16[N, 48, H]) -> (dw: bf16[64, 48]) {
			dw[o: 64, c: 48] = sum[n: N, p: H] dy[n, o, p] * x[n, c, p] }`},
		passCase{name: "products of small images", src: `@bench(N=128) graph g(dy: bf16[N, 64, 7, 7], x: bf16[N, 520, 7, 7]) -> (dw: bf16[64, 520]) {
			dw[o: 64, c: 520] = sum[n: N, p: 7, q: 7] dy[n, o, p, q] * x[n, c, p, q] }`},
		passCase{name: "strided", src: `graph g(x: bf16[256, 128, 8], w: bf16[8, 128, 256]) -> (y: bf16[8, 256, 256]) { y = permute(x, (2, 0, 1)) @ w }`},
		passCase{name: "digits of rows, padded", src: `@bench(S=65536) graph g(x: bf16[S, 3, 3, 64], w: bf16[512, 64]) -> (y: bf16[S * 4, 4, 512]) {
			p = pad(pad(x, (0, 1), axis=1), (1, 0), axis=2)
			y = linear(reshape(permute(reshape(p, S, 2, 2, 2, 2, 64), (0, 1, 3, 2, 4, 5)), S * 4, 4, 64), w)
		}`},
		passCase{name: "gate", src: `graph g(x: f16[M, K], w: f16[2 * N, K], b: f16[2 * N]) -> (y: f16[M, N]) { y = glu(linear(x, w, b)) }`},
		passCase{name: "digits of terms", src: `@bench(S=65536) graph g(x: bf16[S * 4, 3, 16], w: bf16[512, 64]) -> (y: bf16[S, 3, 512]) {
			y = linear(reshape(permute(reshape(x, S, 4, 3, 16), (0, 2, 1, 3)), S, 3, 64), w)
		}`},
		passCase{name: "windows", src: `@bench(S=4096) graph g(x: bf16[2, 64, S], w: bf16[64, 64, 3]) -> (y: bf16[2, 64, S]) {
			y = conv1d(x, w, padding=1)
		}`},
		passCase{name: "windows of a view", src: `@bench(S=4096) graph g(x: bf16[2, 64, S], w: bf16[64, 64, 3]) -> (y: bf16[2, 64, 2 * S]) {
			y = conv1d(upsample_nearest1d(x, 2), w, padding=1)
		}`},
		passCase{name: "windows of views that they do not move along", src: `@bench(S=4096) graph g(x: bf16[2, 64, S], t: bf16[2, S, 32], w: bf16[16, 32, 3], u: bf16[3, 32, 5], v: bf16[32, 16, 4]) -> (
			y: bf16[2, 16, 2 * S], z: bf16[2, 3, 2 * S], p: bf16[2, 16, 2 * S], q: bf16[2, 16, S], r: f32[2, 16, 2 * S]) {
			h[n: 2, c: 32, s: 2 * S] = x[n, 2 * c + s % 2, s / 2]
			y = conv1d(h, w, padding=1)
			z = conv1d(h, u, padding=2)
			p = conv_transpose1d(roll(transpose(t, 1, 2), 1, axis=2), v, stride=2, padding=1)
			q = conv1d(reshape(transpose(reshape(transpose(t, 1, 2), 2, 4, 8, S), 1, 2), 2, 32, S), w, padding=1)
			r[n: 2, o: 16, s: 2 * S] = sum[c: 32, i: 3] f32(w[o, c, i]) * f32(x[n, c, (s + i - 1) / 2] else 0)
		}`},
		passCase{name: "windows as long as planes", src: `@bench(S=4096) graph g(dy: bf16[8, 64, S], x: bf16[8, 64, S]) -> (dw: f32[64, 64, 3]) {
			dw[o: 64, c: 64, i: 3] = sum[n: 8, p: S] f32(dy[n, o, p]) * (x[n, c, p + i - 1] else 0.0)
		}`},
		passCase{name: "windows that go backwards", src: `@bench(S=4096) graph g(dy: bf16[8, 64, S], x: bf16[8, 64, S]) -> (dw: f32[64, 64, 3]) {
			dw[o: 64, c: 64, i: 3] = sum[n: 8, p: S] f32(dy[n, o, p]) * f32(x[n, c, p - i + 1])
		}`},
		passCase{name: "windows in parts", src: `@bench(S=65536) graph g(x: f32[2, 32, S], w: f32[128, 32, 5]) -> (y: f32[2, 128, S]) {
			y = conv1d(x, w, padding=2)
		}`},
		passCase{name: "odd rows", src: `@bench(M=2048, N=2048) graph g(a: bf16[M, 257], b: f16[N, 257], c: bf16[257, 2047]) -> (y: f32[M, N], z: bf16[M, 2047]) {
			y = f32(a) @ transpose(f32(bf16(b)))
			z = relu(a @ c)
		}`},
		passCase{name: "parts", src: `graph g(x: f32[N, M], w: f32[M, 2 * D], b: f32[2 * D]) -> (y: f32[N, D], z: f32[N, D]) {
			p, q = split(x @ w + b, 2, axis=-1)
			y = exp(p) * q
			z = p - q
		}`},
		passCase{name: "heads", src: `graph g(x: bf16[2, S, 3, 4], w: bf16[8, D]) -> (y: bf16[S, 3, D]) {
			h = x * x
			y[s, c, d] = sum[r: 8] h[r / 4, s, c, r % 4] * w[r, d]
		}`},
		passCase{name: "digits", src: `@bench(N=4096) graph g(x: bf16[N, 4, 5, 6], w: bf16[8, 24], r: bf16[N, 8, 16]) -> (y: f32[N, 8, 16]) {
			y = f32(w @ unfold2d(x, (2, 3), padding=(0, 0))) + f32(r)
		}`},
		passCase{name: "digits of places", src: `@bench(S=4096) graph g(d: bf16[2, 64, S], w: bf16[64, 8, 3]) -> (
			x: bf16[2, 8, 3 * S], y: bf16[2, 8, 3 * S - 1], z: bf16[2, 8, 3 * S - 2]) {
			x[n, c, p: 3 * S] = bf16(sum[o] f32(d[n, o, p / 3]) * f32(w[o, c, p % 3]))
			y[n, c, p: 3 * S - 1] = bf16(sum[o] f32(d[n, o, p / 3]) * f32(w[o, c, p % 3]))
			z[n, c, p: 3 * S - 2] = where(p % 3 == 0, bf16(sum[o] f32(d[n, o, p / 3]) * f32(w[o, c, 1])), 0)
		}`},
		passCase{name: "conditions", src: `graph g(a: bf16[N, K], b: bf16[N, K], s: i32[N]) -> (y: f32[N, N]) {
			y[i: N, j: N] = sum[k: K where s[i] == s[j] && k % 3 < 2] f32(a[i, k]) * f32(b[j, k])
		}`},
		passCase{name: "added products", src: `@bench(S=8192, T=8192) graph g(q: bf16[S, 2, 24], p: bf16[S, 2, 8], k: bf16[T, 24], r: bf16[T, 2, 8], b: f32[T]) -> (y: f32[2, S, T], z: bf16[2, S, T]) {
			y = einsum("shd,td->hst", f32(q), f32(k)) * 0.5 + einsum("thd,shd->hst", f32(r), f32(p)) + b
			z = softmax(einsum("shd,td->hst", q, k) + einsum("thd,shd->hst", r, p))
		}`},
		passCase{name: "differences of products", src: `@bench(S=65536) graph g(x: bf16[S, 64], z: bf16[S, 32], w: bf16[64, 256], v: bf16[32, 256], u: bf16[256, 32], b: bf16[256]) -> (y: bf16[S, 256], p: bf16[S, 256], q: f32[S, 256]) {
			y = relu(x @ w - z @ v)
			p = b + x @ w * 2 - linear(z, u)
			q = f32(x) @ f32(w) - (f32(z) @ f32(v) - f32(b))
		}`},
		passCase{name: "added products in place", src: `@bench(S=65536) graph g(x: bf16[S, 64], w: bf16[64, 256], h: bf16[S, 32], u: bf16[256, 32], b: bf16[256], c: bf16[256]) -> (d: bf16[S, 64], y: bf16[S, 64], q: bf16[S, 256], r: bf16[S, 64]) {
			i, f, g, o = split(x @ w + b + linear(relu(h), u, c), 4, axis=-1)
			d = sigmoid(f) + sigmoid(i) * tanh(g)
			y = sigmoid(o) * d
			t = h @ transpose(u)
			q = x @ w + t
			r = x + t[:, :64]
		}`},
		passCase{name: "idle axes", src: `@bench(S=512, T=512) graph g(q: bf16[8, S, 16], x: bf16[T, 16], c: bf16[T, 16]) -> (y: bf16[8, S, T]) {
			k[h: 8, t: T, d: 16] = x[t, d] * c[t, d] + x[t, 15 - d] * exp(c[t, d])
			y = q @ transpose(k)
		}`},
		passCase{name: "ends", src: `@bench(S=512, T=512) graph g(x: f32[2, S, T], z: f32[2], k: f32[T, 4]) -> (y: f32[2, S, 4], l: f32[2, S], p: f32[2, S, T + 1], q: f32[2, S, T], n: f32[2, S]) {
			c = concat(x * 2, z[:, none, none] + zeros_like(x[..., 0:1]), axis=-1)
			y = softmax(c)[..., :-1] @ k
			l = logsumexp(c, axis=-1)
			b = concat(ones_like(x[..., 0:1]), x, axis=-1)
			p = softmax(b)
			q = softmax(b)[..., 1:]
			n = prod(concat(x[..., 0:1], x, axis=-1), axis=-1) + f32(argmax(b, axis=-1))
		}`},
		passCase{name: "segments", src: `@bench(S=65536, K=24) graph g(x: bf16[S, K], h: bf16[S, 40], w: bf16[K + 40, 256], u: bf16[256, K], v: bf16[40, 256]) -> (y: bf16[S, 256], z: bf16[S, 256]) {
			y = relu(concat(x, h, axis=1) @ w)
			z = concat(h, x, tanh(h), axis=1) @ concat(v, transpose(u), v, axis=0)
		}`},
		passCase{name: "inverses", src: `graph g(x: f32[N, M]) -> (at: i64[N, M], place: i64[M, N], y: f32[N, M]) {
			at = argsort(x)
			place = transpose(argsort(at), 0, 1)
			y = gather(cumsum(sort(x)), argsort(at)) + f32(argsort(argsort(at)))
		}`},
		passCase{name: "crop", src: `graph g(a: f32[M, 40, 16], w: f32[16, 24], x: f32[M, 3, 20]) -> (y: f32[M, 24], z: f32[M, 8], p: f32[M, 3, 2]) {
			t = a @ w
			y = t[:, -1] * 2
			u = stack(exp(x[:, 0]), sum(x, axis=1), axis=1)
			z = u[:, 1, 3:11] + u[:, 1, 5:13]
			q[m: M, k: 3, j: 17] = max[i: 4] x[m, k, j + i]
			p = q[..., 5:7]
		}`},
		passCase{name: "guards", src: `@bench(M=4096, K=4096, N=4096) graph g(a: bf16[M, K], b: bf16[K, N], n: i32[M]) -> (y: f32[M, N]) {
			y[i, j] = sum[k: K where k < n[i] && k <= j && k % 3 < 2] f32(a[i, k]) * f32(b[k, j])
		}`},
		passCase{name: "keys in two tensors", src: `@bench(T=4096, G=8) graph g(q: bf16[G, 4, 1, 16], keys: bf16[G, T, 16], values: bf16[G, T, 16], k: bf16[G, 1, 16], v: bf16[G, 1, 16]) -> (y: bf16[G, 4, 1, 16]) {
			y = attention(q, concat(keys, k, axis=1)[:, none], concat(values, v, axis=1)[:, none])
		}`},
		passCase{name: "chains", src: chainProgram},
		passCase{name: "picked parts", src: `graph g(a: f32[N, M], s: f32[N, M]) -> (y: f32[N, M]) {
			p = stack(a * s, exp(a), s, axis=1)
			y = sum(f32((i32(floor(a)) % 3)[:, none] == i32(iota(3))[:, none]) * p, axis=1)
		}`},
		passCase{name: "pairs of points", src: `@bench(N=4096) graph g(x: f32[N, 3], v: f32[N]) -> (y: f32[N]) {
			y = sum(exp(-0.5 * sum((x[:, none] - x[none]) ** 2, axis=-1)) * v, axis=1)
		}`},
		passCase{name: "scaled operands", src: `@bench(N=4096) graph g(q: bf16[N, 64], k: bf16[N, 64]) -> (y: bf16[N, N]) { y = (q * 0.3) @ transpose(k) }`},
		passCase{name: "median", src: `graph g(x: f32[N, M]) -> (y: f32[N]) { y = median(x) }`}) {
		sources[c.name] = c.src
	}
	for _, c := range kernelTable {
		sources[c.name] = c.src
	}
	changed := map[string]bool{}
	for name, src := range sources {
		g := parse(t, src)
		sizes := sizesOf(g, 6)
		inputs, err := drawInputs(g, sizes, 3)
		require.NoError(t, err, name)
		want, err := interp.Run(g, inputs, interp.Options{})
		require.NoError(t, err, name)
		compared := map[string]bool{ir.Print(g): true} // most passes do alike for all devices
		for _, device := range []string{"H200", "A100", "host"} {
			d, err := ir.DeviceNamed(strings.Replace(device, "host", "H200", 1))
			require.NoError(t, err)
			if device == "host" { // as the CPU engine plans: the figures, and no architecture
				d.Arch = ""
			}
			before := ir.Print(g)
			_, err = Normalize(g, Options{Device: d, Observe: func(pass string, now *ir.Graph) error {
				after := ir.Print(now)
				if after == before {
					return nil
				}
				changed[pass], before = true, after
				if compared[after] || !draws(src, 3) {
					return nil
				}
				compared[after] = true
				got, err := interp.Run(now, inputs, interp.Options{})
				require.NoError(t, err, "%s after %s", name, pass)
				requireSame(t, want, got, 1e-12, name+" after "+pass)
				return nil
			}})
			require.NoError(t, err)
		}
	}
	for _, p := range passes.All {
		if p.Name != "dce" { // the passes before it drop what they leave dead
			assert.True(t, changed[p.Name], "pass %s never changed a program", p.Name)
		}
	}
}

type passCase struct{ name, src, want string }

// TestPasses shows what graphs look like when regions are formed.
func TestPasses(t *testing.T) {
	for _, c := range passTable {
		t.Run(c.name, func(t *testing.T) {
			g, err := Normalize(parse(t, c.src), Options{})
			require.NoError(t, err)
			_, text, _ := strings.Cut(ir.Print(g), "{\n")
			var lines []string
			for _, l := range strings.Split(strings.TrimSuffix(strings.TrimSpace(text), "}"), "\n") {
				if l = strings.TrimSpace(l); l != "" {
					lines = append(lines, l)
				}
			}
			assert.Equal(t, c.want, strings.Join(lines, "; "))
		})
	}
}

var passTable = []passCase{
	{"what reaches no result goes", `graph g(x: f32[N]) -> (y: f32[N]) { dead = sum(exp(x))
		y = x + 1 }`,
		`y[i] = x[i] + 1.0`},
	{"views vanish", `graph g(x: f32[N, M]) -> (y: f32[M, N]) { t = transpose(x, 0, 1)
		u = reshape(t, M, N, 1)
		y = u[:, :, 0] * 2 }`,
		`y[i, j] = x[j, i] * 2.0`},
	{"a reshape there and back", `graph g(x: f32[N, 12]) -> (y: f32[N, 12]) { y = reshape(exp(reshape(x, N, 3, 4)), N, 12) }`,
		`y[i, j] = exp(x[i, j])`},
	{"two keys become one", `graph g(a: i64[K], b: i64[K], x: f32[K, 2]) -> (y: f32[4, 8, 2]) {
		y[i: 4, j: 8, d: 2] = max[k: K where b[k] == j && a[k] == i] x[k, d] }`,
		`y_places[i: 32, d] = max[k: K where i == index(a[k]) * 8 + index(b[k]) && 0 <= index(a[k]) && index(a[k]) < 4 && ` +
			`0 <= index(b[k]) && index(b[k]) < 8] x[k, d]; y[i: 4, j: 8, d] = y_places[i * 8 + j, d]`},
	{"what goes to the same rows is added first", `graph g(at: i64[5], x: f32[5], w: f32[5], z: f32[4]) -> (y: f32[4]) {
		a[v: 4] = sum[k: 5 where at[k] == v] exp(x[k])
		b[v: 4] = sum[k: 5 where at[k] == v] w[k]
		y = a + z - b }`,
		`a_2[v: 4] = sum[k: 5 where v == index(at[k])] exp(x[k]) - w[k]; y[i] = a_2[i] + z[i]`},
	{"what is costly and depends on few axes is computed once", `graph g(x: bf16[64, 4096, 64], a: f32[4096, 64]) -> (y: bf16[64, 4096, 64]) {
		y = bf16(f32(x) * cos(a) - f32(x) * sin(a)) }`,
		`y_repeated[j, k] = cos(a[j, k]); y_repeated_2[j, k] = sin(a[j, k]); ` +
			`y[i, j, k] = bf16(f32(x[i, j, k]) * y_repeated[j, k] - f32(x[i, j, k]) * y_repeated_2[j, k])`},
	{"what takes no longer than memory stays", `graph g(x: f32[64, 4096, 64], a: f32[4096, 64]) -> (y: f32[64, 4096, 64]) { y = x * cos(a) }`,
		`y[i, j, k] = x[i, j, k] * cos(a[j, k])`},
	{"places that are the same for all images are computed again", `graph g(f: f32[4, 64, 512], c: f32[64, 512], d: f32[64, 512]) -> (y: f32[4, 512, 512]) {
		at = i64(floor(c[:, :, none] + d[:, none] + 3))
		y[b, i, j] = sum[a] f[b, a, at[a, i, j]] }`, `y[b, i, j] = sum[a: 64] f[b, a, i64(floor(c[a, i] + d[a, j] + 3.0))]`},
	{"but not for many", `graph g(f: f32[99, 64, 512], c: f32[64, 512], d: f32[64, 512]) -> (y: f32[99, 512, 512]) {
		at = i64(floor(c[:, :, none] + d[:, none] + 3))
		y[b, i, j] = sum[a] f[b, a, at[a, i, j]] }`,
		`at[i, j, k] = i64(floor(c[i, j] + d[i, k] + 3.0)); y[b, i, j] = sum[a: 64] f[b, a, at[a, i, j]]`},
	{"elements of small matrices are values", `@bench(N=65536) graph g(a: f32[N, 2, 2], b: f32[N, 2, 2]) -> (y: f32[N]) {
		m = a @ b
		y = m[:, 0, 1] * m[:, 1, 1] }`,
		`y[i] = (a[i, 0, 0] * b[i, 0, 1] + a[i, 0, 1] * b[i, 1, 1]) * (a[i, 1, 0] * b[i, 0, 1] + a[i, 1, 1] * b[i, 1, 1])`},
	{"what has the same key is reduced before it goes there", `graph g(at: i64[999], x: f32[99, 999, 2], m: bool[99]) -> (y: f32[50, 2]) {
		y[v: 50, d: 2] = max[n: 99, k: 999 where (at[k] == v) & m[n]] x[n, k, d] }`,
		`y_first[k, d] = max[n: 99 where m[n]] x[n, k, d]; y[v: 50, d] = max[k: 999 where v == index(at[k])] y_first[k, d]`},
	{"the border of a negative is that of its operand", `graph g(x: f32[N, 99]) -> (y: f32[N, 99]) { y = max_pool1d(-x, 3, stride=1, padding=1) }`,
		`y[i, p: 99] = max[i_2: 3] -(x[i, p + i_2 - 1] else inf)`},
	{"large windows are reduced along one axis after the other", `graph g(x: f32[N, 99, 99]) -> (y: f32[N, 99, 99]) { y = max_pool2d(-x, 9, stride=1, padding=4) }`,
		`y_across[i, p: 99, q_at] = max[i_2: 9] -(x[i, p + i_2 - 4, q_at] else inf); ` +
			`y[i, p, q: 99] = max[j: 9] y_across[i, p, q + j - 4] else -inf`},
	{"an extent that a constraint simplifies", `graph g(x: f32[N, C]) -> (y: f32[N, C / 2 * 2]) {
		y = reshape(exp(reshape(x, N, C / 2, 2)), N, C / 2 * 2) }`,
		`require(C == C / 2 * 2, "reshape of x, f32[N, C], to [N, C / 2, 2] needs C == C / 2 * 2"); ` +
			`y[i, j] = exp(x[i, j])`},
	{"an operand of a product in f32 is computed once", `@bench(N=65536) graph g(x: f32[N, 400], m: f32[400], w: f32[400, 500], u: f32[400, 50]) -> (y: f32[N, 500], z: f32[N, 50]) {
		y = (x - m) @ w
		z = (x - m) @ u }`,
		`y_operand[i, j] = x[i, j] - m[j]; y[i, j] = sum[k: 400] y_operand[i, k] * w[k, j]; z[i, j] = sum[k: 400] y_operand[i, k] * u[k, j]`},
	{"where products in f32 have few columns it is computed on the way", `@bench(N=65536) graph g(x: f32[N, 4000], m: f32[4000], u: f32[4000, 50]) -> (z: f32[N, 50]) { z = (x - m) @ u }`,
		`z[i, j] = sum[k: 4000] (x[i, k] - m[k]) * u[k, j]`},
	{"an operand in f32 is stored as it is read", `@bench(N=65536) graph g(x: f32[N, 100], z: f32[N, 120]) -> (y: f32[100, 120]) { y = transpose(x * tanh(x)) @ z }`,
		`t[j, i] = x[j, i] * tanh(x[j, i]); y[i, j] = sum[k: N] t[k, i] * z[k, j]`},
	{"short rows of a small operand are copied", `graph g(a: bf16[8192, 4096], b: bf16[4096, 19]) -> (y: bf16[8192, 19]) { y = a @ b }`,
		`y_operand[i, j: 64] = b[i, j]; y[i, j: 19] = sum[k: 4096] a[i, k] * y_operand[k, j]`},
	{"short rows of a large operand stay", `graph g(a: bf16[32, 65536], b: bf16[65536, 19]) -> (y: bf16[32, 19]) { y = a @ b }`,
		`y[i, j] = sum[k: 65536] a[i, k] * b[k, j]`},
	{"short rows of short sums stay", `@bench(N=1048576) graph g(x: bf16[N, 75], w: bf16[64, 75]) -> (y: bf16[N, 64]) { y = linear(x, w) }`,
		`y[i, j] = sum[k: 75] x[i, k] * w[j, k]`},
	{"short rows of long sums with few results stay", `@bench(N=1048576) graph g(x: bf16[N, 36], z: bf16[N, 64]) -> (y: bf16[36, 64]) { y = transpose(x) @ z }`,
		`y[i, j] = sum[k: N] x[k, i] * z[k, j]`},
	{"operands made of bytes are values, in their order", `@bench(N=4096) graph g(x: u8[N, 512], m: bool[512, N]) -> (y: f16[N, N]) { y = f16(x) @ f16(m) }`,
		`y_operand[i, j] = f16(x[i, j]); y_operand_2[i, j] = f16(m[i, j]); y[i, j] = sum[k: 512] y_operand[i, k] * y_operand_2[k, j]`},
	{"operands made of f32 for few rows stay", `@bench(N=1048576) graph g(x: f32[N, 512], w: f32[64, 512]) -> (y: bf16[N, 64]) { y = linear(bf16(x), bf16(w)) }`,
		`y[i, j] = sum[k: 512] bf16(x[i, k]) * bf16(w[j, k])`},
	{"masks are multiplied in 16 bits", `@bench(N=1024) graph g(x: f32[N, 512], m: bool[N, 512]) -> (y: f32[N, N]) {
		y = f32(x > 0.5) @ transpose(1 - f32(m)) }`,
		`y_operand[i, j] = bf16(f32(x[i, j] > 0.5)); y_operand_2[i, j] = bf16(1.0 - f32(m[i, j])); y[i, j] = sum[k: 512] f32(y_operand[i, k]) * f32(y_operand_2[j, k])`},
	{"numbers whose sums f32 rounds stay", `@bench(N=1024) graph g(x: i8[N, 2048], z: i8[N, 2048]) -> (y: f32[N, N]) { y = f32(x) @ transpose(f32(z)) }`,
		`y[i, j] = sum[k: 2048] f32(x[i, k]) * f32(z[j, k])`},
	{"numbers that bf16 rounds stay", `@bench(N=1024) graph g(x: bool[N, 512], m: bool[N, 512]) -> (y: f32[N, N]) { y = (257 * f32(x)) @ transpose(f32(m)) }`,
		`y[i, j] = sum[k: 512] 257.0 * f32(x[i, k]) * f32(m[j, k])`},
	{"operands of tf32 products lie along the sum", `@tf32 graph g(a: f32[M, K], b: f32[K, N]) -> (y: f32[M, N]) { y = a @ b }`,
		`y_operand[i, j] = b[j, i]; y[i, j] = sum[k: K] a[i, k] * y_operand[j, k]`},
	{"groups of channels get an axis", `@tf32 graph g(x: f32[1, 16, S], w: f32[32, 8, 1]) -> (y: f32[1, 32, S]) { y = conv1d(x, w, groups=2) }`,
		`y_groups[n: 1, o_group: 2, o: 16, p] = sum[c: 8] w[o_group * 16 + o, c, 0] * x[0, o_group * 8 + c, p]; ` +
			`y[n: 1, o: 32, p] = y_groups[0, o / 16, o % 16, p]`},
	{"a scan between two reversals", `graph g(x: f32[N]) -> (y: f32[N]) { y = flip(cumsum(flip(exp(x), 0)), 0) }`,
		`cumsum_y[i: N] = sum[k: N where i <= k] exp(x[k]); y[i] = cumsum_y[i]`},
	{"axes of one element", `graph g(x: f32[N, 1]) -> (y: f32[N]) { y = sum(x, axis=1) }`,
		`y[i] = x[i, 0]`},
	{"a masked reduction over one element", `graph g(x: f32[N, 1]) -> (y: f32[N]) { y[i] = sum[j: 1 where i < 3] x[i, j] }`,
		`y[i] = where(i < 3, x[i, 0], 0.0)`},
	{"argmax over one element", `graph g(x: f32[N, 1]) -> (y: i64[N]) { y = argmax(x, axis=1) }`,
		`y[i: N] = i64(0)`},
	{"factors of a sum of three, two at a time", `@bench(N=4096) graph g(r: bf16[N, 256], h: bf16[N, 8, 512], w: bf16[8, 512, 256]) -> (y: f32[N, 8], z: bf16[N, 8, 512]) {
		y[i, e] = sum[d: 256, k: 512] f32(r[i, d]) * f32(h[i, e, k]) * f32(w[e, k, d])
		z[i, e, k] = bf16(sum[d: 256] f32(w[e, k, d]) * f32(r[i, d])) }`,
		`y_pair[i, j, k] = sum[d: 256] f32(w[j, k, d]) * f32(r[i, d]); ` +
			`y[i, e] = sum[k: 512] f32(h[i, e, k]) * y_pair[i, e, k]; z[i, e, k] = bf16(y_pair[i, e, k])`},
	{"terms that are the same product", `@bench(N=4096) graph g(a: bf16[N, 256], w: bf16[256, 256], p: f32[N], q: f32[N, 256]) -> (y: f32[N, 256]) {
		y[i, j] = sum[k: 256] f32(a[i, k]) * f32(w[k, j]) * p[i] + q[i, j] * (f32(a[i, k]) * f32(w[k, j])) }`,
		`y_2[i, j] = sum[k: 256] f32(a[i, k]) * f32(w[k, j]); y[i, j] = y_2[i, j] * (p[i] + q[i, j])`},
	{"equal values are one", `graph g(x: f32[N, M]) -> (y: f32[N]) { a = sum(exp(x), axis=1)
		b = sum(exp(x), axis=1)
		y = a * b }`,
		`a[i] = sum[j: M] exp(x[i, j]); y[i] = a[i] * a[i]`},
	{"equal up to a predicate are two", `graph g(x: f32[N, M]) -> (y: f32[N]) {
		a[i] = sum[j: M where j < 3] x[i, j]
		b[i] = sum[j: M where j < 4] x[i, j]
		y = a * b }`,
		`a[i] = sum[j: min(3, M)] x[i, j]; b[i] = sum[j: min(4, M)] x[i, j]; y[i] = a[i] * b[i]`},
	{"a predicate ends a range", `graph g(x: f32[N, M], h: f32[N, 12]) -> (y: f32[N], z: f32[N]) {
		y[i] = sum[j: M where 5 > j && j < M - 2] h[i, j] * x[i, j]
		z[i] = max[j: 12 where j < 7 && j * 2 < i] h[i, j] }`,
		`y[i] = sum[j: min(5, M) where j + 2 < M] h[i, j] * x[i, j]; z[i] = max[j: 7 where j * 2 < i] h[i, j]`},
	{"a predicate keeps the places of an argmax", `graph g(h: f32[N, 3, 12]) -> (y: i64[N]) {
		y[i] = argmax[k: 3, j: 12 where j < 7] h[i, k, j] }`,
		`y[i] = argmax[k: 3, j: 12 where j < 7] h[i, k, j]`},
	{"a mean of means", `graph g(x: f16[N, 5, 7]) -> (y: f32[N]) { y = mean(mean(f32(x), axis=-1), axis=-1) }`,
		`mean_x_2_sum[i] = sum[j: 5, k: 7] f32(x[i, j, k]); y[i] = mean_x_2_sum[i] * 0.02857142857142857`},
	{"a largest of largest", `graph g(x: f16[N, 8, 6]) -> (y: f16[N, 4, 3]) {
		m[i, j, l: 3] = max[k: 2] x[i, j, 2 * l + k]
		y[i, j: 4, l] = max[k: 2] m[i, 2 * j + k, l] }`,
		`y[i, j: 4, l: 3] = max[k: 2, k_2: 2] x[i, j * 2 + k, l * 2 + k_2]`},
	{"windows of windows along one axis are two", `graph g(x: f16[N, 12]) -> (y: f16[N, 3]) { y = max_pool1d(max_pool1d(x, 2), 2) }`,
		`max_pool1d_y[i, p: 6] = max[i_2: 2] x[i, p * 2 + i_2]; y[i, p: 3] = max[i_2: 2] max_pool1d_y[i, p * 2 + i_2]`},
	{"largest of largest, some of which are outside, are two", `graph g(x: f16[N, 6, 6]) -> (y: f16[N, 4, 3]) {
		m[i, j, l: 3] = max[k: 2] x[i, j, 2 * l + k]
		y[i, j: 4, l] = max[k: 2] m[i, 2 * j + k - 1, l] else -inf }`,
		`m[i, j, l: 3] = max[k: 2] x[i, j, l * 2 + k]; y[i, j: 4, l] = max[k: 2] m[i, j * 2 + k - 1, l] else -inf`},
	{"sums of sums, some of which are outside, are two", `graph g(x: f32[N, 5, 17]) -> (y: f32[N]) {
		s = sum(x, axis=-1)
		y[i] = sum[j: 6] s[i, j - 1] }`,
		`s[i, j] = sum[k: 17] x[i, j, k]; y[i] = sum[j: 6] s[i, j - 1]`},
	{"sums that are rounded between are two", `graph g(x: f16[N, 5, 17]) -> (y: f16[N]) { y = sum(sum(x, axis=-1), axis=-1) }`,
		`x_sum[i, j] = sum[k: 17] x[i, j, k]; y[i] = sum[j: 5] x_sum[i, j]`},
	{"sums that others read too are two", `graph g(x: f32[N, 5, 7]) -> (y: f32[N], z: f32[N, 5]) { z = sum(x, axis=-1)
		y = sum(z, axis=-1) }`,
		`z[i, j] = sum[k: 7] x[i, j, k]; y[i] = sum[j: 5] z[i, j]`},
	{"a sum of a product is two", `graph g(a: f32[N, 32], b: f32[32, M]) -> (y: f32[M]) { y = sum(a @ b, axis=0) }`,
		`matmul[i, j] = sum[k: 32] a[i, k] * b[k, j]; y_part[i: (N + 255) / 256, j] = sum[i_2: 256 where i * 256 + i_2 < N] matmul[i * 256 + i_2, j]; y[j] = sum[i_chunk: (N + 255) / 256] y_part[i_chunk, j]`},
	{"counts are cut as sums with more lanes by the same key are", `@bench(K=1048576) graph g(at: i64[K], x: f32[K, 64]) -> (y: f32[8, 64], n: f32[8]) {
		y[v: 8, d: 64] = sum[k: K where at[k] == v] x[k, d]
		n[v: 8] = sum[k: K where at[k] == v] 1.0 }`,
		strings.ReplaceAll(`y_part[i: C, j: 8, k] = sum[k_2: (C + K - 1) / C where i * ((K - 1) / C) + i + k_2 < K && index(at[i * ((K - 1) / C) + i + k_2]) == j] x[i * ((K - 1) / C) + i + k_2, k]; y[v, d] = sum[k_chunk: C] y_part[k_chunk, v, d]; n_part[i: C, j: 8] = sum[k: (C + K - 1) / C where i * ((K - 1) / C) + i + k < K && index(at[i * ((K - 1) / C) + i + k]) == j] f32(1.0); n[v] = sum[k_chunk: C] n_part[k_chunk, v]`, "C", "max(1, min(528, K / 1024))")},
	{"windows over each other of sums are two", `graph g(x: f32[N, 16]) -> (y: f32[N, 8]) {
		s[i, j: 12] = sum[k: 5] x[i, j + k]
		y[i, j: 8] = sum[k: 5] s[i, j + k] }`,
		`s[i, j: 12] = sum[k: 5] x[i, j + k]; y[i, j: 8] = sum[k: 5] s[i, j + k]`},
	{"a factor leaves a sum", `graph g(x: f32[N, M], s: f32[N]) -> (y: f32[N]) { y[i] = sum[j: M] x[i, j] * tanh(s[i]) }`,
		`y_2[i] = sum[j: M] x[i, j]; y[i] = where(M == 0, 0.0, y_2[i] * tanh(s[i]))`},
	{"a divisor leaves a sum", `graph g(x: f32[N, M], s: f32[N]) -> (y: f32[N]) { y[i] = sum[j: M] x[i, j] / max(s[i], 0.5) }`,
		`y_2[i] = sum[j: M] x[i, j]; y[i] = where(M == 0, 0.0, y_2[i] / max(s[i], 0.5))`},
	{"a factor leaves a sum of something", `graph g(x: f32[N, 8], s: f32[N]) -> (y: f32[N]) { y[i] = sum[j: 8] x[i, j] * tanh(s[i]) }`,
		`y_2[i] = sum[j: 8] x[i, j]; y[i] = y_2[i] * tanh(s[i])`},
	{"a factor stays where a predicate may leave nothing", `graph g(x: f32[N, 8], m: bool[8], s: f32[N]) -> (y: f32[N]) {
		y[i] = sum[j: 8 where m[j]] x[i, j] * tanh(s[i]) }`, `y[i] = sum[j: 8 where m[j]] x[i, j] * tanh(s[i])`},
	{"a sign leaves a sum", `graph g(x: f32[N, M]) -> (y: f32[N]) { y = sum(-x, axis=1) }`,
		`y_2[i] = sum[j: M] x[i, j]; y[i] = -y_2[i]`},
	{"not under strict", `@strict graph g(x: f32[N, M], s: f32[N]) -> (y: f32[N]) { y[i] = sum[j: M] x[i, j] * s[i] }`,
		`y[i] = sum[j: M] x[i, j] * s[i]`},
	{"a factor over the reduced range stays", `graph g(x: f32[N, M], w: f32[M]) -> (y: f32[N]) { y[i] = sum[j: M] x[i, j] * w[j] }`,
		`y[i] = sum[j: M] x[i, j] * w[j]`},
	{"not out of a product or a maximum", `graph g(x: f32[N, M], s: f32[N]) -> (y: f32[N], z: f32[N]) {
		y[i] = prod[j: M] x[i, j] * s[i]
		z[i] = max[j: M] x[i, j] * s[i] }`,
		`y[i] = prod[j: M] x[i, j] * s[i]; z[i] = max[j: M] x[i, j] * s[i]`},
	{"a cheap producer is computed again", `graph g(x: f32[N]) -> (y: f32[N]) { a = x * 2
		y[i] = a[i - 1] + a[i + 1] }`,
		`y[i: N] = where(1 <= i, x[i - 1] * 2.0, 0.0) + where(i + 1 < N, x[i + 1] * 2.0, 0.0)`},
	{"a result stays", `graph g(x: f32[N]) -> (a: f32[N], y: f32[N]) { a = x * 2
		y = a + 1 }`,
		`a[i] = x[i] * 2.0; y[i] = x[i] * 2.0 + 1.0`},
	{"an operand of a product becomes a value", `graph g(x: bf16[M, K], s: bf16[K], w: bf16[K, N]) -> (y: bf16[M, N]) { y = (x * s) @ w }`,
		`y_operand[i, j] = x[i, j] * s[j]; y[i, j] = sum[k: K] y_operand[i, k] * w[k, j]`},
	{"what multiplies its rows follows the sum", `graph g(x: bf16[M, 1024], w: bf16[1024, N]) -> (y: bf16[M, N]) { y = bf16(f32(x) * tanh(sum(f32(x), axis=-1, keep=true))) @ w }`,
		`t_sum[i] = sum[j: 1024] f32(x[i, j]); y_2[i, j] = sum[k: 1024] f32(x[i, k]) * f32(w[k, j]); y[i, j] = bf16(y_2[i, j] * tanh(t_sum[i]))`},
	{"also where there may be none", `graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y = bf16(f32(x) * tanh(sum(f32(x), axis=-1, keep=true))) @ w }`,
		`t_sum[i] = sum[j: K] f32(x[i, j]); y_2[i, j] = sum[k: K] f32(x[i, k]) * f32(w[k, j]); y[i, j] = where(K == 0, 0.0, bf16(y_2[i, j] * tanh(t_sum[i])))`},
	{"not what may be infinite", `graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y = bf16(f32(x) * exp(sum(f32(x), axis=-1, keep=true))) @ w }`,
		`t_sum[i] = sum[j: K] f32(x[i, j]); t[i, j] = bf16(f32(x[i, j]) * exp(t_sum[i])); y[i, j] = sum[k: K] t[i, k] * w[k, j]`},
	{"a factor that may be infinite stays", `graph g(x: f32[M, K], s: f32[M]) -> (y: f32[M]) { y = sum(x * s[:, none], axis=1) }`,
		`y[i] = sum[j: K] x[i, j] * s[i]`},
	{"but in a product for tensor cores", `graph g(x: bf16[M, K], s: bf16[M], w: bf16[K, N]) -> (y: f32[M, N]) { y[i, j] = sum[k] f32(x[i, k]) * f32(w[k, j]) * f32(s[i]) }`,
		`y_2[i, j] = sum[k: K] f32(x[i, k]) * f32(w[k, j]); y[i, j] = where(K == 0, 0.0, y_2[i, j] * f32(s[i]))`},
	{"not where it is wider than 16 bits", `graph g(x: bf16[M, K], w: bf16[K, N]) -> (y: f32[M, N]) { y = exp(f32(x)) @ f32(w) }`,
		`y[i, j] = sum[k: K] exp(f32(x[i, k])) * f32(w[k, j])`},
	{"constants fold", `graph g(x: f32[N]) -> (y: f32[N]) { y = x * (2 * 3) + where(x > x, exp(0.0), 1) }`,
		`y[i] = x[i] * 6.0 + 1.0`},
	{"what is widened is stored narrow", `graph g(a: bf16[M, 64], b: bf16[64, N]) -> (y: f32[M], z: f32[M, N]) { s = f32(a @ b)
		y = sum(tanh(s), axis=1)
		z = exp(s) }`, `matmul[i, j] = sum[k: 64] a[i, k] * b[k, j]; y[i] = sum[j: N] tanh(f32(matmul[i, j])); z[i, j] = exp(f32(matmul[i, j]))`},
	{"a sum of products is rounded once", `graph g(a: bf16[M, 64], b: bf16[64, N], c: bf16[M]) -> (y: bf16[N, M], z: bf16[M]) {
		s = f32(a) @ f32(b)
		y = bf16(transpose(s, 0, 1)) + c
		z = sum(bf16(s), axis=1) }`, `s[i, j] = sum[k: 64] f32(a[i, k]) * f32(b[k, j]); s_rounded[i, j] = bf16(s[i, j]); y[i, j] = s_rounded[j, i] + c[j]; z[i] = sum[j: N] s_rounded[i, j]`},
	{"parts are rounded before they are chosen from", `graph g(x: bf16[N, 64], w: bf16[64, 64], v: bf16[64, 64]) -> (y: bf16[2, N, 64]) {
		s = f32(x) @ f32(w)
		t = f32(x) @ f32(v)
		y[i: 2, j: N, k: 64] = bf16(where(i == 0, s[j, k], t[j, k])) }`, `s[i, j] = sum[k: 64] f32(x[i, k]) * f32(w[k, j]); s_rounded[i, j] = bf16(s[i, j]); t_5[i, j] = sum[k: 64] f32(x[i, k]) * f32(v[k, j]); t_5_rounded[i, j] = bf16(t_5[i, j]); y[i: 2, j, k] = bf16(where(i == 0, f32(s_rounded[j, k]), f32(t_5_rounded[j, k])))`},
	{"not what one reader needs whole", `graph g(a: bf16[M, 64], b: bf16[64, N]) -> (y: bf16[N, M], z: f32[M]) {
		s = f32(a) @ f32(b)
		y = bf16(transpose(s, 0, 1))
		z = max(s, axis=1) }`, `s[i, j] = sum[k: 64] f32(a[i, k]) * f32(b[k, j]); y[i, j] = bf16(s[j, i]); z[i] = max[j: N] s[i, j]`},
	{"conversions there and back go", `graph g(x: bf16[N]) -> (y: bf16[N]) { y = bf16(f32(x)) }`, `y[i] = x[i]`},
	{"but not by way of a narrower type", `graph g(x: bf16[N]) -> (y: bf16[N]) { y = bf16(f16(x)) }`, `y[i] = bf16(f16(x[i]))`},
	{"what a product needs written is read by others", `graph g(a: f32[M, 64], b: f32[M, 64], c: f32[M, 64], w: bf16[64, N]) -> (y: bf16[M, N], z: f32[64]) {
		t = bf16(a * b + c)
		y = t @ w
		z = sum(f32(t), axis=0) }`, `t[i, j] = bf16(a[i, j] * b[i, j] + c[i, j]); y[i, j] = sum[k: 64] t[i, k] * w[k, j]; z[j] = sum[i: M] f32(t[i, j])`},
	{"not where its inputs are fewer bytes", `graph g(a: bf16[M], b: bf16[64], w: bf16[64, N]) -> (y: bf16[M, N], z: f32[64]) {
		t[i, j] = a[i] * b[j]
		y = t @ w
		z = sum(f32(t), axis=0) }`, `y_operand[i, j] = a[i] * b[j]; y[i, j] = sum[k: 64] y_operand[i, k] * w[k, j]; z[j] = sum[i: M] f32(a[i] * b[j])`},
}
