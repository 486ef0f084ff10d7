package hunt

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
)

// alikeForms are operands of R rows and C columns of which rows or columns are all the same, or in proportion.
var alikeForms = []string{
	"%s[i: R, j: C] = x[2 * i, 2]",
	"%s[i: R, j: C] = x[i, 1]",
	"%s[i: R, j: C] = x[1, j + 1]",
	"%s[i: R, j: C] = x[0, 0]",
	"%s[i: R, j: C] = z[i]",
	"%s[i: R, j: C] = z[j]",
	"%s[i: R, j: C] = z[i] * v[j]",
	"%s_z[i: R] = z[at[i]]\n%[1]s = broadcast(unsqueeze(%[1]s_z, 1), R, C)",
	"%s_v[j: C] = v[j]\n%[1]s = broadcast(%[1]s_v, R, C)",
}

// placedForms are operands whose elements lie at computed places of a table, and one that is a matrix.
var placedForms = []string{
	"%s[i: R, j: C] = x[i, j]",
	"%s[i: R, j: C] = x[i / 2, j] else 1",
	"%s[i: R, j: C] = x[at[i], j]",
	"%s[i: R, j: C] = x[at[i] * 2 - 1, j]",
	"%s[i: R, j: C] = x[i, at[j]]",
	"%s[i: R, j: C] = x[at[j], i]",
	"%s[i: R, j: C] = x[at[i], at[j]]",
	"%s[i: R, j: C] = z[at[i + j]]",
}

// productUses are products of two operands, %[2]s of R rows and K columns and %[3]s of K rows and C columns.
var productUses = []string{
	"%s = %[2]s @ %[3]s",
	"%s = %[2]s @ transpose(%[2]s)",
	"%s = %[2]s @ transpose(%[2]s)",
	"%s = transpose(%[3]s) @ %[3]s + 1",
	"%s_t = %[2]s @ %[3]s\n%[1]s = FOLD(%[1]s_t, axis=AXIS)",
	"%s = %[2]s[at] @ %[3]s",
	"%s[i: R, l: N] = sum[j: K] %[2]s[i, j] * x[at[l], j]",
}

// gatherUses are results that take an operand for a table, or for places in one.
var gatherUses = []string{
	"%s = FOLD(%[2]s[at] * 2)",
	"%s = FOLD(%[2]s[at], axis=AXIS)",
	"%s = FOLD(%[2]s[at] + z[:, none])",
	"%s = var(f32(%[2]s[at]), correction=0)",
	"%s_t = i64(%[2]s)\n%[1]s = z[%[1]s_t]",
	"%s_t = i32(FOLD(%[2]s, axis=AXIS))\n%[1]s = x[%[1]s_t]",
	"%s_t = i64(at[:, none] @ at[none, :])\n%[1]s_u = %[1]s_t[%[1]s_t]\n%[1]s = FOLD(%[1]s_u)",
	"%s_s = i64(x[:4, :4])\n%[1]s_t = %[1]s_s @ transpose(%[1]s_s)\n%[1]s_u = %[1]s_t[%[1]s_t]\n%[1]s = FOLD(%[1]s_u)",
}

// drawOperands draws a program of such uses.
func drawOperands(r *rand.Rand) *gen.Program {
	p := &gen.Program{Sizes: map[string]int64{"N": pick[int64](r, 3, 5, 9, 40), "M": pick[int64](r, 3, 4, 16, 33)}, Hostile: r.IntN(4) == 0}
	p.Annotations = pick(r, "", "", "", "@tf32")
	n, m, t := dimOf(r, p, "N"), dimOf(r, p, "M"), pick(r, ir.F32, ir.BF16, ir.BF16, ir.F16, ir.F64, ir.I32, ir.I64)
	p.Inputs = []gen.Value{{Name: "x", Type: t, Dims: []string{n, m}}, {Name: "z", Type: t, Dims: []string{n}}, {Name: "v", Type: t, Dims: []string{m}},
		{Name: "at", Type: pick(r, ir.I32, ir.I64, ir.U8), Dims: []string{n}}}
	for len(p.Outputs) < 3 {
		name := fmt.Sprintf("y%d", len(p.Outputs))
		rows, shared, columns := pick(r, n, m, "4"), pick(r, n, m, "4"), pick(r, n, m, "4")
		uses, forms := pick(r, productUses, productUses, gatherUses), pick(r, alikeForms, placedForms, slices.Concat(alikeForms, placedForms))
		use := fmt.Sprintf(pick(r, uses...)+"%.0[2]s%.0[3]s", name, name+"_a", name+"_b")
		text := strings.Join([]string{operandOf(r, forms, name+"_a", rows, shared), operandOf(r, forms, name+"_b", shared, columns),
			strings.NewReplacer("FOLD", pick(r, "sum", "min", "max", "argmax", "prod"), "AXIS", pick(r, "0", "1"), "R", rows, "K", shared, "N", n).Replace(use)}, "\n")
		p.Add(gen.Line{Text: text, Results: []gen.Value{{Name: name}}})
	}
	return p
}

// dimOf is a symbol of a program, or its number in place of it.
func dimOf(r *rand.Rand, p *gen.Program, name string) string {
	if r.IntN(2) == 0 {
		return name
	}
	n := p.Sizes[name]
	delete(p.Sizes, name)
	return fmt.Sprint(n)
}

func operandOf(r *rand.Rand, forms []string, name, rows, columns string) string {
	return strings.NewReplacer("R", rows, "C", columns).Replace(fmt.Sprintf(pick(r, forms...), name))
}

// TestComputedOperands: products, gathers and folds of operands that are no plain matrices give what the interpreter gives.
func TestComputedOperands(t *testing.T) {
	t.Parallel()
	comparePrograms(t, map[string]uint64{"cpu": fullOr[uint64](100, 8), "sm_80": fullOr[uint64](20, 3), "sm_90a": fullOr[uint64](20, 3)}, drawOperands)
}

// drawRandomBits draws a program that reduces random bits over some axes and reads at what it finds.
func drawRandomBits(r *rand.Rand) *gen.Program {
	p := &gen.Program{Sizes: map[string]int64{"D": pick[int64](r, 3, 6), "A": pick[int64](r, 1, 3, 7), "B": pick[int64](r, 4, 11), "C": pick[int64](r, 8, 8, 33, 64)}}
	var dims []string
	for _, name := range []string{"D", "A", "B", "C"}[r.IntN(3):] {
		dims = append(dims, dimOf(r, p, name))
	}
	t := pick(r, ir.BF16, ir.F32, ir.F16, ir.I32)
	w := gen.Value{Name: "w", Type: t, Dims: pick(r, dims[:1], []string{"300"})}
	p.Inputs = []gen.Value{{Name: "p", Type: t, Dims: dims}, w}
	for len(p.Outputs) < 2 {
		name := fmt.Sprintf("y%d", len(p.Outputs))
		bits := name + "_r = " + pick(r, "random_bits", "random_bits16") + fmt.Sprintf("(%d, p)", r.IntN(9))
		axes := r.Perm(len(dims))[:1+r.IntN(len(dims))]
		if r.IntN(2) == 0 { // the last ones
			for i := range axes {
				axes[i] = len(dims) - 1 - i
			}
		}
		slices.Sort(axes)
		over := "axis=(" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(axes)), ", "), "[]") + ")"
		use := fmt.Sprintf(pick(r, randomUses...), name)
		p.Add(gen.Line{Text: bits + "\n" + strings.NewReplacer("OVER", over, "ARG", pick(r, "argmax", "argmin"), "FOLD", pick(r, "max", "min", "sum")).Replace(use),
			Results: []gen.Value{{Name: name}}})
	}
	return p
}

// randomUses are results of random bits %s_r over axes, which are whatever the bits are.
var randomUses = []string{
	"%[1]s = w[ARG(%[1]s_r, OVER, keep=true)] * p",
	"%[1]s = w[ARG(%[1]s_r, OVER)]",
	"%[1]s = %[1]s_r - FOLD(%[1]s_r, OVER, keep=true)",
	"%[1]s = p + w[%[1]s_r %% 5] * w[FOLD(%[1]s_r, OVER, keep=true) %% 3]",
	"%[1]s_k = ARG(%[1]s_r, OVER, keep=true)\n%[1]s = where(%[1]s_r == FOLD(%[1]s_r, OVER, keep=true), w[%[1]s_k], p)",
	"%[1]s = w[%[1]s_r %% 5] + p",
	"%[1]s = FOLD(w[ARG(%[1]s_r, OVER, keep=true)] * p)",
}

// TestRandomBitsAsIndices: places of the extremes of random bits, over any axes, and elements there are the interpreter's.
func TestRandomBitsAsIndices(t *testing.T) {
	t.Parallel()
	comparePrograms(t, map[string]uint64{"cpu": fullOr[uint64](60, 6), "sm_80": fullOr[uint64](20, 5), "sm_90a": fullOr[uint64](20, 5)}, drawRandomBits)
}
