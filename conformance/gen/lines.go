package gen

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fusec/fusec/ir"
)

// A row is a form of line: its right side, with what stands in braces replaced.
//
//	{f} {i} {b} {n} {x}   a value: float, integer, bool, number, any; {f2} of two axes,
//	                      {f2+} of two or more
//	{=}                   a value of the first one's dtype and shape
//	{&}                   a value of the first one's dtype
//	{ax} {axes}           an axis of the first one; one or several, or none at all
//	{k} {c} {ci} {dt}     a small count, a float, an integer, a dtype
//	{tf}                  true or false
//	{dim}                 a dim of the first one
type row struct {
	weight  int
	feature string
	text    string
	results int // 0 is one
}

var rows = []row{
	// Operations, each as often as it has rows here: the first two stand for all of their kind.
	{40, "unary", "{unary}({f})", 0},
	{30, "binary", "{f} {op} {=}", 0},
	{20, "broadcast", "{f} {op} {&}", 0},
	{10, "binary", "{binary}({f}, {=})", 0},
	{10, "integer", "{i} {iop} {=}", 0},
	{6, "integer", "{i} {iop} {&}", 0},
	{4, "mixed", "{n} {op} {n}", 0},
	{6, "literal", "{n} {op} {ci}", 0},
	{6, "literal", "{f} {op} {c}", 0},
	{3, "literal", "{c} {op} {f}", 0},
	{4, "unary integer", "{one of abs neg sign bitnot}({i})", 0},
	{8, "compare", "{x} {cmp} {=}", 0},
	{4, "compare", "{n} {cmp} {ci}", 0},
	{4, "bool", "{b} {one of && || & | ^ == !=} {b}", 0},
	{2, "bool", "!{b}", 0},
	{4, "isnan", "{one of isnan isinf isfinite}({f})", 0},
	{8, "where", "where({b}, {x}, {x})", 0},
	{8, "where", "where({n} {cmp} {ci}, {f}, {f})", 0},
	{12, "cast", "{dt}({x})", 0},
	{2, "wide", "wide({f})", 0},
	{2, "constant", "{one of stop_gradient stationary}({f})", 0},

	// Reductions.
	{24, "reduce", "{one of sum max min prod}({x}, axis={axes}, keep={tf})", 0},
	{8, "reduce all", "{one of sum max min prod argmax argmin}({n})", 0},
	{8, "argmax", "{one of argmax argmin}({x}, axis={axes}, keep={tf})", 0},
	{4, "any", "{one of any all}({b}, axis={axes}, keep={tf})", 0},
	{10, "reduce library", "{one of mean l1_norm l2_norm linf_norm logsumexp amax amin count_nonzero}({f}, axis={axes}, keep={tf})", 0},
	{4, "variance", "{one of var std}({f}, axis={axes}, correction={one of 0 1}, keep={tf})", 0},
	{2, "variance", "var_mean({f}, axis={axes}, keep={tf})", 2},
	{2, "norm", "norm({f}, p={one of 1.0 2.0 3.0 inf}, axis={axes}, keep={tf})", 0},
	{1, "norm", "frobenius_norm({f2+})", 0},
	{1, "trace", "trace({f2+})", 0},

	// Views and movement.
	{6, "transpose", "transpose({x2+}, {ax}, {ax})", 0},
	{3, "permute", "permute({x3}, ({one of 2, 0, 1|1, 2, 0|0, 2, 1|2, 1, 0}))", 0},
	{4, "reshape", "reshape({x}, -1)", 0},
	{3, "reshape", "reshape({x2}, {dim}, -1, 1)", 0},
	{3, "reshape", "reshape({x1+}, -1, {k})", 0},
	{5, "flip", "flip({x1+}, axis={axes})", 0},
	{5, "roll", "roll({x1+}, {ci}, axis={ax})", 0},
	{4, "pad", "pad({x1+}, ({one of 0 1 2 3}, {one of 0 1 2}), axis={ax})", 0},
	{2, "pad", "pad({f1+}, (1, 2), axis={ax}, value={c})", 0},
	{5, "concat", "concat({x1+}, {&}, axis={ax})", 0},
	{3, "concat", "concat({x1+}, {=}, {&}, axis={ax})", 0},
	{3, "stack", "stack({x}, {=}, axis={ax})", 0},
	{3, "split", "split({x1+}, 2, axis={ax})", 2},
	{3, "repeat", "repeat({x1+}, {k}, axis={ax})", 0},
	{2, "squeeze", "squeeze({x1+}, {ax})", 0},
	{4, "unsqueeze", "unsqueeze({x}, {ax})", 0},
	{3, "broadcast call", "broadcast({x}, {k}, {dim})", 0},
	{3, "broadcast call", "broadcast(unsqueeze({x1}, 1), {dim}, {k})", 0},
	{6, "slice", "{x1+}[{slice}]", 0},
	{4, "slice", "{x2+}[{slice}, {slice}]", 0},
	{3, "slice", "{x1+}[..., {slice}]", 0},
	{2, "slice", "{x2+}[:, {one of 0 -1 1}]", 0},
	{3, "new axis", "{x1+}[{one of :, none|none|..., none}]", 0},
	{6, "gather", "{x1+}[{i}]", 0},
	{4, "gather", "{x1+}[{i} {one of + - *} {k}]", 0},
	{3, "gather slice", "{x1+}[{slice}][{i}]", 0},
	{3, "gather else", "{x1+}[{i}] else {one of 0 1 -1 7}", 0},
	{3, "triangle", "{one of tril triu}({x2+}, {one of 0 1 -1 2})", 0},
	{2, "diagonal", "{one of diagonal diag_embed}({x1+})", 0},
	{1, "narrow", "narrow({x1+}, {ax}, {one of 0 1}, {k})", 0},
	{2, "diff", "diff({n1+}, axis={ax})", 0},
	{2, "pad library", "{one of reflect_pad replicate_pad circular_pad}({x1+}, {one of 0 1 2}, {one of 0 1})", 0},
	{1, "pad library", "zero_pad2d({x2+}, 1, 0, 2, 1)", 0},
	{1, "unfold", "unfold({x1+}, {k}, {one of 1 2})", 0},
	{2, "flatten", "{one of flatten ravel}({x1+})", 0},
	{2, "full", "{x} + full({one of 0 1 2}, {dim}, {dim})", 0},
	{2, "iota", "{dt}(iota({dim}))", 0},
	{1, "like", "{one of zeros_like ones_like}({x})", 0},

	// Products.
	{8, "matmul", "{f2} @ {&}", 0},
	{5, "matmul", "{f2} @ transpose({=})", 0},
	{3, "matmul", "transpose({f2}) @ {=}", 0},
	{3, "matmul", "{f1+} @ {&}", 0},
	{2, "matmul", "{i1+} @ {&}", 0},
	{2, "matmul", "({f2} * {c}) @ transpose({=} + {c})", 0},
	{2, "matmul", "softmax({f2}) @ transpose({=})", 0},
	{2, "einsum", `einsum("{one of ij,ij->i|ij,ij->j|ij,kj->ik|ij,ik->jk|ij,ij->|ij,kj->ki}", {f2}, {=})`, 0},
	{2, "einsum", `einsum("{one of a,b->ab|a,b->a|a,a->|a,b->}", {n1}, {&})`, 0},
	{1, "einsum", `einsum("{one of ijk->ik|ijk->kj|ijk->}", {f3})`, 0},
	{2, "linear", "linear({f1+}, {&})", 0},
	{1, "linear", "linear({f2}, {=})", 0},
	{1, "outer", "outer({f1}, {=})", 0},
	{1, "kron", "kron({f2}, {&})", 0},
	{1, "cdist", "cdist({f2}, {=})", 0},
	{1, "vecdot", "vecdot({f1+}, {=}, axis={ax})", 0},

	// Sorts and scans.
	{5, "sort", "sort({x1+}, axis={ax}, descending={tf})", 0},
	{4, "argsort", "argsort({x1+}, axis={ax}, descending={tf})", 0},
	{4, "topk", "topk({x1+}, {k}, axis={ax}, largest={tf})", 2},
	{2, "kth", "kthvalue({n1+}, {k}, axis={ax})", 0},
	{2, "median", "median({f1+}, axis={ax})", 0},
	{5, "scan", "{one of cumsum cumprod}({n1+}, axis={ax}, reverse={tf}, exclusive={tf})", 0},
	{4, "scan", "{one of cummax cummin}({n1+}, axis={ax}, reverse={tf})", 0},
	{1, "scan", "logcumsumexp({f1+}, axis={ax})", 0},
	{1, "trapezoid", "trapezoid({f1+}, axis={ax})", 0},

	// Gathers and scatters of the library.
	{2, "take", "index_select({x1+}, {i1}, axis={ax})", 0},
	{2, "take", "gather({x1+}, {i1+}, axis={ax})", 0},
	{2, "embedding", "embedding({i}, {x2})", 0},
	{3, "scatter", "index_add({n1+}, {i1}, {&}, axis={ax})", 0},
	{2, "scatter", "scatter_add({n1+}, {i1+}, {=}, axis={ax})", 0},
	{2, "one hot", "one_hot({i}, {k})", 0},
	{2, "bincount", "bincount({i1}, {one of 1 4 7 33})", 0},
	{2, "mask", "masked_fill({f}, {b}, {c})", 0},

	// The rest of the library.
	{10, "activation", "{activation}({f})", 0},
	{2, "activation", "clamp({f}, {one of -1.0 -0.25}, {one of 0.5 2.0})", 0},
	{2, "activation", "{one of elu leaky_relu celu swish}({f}, 0.5)", 0},
	{2, "activation", "{one of swiglu geglu reglu logaddexp xlogy}({f}, {=})", 0},
	{1, "activation", "glu({f1+}, axis={ax})", 0},
	{1, "activation", "lerp({f}, {=}, {c})", 0},
	{1, "activation", "nan_to_num({f}, 9.0, -9.0)", 0},
	{1, "activation", "prelu({f2+}, {&})", 0},
	{6, "softmax", "{one of softmax log_softmax softmin}({f1+}, axis={ax})", 0},
	{4, "row norm", "{one of layer_norm rms_norm}({f1+})", 0},
	{2, "row norm", "{one of layer_norm rms_norm}({f1+}, {&})", 0},
	{1, "row norm", "layer_norm({f1+}, {&}, {&})", 0},
	{2, "group norm", "group_norm({f2+}, {one of 1 2})", 0},
	{1, "group norm", "instance_norm({f3})", 0},
	{1, "batch norm", "batch_norm({f2+}, {&}, {&})", 0},
	{1, "batch norm", "batch_norm_train({f2+})", 3},
	{2, "normalize", "{one of l1_normalize l2_normalize}({f1+}, axis={ax})", 0},
	{1, "normalize", "normalize({f2+})", 0},
	{1, "normalize", "local_response_norm({f3}, {k})", 0},
	{3, "pool", "{one of max_pool1d avg_pool1d}({f1+}, {k}, stride={k})", 0},
	{2, "pool", "{one of max_pool1d avg_pool1d}({f1+}, 3, stride=2, padding=1)", 0},
	{1, "pool", "{one of max_pool2d avg_pool2d}({f2+}, 2)", 0},
	{1, "pool", "adaptive_avg_pool1d({f1+}, {k})", 0},
	{1, "pool", "global_avg_pool({f3})", 0},
	{1, "upsample", "{one of upsample_nearest1d upsample_linear}({f1+}, {k})", 0},
	{1, "upsample", "{one of upsample_nearest2d upsample_bilinear}({f2+}, 2)", 0},
	{1, "shuffle", "channel_shuffle({f2+}, {k})", 0},
	{3, "conv", "conv1d({f3}, {&}, stride={one of 1 2}, padding={one of 0 1 2}, dilation={one of 1 2})", 0},
	{2, "conv", "conv2d({f4}, {&}, stride={one of 1 2}, padding={one of 0 1})", 0},
	{1, "conv", "conv_transpose1d({f3}, {&}, stride={one of 1 2})", 0},
	{2, "attention", "attention({f2+}, {=}, {=}, causal={tf})", 0},
	{1, "attention", "attention({f2+}, {&}, {&})", 0},
	{1, "rope", "{one of rope rope_interleaved}({f2+})", 0},
	{2, "loss", "{one of l1_loss mse_loss huber_loss kl_div hinge_loss soft_margin_loss log_cosh_loss}({f}, {=})", 0},
	{1, "loss", `mse_loss({f}, {=}, reduction="{one of none sum}")`, 0},
	{1, "loss", "bce_with_logits_loss({f}, {=})", 0},
	{2, "loss", "cross_entropy({f2}, {i1})", 0},
	{1, "loss", "cosine_similarity({f2+}, {=}, axis={ax})", 0},
	{1, "loss", "pairwise_distance({f1+}, {=})", 0},
	{2, "random", "dropout({f}, 0.5, {k})", 0},
	{2, "random", "{one of uniform_like normal_like}({f}, {k})", 0},
	{1, "random", "random_bits({k}, {x})", 0},
	{1, "random", "random_bits16({k}, {x})", 0},
	{1, "random", "bernoulli({f}, {k})", 0},
}

// words are what rows choose from by name.
var words = map[string][]string{
	"unary": {"abs", "neg", "sign", "floor", "ceil", "round", "trunc", "exp", "exp2", "expm1", "log", "log2", "log10",
		"log1p", "sqrt", "rsqrt", "recip", "erf", "erfc", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh",
		"tanh", "asinh", "acosh", "atanh"},
	"activation": {"relu", "relu6", "elu", "selu", "celu", "gelu", "gelu_tanh", "sigmoid", "log_sigmoid", "silu", "mish",
		"softplus", "softsign", "tanhshrink", "softshrink", "hardshrink", "hardtanh", "hardsigmoid", "hardswish", "square"},
	"binary": {"min", "max", "atan2", "pow", "mod"},
	"op":     {"+", "-", "*", "+", "-", "*", "/"},
	"iop":    {"+", "-", "*", "/", "%", "&", "|", "^", "<<", ">>"},
	"cmp":    {"<", "<=", ">", ">=", "==", "!="},
	"slice":  {":", "1:", ":-1", "::2", "::-1", "1::2", "::-2", "-2:", "0:1", "2:1", "1:3", "-1:0:-1"},
	"tf":     {"true", "false"},
	"k":      {"1", "2", "3", "4"},
	"c":      {"0.5", "-1.5", "2.0", "0.1", "1e-3", "3.7", "0.0", "-0.0"},
	"ci":     {"0", "1", "2", "3", "-1", "-2", "7", "10"},
}

var totalWeight = func() (n int) {
	for _, r := range rows {
		n += r.weight
	}
	return n
}()

// tableLine makes a line of a row of the table; an empty one where no value suits it.
func (d *drawer) tableLine() Line {
	at := d.IntN(totalWeight)
	for _, r := range rows {
		if at -= r.weight; at < 0 {
			return d.lineOf(r)
		}
	}
	panic("BUG: weights do not add up")
}

var braces = regexp.MustCompile(`\{[^{}]+\}`)

func (d *drawer) lineOf(r row) Line {
	l := Line{Feature: r.feature}
	ok := true
	text := braces.ReplaceAllStringFunc(r.text, func(hole string) string {
		if !ok {
			return ""
		}
		var word string
		word, ok = d.fill(hole[1:len(hole)-1], &l)
		return word
	})
	if !ok {
		return Line{}
	}
	var names []string
	for range max(r.results, 1) {
		names = append(names, d.name())
		l.Results = append(l.Results, Value{Name: names[len(names)-1]})
	}
	l.Text = strings.Join(names, ", ") + " = " + text
	l.Python = pythonOf(l.Text)
	return l
}

// fill is what stands in place of one hole.
func (d *drawer) fill(hole string, l *Line) (string, bool) {
	if from := words[hole]; from != nil {
		return one(d.Rand, from), true
	}
	if list, is := strings.CutPrefix(hole, "one of "); is {
		sep := " "
		if strings.Contains(list, "|") && !strings.Contains(list, "||") {
			sep = "|"
		}
		return one(d.Rand, strings.Split(list, sep)), true
	}
	switch hole {
	case "ax":
		return d.axis(l.Uses[0])
	case "axes":
		return d.axes(l.Uses[0])
	case "dt":
		return one(d.Rand, ir.DTypes()).String(), true
	case "dim":
		if len(l.Uses) == 0 || l.Uses[0].Rank() == 0 {
			return one(d.Rand, d.dims), true
		}
		return one(d.Rand, l.Uses[0].Dims), true
	}
	v, ok := d.operand(hole, l.Uses)
	if ok {
		l.Uses = append(l.Uses, v)
	}
	return v.Name, ok
}

func (d *drawer) axis(v Value) (string, bool) {
	if v.Rank() == 0 {
		return "0", true // sometimes of a scalar that gets an axis; else refused
	}
	return strconv.Itoa(d.IntN(2*v.Rank()) - v.Rank()), true
}

func (d *drawer) axes(v Value) (string, bool) {
	switch rank := v.Rank(); {
	case rank == 0 || d.IntN(6) == 0:
		return "none", true
	case rank > 1 && d.IntN(4) == 0:
		a := d.IntN(rank)
		return fmt.Sprintf("(%d, %d)", a, (a+1+d.IntN(rank-1))%rank), true
	}
	return d.axis(v)
}

// operand picks a value for a hole that asks for one; recent ones more often.
func (d *drawer) operand(hole string, before []Value) (Value, bool) {
	var fit []Value
	for i, v := range d.pool {
		if suits(hole, v, before) {
			fit = append(fit, v)
			if i >= len(d.program.Inputs) {
				fit = append(fit, v, v) // results more often than inputs
			}
		}
	}
	if len(fit) == 0 {
		return Value{}, false
	}
	return one(d.Rand, fit), true
}

func suits(hole string, v Value, before []Value) bool {
	switch hole[0] {
	case '=':
		return v.typeText() == before[0].typeText()
	case '&':
		return v.Type == before[0].Type
	case 'f':
		if !v.Type.IsFloat() {
			return false
		}
	case 'i':
		if !v.Type.IsInt() {
			return false
		}
	case 'b':
		if v.Type != ir.Bool {
			return false
		}
	case 'n':
		if v.Type == ir.Bool {
			return false
		}
	case 'x':
	default:
		panic("BUG: no hole is called " + hole)
	}
	rank, least := strings.CutSuffix(hole[1:], "+")
	if rank == "" {
		return true
	}
	want, err := strconv.Atoi(rank)
	return err == nil && (v.Rank() == want || least && v.Rank() > want)
}
