package fuse

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// overSource is a graph whose second kernel stores over what the first one wrote, and reads one element of each row out of
// turn.
const overSource = `@bench(N=16384, V=65536)
graph g(x: f16[N, V], next: i32[N]) -> (y: f16[N, V], l: f32[N]) {
	p = f32(sort(x, axis=1))
	m = max(p, axis=1)
	s = sum(exp(p - m[:, none]), axis=1)
	l[i] = m[i] + log(s[i]) - where(0 <= next[i] && next[i] < V, p[i, next[i]], 0.0)
	y = sort(f16(exp(p - m[:, none]) / s[:, none]), axis=1)
}`

// over is the temporary of a plan that lies over another; nil where there is none.
func over(p *ir.Plan) *ir.Buffer {
	i := slices.IndexFunc(p.Buffers, func(b *ir.Buffer) bool { return b.Over != nil })
	if i < 0 {
		return nil
	}
	return p.Buffers[i]
}

// TestTemporariesOverEachOther: they are where memory is large, and where nothing reads what is lost.
func TestTemporariesOverEachOther(t *testing.T) {
	const head = "graph g(x: f16[N, V], next: i32[N]) -> (y: f16[N, V], l: f32[N], z: f16[N, V]) {\n p = sort(x, axis=1)\n"
	const tail = "\n c = softmax(p)\n y = sort(c, axis=1)\n z = sort(p + 1, axis=0)\n}"
	for _, c := range []struct {
		src  string
		want bool
	}{
		{overSource, true},
		{"@bench(N=16, V=65536)" + overSource[len("@bench(N=16384, V=65536)"):], false},
		{"@bench(N=16384, V=65536)\n" + head + " l = f32(p[:, 0])" + tail, false}, // z reads p later
	} {
		for _, device := range ir.Devices() {
			p, err := Plan(parse(t, c.src), Options{Device: device})
			require.NoError(t, err)
			require.NoError(t, ir.VerifyPlan(p))
			assert.Equal(t, c.want, over(p) != nil, "%s\n%s", c.src, ir.PrintPlan(p))
		}
	}
}

// TestVerifyPlanFindsOvers breaks what a temporary over another relies on.
func TestVerifyPlanFindsOvers(t *testing.T) {
	kernelOf := func(p *ir.Plan) *ir.Kernel {
		return p.Kernels[slices.IndexFunc(p.Kernels, func(k *ir.Kernel) bool {
			return slices.ContainsFunc(k.Args, func(a *ir.Arg) bool { return a.Write && a.Buffer == over(p) })
		})]
	}
	for _, c := range []struct {
		want  string
		spoil func(p *ir.Plan)
	}{
		{"which is no temporary that one kernel writes", func(p *ir.Plan) { over(p).Over = p.Buffers[0] }},
		{"relies on their memory being apart", func(p *ir.Plan) {
			for _, a := range kernelOf(p).Args {
				a.Shared = false
			}
		}},
		{"reads other elements than it stores", func(p *ir.Plan) { kernelOf(p).Variants[0].Ahead = nil }},
		{"has a read ahead of no exchange", func(p *ir.Plan) {
			v := kernelOf(p).Variants[0]
			v.Ahead[0].Section = len(v.Sections) - 1
		}},
	} {
		p, err := Plan(parse(t, overSource), Options{Device: ir.Devices()[0]})
		require.NoError(t, err)
		c.spoil(p)
		assert.ErrorContains(t, ir.VerifyPlan(p), c.want)
	}
}
