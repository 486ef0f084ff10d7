package fuse

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/fusec/fusec/ir"
)

// smallSteps are functions of two small matrices of each point that give a third: products, elements, transposes, and sums over a row.
var smallSteps = []string{
	"%s @ %s",
	"transpose(%s) @ %s",
	"%s - %s @ transpose(b)",
	"stack(%[1]s[:, 0], %[2]s[:, 2], %[1]s[:, 1] * %[2]s[:, 0], axis=1)",
	"%[1]s / (1 + sum(%[2]s * %[2]s, axis=(1, 2), keep=true))",
	"reshape(transpose(reshape(%[1]s * %[2]s, N, 9)[:, ::-1] + 1, 0, 1), 3, 3, N)[0:3, 0:3, 0][none] + %[1]s",
	"concat(%[1]s[:, 1:], %[2]s[:, :1], axis=1)",
	"normalize(%[1]s, axis=-1) + max(%[2]s, axis=1)[:, none]",
	"where(argmax(%[1]s, axis=2)[:, :, none] == i64(iota(3)), %[2]s, 0)",
}

// drawSmall writes a program of such steps.
func drawSmall(t *rapid.T) string {
	names, body := []string{"a", "b"}, []string(nil)
	for n := rapid.IntRange(1, 4).Draw(t, "steps"); len(body) < n; {
		pick := func() string { return rapid.SampledFrom(names).Draw(t, "operand") }
		name := fmt.Sprintf("m%d", len(body))
		step := rapid.SampledFrom(smallSteps).Draw(t, "step")
		text := fmt.Sprintf(step, pick(), pick())
		body, names = append(body, name+" = "+text), append(names, name)
	}
	last := names[len(names)-1]
	result := rapid.SampledFrom([][2]string{
		{"y = " + last + " + 0", "y: f64[N, 3, 3]"},
		{"y = sum(" + last + ", axis=(1, 2))", "y: f64[N]"},
		{"y = sum(" + last + ", axis=0)", "y: f64[3, 3]"},
		{"y = " + last + "[:, 0] * 2", "y: f64[N, 3]"},
		{"y = reshape(" + last + ", N, 9) @ w", "y: f64[N, 2]"},
		{"y[n: N] = " + last + "[n, at[n], 1]", "y: f64[N]"},
	}).Draw(t, "result")
	return fmt.Sprintf("%s@bench(N=100000) graph g(a: f64[N, 3, 3], b: f64[N, 3, 3], w: f64[9, 2], at: i64[N]) -> (%s) {\n    %s\n    %s\n}\n",
		rapid.SampledFrom([]string{"", "@strict "}).Draw(t, "numerics"), result[1], strings.Join(body, "\n    "), result[0])
}

// TestPlanIsGraphForSmallMatrices compares plans with graphs where elements of small matrices are values of their own.
func TestPlanIsGraphForSmallMatrices(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := drawSmall(t)
		g := parse(t, src)
		device, err := ir.DeviceNamed(rapid.SampledFrom([]string{"sm_80", "sm_90a"}).Draw(t, "device"))
		require.NoError(t, err)
		p, err := Plan(g, Options{Device: device})
		require.NoError(t, err, src)
		sizes := map[string]int64{"N": rapid.SampledFrom([]int64{1, 2, 5}).Draw(t, "N")}
		inputs, err := drawInputs(g, sizes, rapid.Uint64().Draw(t, "seed"))
		require.NoError(t, err)
		comparePlan(t, g, p, inputs, sizes, src)
	})
}

// TestSmallMatricesStayInRegisters: a chain of small matrices whose results are few is one kernel, and one of long rows is not written element
// by element.
func TestSmallMatricesStayInRegisters(t *testing.T) {
	device, err := ir.DeviceNamed("sm_90a")
	require.NoError(t, err)
	for _, row := range []struct {
		size    int
		body    string
		kernels int
	}{
		{2, "m = a @ b @ a\n y = m[:, 0, 1] - m[:, 1, 0]", 1},
		{3, "m = a @ b @ transpose(a)\n y = m[:, 0, 0] * m[:, 1, 1]", 1},
		{4, "m = transpose(a @ b) @ a @ b\n y = sum(m[:, 0] * m[:, 1], axis=-1)", 1},
		{5, "m = a @ b\n y = m[:, 0, 1] + m[:, 1, 0]", 1},
	} {
		src := fmt.Sprintf("@bench(N=1000000) graph g(a: f32[N, %[1]d, %[1]d], b: f32[N, %[1]d, %[1]d]) -> (y: f32[N]) { %[2]s }", row.size, row.body)
		p, err := Plan(parse(t, src), Options{Device: device})
		require.NoError(t, err, src)
		assert.Len(t, p.Kernels, row.kernels, src)
	}
}
