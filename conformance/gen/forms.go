package gen

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fusec/fusec/ir"
)

// A form is a line whose operands must fit together, so that values drawn for other lines seldom
// do: it brings inputs of its own.
type form struct {
	*drawer
	line   Line
	inputs []Value  // that the line brings
	dtype  ir.DType // of float operands
}

// A shaper writes the right side of a form's line.
type shaper struct {
	weight  int
	feature string
	text    func(*form) string
	results int // 0 is one
}

var shapers = []shaper{
	{6, "conv form", (*form).convolution, 0},
	{4, "conv transpose form", (*form).transposedConvolution, 0},
	{6, "windows form", (*form).windows, 0},
	{4, "pool form", (*form).pooling, 0},
	{2, "unpool form", (*form).unpooling, 0},
	{3, "grid form", (*form).gridSample, 0},
	{3, "unfold form", (*form).unfold, 0},
	{2, "fold form", (*form).fold, 0},
	{6, "keys form", (*form).keyed, 0},
	{6, "attention form", (*form).attention, 0},
	{3, "attention call form", (*form).attentionCall, 0},
	{4, "odd rows form", (*form).oddRows, 0},
	{4, "batched product form", (*form).batchedProduct, 0},
	{3, "calls form", (*form).call, 0},
}

var shapersWeight = func() (n int) {
	for _, s := range shapers {
		n += s.weight
	}
	return n
}()

// formLine makes a line of a form, and the inputs that it brings.
func (d *drawer) formLine() (Line, []Value) {
	at := d.IntN(shapersWeight)
	for _, s := range shapers {
		if at -= s.weight; at >= 0 {
			continue
		}
		f := &form{drawer: d, line: Line{Feature: s.feature}, dtype: one(d.Rand, d.floats)}
		if !f.dtype.IsFloat() {
			f.dtype = one(d.Rand, []ir.DType{ir.F32, ir.F16, ir.BF16})
		}
		text := s.text(f)
		name := d.name()
		if !strings.HasPrefix(text, "[") { // which binds indices
			text = " = " + text
		}
		before, last, more := cutLast(text)
		f.line.Text = name + text
		if more {
			f.line.Text = before + name + last
		}
		f.line.Results = []Value{{Name: name}}
		return f.line, f.inputs
	}
	panic("BUG: weights do not add up")
}

// cutLast splits a text of several lines ahead of its last line.
func cutLast(text string) (before, last string, found bool) {
	at := strings.LastIndexByte(text, '\n')
	if at < 0 {
		return "", text, false
	}
	return strings.TrimPrefix(text[:at+1], " = "), text[at+1:], true
}

// n is one of some numbers.
func (f *form) n(from ...int) int { return one(f.Rand, from) }

// dim is a number, or at times a dim of the program's inputs that is not large.
func (f *form) dim(from ...int) string {
	if dim := one(f.Rand, f.dims); f.IntN(3) == 0 && f.extent(dim) <= 130 {
		return dim
	}
	return fmt.Sprint(f.n(from...))
}

// tensor is a value of a type: one of the program's, or an input that the line brings.
func (f *form) tensor(t ir.DType, dims ...any) string {
	v := Value{Type: t}
	for _, dim := range dims {
		v.Dims = append(v.Dims, fmt.Sprint(dim))
	}
	for _, known := range f.pool {
		if known.typeText() == v.typeText() && f.IntN(2) == 0 {
			f.line.Uses = append(f.line.Uses, known)
			return known.Name
		}
	}
	f.names++
	v.Name = fmt.Sprintf("m%d", f.names)
	f.line.Uses = append(f.line.Uses, v)
	f.inputs = append(f.inputs, v)
	return v.Name
}

// computed is a float operand: a tensor, or what an element of it gives.
func (f *form) computed(dims ...any) string {
	name := f.tensor(f.dtype, dims...)
	return fmt.Sprintf(one(f.Rand, []string{"%s", "%s", "%s", "%s", "relu(%s)", "(%s * 0.5)", "stop_gradient(%s)", "(%s + 1)"}), name)
}

// spatial is the extents of an image's axes, and of a window's; few where there are many axes.
func (f *form) spatial(axes int) (image, window []any) {
	for range axes {
		switch axes {
		case 1:
			image = append(image, f.dim(1, 2, 5, 8, 17, 33, 64))
		case 2:
			image = append(image, f.dim(1, 3, 4, 7, 8, 16))
		default:
			image = append(image, fmt.Sprint(f.n(2, 3, 4)))
		}
		window = append(window, f.n(1, 2, 3, 3, 4))
	}
	return image, window
}

// perAxis is an attribute of integers: one for all axes, or one for each.
func (f *form) perAxis(axes int, from ...int) string {
	if axes == 1 || f.IntN(2) == 0 {
		return fmt.Sprint(f.n(from...))
	}
	var out []string
	for range axes {
		out = append(out, fmt.Sprint(f.n(from...)))
	}
	return "(" + strings.Join(out, ", ") + ")"
}

func (f *form) convolution() string {
	axes := f.n(1, 1, 2, 2, 2, 3)
	image, window := f.spatial(axes)
	groups := f.n(1, 1, 1, 2, 3)
	in, out := groups*f.n(1, 2, 3, 8), groups*f.n(1, 2, 4, 9)
	x := f.computed(append([]any{f.dim(1, 2, 3), in}, image...)...)
	w := f.computed(append([]any{out, in / groups}, window...)...)
	text := fmt.Sprintf("conv%dd(%s, %s", axes, x, w)
	if f.IntN(3) == 0 {
		text += ", bias=" + f.tensor(f.dtype, out)
	}
	text += fmt.Sprintf(", stride=%s, padding=%s, dilation=%s, groups=%d", f.perAxis(axes, 1, 1, 2, 3), f.perAxis(axes, 0, 1, 2),
		f.perAxis(axes, 1, 1, 2), groups)
	if f.IntN(4) == 0 {
		text += fmt.Sprintf(", padding_mode=%q", one(f.Rand, []string{"reflect", "replicate", "circular"}))
	}
	return text + ")"
}

func (f *form) transposedConvolution() string {
	axes := f.n(1, 1, 2, 2, 3)
	image, window := f.spatial(axes)
	groups := f.n(1, 1, 2, 3)
	in, out := groups*f.n(1, 2, 3, 8), f.n(1, 2, 4)
	x := f.computed(append([]any{f.dim(1, 2), in}, image...)...)
	w := f.computed(append([]any{in, out}, window...)...)
	return fmt.Sprintf("conv_transpose%dd(%s, %s, stride=%s, padding=%s, output_padding=%s, dilation=%s, groups=%d)", axes, x, w,
		f.perAxis(axes, 1, 2, 3), f.perAxis(axes, 0, 1), f.perAxis(axes, 0, 0, 1), f.perAxis(axes, 1, 1, 2), groups)
}

// windows is a reduction over windows by index notation, with strides, dilations and what is outside.
func (f *form) windows() string {
	n, in, out := f.dim(1, 2), f.n(1, 2, 3, 16), f.n(1, 2, 8)
	image, window := f.spatial(f.n(1, 2))
	x := f.tensor(f.dtype, append([]any{n, in}, image...)...)
	var places, outs, reduced, offsets []string
	for i := range image {
		o, k := string("pq"[i]), string("ij"[i])
		outs = append(outs, fmt.Sprintf("%s: %s", o, f.dim(1, 4, 7, 16)))
		reduced = append(reduced, fmt.Sprintf("%s: %d", k, window[i]))
		offsets = append(offsets, k)
		places = append(places, fmt.Sprintf("%s * %d %s %s * %d - %d", o, f.n(1, 1, 2, 3), one(f.Rand, []string{"+", "+", "-"}), k,
			f.n(1, 1, 2, 3), f.n(0, 1, 2)))
	}
	read := fmt.Sprintf("%s[b, c, %s]", x, strings.Join(places, ", "))
	if f.IntN(3) == 0 {
		read = fmt.Sprintf("(%s else %s)", read, one(f.Rand, []string{"1", "-inf", "0.5"}))
	}
	if f.IntN(3) == 0 {
		return fmt.Sprintf("[b: %s, c: %d, %s] = %s[%s] %s", n, in, strings.Join(outs, ", "),
			one(f.Rand, []string{"sum", "max", "min", "prod", "argmax"}), strings.Join(reduced, ", "), read)
	}
	w := f.tensor(f.dtype, append([]any{out, in}, window...)...)
	return fmt.Sprintf("[b: %s, o: %d, %s] = sum[c: %d, %s] %s * %s[o, c, %s]", n, out, strings.Join(outs, ", "), in,
		strings.Join(reduced, ", "), read, w, strings.Join(offsets, ", "))
}

func (f *form) pooling() string {
	axes := f.n(1, 1, 2, 2, 3)
	image, _ := f.spatial(axes)
	x := f.computed(append([]any{f.dim(1, 2), f.n(1, 3)}, image...)...)
	size, stride := f.perAxis(axes, 1, 2, 3, 4), f.perAxis(axes, 1, 2, 3)
	ceil := one(f.Rand, []string{"true", "false"})
	switch f.IntN(5) {
	case 0:
		return fmt.Sprintf("adaptive_%s_pool%dd(%s, %d)", one(f.Rand, []string{"avg", "max"}), axes, x, f.n(1, 2, 3, 5))
	case 1:
		return fmt.Sprintf("avg_pool%dd(%s, %s, stride=%s, padding=%s, count_include_pad=%s, ceil_mode=%s)", axes, x, size, stride,
			f.perAxis(axes, 0, 1), one(f.Rand, []string{"true", "false"}), ceil)
	case 2:
		return fmt.Sprintf("max_pool%dd_indices(%s, %s, stride=%s, padding=%s, ceil_mode=%s)", axes, x, size, stride, f.perAxis(axes, 0, 1), ceil)
	}
	return fmt.Sprintf("max_pool%dd(%s, %s, stride=%s, padding=%s, dilation=%s, ceil_mode=%s)", axes, x, size, stride,
		f.perAxis(axes, 0, 1), f.perAxis(axes, 1, 1, 2), ceil)
}

func (f *form) unpooling() string {
	l := f.n(2, 4, 9, 16)
	x := f.tensor(f.dtype, f.dim(1, 2), f.n(1, 3), l)
	return fmt.Sprintf("max_unpool1d(max_pool1d(%[1]s, 2), max_pool1d_indices(%[1]s, 2), %[2]d)", x, l)
}

func (f *form) gridSample() string {
	n := f.dim(1, 2)
	x := f.computed(n, f.n(1, 3), f.dim(1, 2, 5, 8), f.dim(1, 3, 8))
	grid := f.tensor(one(f.Rand, []ir.DType{f.dtype, ir.F32}), n, f.dim(1, 4, 9), f.dim(1, 3), 2)
	return fmt.Sprintf("grid_sample(%s, %s, mode=%q, padding_mode=%q, align_corners=%s)", x, grid,
		one(f.Rand, []string{"bilinear", "nearest"}), one(f.Rand, []string{"zeros", "border", "reflection"}),
		one(f.Rand, []string{"true", "false"}))
}

func (f *form) unfold() string {
	image, _ := f.spatial(2)
	x := f.computed(append([]any{f.dim(1, 2), f.n(1, 3)}, image...)...)
	return fmt.Sprintf("unfold2d(%s, %s, dilation=%s, padding=%s, stride=%s)", x, f.perAxis(2, 1, 2, 3), f.perAxis(2, 1, 1, 2),
		f.perAxis(2, 0, 1), f.perAxis(2, 1, 2))
}

// fold adds the columns of windows up, as many as there are.
func (f *form) fold() string {
	n, c, size, kernel := f.dim(1, 2), f.n(1, 2, 3), f.n(3, 4, 7), f.n(1, 2, 3)
	padding, stride := f.n(0, 1), f.n(1, 2)
	count := (size+2*padding-kernel)/stride + 1
	x := f.computed(n, c*kernel*kernel, count*count)
	return fmt.Sprintf("fold2d(%s, (%d, %d), %d, padding=%d, stride=%d)", x, size, size, kernel, padding, stride)
}

// keyed is a reduction of what has the keys of a place: one key or two, as they are or computed.
func (f *form) keyed() string {
	n := f.dim(1, 7, 33, 100, 257)
	of := func(place string) string {
		key := f.tensor(one(f.Rand, []ir.DType{ir.I32, ir.I32, ir.I64, ir.U8}), n)
		return fmt.Sprintf(one(f.Rand, []string{"%s[k] == %s", "%s[k] == %s", "%s[k] + 1 == %s", "%s[k] %% 3 == %s"}), key, place)
	}
	outs, keys, column := []string{"a: " + f.dim(1, 3, 8, 40)}, []string{of("a")}, ""
	if f.IntN(2) == 0 {
		outs, keys = append(outs, "b: "+f.dim(1, 2, 5)), append(keys, of("b"))
	}
	dims := []any{n}
	if f.IntN(2) == 0 {
		e := f.dim(1, 4, 33)
		outs, column, dims = append(outs, "e: "+e), ", e", append(dims, e)
	}
	x := f.tensor(one(f.Rand, []ir.DType{f.dtype, f.dtype, ir.I32, ir.I64}), dims...)
	op := one(f.Rand, []string{"sum", "sum", "sum", "max", "min", "prod"})
	f.Shuffle(len(outs), func(i, j int) { outs[i], outs[j] = outs[j], outs[i] })
	return fmt.Sprintf("[%s] = %s[k: %s where %s] %s[k%s]", strings.Join(outs, ", "), op, n, strings.Join(keys, " && "), x, column)
}

// attention is written out, with groups of heads, masks, a bias or a soft cap.
func (f *form) attention() string {
	groups, share := f.n(1, 2), f.n(1, 1, 2, 3)
	heads, n, l, s, e, v := groups*share, f.dim(1, 2), f.dim(1, 5, 16, 33, 65), f.dim(1, 5, 16, 40, 64), f.n(1, 8, 16, 32), f.n(1, 8, 16)
	q, k, val := f.tensor(f.dtype, n, heads, l, e), f.tensor(f.dtype, n, groups, s, e), f.tensor(f.dtype, n, groups, s, v)
	head := "h"
	if share > 1 {
		head = fmt.Sprintf("h / %d", share)
	}
	score, logit, p := f.name(), f.name(), f.name()
	out := fmt.Sprintf("%s[b: %s, h: %d, y: %s, j: %s] = (sum[d: %d] %s[b, h, y, d] * %s[b, %s, j, d]) * 0.25\n", score, n, heads, l, s,
		e, q, k, head)
	at := score + "[b, h, y, j]"
	switch f.IntN(4) {
	case 0:
		at = fmt.Sprintf("2.0 * tanh(%s / 2.0)", at)
	case 1:
		at = fmt.Sprintf("%s + %s[h, y, j]", at, f.tensor(f.dtype, heads, l, s))
	}
	switch f.IntN(5) {
	case 0:
		at = fmt.Sprintf("where(j <= y, %s, -inf)", at)
	case 1:
		at = fmt.Sprintf("where(j <= y && y - j < 3, %s, -inf)", at)
	case 2:
		at = fmt.Sprintf("where(%s[y, j], %s, -inf)", f.tensor(ir.Bool, l, s), at)
	case 3:
		at = fmt.Sprintf("where(j < %s[b], %s, -inf)", f.tensor(ir.I32, n), at)
	}
	out += fmt.Sprintf("%s[b: %s, h: %d, y: %s, j: %s] = %s\n%s = softmax(%s)\n", logit, n, heads, l, s, at, p, logit)
	return out + fmt.Sprintf("[b: %s, h: %d, y: %s, e: %d] = sum[j: %s] %s[b, h, y, j] * %s[b, %s, j, e]", n, heads, l, v, s, p, val, head)
}

func (f *form) attentionCall() string {
	lead := []any{f.dim(1, 2), f.n(1, 3)}[:f.n(0, 1, 2)]
	l, s, e := f.dim(1, 5, 16, 33), f.dim(1, 5, 16, 64), f.n(1, 8, 16, 40)
	shape := func(tail ...any) []any { return append(slices.Clone(lead), tail...) }
	text := fmt.Sprintf("attention(%s, %s, %s", f.computed(shape(l, e)...), f.computed(shape(s, e)...), f.computed(shape(s, f.n(1, 8, 33))...))
	if f.IntN(3) == 0 {
		text += ", mask=" + f.tensor(ir.Bool, l, s)
	}
	if f.IntN(3) == 0 {
		text += ", bias=" + f.tensor(f.dtype, l, s)
	}
	if f.IntN(3) == 0 {
		text += ", scale=" + one(f.Rand, []string{"0.5", "-1.0", "2.0"})
	}
	return text + ", causal=" + one(f.Rand, []string{"true", "false"}) + ")"
}

// oddRows is a product of matrices whose rows are no whole number of accesses.
func (f *form) oddRows() string {
	f.dtype = one(f.Rand, []ir.DType{ir.F16, ir.BF16, ir.BF16, f.dtype})
	m, n, k := f.dim(1, 3, 16, 40, 130), f.dim(1, 8, 17, 64), f.n(5, 7, 17, 33, 65, 129, 258, 261)
	a := f.computed(m, k)
	if f.IntN(2) == 0 {
		return fmt.Sprintf("%s @ %s", a, f.computed(k, n))
	}
	return fmt.Sprintf("%s @ transpose(%s)", a, f.computed(n, k))
}

func (f *form) batchedProduct() string {
	b, m, n, k := f.dim(1, 2, 3), f.dim(1, 8, 16, 33), f.dim(1, 8, 17, 64), f.dim(1, 8, 16, 32, 65)
	switch f.IntN(4) {
	case 0:
		return fmt.Sprintf("relu(%s @ %s + %s)", f.computed(b, m, k), f.computed(b, k, n), f.tensor(f.dtype, n))
	case 1:
		return fmt.Sprintf("addmm(%s, %s, %s)", f.tensor(f.dtype, m, n), f.computed(m, k), f.computed(k, n))
	case 2:
		return fmt.Sprintf("linear(%s, %s, %s)", f.computed(b, m, k), f.computed(n, k), f.tensor(f.dtype, n))
	}
	return fmt.Sprintf("%s @ %s", f.computed(b, m, k), f.computed(k, n))
}

// call is one of the library's functions whose operands have shapes of their own.
func (f *form) call() string {
	a, b, c := f.dim(1, 3, 8, 40), f.dim(2, 5, 16), f.n(1, 2, 3)
	same := func(count int) string {
		var out []string
		for range count {
			out = append(out, f.computed(a, b))
		}
		return strings.Join(out, ", ")
	}
	switch f.IntN(9) {
	case 0:
		return fmt.Sprintf("cross(%s, %s)", f.computed(a, 3), f.computed(a, 3))
	case 1:
		return fmt.Sprintf("pixel_shuffle(%s, 2)", f.computed(1, 4*c, 2, 3))
	case 2:
		return fmt.Sprintf("pixel_unshuffle(%s, 2)", f.computed(1, c, 4, 6))
	case 3:
		return fmt.Sprintf("upsample_bicubic(%s, %d)", f.computed(c, 3, 4), c)
	case 4:
		return fmt.Sprintf("upsample_trilinear(%s, 2)", f.computed(c, 2, 3, 2))
	case 5:
		return fmt.Sprintf("bilinear(%s, %s, %s)", f.computed(a, 3), f.computed(a, 4), f.computed(c, 3, 4))
	case 6:
		return fmt.Sprintf("%s(%s)", one(f.Rand, []string{"addcmul", "addcdiv", "triplet_margin_loss"}), same(3))
	case 7:
		return fmt.Sprintf("nll_loss(log_softmax(%s), %s)", f.computed(a, b), f.tensor(ir.I32, a))
	}
	return fmt.Sprintf("%s(%s)", one(f.Rand, []string{"smooth_l1_loss", "poisson_nll_loss", "soft_cross_entropy", "focal_loss"}), same(2))
}
