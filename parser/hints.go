package parser

import (
	"slices"
	"strings"

	"github.com/alecthomas/participle/v2/lexer"

	"github.com/fusec/fusec/ir/diag"
)

// What programs in other languages say, and how it is said here. The tables are for messages
// alone: nothing in them is accepted.

// foreignNames are names of values and dtypes.
var foreignNames = map[string]string{
	"True": "true", "False": "false", "None": "none", "null": "none", "nil": "none", "newaxis": "none",
	"NaN": "nan", "Inf": "inf", "Infinity": "inf", "infinity": "inf",
	"float": "f32", "float32": "f32", "fp32": "f32", "double": "f64", "float64": "f64", "fp64": "f64",
	"half": "f16", "float16": "f16", "fp16": "f16", "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3", "float8_e5m2": "f8e5m2",
	"int": "i32", "int32": "i32", "long": "i64", "int64": "i64", "short": "i16", "int16": "i16", "int8": "i8",
	"char": "i8", "byte": "u8", "uint8": "u8", "uint32": "u32", "uint": "u32", "boolean": "bool", "tensor": "f32", "Tensor": "f32", "ndarray": "f32", "array": "f32",
}

// foreignParameters are names of parameters, with those they may have here.
var foreignParameters = map[string][]string{
	"dim": {"axis"}, "dims": {"axis"}, "axes": {"axis"}, "keepdim": {"keep"}, "keepdims": {"keep"}, "keep_dims": {"keep"},
	"epsilon": {"eps"}, "min": {"lo", "min_val"}, "max": {"hi", "max_val"}, "lo": {"min_val"}, "hi": {"max_val"},
	"min_val": {"lo"}, "max_val": {"hi"}, "slope": {"negative_slope"}, "alpha": {"negative_slope"}, "negative_slope": {"alpha"},
}

// foreignArguments are arguments that functions of other libraries choose another function by, which here has a name.
var foreignArguments = map[[2]string]string{
	{"batch_norm", "training"}:     trainsNorm,
	{"batch_norm", "momentum"}:     trainsNorm,
	{"batch_norm", "running_mean"}: trainsNorm,
	{"batch_norm", "running_var"}:  trainsNorm,
	{"cross_entropy", "target"}:    "soft_cross_entropy(logits, target) takes the probabilities of the classes",
	{"roll", "axis"}:               "calls in each other move several axes, as in roll(roll(x, 1, axis=1), 2, axis=2)",
	{"pad", "width"}:               padsSeveral,
	{"pad", "axis"}:                padsSeveral,
	{"reflect_pad", "axis"}:        padsLast("reflect"),
	{"reflect_pad", surplus}:       padsLast("reflect"),
	{"replicate_pad", "axis"}:      padsLast("replicate"),
	{"replicate_pad", surplus}:     padsLast("replicate"),
	{"circular_pad", "axis"}:       padsLast("circular"),
	{"circular_pad", surplus}:      padsLast("circular"),
	{"norm", "p"}:                  "l2_norm(x) is the length of all elements together, and frobenius_norm(x) that of each matrix of the last two axes",
}

// surplus stands for arguments behind the last parameter.
const surplus = ""

const padsSeveral = "calls in each other pad several axes, as in pad(pad(x, (1, 1), axis=-1), (2, 2), axis=-2), and zero_pad2d(x, left, right, top, bottom) the last two"

func padsLast(mode string) string {
	return `it pads the last axis: pad_mode(x, (1, 1), mode="` + mode + `", axis=-2) pads another, and calls in each other pad several`
}

const trainsNorm = "batch_norm_train(x, weight, bias) normalises with the statistics of the batch, and gives them"

// foreignFunctions are names of functions.
var foreignFunctions = map[string]string{
	"clip": "clamp(x, lo, hi)", "power": "pow(a, b)", "absolute": "abs(x)", "negative": "-x",
	"arange": "iota(n)", "range": "iota(n)", "cat": "concat(a, b)", "concatenate": "concat(a, b)", "hstack": "concat(a, b)",
	"view": "reshape(x, ...)", "expand": "broadcast(x, ...)", "broadcast_to": "broadcast(x, ...)", "expand_dims": "unsqueeze(x, axis)",
	"take_along_dim": "gather(x, index, axis)", "take_along_axis": "gather(x, index, axis)",
	"masked_select": chosenByValue, "nonzero": chosenByValue, "argwhere": chosenByValue, "unique": chosenByValue,
	"index_put": "where(mask, value, x), or index_add(x, index, source)", "index_copy": "where(mask, value, x), or index_add(x, index, source)", "index_fill": "where(mask, value, x)",
	"tile": "repeat(x, ...)", "moveaxis": "permute(x, ...)", "movedim": "permute(x, ...)", "take": "gather(...), or x[at]",
	"scatter": "scatter_add(...)", "diag": "diagonal(x)", "inner": "vecdot(a, b)", "tensordot": "einsum(...)",
	"ones": "full(1, ...)", "zeros": "full(0, ...)", "empty": "full(0, ...)", "rand": "uniform_like(x, seed)", "randn": "normal_like(x, seed)",
	"maximum": "max(a, b)", "minimum": "min(a, b)", "multiply": "a * b", "divide": "a / b", "true_divide": "a / b",
	"subtract": "a - b", "fmod": "mod(a, b)", "remainder": "mod(a, b)", "floor_divide": "floor(a / b)",
	"logical_and": "a && b", "logical_or": "a || b", "logical_not": "!x", "equal": "a == b",
	"mm": "a @ b", "matmul_nt": "a @ transpose(b)", "addmm": "a @ b + c", "scaled_dot_product_attention": "attention(q, k, v)", "layernorm": "layer_norm(x, weight, bias)", "rmsnorm": "rms_norm(x, weight)",
	"len": theSizes, "size": theSizes, "shape": theSizes, "ndim": theSizes, "numel": "the product of its sizes, as N * M",
	"astype": "f32(x), or another dtype", "to": "f32(x), or another dtype", "cast": "f32(x), or another dtype", "type": "f32(x), or another dtype",
	"resize":   "interpolate(x, (H, W), mode=\"bilinear\")",
	"unbind":   "x[:, 0], x[:, 1], or another index, for each part; a, b = split(x, 2, axis=1) keeps the axis",
	"unstack":  "x[:, 0], x[:, 1], or another index, for each part; a, b = split(x, 2, axis=1) keeps the axis",
	"meshgrid": "iota(N)[:, none] and iota(M), which broadcast to [N, M]", "linspace": "lo + (hi - lo) * f32(iota(N)) / (N - 1)",
	"percentile": "quantile(x, 0.01 * q)",
	"stft":       "unfold(x, window, step) * w, and multiply that by the cosines and by the sines of " + frequencies,
	"fft":        "products with the cosines and with the sines of " + frequencies, "rfft": "products with the cosines and with the sines of " + frequencies,
	"ifft": "products with the cosines and with the sines of " + frequencies, "irfft": "products with the cosines and with the sines of " + frequencies,
	"dct":             "x @ cos(pi * (f32(iota(N))[:, none] + 0.5) * f32(iota(K)) / N)",
	"hann_window":     "0.5 - 0.5 * cos(2 * pi * f32(iota(N)) / N)",
	"hamming_window":  "0.54 - 0.46 * cos(2 * pi * f32(iota(N)) / N)",
	"blackman_window": "0.42 - 0.5 * cos(2 * pi * f32(iota(N)) / N) + 0.08 * cos(4 * pi * f32(iota(N)) / N)",
	"hypot":           "sqrt(a * a + b * b)",
	"chunk":           "a, b = split(x, 2, axis=-1)",
	"type_as":         "f32(x), or another dtype",
	"cov":             "c = x - mean(x, axis=0, keep=true), and transpose(c) @ c / (N - 1)",
	"embedding_bag":   "sum(table[at], axis=1), or mean(table[at], axis=1)",
	"scatter_reduce":  byKey("max"), "scatter_max": byKey("max"), "scatter_min": byKey("min"), "segment_sum": byKey("sum"), "segment_max": byKey("max"),
	"searchsorted": "sum(i64(edges < x[:, none]), axis=1), which counts the edges below each element", "bucketize": "sum(i64(edges < x[:, none]), axis=1), which counts the edges below each element",
	"histc": "bincount(bin, n), with the number of each element's bin",
	"inv":   noDecompositions, "det": noDecompositions, "logdet": noDecompositions, "solve": noDecompositions, "cholesky": noDecompositions, "qr": noDecompositions, "svd": noDecompositions,
	"nms":         "scores that decay with the overlaps of all pairs of boxes (matrix NMS): how many elements a result has does not depend on values",
	"roi_align":   "grid_sample(x, grid), with the places of each box in grid",
	"print":       "it among the results: fusec run prints them",
	"bitwise_and": "a & b", "bitwise_or": "a | b", "bitwise_xor": "a ^ b", "bitwise_not": "x ^ -1",
}

const frequencies = "2 * pi * f32(iota(N))[:, none] * f32(iota(K)) / N: there are no complex numbers"

const chosenByValue = "where(condition, x, 0), or sum(where(condition, x, 0)): how many elements a result has does not depend on values"

const noDecompositions = "formulas of the elements, for small matrices: there are no decompositions"

// byKey is a reduction of the elements that have the same key.
func byKey(op string) string { return "y[v: V] = " + op + "[n where at[n] == v] x[n]" }

const theSizes = "the names of its sizes, as N in x: f32[N]"

// foreignWords are words of other grammars, where one is not expected.
var foreignWords = map[string]string{
	"and": "write && for and", "or": "write || for or", "xor": "write ^ for xor", "is": "== compares", "in": "== compares",
	"def": "write fn name(x: T[...]) = ..., or graph name(x: f32[N]) -> (y: f32[N]) { ... }",
	"if":  "where(condition, a, b) chooses", "elif": "write else if", "while": "for i in 0..N repeats a known number of times",
	"let": "a name is bound without a word before it: y = ...", "var": "a name is bound without a word before it: y = ...",
	"const": "a name is bound without a word before it: y = ...", "lambda": "write fn name(x: T[...]) = ... outside the graph",
	"from": `write import "file.fuse"`, "class": "write fn or graph",
}

// foreignType says how a dtype is called here, or that there is none of its kind; "" where
// nothing is known.
func foreignType(name string) string {
	if strings.HasPrefix(name, "complex") || name == "c64" || name == "c128" {
		return ": there are no complex numbers: take two tensors, of the real and of the imaginary parts"
	}
	if strings.HasPrefix(name, "f8") || strings.HasPrefix(name, "fp8") || strings.HasPrefix(name, "float8") {
		return ": did you mean f8e4m3 or f8e5m2?"
	}
	if here, ok := foreignNames[name]; ok {
		return ": did you mean " + here + "?"
	}
	return ""
}

// foreignSymbol words a character that no token begins with. before are the tokens before it,
// after the text behind it.
func foreignSymbol(r rune, before []lexer.Token, after string) string {
	switch r {
	case '?':
		return "there is no ?: here: where(condition, a, b) chooses"
	case '\'':
		return `texts are in double quotes: "..."`
	case '~':
		return "! inverts truths; of an integer, x ^ -1 inverts the bits"
	case '\\':
		return "a statement goes on inside brackets and after an operator, without \\"
	case '.':
		return foreignMember(before, after)
	}
	return ""
}

// foreignSyntax says what to write in place of what the token, or the ones before it, mean
// elsewhere; "" where nothing is known.
func foreignSyntax(bad lexer.Token, tokens []lexer.Token) string {
	before := beforeToken(bad, tokens)
	previous := func(n int) string {
		if n > len(before) {
			return ""
		}
		return before[len(before)-n].Value
	}
	behind := func() bool {
		return len(before) > 0 && before[len(before)-1].Pos.Offset+len(previous(1)) == bad.Pos.Offset
	}
	switch {
	case bad.Value == "=" && len(before) > 0 && before[len(before)-1].Type == tokKeyword:
		return previous(1) + " is a keyword: choose another name"
	case bad.Value == "[" && (previous(1) == "(" || previous(1) == "," || previous(1) == "="):
		return "there are no lists: arguments stand one by one, as in concat(x, y, axis=0), and axes in parentheses, as in axis=(0, 1)"
	case bad.Value == ">" && previous(1) == "<" && behind():
		return "!= compares"
	case bad.Type == tokIdent && len(before) > 0 && before[len(before)-1].Type == tokNumber && behind():
		return "numbers have no suffix: they take the type of what they stand beside, and f32(...) makes one"
	case bad.Value == "=" && slices.ContainsFunc(before, func(t lexer.Token) bool { return t.Value == "=" }) && endsStatement(before[len(before)-1]):
		return "== compares, and each statement binds one value"
	case bad.Value == ":" && followedBy(bad, tokens, "="):
		return "a name is bound by ="
	case foreignWords[bad.Value] != "" && bad.Type != tokString:
		return foreignWords[bad.Value]
	case previous(1) == "not":
		return "write ! for not"
	case bad.Value == "/" && (previous(1) == "/" || len(before) == 0):
		return "# begins a comment, and / between integers rounds down"
	case bad.Value == "=" && len(before) > 0 && before[len(before)-1].Type == tokOp:
		return "values do not change: bind a new name"
	case bad.Type == tokOp && followedBy(bad, tokens, "="):
		return "values do not change: bind a new name, as in z = y " + bad.Value + " x"
	case len(before) > 2 && before[0].Value == "fn" && (bad.Value == "," || bad.Value == ")") && !declaresType(before):
		return "a parameter has a type: x: T[...] for tensors, n: int, eps: float"
	case len(before) > 2 && slices.ContainsFunc(before, func(t lexer.Token) bool { return t.Value == "graph" }) &&
		(bad.Value == "," || bad.Value == ")") && !declaresType(before):
		if slices.ContainsFunc(before, func(t lexer.Token) bool { return t.Value == "->" }) {
			return "a result has a type: y: f32[N, M]"
		}
		return "an input has a type: x: f32[N, M]"
	case bad.Value == "{" && previous(1) == ")" && slices.ContainsFunc(before, func(t lexer.Token) bool { return t.Value == "graph" }) &&
		!slices.ContainsFunc(before, func(t lexer.Token) bool { return t.Value == "->" }):
		return "results have names: -> (y: f32[N])"
	case bad.Type == tokIdent && len(before) == 1 && previous(1) == "import":
		return `write import "` + bad.Value + `.fuse", for a file beside this one`
	case bad.Value == "(" && (len(before) == 1 || previous(2) == "{") && before[len(before)-1].Type == tokIdent:
		return "a call is a value: bind it, as in y = " + previous(1) + "(...)"
	case bad.Type == tokIdent && isOperation(previous(1)):
		return "arguments stand in parentheses: " + previous(1) + "(" + bad.Value + ")"
	case bad.Type == tokIdent && previous(1) == "->":
		return "results have names: -> (y: f32[N])"
	case bad.Value == "{" && previous(1) == ")" && slices.ContainsFunc(before, func(t lexer.Token) bool { return t.Value == "range" }):
		return "write for i in 0..N"
	case previous(1) == "require":
		return `write require(condition, "what it says when it does not hold")`
	case previous(1) == "let" || previous(1) == "var" || previous(1) == "lambda" || previous(1) == "while":
		return foreignWords[previous(1)]
	}
	return ""
}

// isOperation reports whether a name is that of an operation on elements.
func isOperation(name string) bool {
	_, ok := elementwiseNamed(name)
	return ok
}

// followedBy reports whether a word stands right behind a token, as in += and :=.
func followedBy(bad lexer.Token, tokens []lexer.Token, word string) bool {
	for i, t := range tokens[:max(0, len(tokens)-1)] {
		if t.Pos.Offset == bad.Pos.Offset {
			return tokens[i+1].Value == word && tokens[i+1].Pos.Offset == bad.Pos.Offset+len(bad.Value)
		}
	}
	return false
}

// declaresType reports whether the last tokens are no name alone behind ( or a comma.
func declaresType(before []lexer.Token) bool {
	name, ahead := before[len(before)-1], before[len(before)-2]
	return name.Type != tokIdent || ahead.Value != "(" && ahead.Value != ","
}

// beforeToken are the tokens of a statement before one of them, without blanks.
func beforeToken(bad lexer.Token, tokens []lexer.Token) []lexer.Token {
	var out []lexer.Token
	for _, t := range tokens {
		if t.Pos.Offset >= bad.Pos.Offset {
			break
		}
		switch t.Type {
		case tokWhitespace, tokComment:
		case tokEOL:
			out = out[:0]
		default:
			out = append(out, t)
		}
	}
	return out
}

// parameterHint suggests a parameter, or another function, for a name that a function does not have.
func parameterHint(fn, name string, known []string) string {
	if form := argumentHint(fn, name); form != "" {
		return form
	}
	for _, here := range foreignParameters[name] {
		if slices.Contains(known, here) {
			return ": did you mean " + here + "?"
		}
	}
	return diag.Choices(name, known)
}

// argumentHint says what to write in place of an argument that other libraries take.
func argumentHint(fn, name string) string {
	if form := foreignArguments[[2]string{fn, name}]; form != "" {
		return ": " + form
	}
	return ""
}
