package gen

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// DrawLarge makes the program of a seed for tests that plan it and generate its kernels, but do not run
// it: one of the operations that take most of a network's time, at extents on both sides of where
// planners choose otherwise, between drawn lines before and behind it.
func DrawLarge(seed uint64) *Program { return drawAround(seed, cores) }

// DrawTimed makes the program of a seed for tests that time it: as DrawLarge does, from convolutions and what reads windows
// otherwise too.
func DrawTimed(seed uint64) *Program { return drawAround(seed, slices.Concat(cores, windowCores)) }

func drawAround(seed uint64, cores []coreRow) *Program {
	d := newLarge(seed)
	d.program.Annotations = one(d.Rand, []string{"", "", "", "", "", "@strict", "@tf32"})
	for !d.core(one(d.Rand, cores)) {
		d.program.Inputs, d.program.Lines, d.program.Sizes, d.pool, d.dims = nil, nil, map[string]int64{}, nil, nil
	}
	result := d.pool[len(d.pool)-1]
	if d.IntN(2) == 0 {
		d.input("r", result.Type, result.Dims)
	}
	if d.IntN(3) == 0 && result.Rank() > 1 {
		d.input("c", result.Type, result.Dims[result.Rank()-1:])
	}
	d.pool = append(d.pool, result)
	if d.IntN(2) == 0 {
		d.chain(result)
	}
	for range d.IntN(4) {
		d.line()
	}
	made := d.pool[len(d.program.Inputs):]
	d.pool = append(slices.Clone(d.program.Inputs), slices.DeleteFunc(made, d.isInput)...)
	d.outputs()
	d.program.prune()
	return d.program
}

func newLarge(seed uint64) *drawer {
	return &drawer{Rand: rand.New(rand.NewPCG(seed, 0x1a49e)), program: &Program{Seed: seed, Sizes: map[string]int64{}},
		floats: []ir.DType{ir.F32, ir.F16, ir.BF16}, most: 1 << 50}
}

func (d *drawer) isInput(v Value) bool {
	return slices.ContainsFunc(d.program.Inputs, func(in Value) bool { return in.Name == v.Name })
}

// A coreRow is an operation with its operands. T is their type and Q that of packed ones; other capitals
// are extents, drawn from extents.
type coreRow struct{ operands, text string }

var cores = []coreRow{
	{"a: T[M, K], b: T[K, N]", "a @ b"},
	{"a: T[M, K], b: T[N, K]", "a @ transpose(b)"},
	{"a: T[K, M], b: T[K, N]", "transpose(a) @ b"},
	{"a: T[B, M, K], b: T[B, K, N]", "a @ b"},
	{"a: T[B, M, K], b: T[N, K]", `einsum("bmk,nk->bmn", a, b)`},
	{"a: T[M, H, K], b: T[N, H, K]", `einsum("mhk,nhk->hmn", a, b)`},
	{"a: T[M, K], b: T[K]", "a @ b"},
	{"a: T[G, K], b: T[K, N]", "a @ b"},
	{"a: T[M, K], b: T[K, G]", "a @ b"},
	{"a: T[M, D], b: T[D, N]", "a @ b"},
	{"a: T[M, K], b: T[K, N], s: T[K, N]", "silu(a @ b) * (a @ s)"},
	{"a: T[M, K], b: T[N, K], s: T[N, K]", "(a @ transpose(b)) + (a @ transpose(s))"},
	{"a: T[M, K], b: Q[N, K], s: f32[N]", "a @ transpose(T(b)) * T(s)"},
	{"a: T[G, K], b: Q[N, K], s: T[N, K]", "a @ transpose(T(b) * s)"},
	{"a: T[M, K], b: u8[N, K]", "[i: M, j: N] = sum[k: 2 * K] f32(a[i, k / 2]) * f32(i32(b[j, k / 2]) >> 4 * (k % 2) & 15)"},
	{"a: T[M, K], b: T[M, K], s: i32[M]", "[i: M, j: M] = sum[k: K where s[i] == s[j]] f32(a[i, k]) * f32(b[j, k])"},
	{"a: T[M, K], b: T[N, K]", "cdist(a, b)"},
	{"a: T[K, K]", "a @ transpose(a)"},
	{"a: T[B, H, S, D], b: T[B, H, S, D], s: T[B, H, S, D]", "attention(a, b, s, causal={tf})"},
	{"a: T[B, H, 1, D], b: T[B, H, S, D], s: T[B, H, S, D]", "attention(a, b, s)"},
	{"a: T[S, D], b: T[P, D], s: T[P, D]", "attention(a, b, s, causal={tf})"},
	{"a: T[B, H, S, D], b: T[B, H, S, D], s: bool[S, S]", "softmax(where(s, a @ transpose(b, -1, -2) * 0.125, -inf)) @ b"},
	{"a: T[H, S, D], b: T[H, S, D], s: T[S]", "softmax(min(a @ transpose(b, -1, -2), 8.0) + s) @ b"},
	{"a: T[H, S, D], b: T[H, S, D], s: i32[S]",
		"bf16(softmax(where(s[:, none] == s && iota(S) <= iota(S)[:, none], f32(a @ transpose(b, -1, -2)), -inf))) @ bf16(b)"},
	{"a: T[H, S, D], b: T[H, S, D], s: bool[S, S]", "softmax(f32(where(s, -inf, a @ transpose(b, -1, -2)))) @ f32(b)"},
	{"a: T[H, S, D], b: T[H, S, D], s: T[H]", "softmax(where(iota(S) < iota(S)[:, none] + 1 && iota(S)[:, none] - iota(S) < 512, " +
		"tanh(a @ transpose(b, -1, -2) * 0.02) * 30.0 + s[:, none, none] * T(iota(S)), -inf)) @ b"},
	{"a: T[B, 32, S, D], b: T[B, 8, S, D]", "attention(a, repeat(b, 4, axis=1), repeat(b, 4, axis=1), causal={tf})"},
	{"a: T[B, 32, 1, D], b: T[B, 4, S, D], s: i32[B]",
		"softmax(where(iota(S) < s[:, none, none, none], a @ transpose(repeat(b, 8, axis=1), -1, -2), -inf)) @ repeat(b, 8, axis=1)"},
	{"a: T[H, 1, D], b: T[P, H, D], s: i32[M]", "softmax(einsum(\"hqd,khd->hqk\", a, b[s])) @ transpose(b[s], 0, 1)"},
	{"a: T[H, S, 64], b: T[64 * H, N]", "reshape(transpose(a, 0, 1), S, -1) @ b"},
	{"a: T[M, K], b: T[K, 64 * H]", "transpose(reshape(a @ b, M, H, 64), 0, 1)"},
	{"a: T[M, K], b: T[K, N], s: T[N, K]", "gelu(rms_norm(a) @ b) @ s + a"},
	{"a: T[M, K], b: T[K, N], s: T[N]", "softmax(a @ b + s)"},
	{"a: T[M, K], b: T[K, N], s: T[N]", "{one of sum max argmax logsumexp}(a @ b * s, axis={one of 0 1})"},
	{"a: T[M, K], b: T[M, N]", "transpose(a) @ gelu(b)"},
	{"a: T[B, C, L, L], b: T[C, C, R, R]", "conv2d(a, b, stride={one of 1 2}, padding={one of 0 1})"},
	{"a: T[B, C, L, L], b: T[C, C, 1, 1]", "conv2d(a, b)"},
	{"a: T[B, C, M], b: T[C, C, R]", "conv1d(a, b, stride={one of 1 2}, padding={one of 0 1}, dilation={one of 1 2})"},
	{"a: T[B, C, L, L]", "max_pool2d(a, {k})"},
	{"a: T[B, C, L, L]", "group_norm(a, {k})"},
	{"a: T[M, K], b: T[K]", "{one of layer_norm rms_norm}(a, b)"},
	{"a: T[M, K]", "{one of softmax log_softmax}(a, axis={one of 0 1})"},
	{"a: T[M, K]", "{one of sum max argmax mean logsumexp prod}(a, axis={one of 0 1 none})"},
	{"a: T[M, H, K]", "{one of sum min argmin var}(a, axis={one of 0 1 2 (0,2) (1,2) (0,1)})"},
	{"a: T[M, K]", "{one of cumsum cummax cumprod}(a, axis={one of 0 1}, reverse={tf}, exclusive={tf})"},
	{"a: T[M, K]", "{one of sort argsort median}(a, axis={one of 0 1})"},
	{"a: T[P]", "{one of sort argsort cumsum sum argmax logsumexp}(a)"},
	{"a: T[M, K], s: i32[M]", "[i: N, j: K] = sum[k: M where s[k] == i] a[k, j]"},
	{"a: T[P], s: i32[P]", "[i: N] = {one of sum max}[k: P where s[k] == i] a[k]"},
	{"s: Q[P]", "bincount(s, 256)"},
	{"a: T[M, K], s: i32[N]", "a[s]"},
	{"a: T[M, K], s: i32[M]", "index_add(a, s, a, axis=0)"},
	{"a: T[M, K], s: i32[M]", "cross_entropy(a, s)"},
	{"a: T[M, K], b: T[K, N], s: i32[M]", "cross_entropy(a @ b, s)"},
	{"a: T[B, M, K]", "batch_norm_train(a)"},
	{"a: T[M, K]", "topk(a, {k}, axis={one of 0 1}, largest={tf})"},
	{"a: T[M, K], s: T[M, K]", "layer_norm(a + s) + cumsum(s, axis={one of 0 1})"},
	{"a: T[M, K]", "a - logsumexp(a, axis=0) + mean(a, axis=1, keep=true)"},
	{"a: T[B, M, K]", "transpose(a, {one of 0 1 2}, {one of 0 1})"},
	{"a: T[M, K], b: T[M, N]", "concat(a, b, axis=1)"},
	{"a: T[P], b: T[P], s: f32[P]", "T(f32(a) * s) + b * {c}"},
}

// windowCores read windows: convolutions of all kinds, pooling, sampling.
var windowCores = []coreRow{
	{"a: T[B, C, L, L], b: T[F, C, R, R]", "conv2d(a, b, stride={one of 1 2 3}, padding={one of 0 1 2}, dilation={one of 1 1 2})"},
	{"a: T[B, C, L, L], b: T[F, C, 3, 3]", "relu(conv2d(a, b, padding=1))"},
	{"a: T[B, C, L, L], b: T[F, C, 1, 1]", "conv2d(a, b, stride={one of 1 2})"},
	{"a: T[B, C, L, L], b: T[F, C, R, 1]", "conv2d(a, b, padding=(1, 0))"},
	{"a: T[B, C, L, L], b: T[F, C, 1, R]", "conv2d(a, b, padding=(0, 1))"},
	{"a: T[B, L, L, C], b: T[F, C, 3, 3]", "permute(conv2d(permute(a, (0, 3, 1, 2)), b, padding=1), (0, 2, 3, 1))"},
	{"a: T[B, C, L, L], b: T[C, 1, R, R]", "conv2d(a, b, stride={one of 1 2}, padding={one of 0 1}, groups=C)"},
	{"a: T[B, 96, L, L], b: T[64, 12, 3, 3]", "conv2d(a, b, padding=1, groups=8)"},
	{"a: T[B, 32, L, L], b: T[32, 4, 3, 3]", "conv2d(a, b, stride={one of 1 2}, padding=1, groups=8)"},
	{"a: T[B, C, L, L], b: T[F, C, 3, 3]", "conv2d(a, b, padding=1, padding_mode={one of \"reflect\" \"circular\" \"replicate\"})"},
	{"a: T[B, C, M], b: T[F, C, R]", "conv1d(a, b, stride={one of 1 2 4}, padding={one of 0 2}, dilation={one of 1 4})"},
	{"a: T[B, C, M], b: T[C, 1, R]", "conv1d(a, b, padding={one of 0 2}, groups=C)"},
	{"a: T[B, C, 8, L, L], b: T[F, C, 3, 3, 3]", "conv3d(a, b, stride={one of 1 2}, padding=1)"},
	{"a: T[B, C, L, L], b: T[C, F, R, R]", "conv_transpose2d(a, b, stride={one of 1 2 2 3}, padding={one of 0 1})"},
	{"a: T[B, C, L, L], b: T[C, F, 4, 4]", "conv_transpose2d(a, b, stride=2, padding=1)"},
	{"a: T[B, C, L, L], b: T[C, F, 2, 2]", "conv_transpose2d(a, b, stride=2)"},
	{"a: T[B, C, M], b: T[C, F, R]", "conv_transpose1d(a, b, stride={one of 1 2 4})"},
	{"a: T[B, C, L, L], b: T[C, 1, 4, 4]", "conv_transpose2d(a, b, stride=2, padding=1, groups=C)"},
	{"a: T[B, C, L, L], b: T[F, C, 3, 3]", "conv2d(upsample_nearest2d(a, 2), b, padding=1)"},
	{"a: T[B, C, L, L], b: T[F, C, 3, 3]", "{one of max_pool2d avg_pool2d}(relu(conv2d(a, b, padding=1)), 2)"},
	{"a: T[B, C, L, L], b: T[F, C, 3, 3]", "mean(relu(conv2d(a, b, padding=1)), axis=(2,3))"},
	{"a: T[B, C, L, L], b: T[32, C, 3, 3]", "group_norm(conv2d(a, b, padding=1), 8)"},
	{"a: T[B, C, L, L], b: T[C, C, 3, 3], s: T[C]", "relu(conv2d(a, b, padding=1) * s[:, none, none] + a)"},
	{"a: T[B, C, L, L]", "{one of max_pool2d avg_pool2d}(a, 3, stride={one of 1 2 3}, padding={one of 0 1})"},
	{"a: T[B, C, L, L]", "adaptive_avg_pool2d(a, {one of 1 2 7})"},
	{"a: T[B, C, L, L]", "upsample_bilinear(a, {one of 2 4})"},
	{"a: T[B, C, L, L]", "unfold2d(a, 3, padding=1)"},
	{"a: T[B, 64, L, L]", "pixel_shuffle(a, {one of 2 4 8})"},
	{"a: T[B, C, L, L], s: T[B, L, L, 2]", "grid_sample(a, s)"},
	{"a: T[B, C, L, L]", "{one of softmax layer_norm}(permute(a, (0, 2, 3, 1)))"},
	{"a: T[B, C, L, L]", "softmax(a, axis=1)"},
	{"a: T[B, C, L, L]", "a - mean(a, axis=(0,2,3), keep=true)"},
}

// extents are what each capital may stand for.
var extents = map[string][]int64{
	"M": {1, 2, 7, 8, 9, 16, 17, 31, 32, 33, 48, 63, 64, 65, 96, 127, 128, 129, 200, 256, 257, 384, 511, 512, 1000, 1024, 2047,
		2048, 2056, 4096, 4104, 8192, 16384, 65536, 131072},
	"N": {8, 16, 24, 32, 33, 63, 64, 65, 72, 100, 127, 128, 136, 192, 255, 256, 264, 320, 512, 513, 1000, 1024, 2048, 3000, 4096,
		5120, 8192, 14336, 32000, 50257},
	"K": {8, 15, 16, 17, 24, 32, 48, 63, 64, 65, 72, 100, 127, 128, 129, 136, 255, 256, 257, 320, 500, 512, 520, 768, 1000, 1024,
		1025, 1536, 2048, 2049, 3072, 4096, 4097, 5120, 8192, 8200, 12288, 16384, 32768, 50257, 131072},
	"P": {1000, 1024, 4095, 4096, 4097, 8192, 16384, 16385, 32768, 65536, 100000, 131072, 1 << 18, 1 << 20},
	"S": {1, 16, 17, 64, 100, 127, 128, 129, 256, 512, 1000, 1024, 2048, 4096, 8192, 16384, 32768},
	"D": {8, 16, 24, 32, 40, 48, 64, 72, 80, 96, 112, 128, 160, 192, 256, 264, 512},
	"B": {1, 2, 3, 4, 8, 16, 32, 64, 128},
	"H": {1, 2, 3, 4, 8, 12, 16, 32, 64, 128},
	"C": {1, 3, 4, 8, 16, 24, 32, 64, 96, 128, 256, 512},
	"L": {1, 7, 8, 14, 16, 28, 32, 56, 64, 112, 128, 224},
	"F": {1, 2, 3, 4, 8, 12, 16, 32, 40, 64, 128, 256},
	"G": {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33},
	"R": {1, 2, 3, 5, 7, 11},
}

// several are the functions among cores that have several results.
var several = map[string]int{"topk": 2, "batch_norm_train": 3}

var capital = regexp.MustCompile(`\b[A-Z]\b`)

// core makes the inputs of a core, what stands before it, and its line; false where these do not fit.
func (d *drawer) core(c coreRow) bool {
	types := map[string]string{
		"T": one(d.Rand, []string{"bf16", "bf16", "f16", "f32", "f32", "f64", "i8", "i32"}),
		"Q": one(d.Rand, []string{"i8", "u8", "i8", "f16", "i32"})}
	bound, made := map[string]string{}, false
	replace := func(text string) string {
		return capital.ReplaceAllStringFunc(text, func(c string) string {
			if t, ok := types[c]; ok {
				return t
			}
			if bound[c] == "" {
				bound[c] = d.bind(c, !made)
			}
			return bound[c]
		})
	}
	for operand := range strings.SplitSeq(c.operands, "],") {
		name, rest, _ := strings.Cut(strings.TrimSpace(operand), ": ")
		t, dims, _ := strings.Cut(rest, "[")
		dtype, _ := ir.DTypeNamed(replace(t))
		d.input(name, dtype, dimsOf(strings.TrimSuffix(replace(dims), "]")))
	}
	made = true // inputs say what symbols are, and there are no more of these
	text := replace(c.text)
	for _, v := range slices.Clone(d.pool) {
		if v.Type.IsFloat() && d.IntN(4) == 0 {
			text = d.before(v, text)
		}
	}
	l := Line{Feature: "core", Uses: slices.Clone(d.pool)}
	text = braces.ReplaceAllStringFunc(text, func(hole string) string {
		word, _ := d.fill(hole[1:len(hole)-1], &l)
		return word
	})
	return d.take(l, text)
}

// bind draws an extent: a number, or perhaps a symbol that has one.
func (d *drawer) bind(letter string, symbol bool) string {
	n := one(d.Rand, extents[letter])
	d.dims = append(d.dims, fmt.Sprint(n))
	if symbol && strings.Contains("MNKPSB", letter) && d.IntN(2) == 0 {
		d.program.Sizes[letter] = n
		d.dims[len(d.dims)-1] = letter
	}
	return d.dims[len(d.dims)-1]
}

// before puts a line between an operand and the core, whose text then reads that line's result.
func (d *drawer) before(v Value, core string) string {
	text := strings.ReplaceAll(one(d.Rand, []string{"silu(?)", "rms_norm(?)", "softmax(?)", "layer_norm(?)", "? * 0.5", "? * ? + 1.0",
		"exp(-?)", "relu(?)", "? / (1 + amax(abs(?), axis=-1, keep=true))", "where(? > 0.25, ?, 0.0)"}), "?", v.Name)
	if !d.take(Line{Feature: "before", Uses: []Value{v}}, text) {
		return core
	}
	return regexp.MustCompile(`\b`+v.Name+`\b([^(]|$)`).ReplaceAllString(core, d.pool[len(d.pool)-1].Name+"$1")
}

// chain is operations on one value, from few to more than a kernel wants to do twice.
func (d *drawer) chain(v Value) {
	text := v.Name
	for range 1 + d.IntN(12) {
		text = one(d.Rand, []string{"tanh(?)", "exp(?)", "(? + 1.0)", "(? * 0.5)", "abs(?)", "sqrt(?)", "gelu(?)", "erf(?)", "relu(?)", "recip(?)"})
		text = strings.ReplaceAll(text, "?", v.Name)
		if !d.take(Line{Feature: "chain", Uses: []Value{v}}, text) {
			return
		}
		v = d.pool[len(d.pool)-1]
	}
}

// take adds a line that gives a new name to an expression, or the element of a tensor where its text
// begins with ranges; false where the parser refuses it.
func (d *drawer) take(l Line, text string) bool {
	names := []string{d.name()}
	for f, n := range several {
		for range n - 1 {
			if strings.HasPrefix(text, f+"(") {
				names = append(names, d.name())
			}
		}
	}
	for _, n := range names {
		l.Results = append(l.Results, Value{Name: n})
	}
	l.Text = strings.Join(names, ", ") + " = " + text
	if strings.HasPrefix(text, "[") {
		l.Text = names[0] + text
	}
	if !d.accept(&l) {
		return false
	}
	d.program.Lines = append(d.program.Lines, l)
	d.pool = append(d.pool, l.Results...)
	return true
}
