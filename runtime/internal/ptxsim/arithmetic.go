package ptxsim

// arithmeticFamilies are the scalar and packed arithmetic of integers and floats.
var arithmeticFamilies = map[string]family{
	"add": arithmeticFamily, "sub": arithmeticFamily, "mul": arithmeticFamily, "mad": arithmeticFamily,
	"fma": arithmeticFamily, "div": arithmeticFamily, "rem": arithmeticFamily, "sad": arithmeticFamily,
	"abs": arithmeticFamily, "neg": arithmeticFamily, "min": arithmeticFamily, "max": arithmeticFamily,
	"mul24": arithmeticFamily, "mad24": arithmeticFamily, "rcp": arithmeticFamily, "sqrt": arithmeticFamily,
	"rsqrt": arithmeticFamily, "ex2": arithmeticFamily, "lg2": arithmeticFamily, "sin": arithmeticFamily,
	"cos": arithmeticFamily, "tanh": arithmeticFamily,
	"addc": carryFamily, "subc": carryFamily, "madc": carryFamily,
}

func arithmeticFamily(b *builder, s *statement) exec {
	if s.has("cc") {
		return carryFamily(b, s)
	}
	if q := floatFormOf(s); q != nil {
		return b.apply(s, q.operation(s.Op))
	}
	return b.apply(s, integerOperation(s))
}
