package fuse

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestVerifyPlanFinds breaks each invariant of a plan in turn. The plan has two kernels, the first of
// which hands a temporary to the second, and in each several variants.
func TestVerifyPlanFinds(t *testing.T) {
	const src = `graph g(x: f32[N, M], b: f32[M]) -> (y: f32[N, M], z: f32[M]) {
		y = softmax(x) * b
		z = sum(y * x, axis=0)
	}`
	kernelOf := func(p *ir.Plan, output string) *ir.Kernel {
		i := slices.IndexFunc(p.Kernels, func(k *ir.Kernel) bool {
			return slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return a.Write && a.Name == output })
		})
		require.GreaterOrEqual(t, i, 0)
		return p.Kernels[i]
	}
	past := func(e *ir.Expr) *ir.Expr { return ir.Apply(ir.OpAdd, e, ir.IntConst(1)) }
	storeOf := func(v *ir.Variant) *ir.Store {
		for _, s := range v.Sections {
			if len(s.Stores) > 0 {
				return s.Stores[0]
			}
		}
		return nil
	}
	for _, c := range []struct {
		want  string
		spoil func(p *ir.Plan)
	}{
		{"kernel g_y: it has no variants", func(p *ir.Plan) { kernelOf(p, "y").Variants = nil }},
		{"holds at every size", func(p *ir.Plan) {
			k := kernelOf(p, "y")
			k.Variants = k.Variants[:1]
		}},
		{"variant 2 never runs: variant 1 takes all of its sizes", func(p *ir.Plan) {
			k := kernelOf(p, "y")
			k.Variants = slices.Insert(slices.Clone(k.Variants), 1, k.Variants[0])
		}},
		{"no strategy has row mapping", func(p *ir.Plan) { kernelOf(p, "y").Variants[0].Strategy = ir.NoStrategy }},
		{"does not take stages", func(p *ir.Plan) { kernelOf(p, "y").Variants[0].Schedule.Stages = 2 }},
		{"is not for bodies with a range across", func(p *ir.Plan) {
			k := kernelOf(p, "y")
			k.Variants[0].Across = k.Rows[0]
		}},
		{"which no kernel ahead of it writes", func(p *ir.Plan) { slices.Reverse(p.Kernels) }},
		{"no kernel writes", func(p *ir.Plan) { p.Kernels = p.Kernels[:len(p.Kernels)-1] }},
		{"writes too", func(p *ir.Plan) { p.Kernels = append(p.Kernels, p.Kernels[0]) }},
		{"is two of its arguments", func(p *ir.Plan) {
			k := kernelOf(p, "y")
			for _, a := range k.Args {
				if !a.Write {
					a.Buffer = k.Args[0].Buffer
				}
			}
			k.Args[1].Type = k.Args[0].Type
		}},
		{"it writes the input x", func(p *ir.Plan) {
			for _, a := range kernelOf(p, "y").Args {
				a.Write = a.Write || a.Name == "x"
			}
		}},
		{"input b has no buffer", func(p *ir.Plan) { p.Buffers[1].Kind = ir.OutputBuffer }},
		{"has the index", func(p *ir.Plan) { p.Buffers[0], p.Buffers[1] = p.Buffers[1], p.Buffers[0] }},
		{"0 stores to y", func(p *ir.Plan) {
			for _, s := range kernelOf(p, "y").Variants[0].Sections {
				s.Stores = nil
			}
		}},
		{"2 stores to y", func(p *ir.Plan) {
			for _, s := range kernelOf(p, "y").Variants[0].Sections {
				s.Stores = append(s.Stores, s.Stores...)
			}
		}},
		{"before that is computed", func(p *ir.Plan) {
			v := kernelOf(p, "y").Variants[0]
			v.Sections = v.Sections[len(v.Sections)-1:]
		}},
		{"which is not defined before", func(p *ir.Plan) {
			slices.Reverse(kernelOf(p, "y").Variants[0].Locals)
		}},
		{"it touches element", func(p *ir.Plan) {
			st := storeOf(kernelOf(p, "y").Variants[0])
			st.Offset = past(st.Offset)
		}},
		{"it touches element", func(p *ir.Plan) {
			for _, l := range kernelOf(p, "y").Variants[0].Locals {
				l.Def = ir.Rewrite(l.Def, func(e *ir.Expr) *ir.Expr {
					if e.Op == ir.OpRead {
						return ir.Read(e.Arg, past(e.Args[0]), e.Guard, e.Fill)
					}
					return e
				})
			}
		}},
		{"which is no operand of the kernel", func(p *ir.Plan) {
			k := kernelOf(p, "y")
			k.Args = slices.Clone(k.Args)
			for i, a := range k.Args {
				if a.Name == "x" {
					own := *a
					k.Args[i] = &own
				}
			}
		}},
		{"blocks have 4096 threads", func(p *ir.Plan) { kernelOf(p, "y").Variants[0].Schedule.Threads = 4096 }},
	} {
		p := planOf(t, src)
		require.NoError(t, ir.VerifyPlan(p))
		c.spoil(p)
		err := ir.VerifyPlan(p)
		if assert.Error(t, err, "%s in\n%s", c.want, ir.PrintPlan(p)) {
			assert.ErrorContains(t, err, c.want)
		}
	}
}

// TestVerifyPlanFindsSharedSlots gives temporaries of overlapping lives one slot.
func TestVerifyPlanFindsSharedSlots(t *testing.T) {
	p := planOf(t, `graph g(x: f32[N, N]) -> (y: f32[N, N]) {
		a = softmax(x, axis=0)
		b = softmax(transpose(a) * 2, axis=0)
		y = transpose(b) + softmax(a, axis=1)
	}`)
	var temps []*ir.Buffer
	for _, b := range p.Buffers {
		if b.Kind == ir.TempBuffer {
			temps = append(temps, b)
		}
	}
	require.Greater(t, len(temps), 1)
	for _, b := range temps {
		b.Slot = 0
	}
	assert.ErrorContains(t, ir.VerifyPlan(p), "are in slot 0, but")
}

// TestVerifyPlanFindsWarpsWithoutKeys gives a block more warps than share its keys: each multiplies whole fragments of these.
func TestVerifyPlanFindsWarpsWithoutKeys(t *testing.T) {
	for _, head := range []int{64, 128, 136, 192, 256} {
		for _, queries := range []string{"1", "16", "Q"} {
			p := planOf(t, fmt.Sprintf("graph g(q: f16[B, %[2]s, %[1]d], k: f16[B, S, %[1]d], v: f16[B, S, %[1]d]) -> (y: f16[B, %[2]s, %[1]d]) {"+
				" y = attention(q * 1.5, k * 0.5, v) }", head, queries))
			for _, k := range p.Kernels {
				v := k.Variants[len(k.Variants)-1]
				if v.Schedule.Mapping != ir.AttendMapping {
					continue
				}
				v.Schedule.TileN = v.Schedule.Threads / 32 / (v.Schedule.TileM / 16) * 8
				assert.ErrorContains(t, ir.VerifyPlan(p), "warps cannot share")
			}
		}
	}
}
