package fuse

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/fuse/algebra"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
)

// packedWeights are products with weights in few bits: the text of a graph, and whether its
// elements are fields and its scales are hoisted.
var packedWeights = []struct {
	name, inputs, weight string
	fields, scaled       bool
}{
	{"u8", "q: u8[N, 512], s: bf16[N, 8]", "(bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 128]", true, true},
	{"upper half first", "q: u8[N, 512], s: bf16[N, 8]", "(bf16(i32(q[n, k / 2]) >> (4 - 4 * (k % 2)) & 15) - 8) * s[n, k / 128]", true, true},
	{"by division", "q: u8[N, 512], s: bf16[N, 8]", "(bf16(where(k % 2 == 0, i32(q[n, k / 2]) % 16, i32(q[n, k / 2]) / 16)) - 8) * s[n, k / 128]", true, true},
	{"signed by shifts", "q: i8[N, 512], s: bf16[N, 8]", "bf16(i32(q[n, k / 2]) << i32(28 - 4 * (k % 2)) >> 28) * s[n, k / 128]", true, true},
	{"signed by comparison", "q: u8[N, 512], s: bf16[N, 8]", "bf16(where((i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) > 7, (i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 16, i32(q[n, k / 2]) >> (4 * (k % 2)) & 15)) * s[n, k / 128]", true, true},
	{"words of i32", "q: i32[N, 128], s: f32[N, 16]", "bf16(q[n, k / 8] >> (4 * (k % 8)) & 15) * s[n, k / 64]", true, true},
	{"another order", "q: i32[N, 128], s: f32[N, 8]", "bf16((q[n, k / 8] >> (4 * (k % 8 / 4 + k % 4 * 2)) & 15) - 8) * s[n, k / 128]", true, true},
	{"zero points", "q: u8[N, 512], s: f32[N, 8], z: u8[N, 8]", "bf16((i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - (i32(z[n, k / 128]) & 15)) * s[n, k / 128]", true, true},
	{"two bits", "q: u8[N, 256], s: bf16[N, 8]", "(bf16(i32(q[n, k / 4]) >> (2 * (k % 4)) & 3) - 1.5) * s[n, k / 128]", true, true},
	{"three bits of four", "q: u8[N, 512], s: bf16[N, 8]", "(2 * bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 7) - 7) * s[n, k / 128]", true, true},
	{"groups of 32", "q: u8[N, 512], s: bf16[N, 32]", "(bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 32]", true, true},
	{"groups of 16", "q: u8[N, 512], s: bf16[N, 64]", "(bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 16]", false, false},
	{"divided", "q: u8[N, 512], s: bf16[N, 8]", "(bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) / (s[n, k / 128] * s[n, k / 128] + 1)", true, true},
	{"zero points of any value", "q: u8[N, 512], s: bf16[N, 8], z: bf16[N, 8]", "(bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - z[n, k / 128]) * s[n, k / 128]", true, true},
	{"not along a line", "q: u8[N, 512], s: bf16[N, 8]", "exp(bf16(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) / 4) * s[n, k / 128]", false, true},
	{"bytes", "q: i8[N, 1024], s: f32[N, 8]", "f32(q[n, k]) * s[n, k / 128]", true, true},
	{"bytes with zero points", "q: u8[N, 1024], s: f32[N, 8], z: u8[N, 8]", "(f32(q[n, k]) - f32(z[n, k / 128])) * s[n, k / 128]", true, true},
	{"bytes times three", "q: u8[N, 1024], s: f32[N, 8]", "(3 * f32(q[n, k]) - 1) * s[n, k / 128]", false, true},
	{"8-bit floats", "q: f8e4m3[N, 1024], s: f32[N, 8]", "f32(q[n, k]) * s[n, k / 128]", false, true},
}

func packedProgram(inputs, weight string) string {
	return fmt.Sprintf(`@bench(M=2) graph g(x: bf16[M, 1024], %s) -> (y: f32[M, N]) {
		w[n: N, k: 1024] = %s
		y[m, n] = sum[k] f32(x[m, k]) * f32(w[n, k]) }`, inputs, weight)
}

// TestPackedWeights: what is made of fields, and of sums times a scale, is what
// the graph says.
func TestPackedWeights(t *testing.T) {
	for _, w := range packedWeights {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			p := planOf(t, packedProgram(w.inputs, w.weight))
			require.Len(t, p.Kernels, 1)
			v := gemvOf(p.Kernels[0])
			require.NotNil(t, v, "no variant for few rows")
			b := v.Contract.B[0]
			assert.Equal(t, w.fields, b.Pieces.Fields != nil, "fields")
			assert.Equal(t, w.scaled, b.Scale != nil, "scale")
			spellOut(p.Kernels[0], v)
			compareFields(t, p, 1)
		})
	}
}

// TestPackedRowsOfAnyLength: where all columns are whole groups, packed weights are read
// without a check of each element.
func TestPackedRowsOfAnyLength(t *testing.T) {
	p := planOf(t, `@bench(M=2) graph g(x: bf16[M, K], q: u8[N, K / 2], s: f32[N, K / 128]) -> (y: f32[M, N]) {
		y[m, n] = sum[k: K] f32(x[m, k]) * (f32(i32(q[n, k / 2]) >> (4 * (k % 2)) & 15) - 8) * s[n, k / 128] }`)
	v := gemvOf(p.Kernels[0])
	require.NotNil(t, v)
	assert.NotNil(t, v.Contract.B[0].Pieces.Fields)
	assert.NotNil(t, v.Contract.B[0].Scale)
	assert.Contains(t, v.When.String(), "K % 128 == 0")
}

// TestRandomFields draws widths, places and signs of fields, zero points and groups.
func TestRandomFields(t *testing.T) {
	packed := 0
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.SampledFrom([]int{2, 4, 8}).Draw(t, "bits of a slot")
		width := rapid.IntRange(1, size).Draw(t, "bits of a field")
		first := rapid.IntRange(0, size-width).Draw(t, "first")
		group := rapid.SampledFrom([]int{32, 64, 128, 256}).Draw(t, "group")
		word := rapid.SampledFrom([]string{"u8", "i8", "i32", "u32"}).Draw(t, "type")
		each := map[string]int{"u8": 8, "i8": 8, "i32": 32, "u32": 32}[word] / size
		at := fmt.Sprintf("i64(q[n, k / %d])", each)
		field := fmt.Sprintf("(%s >> (%d * (k %% %d) + %d) & %d)", at, size, each, first, 1<<width-1)
		if rapid.Bool().Draw(t, "signed") {
			field = fmt.Sprintf("(%s << (%d - %d * (k %% %d)) >> %d)", at, 64-width-first, size, each, 64-width)
		}
		zero, scale := rapid.IntRange(-9, 9).Draw(t, "zero"), rapid.SampledFrom([]string{"f32", "bf16"}).Draw(t, "scale")
		src := packedProgram(fmt.Sprintf("q: %s[N, %d], s: %s[N, %d]", word, 1024/each, scale, 1024/group),
			fmt.Sprintf("f32(%s - %d) * f32(s[n, k / %d])", field, zero, group))
		p := planOf(t, src)
		if v := gemvOf(p.Kernels[0]); len(p.Kernels) == 1 && v != nil {
			packed++
			spellOut(p.Kernels[0], v)
			compareFields(t, p, rapid.Uint64().Draw(t, "seed"))
		}
	})
	assert.Positive(t, packed, "none of them has a variant for few rows")
}

// gemvOf is a kernel's first variant for few rows.
func gemvOf(k *ir.Kernel) *ir.Variant {
	for _, v := range k.Variants {
		if v.Schedule.Mapping == ir.GemvMapping && len(v.Units) == 0 {
			return v
		}
	}
	return nil
}

// spellOut leaves a kernel only the given variant, at all sizes, with the side that is
// packed written out as its fields and its scale are read.
func spellOut(k *ir.Kernel, v *ir.Variant) {
	b := v.Contract.B[0]
	value := spelledPiece(b.Pieces)
	if b.Scale != nil {
		value = ir.Apply(ir.OpMul, value, spelledPiece(b.Scale))
	}
	v.Sections[0].Folds[0].Body = ir.Apply(ir.OpMul, v.Contract.A.Value, value)
	v.When = nil
	k.Variants = []*ir.Variant{v}
}

// spelledPiece is the value of a piece at a column, over the tensors that it reads.
func spelledPiece(p *ir.Piece) *ir.Expr {
	length := ir.IntConst(int64(p.Length))
	to := map[*ir.Range]*ir.Expr{
		p.Outer: ir.Apply(ir.OpFloorDiv, p.Inner.At(), length),
		p.Lane:  ir.Apply(ir.OpMod, p.Inner.At(), length),
	}
	read := func(r ir.Packed, at *ir.Expr) *ir.Expr {
		return ir.Read(r.Arg, ir.Substitute(ir.Apply(ir.OpAdd, r.Base, at), to), nil, nil)
	}
	replaced := func(e *ir.Expr) *ir.Expr {
		return ir.Rewrite(ir.Substitute(algebra.WithoutLocals(e), to), func(e *ir.Expr) *ir.Expr {
			for _, r := range p.Reads {
				if e.Op == ir.OpLocal && e.Local == r.Local {
					return read(r, r.At)
				}
			}
			return e
		})
	}
	f := p.Fields
	if f == nil {
		return replaced(p.Value)
	}
	bit := ir.IntConst(0)
	for slot, lane := range f.Order {
		pairs := 16 / f.Bits
		at := slot/2/pairs*32 + slot/2%pairs*f.Bits + slot%2*16 + f.First
		bit = ir.Where(ir.Apply(ir.OpEq, p.Lane.At(), ir.IntConst(int64(lane))), ir.IntConst(int64(at)), bit)
	}
	main := p.Reads[f.Read]
	size := ir.IntConst(int64(main.Arg.Type.Size() * 8))
	whole := ir.Cast(read(main, ir.Apply(ir.OpFloorDiv, bit, size)), ir.I64)
	shift := ir.Cast(ir.Substitute(ir.Apply(ir.OpMod, bit, size), to), ir.I64)
	field := ir.Apply(ir.OpBitAnd, ir.Apply(ir.OpShr, whole, shift), ir.IntNum(ir.I64, 1<<f.Width-1))
	number := ir.Cast(ir.Apply(ir.OpBitXor, field, ir.IntNum(ir.I64, f.Flip)), ir.F32)
	value := ir.Apply(ir.OpAdd, ir.Apply(ir.OpMul, number, ir.Num(ir.F32, f.Step)), ir.Num(ir.F32, f.Base))
	if f.Offset != nil {
		value = ir.Apply(ir.OpAdd, value, replaced(f.Offset))
	}
	return value
}

// compareFields runs a plan and its graph on weights of all bit patterns.
func compareFields(t rapid.TB, p *ir.Plan, seed uint64) {
	t.Helper()
	inputs, err := drawInputs(p.Graph, map[string]int64{"M": 2, "N": 5}, seed)
	require.NoError(t, err)
	for i, x := range inputs {
		for n := range x.I {
			bits := int64((uint64(n+1)*0x9E3779B97F4A7C15 + seed + uint64(i)) >> 32)
			switch x.Type {
			case ir.U8:
				x.I[n] = int64(uint8(bits))
			case ir.I8:
				x.I[n] = int64(int8(bits))
			case ir.I32:
				x.I[n] = int64(int32(bits))
			case ir.U32:
				x.I[n] = int64(uint32(bits))
			}
		}
	}
	want, err := interp.Run(p.Graph, inputs, interp.Options{})
	require.NoError(t, err)
	got, err := interp.RunPlan(p, inputs, interp.PlanOptions{})
	require.NoError(t, err)
	requireSame(t, want, got, 2e-3, "")
}

// TestScalesOfGroups: the scale of a group multiplies the sum of the group, also where the last group of a row is not whole. Where
// rows follow each other in one sum, groups that are not whole would cross from one into the next, and the scale stays in the terms.
func TestScalesOfGroups(t *testing.T) {
	for _, c := range []struct {
		name, src string
		scaled    bool
	}{
		{"whole groups", `graph g(a: f16[4, 4096], b: i8[4096, 4096], s: f16[4096, 128]) -> (y: f16[4, 4096]) {
			y[i: 4, j: 4096] = sum[k: 4096] a[i, k] * f16(b[j, k]) * s[j, k / 32] }`, true},
		{"a part of a group", `graph g(a: f16[4, 4104], b: i8[4096, 4104], s: f16[4096, 129]) -> (y: f16[4, 4096]) {
			y[i: 4, j: 4096] = sum[k: 4104] a[i, k] * f16(b[j, k]) * s[j, k / 32] }`, true},
		{"whole groups of rows", `graph g(a: f16[4, 3, 4096], b: i8[4096, 3, 4096], s: f16[4096, 3, 128]) -> (y: f16[4, 4096]) {
			y[i: 4, j: 4096] = sum[l: 3, k: 4096] a[i, l, k] * f16(b[j, l, k]) * s[j, l, k / 32] }`, true},
		{"a part of a group of each row", `graph g(a: f16[4, 3, 4104], b: i8[4096, 3, 4104], s: f16[4096, 3, 129]) -> (y: f16[4, 4096]) {
			y[i: 4, j: 4096] = sum[l: 3, k: 4104] a[i, l, k] * f16(b[j, l, k]) * s[j, l, k / 32] }`, false},
	} {
		p := planOf(t, c.src)
		v := gemvOf(p.Kernels[0])
		require.NotNil(t, v, c.name)
		assert.Equal(t, c.scaled, v.Contract.B[0].Scale != nil, "%s\n%s", c.name, ir.PrintPlan(p))
	}
}
