package passes

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/diag"
	"github.com/fusec/fusec/ir/interp"
)

// constants returns constants of a type that bring out differences.
func constants(t ir.DType) []*ir.Expr {
	var out []*ir.Expr
	switch {
	case t.IsFloat():
		for _, v := range special {
			out = append(out, ir.Num(t, v))
		}
	case t == ir.Bool:
		out = append(out, ir.IntNum(t, 0), ir.IntNum(t, 1))
	default:
		for _, v := range ruleInts {
			out = append(out, ir.IntNum(t, v))
		}
	}
	return out
}

// TestFoldedConstantsAreEvaluated folds every operation on constants, and compares
// with the interpreter's result.
func TestFoldedConstantsAreEvaluated(t *testing.T) {
	folded := 0
	for _, dtype := range []ir.DType{ir.F64, ir.F32, ir.I64, ir.Bool} {
		for _, o := range ir.Ops() {
			if o == ir.OpCast {
				continue
			}
			for _, e := range applications(o, dtype) {
				out := foldConstants(e)
				if out == e {
					continue
				}
				folded++
				require.Equal(t, e.Type, out.Type, "%s", e)
				requireBits(t, evaluate(t, e), evaluate(t, out), e.String())
			}
		}
	}
	assert.Greater(t, folded, 1000)
}

// applications applies an operation to constants of a type.
func applications(o ir.Op, t ir.DType) []*ir.Expr {
	values := constants(t)
	args := make([][]*ir.Expr, o.Info().Arity)
	types := make([]ir.DType, len(args))
	for i := range args {
		args[i], types[i] = values, t
	}
	if o == ir.OpSelect {
		args[0], types[0] = constants(ir.Bool), ir.Bool
	}
	if _, err := ir.ResultType(o, types...); err != nil {
		return nil
	}
	lists := [][]*ir.Expr{nil}
	for _, choices := range args {
		var next [][]*ir.Expr
		for _, list := range lists {
			for _, c := range choices {
				next = append(next, append(list[:len(list):len(list)], c))
			}
		}
		lists = next
	}
	out := make([]*ir.Expr, len(lists))
	for i, list := range lists {
		out[i] = ir.Apply(o, list...)
	}
	return out
}

func evaluate(t *testing.T, e *ir.Expr) []*interp.Tensor {
	g := ir.NewGraph("constant")
	g.Output("y", g.Define("y", nil, e, ir.Origin{}), diag.Span{})
	out, err := interp.Run(g, nil, interp.Options{Mode: interp.Strict})
	require.NoError(t, err)
	return out
}

func TestPatterns(t *testing.T) {
	g := ir.NewGraph("patterns")
	x := ir.Load(g.Input("x", ir.F32, nil, diag.Span{}), nil, nil)
	y := ir.Load(g.Input("y", ir.F32, nil, diag.Span{}), nil, nil)
	f := func(v float64) *ir.Expr { return ir.Num(ir.F32, v) }
	add := func(a, b *ir.Expr) *ir.Expr { return ir.Apply(ir.OpAdd, a, b) }
	sub := func(a, b *ir.Expr) *ir.Expr { return ir.Apply(ir.OpSub, a, b) }
	for _, c := range []struct {
		name string
		p    *pattern
		e    *ir.Expr
		want match
	}{
		{"a variable", v("a"), x, match{"a": x}},
		{"one variable twice is one thing", op(ir.OpAdd, v("a"), v("a")), add(x, x), match{"a": x}},
		{"and not two", op(ir.OpAdd, v("a"), v("a")), add(x, y), nil},
		{"a commutative operation either way", op(ir.OpAdd, lit(1), v("a")), add(x, f(1)), match{"a": x}},
		{"no other either way", op(ir.OpSub, lit(1), v("a")), sub(x, f(1)), nil},
		{"zero is not negative zero", op(ir.OpSub, v("a"), lit(0)), sub(x, f(special[1])), nil},
		{"constants only", op(ir.OpAdd, v("a"), c("k")), add(f(2), x), match{"a": x, "k": f(2)}},
		{"a failed attempt leaves nothing bound", op(ir.OpAdd, op(ir.OpSub, v("a"), v("a")), v("b")),
			add(sub(x, y), sub(y, y)), match{"a": y, "b": sub(x, y)}},
	} {
		m := match{}
		ok := c.p.matches(c.e, m)
		assert.Equal(t, c.want != nil, ok, c.name)
		for name, e := range c.want {
			assert.True(t, ok && ir.Equal(e, m[name]), "%s: %s = %s", c.name, name, m[name])
		}
	}
}
