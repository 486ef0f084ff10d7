package spell

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/codegen/skeleton"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// computed are the types that values have inside kernels.
var computed = []ir.DType{ir.Bool, ir.U8, ir.I8, ir.I16, ir.I32, ir.U32, ir.I64, ir.F32, ir.F64, ir.Index}

// spelled writes an expression over locals named by themselves.
func spelled(e *ir.Expr, numerics ir.Numerics, mantissa int) string {
	s := &Speller{Numerics: numerics, Mantissa: mantissa, Local: func(l *ir.Local) string { return l.Name },
		Range: func(r *ir.Range) string { return r.Name }}
	return s.Expr(e)
}

// allOperations applies every operation to every type that it accepts.
func allOperations() []*ir.Expr {
	var out []*ir.Expr
	for _, op := range ir.Ops() {
		for _, t := range computed {
			types := make([]ir.DType, op.Info().Arity)
			args := make([]*ir.Expr, len(types))
			for i := range types {
				types[i] = t
				if op == ir.OpSelect && i == 0 {
					types[i] = ir.Bool
				}
				args[i] = ir.LocalRef(&ir.Local{Name: fmt.Sprintf("%s_%d", types[i], i), Type: types[i]})
			}
			if op == ir.OpCast {
				for _, to := range computed {
					if to != t {
						out = append(out, ir.Cast(args[0], to))
					}
				}
				continue
			}
			if _, err := ir.ResultType(op, types...); err == nil {
				out = append(out, ir.Apply(op, args...))
			}
		}
	}
	return out
}

func TestEagerConditionsHaveNoBranches(t *testing.T) {
	local := func(name string) *ir.Expr { return ir.LocalRef(&ir.Local{Name: name, Type: ir.Bool}) }
	e := ir.Apply(ir.OpOr, ir.Apply(ir.OpAnd, local("a"), local("b")), ir.Apply(ir.OpNot, local("c")))
	s := &Speller{Local: func(l *ir.Local) string { return l.Name }}
	assert.Equal(t, "((a && b) || (!c))", s.Expr(e))
	s.Eager = true
	assert.Equal(t, "(bool)((bool)(a & b) | (!c))", s.Expr(e))
}

// TestCostlySidesHaveNoBranch picks between sides that are worked out both, where that is what a branch
// would jump over and nothing that must not run.
func TestCostlySidesHaveNoBranch(t *testing.T) {
	x, c := ir.LocalRef(&ir.Local{Name: "x", Type: ir.F32}), ir.LocalRef(&ir.Local{Name: "c", Type: ir.Bool})
	s := &Speller{Mantissa: 23, Local: func(l *ir.Local) string { return l.Name }, Read: func(*ir.Expr) string { return "a[i]" }}
	read := &ir.Expr{Op: ir.OpRead, Type: ir.F32}
	exp, tan := ir.Apply(ir.OpExp, x), ir.Apply(ir.OpTan, x)
	for want, e := range map[string]*ir.Expr{
		"pick(c, x, log1p_(expf(x)))":      ir.Apply(ir.OpSelect, c, x, ir.Apply(ir.OpLog1p, exp)),
		"(c ? x : 0.0f)":                   ir.Apply(ir.OpSelect, c, x, ir.Num(ir.F32, 0)),
		"(c ? expf(a[i]) : 0.0f)":          ir.Apply(ir.OpSelect, c, ir.Apply(ir.OpExp, read), ir.Num(ir.F32, 0)),
		"(c ? (tan_(x) + expf(x)) : 0.0f)": ir.Apply(ir.OpSelect, c, ir.Apply(ir.OpAdd, tan, exp), ir.Num(ir.F32, 0)),
	} {
		assert.Equal(t, want, s.Expr(e))
	}
}

func TestEveryOperationHasASpelling(t *testing.T) {
	for _, e := range allOperations() {
		for _, numerics := range []ir.Numerics{ir.Fast, ir.Strict} {
			for _, mantissa := range []int{7, 10, 23, 52} {
				text := spelled(e, numerics, mantissa)
				assert.NotEmpty(t, text, "%s of %s", e.Op, e.Args[0].Type)
				assert.NotContains(t, text, "%!", "%s of %s", e.Op, e.Args[0].Type)
				assert.NotContains(t, text, "MISSING", "%s of %s", e.Op, e.Args[0].Type)
			}
		}
	}
	for op := range spellings {
		assert.Contains(t, ir.Ops(), op, "a spelling of what is no operation")
	}
}

// TestFastSpellings says which approximations a kernel uses by what it stores.
func TestFastSpellings(t *testing.T) {
	x := ir.LocalRef(&ir.Local{Name: "x", Type: ir.F32})
	for _, c := range []struct {
		op       ir.Op
		numerics ir.Numerics
		mantissa int
		want     string
	}{
		{ir.OpTanh, ir.Fast, 7, "tanh_fast(x)"}, {ir.OpTanh, ir.Fast, 10, "tanh_(x)"}, {ir.OpTanh, ir.Strict, 7, "tanh_(x)"},
		{ir.OpExp, ir.Fast, 10, "exp_fast(x)"}, {ir.OpExp, ir.Strict, 10, "expf(x)"},
		{ir.OpErf, ir.Fast, 10, "erf_fast(x)"}, {ir.OpErf, ir.Fast, 23, "erff(x)"}, {ir.OpErf, ir.Strict, 7, "erff(x)"},
		{ir.OpLog1p, ir.Fast, 10, "log1p_fast(x)"}, {ir.OpLog1p, ir.Fast, 23, "log1p_(x)"},
		{ir.OpRsqrt, ir.Fast, 23, "rsqrtf(x)"}, {ir.OpRsqrt, ir.Fast, 52, "(1.0f / sqrtf(x))"},
	} {
		got := spelled(ir.Apply(c.op, x), c.numerics, c.mantissa)
		assert.Equal(t, c.want, got, "%s, %s, %d fraction bits", c.op, c.numerics, c.mantissa)
	}
}

// TestLiterals spells constants whose C text is easy to get wrong.
func TestLiterals(t *testing.T) {
	for _, c := range []struct {
		e    *ir.Expr
		want string
	}{
		{ir.Num(ir.F32, 0), "0.0f"}, {ir.Num(ir.F32, math.Copysign(0, -1)), "(-0.0f)"}, {ir.Num(ir.F32, 1), "1.0f"},
		{ir.Num(ir.F32, 0.1), "0.1f"}, {ir.Num(ir.F32, 1e10), "1e+10f"}, {ir.Num(ir.F32, 0x1p-149), "1e-45f"},
		{ir.Num(ir.F32, math.NaN()), "nan32()"}, {ir.Num(ir.F32, math.Inf(1)), "infinity()"},
		{ir.Num(ir.F32, math.Inf(-1)), "(-infinity())"}, {ir.Num(ir.F32, 1e300), "infinity()"},
		{ir.Num(ir.F64, math.Inf(-1)), "(-(double)infinity())"}, {ir.Num(ir.F64, math.NaN()), "((double)nan32())"},
		{ir.Num(ir.F64, 1e22), "1e+22"}, {ir.Num(ir.F64, -3), "(-3.0)"}, {ir.Num(ir.F64, 0.1), "0.1"},
		{ir.Num(ir.BF16, 1.5), "from_f32<bf16>(1.5f)"},
		{ir.IntNum(ir.Bool, 1), "true"}, {ir.IntNum(ir.U32, math.MaxUint32), "4294967295u"},
		{ir.IntNum(ir.I8, -128), "(signed char)-128"}, {ir.IntNum(ir.U8, 255), "(unsigned char)255"},
		{ir.IntNum(ir.I16, -32768), "(short)-32768"}, {ir.IntNum(ir.I32, math.MinInt32), "(-2147483647 - 1)"},
		{ir.IntNum(ir.I32, -1), "(-1)"}, {ir.IntNum(ir.I64, math.MinInt64), "(-9223372036854775807LL - 1)"},
		{ir.IntNum(ir.I64, math.MaxInt64), "9223372036854775807LL"}, {ir.IntConst(7), "7"},
		{ir.IntConst(1 << 40), "(INDEX)1099511627776LL"},
	} {
		assert.Equal(t, c.want, Literal(c.e), "%s of %s", c.e, c.e.Type)
	}
}

func TestIdentifiers(t *testing.T) {
	for name, want := range map[string]string{
		"x": "x", "x_2": "x_2", "float": "float_", "t": "t_", "größe": "gr_e", "2x": "n_x", "a.b": "a_b", "": "n_",
		"double": "double_", "M": "M", "INDEX": "INDEX_", "threadIdx": "threadIdx_", "max_": "max__", "a__b": "a_b",
		"__shared__": "n_shared_", "half": "half", "cluster_rank": "cluster_rank_", "to_f32": "to_f32_", "c": "c_",
		"expf": "expf_", "Vec": "Vec_", "N_size": "N_size_", "i_outer": "i_outer_", "m_old": "m_old_", "a": "a",
	} {
		assert.Equal(t, want, Identifier(name), "%q", name)
	}
	for c := rune(1); c < 300; c++ {
		want := "_"
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789", c) {
			want = string(c)
		}
		assert.Equal(t, "x"+want+"1", Identifier("x"+string(c)+"1"), "%q", c)
	}
	n := Namer{}
	seen := map[string]bool{}
	for _, name := range []string{"x", "x", "x_2", "x", "x_2", "ä", "ö", "_", "float", "float_", "float", "t", "t_"} {
		fresh := n.Fresh(name)
		assert.False(t, seen[fresh], "%s again", fresh)
		assert.False(t, Reserved(fresh), "%s is taken", fresh)
		seen[fresh] = true
	}
}

func requireNVRTC(t *testing.T) *cuda.NVRTC {
	t.Helper()
	n, err := cuda.FindNVRTC(cuda.FindOptions{})
	if err != nil && os.Getenv("CI") == "true" {
		t.Fatalf("continuous integration needs NVRTC: run scripts/get-nvrtc: %v", err)
	}
	if err != nil {
		t.Skipf("no NVRTC here: run scripts/get-nvrtc to have these tests run: %v", err)
	}
	return n
}

// TestSpellingsCompile compiles one kernel that uses every operation on every type.
func TestSpellingsCompile(t *testing.T) {
	n := requireNVRTC(t)
	for _, arch := range []string{"sm_75", "sm_80", "sm_90a"} {
		for _, numerics := range []ir.Numerics{ir.Fast, ir.Strict} {
			_, err := n.Compile(t.Context(), cuda.Request{Name: "spellings.cu", Source: everything(numerics),
				Options: []string{"--gpu-architecture=" + arch}})
			require.NoError(t, err, "%s, %s", arch, numerics)
		}
	}
}

// everything is the text of a kernel with a line for each operation, conversion to
// and from the storage types, and constant.
func everything(numerics ir.Numerics) string {
	var params, body strings.Builder
	for _, c := range computed {
		fmt.Fprintf(&params, "%s *%s_out, const %[1]s *%[2]s_in, ", ComputeType(c), c)
		for i := range 3 {
			fmt.Fprintf(&body, "    const %s %s_%d = %[2]s_in[%d];\n", ComputeType(c), c, i, i)
		}
	}
	write := func(e *ir.Expr, text string, at int) {
		fmt.Fprintf(&body, "    %s_out[%d] = %s;\n", e.Type, at, text)
	}
	at := 0
	for _, e := range allOperations() {
		write(e, spelled(e, numerics, 7), at)
		at++
	}
	f := ir.LocalRef(&ir.Local{Name: "f32_0", Type: ir.F32})
	for _, narrow := range []ir.DType{ir.BF16, ir.F16, ir.F8E4M3, ir.F8E5M2} {
		e := ir.Cast(ir.Cast(f, narrow), ir.F32)
		write(e, spelled(e, ir.Strict, 7), at)
		at++
	}
	for _, c := range computed {
		for _, v := range []float64{0, 1, -1, 127, math.Inf(1), math.NaN()} {
			if c.IsFloat() || !math.IsNaN(v) && !math.IsInf(v, 0) {
				write(ir.Num(c, v), Literal(ir.Num(c, v)), at)
				at++
			}
		}
	}
	return "#define INDEX long long\n#define THREADS 32\n#define VECTOR 1\n#define ROW_THREADS 32\n#define ITEMS 1\n#define CLUSTER 1\n" + skeleton.Text("prelude") +
		"extern \"C\" __global__ void everything(" + strings.TrimSuffix(params.String(), ", ") + ") {\n" + body.String() + "}\n"
}
