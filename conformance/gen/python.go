package gen

import (
	"regexp"
	"strings"
)

// oracleCalls are the functions that testdata/reference/oracle.py has.
var oracleCalls = func() map[string]bool {
	out := map[string]bool{}
	for _, name := range strings.Fields(`abs neg sign floor ceil round trunc exp exp2 expm1 log log2 log10 log1p sqrt rsqrt
		recip erf erfc sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh min max atan2 pow mod bitnot isnan isinf
		isfinite where f64 f32 f16 bf16 f8e4m3 f8e5m2 i64 i32 i16 i8 u8 u32 bool wide sum prod argmax argmin any all mean
		var std l1_norm l2_norm linf_norm logsumexp amax amin count_nonzero transpose permute reshape flip roll pad concat
		stack split repeat squeeze unsqueeze broadcast tril triu diagonal diag_embed diff flatten ravel full iota zeros_like
		ones_like einsum outer vecdot sort argsort topk kthvalue cumsum cumprod cummax cummin relu relu6 sigmoid silu square
		softmax log_softmax softmin masked_fill one_hot bincount index_select build red idx sym`) {
		out[name] = true
	}
	return out
}()

var (
	calls    = regexp.MustCompile(`\b([a-z_][a-z_0-9]*)\(`)
	negation = regexp.MustCompile(`!([^=])`)
)

// pythonOf is a line as Python; "" where the oracle does not know a function of it.
func pythonOf(text string) string {
	for _, m := range calls.FindAllStringSubmatch(text, -1) {
		if !oracleCalls[m[1]] {
			return ""
		}
	}
	if before, fill, found := strings.Cut(text, " else "); found {
		open := strings.LastIndex(before, "[")
		text = before[:open] + ".pick(" + strings.TrimSuffix(before[open+1:], "]") + ", " + fill + ")"
	}
	text = strings.NewReplacer("&&", "&", "||", "|").Replace(text)
	text = negation.ReplaceAllString(text, "~$1")
	for from, to := range map[string]string{"true": "True", "false": "False", "none": "None"} {
		text = regexp.MustCompile(`\b`+from+`\b`).ReplaceAllString(text, to)
	}
	return text
}
