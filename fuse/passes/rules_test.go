package passes

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/ir/num"
)

// special are the operands on which algebra that holds for real numbers fails.
var special = []float64{0, math.Copysign(0, -1), 1, -1, 2, 0.5, 3, -7.25, math.Inf(1), math.Inf(-1), math.NaN(),
	0x1p-126, 0x1p-149, -0x1p-133, 0x1p-1022, 0x1p-1074, 0x1p-24, 65504, 3e38, -1e300, 0x1p-14, 448,
	100, -110, 1000, -1000, 1e20, -1e-20, 1e160, 1e-160}

var ruleInts = []int64{0, 1, -1, 2, 3, 127, -128, 255, 32767, -32768, math.MaxInt32, math.MinInt32, math.MaxUint32,
	math.MaxInt64, math.MinInt64}

// constants are tried for the variables that match constants only.
var ruleConstants = []float64{1, -1, 2, -2, 4, 0.5, 0.25, -0.125, 1024, 0x1p-10, 3, 0.1, 7, 1e-3, -49, 1e30, 1e-30, 0x1p-140}

// TestRules proves each rule: both sides are evaluated for the operands above and
// random ones, in every type the left side can have. Exact rules keep every bit
// (a NaN stays some NaN). Fast ones agree to f32's accuracy where both sides are ordinary
// numbers, and give NaN, infinities, zeros and their signs where the program does, whether
// intermediate values have the range of their type or a larger one.
func TestRules(t *testing.T) {
	for _, table := range []struct {
		rules []rule
		exact bool
	}{{exactRules, true}, {fastRules, false}} {
		for _, r := range table.rules {
			t.Run(r.name, func(t *testing.T) {
				fired := 0
				for _, dtype := range ir.DTypes() {
					for _, c := range constantsFor(r) {
						fired += proveRule(t, r, dtype, c, table.exact)
					}
				}
				assert.Positive(t, fired, "the rule never fires")
			})
		}
	}
}

// TestFalseRulesAreRefused: the proof finds rules that hold for real numbers only.
func TestFalseRulesAreRefused(t *testing.T) {
	x, y := v("x"), v("y")
	number := func(n float64) func(match) *ir.Expr {
		return func(m match) *ir.Expr { return ir.Num(m["x"].Type, n) }
	}
	for _, r := range []rule{
		{"sqrt(x)*sqrt(x) => x", op(ir.OpMul, op(ir.OpSqrt, x), op(ir.OpSqrt, x)), take("x")},
		{"x/x => 1", op(ir.OpDiv, x, x), number(1)},
		{"x-x => 0", op(ir.OpSub, x, x), number(0)},
		{"x*0 => 0", op(ir.OpMul, x, lit(0)), number(0)},
		{"x+0 => x", op(ir.OpAdd, x, lit(0)), take("x")},
		{"log(exp(x)) => x", op(ir.OpLog, op(ir.OpExp, x)), take("x")},
		{"(x+y)-y => x", op(ir.OpSub, op(ir.OpAdd, x, y), y), take("x")},
		{"(x*y)/y => x", op(ir.OpDiv, op(ir.OpMul, x, y), y), take("x")},
		{"abs(x) => x", op(ir.OpAbs, x), take("x")},
		{"max(x, y) => x", op(ir.OpMax, x, y), take("x")},
	} {
		for _, exact := range []bool{true, false} {
			refused := &refusals{}
			func() {
				defer func() { _ = recover() }()
				proveRule(refused, r, ir.F32, map[string]float64{}, exact)
			}()
			assert.True(t, refused.any, "%s, exactly: %v", r.name, exact)
		}
	}
}

// refusals is a test that notes a failure and ends there.
type refusals struct{ any bool }

func (r *refusals) Errorf(string, ...any) { r.any = true }
func (r *refusals) FailNow()              { panic("the end of the proof") }

// constantsFor lists what the constants of a rule's left side may be, by name.
func constantsFor(r rule) []map[string]float64 {
	out := []map[string]float64{{}}
	var visit func(p *pattern)
	visit = func(p *pattern) {
		if p.only != nil {
			var more []map[string]float64
			for _, known := range out {
				for _, c := range ruleConstants {
					next := maps.Clone(known)
					next[p.name] = c
					more = append(more, next)
				}
			}
			out = more
		}
		for _, a := range p.args {
			visit(a)
		}
	}
	visit(r.from)
	return out
}

// proveRule builds the left side over inputs of a type, applies the rule and
// compares the sides. It returns 1 where the rule applies to the type.
func proveRule(t require.TestingT, r rule, dtype ir.DType, c map[string]float64, exact bool) int {
	b := &sideBuilder{g: ir.NewGraph("rule"), vars: map[string]*ir.Expr{}, constants: c}
	b.g.Symbols = []ir.Symbol{{Name: "N"}}
	b.axis = b.g.NewRange("i", ir.Sym("N"))
	left := b.build(r.from, dtype)
	if left == nil {
		return 0
	}
	m := match{}
	require.True(t, r.from.matches(left, m), "%s matches its own left side %s", r.name, left)
	right := r.to(m)
	if right == nil {
		return 0
	}
	require.Equal(t, left.Type, right.Type, "%s for %s", r.name, dtype)
	b.output("left", left)
	b.output("right", right)
	inputs := b.inputs()
	mode := interp.Exact // fast rules may round otherwise, and no more than that
	if exact {
		mode = interp.Strict
	}
	out, err := interp.Run(b.g, inputs, interp.Options{Mode: mode})
	require.NoError(t, err)
	about := fmt.Sprintf("%s for %s, %v: %s and %s", r.name, dtype, c, left, right)
	if exact {
		requireBits(t, out[:1], out[1:], about)
		return 1
	}
	requireNear(t, out[0], out[1], about)
	requireKinds(t, inputs, out[0], out[1], about)
	if dtype == ir.F32 || dtype == ir.F64 { // others are computed in f32
		out, err = interp.Run(b.g, inputs, interp.Options{Mode: interp.Strict})
		require.NoError(t, err)
		requireKinds(t, inputs, out[0], out[1], about+", rounded after each operation")
	}
	return 1
}

// sideBuilder makes an expression of a pattern, inputs for its variables.
type sideBuilder struct {
	g         *ir.Graph
	axis      *ir.Range
	vars      map[string]*ir.Expr
	constants map[string]float64
}

// build returns nil where the pattern has no instance in which it is of type t.
func (b *sideBuilder) build(p *pattern, t ir.DType) *ir.Expr {
	switch {
	case p.op == ir.OpInvalid && p.only != nil:
		return ir.Num(t, b.constants[p.name])
	case p.op == ir.OpInvalid:
		if b.vars[p.name] == nil {
			in := b.g.Input(p.name, t, []*ir.Expr{ir.Sym("N")}, diag.Span{})
			b.vars[p.name] = ir.Load(in, []*ir.Expr{b.axis.At()}, nil)
		}
		return b.vars[p.name]
	case p.op == ir.OpConst:
		if e := ir.Num(t, p.value); t.IsFloat() || float64(e.Int) == p.value {
			return e
		}
		return nil
	}
	args := make([]*ir.Expr, len(p.args))
	types := make([]ir.DType, len(p.args))
	for i, a := range p.args {
		want := t
		if p.op == ir.OpSelect && i == 0 {
			want = ir.Bool
		}
		if args[i] = b.build(a, want); args[i] == nil {
			return nil
		}
		types[i] = args[i].Type
	}
	if _, err := ir.ResultType(p.op, types...); err != nil {
		return nil
	}
	return ir.Apply(p.op, args...)
}

func (b *sideBuilder) output(name string, e *ir.Expr) {
	b.g.Output(name, b.g.Define(name, []*ir.Range{b.axis}, e, ir.Origin{}), diag.Span{})
}

// inputs are the special values in all pairs, then random ones.
func (b *sideBuilder) inputs() []*interp.Tensor {
	rng := rand.New(rand.NewPCG(7, 7))
	n := len(special)*len(special) + 200
	out := make([]*interp.Tensor, len(b.g.Inputs))
	for k, v := range b.g.Inputs {
		out[k] = interp.New(v.Type, n)
		for i := range n {
			pair := []int{i % len(special), i / len(special) % len(special)}[k%2]
			random := i >= len(special)*len(special)
			if v.Type.IsFloat() {
				out[k].F[i] = special[pair]
				if random {
					out[k].F[i] = math.Ldexp(rng.NormFloat64(), rng.IntN(40)-20)
				}
				continue
			}
			out[k].I[i] = ruleInts[pair%len(ruleInts)]
			if random {
				out[k].I[i] = int64(rng.Uint64())
			}
			if v.Type == ir.Bool {
				out[k].I[i] &= 1
			}
		}
	}
	return out
}

// requireNear compares where both sides are ordinary numbers.
func requireNear(t require.TestingT, want, got *interp.Tensor, about string) {
	require.Equal(t, want.I, got.I, about)
	tol := 8 * max(want.Type.Info().Epsilon, ir.F32.Info().Epsilon)
	for i, a := range want.F {
		b := got.F[i]
		if !ordinary(a, want.Type) || !ordinary(b, want.Type) {
			continue
		}
		require.InDelta(t, a, b, tol*math.Abs(a), "element %d: %s", i, about)
	}
}

// requireKinds requires NaN, infinities and numbers at the same places, and zeros of the same sign. A
// result that is within a rounding of the largest number may be infinite; one that a rounding on the
// way makes 0 need not be, but has that zero's sign.
func requireKinds(t require.TestingT, inputs []*interp.Tensor, want, got *interp.Tensor, about string) {
	if !want.Type.IsFloat() {
		return
	}
	info := want.Type.Info()
	largest := info.Max * (1 - 16*max(info.Epsilon, ir.F32.Info().Epsilon))
	same := func(a, b float64) bool {
		switch {
		case a != a || b != b:
			return a != a && b != b
		case math.IsInf(a, 0) || math.IsInf(b, 0):
			return a == b || a*b > 0 && min(math.Abs(a), math.Abs(b)) >= largest
		}
		return a != 0 && b != 0 || math.Signbit(a) == math.Signbit(b)
	}
	for i, a := range want.F {
		if b := got.F[i]; !same(a, b) {
			var at []float64
			for _, in := range inputs {
				if in.Type.IsFloat() {
					at = append(at, in.F[i])
				}
			}
			require.Fail(t, "the rule changes what a result is", "%g becomes %g at %v: %s", a, b, at, about)
		}
	}
}

// ordinary reports whether v lies well inside the normal range of t, where a
// rounding more or less cannot overflow or lose bits.
func ordinary(v float64, t ir.DType) bool {
	a := math.Abs(v)
	smallest := map[ir.DType]float64{ir.F16: 0x1p-10, ir.F8E4M3: 0x1p-4, ir.F8E5M2: 0x1p-10}[t]
	return a <= math.Sqrt(t.Info().Max) && a > max(smallest, 0x1p-100)
}

// requireBits compares results bit for bit; any NaN is any other.
func requireBits(t require.TestingT, want, got []*interp.Tensor, about string) {
	require.Len(t, got, len(want), about)
	for o := range want {
		require.Equal(t, want[o].I, got[o].I, about)
		for n, a := range want[o].F {
			b := got[o].F[n]
			if math.Float64bits(a) != math.Float64bits(b) && !(a != a && b != b) {
				assert.Failf(t, "results differ", "output %d element %d: %v (%x) and %v (%x)\n%s", o, n, a, a, b, b, about)
				t.FailNow()
			}
		}
	}
}

// TestQuotientsByPowersOfTwo: dividing by a power of two from 2^-11 to 2^9 is multiplying where the type holds both numbers. So is no
// other division: the reciprocal of another number is rounded, and that of a far power may be too small for a type's normal numbers.
func TestQuotientsByPowersOfTwo(t *testing.T) {
	for _, of := range []ir.DType{ir.F8E4M3, ir.F8E5M2, ir.F16, ir.BF16, ir.F32, ir.F64} {
		x := ir.LocalRef(&ir.Local{Name: "x", Type: of})
		divided := func(d float64) *ir.Expr { return divideByPowerOfTwo(match{"x": x, "c": ir.Num(of, d)}) }
		for n := -20; n <= 20; n++ {
			d := math.Ldexp(1, n)
			holds := num.Round(of, d) == d && num.Round(of, 1/d) == 1/d
			for _, d := range []float64{d, -d} {
				if got := divided(d); !holds || n < -11 || n > 9 {
					assert.Nil(t, got, "%s by %v", of, d)
				} else if assert.NotNil(t, got, "%s by %v", of, d) {
					assert.True(t, ir.Equal(ir.Apply(ir.OpMul, x, ir.Num(of, 1/d)), got), "%s by %v", of, d)
				}
			}
			assert.Nil(t, divided(3*d), "%s by %v", of, 3*d)
		}
	}
}
