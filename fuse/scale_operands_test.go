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

// TestPlaceOfScale: a program takes as many kernels where a constant multiplies an operand of a product as where it
// multiplies the sums, if the operand is in memory without it.
func TestPlaceOfScale(t *testing.T) {
	programs := []string{
		`graph g(q: T[8, 197, 64], k: T[8, 197, 64], v: T[8, 197, 64], b: T[197, 197]) -> (o: T[8, 197, 64]) {
			o = softmax(AFTER(BEFORE(q) @ transpose(k) + b)) @ v }`,
		`graph g(x: T[64, 49, 96], w: T[288, 96]) -> (o: T[64, 3, 49, 32]) {
			a = permute(reshape(linear(x, w), 64, 49, 3, 3, 32), (2, 0, 3, 1, 4))
			o = softmax(AFTER(BEFORE(a[0]) @ transpose(a[1]))) @ a[2] }`,
		`graph g(x: T[512, 256], w: T[256, 256]) -> (y: T[512, 256]) { y = relu(AFTER(linear(x, BEFORE(w)))) }`,
		`graph g(x: T[512, 256], w: T[256, 256], u: T[256, 256]) -> (y: T[512, 256], z: T[512, 256]) {
			s = BEFORE(x)
			y = AFTER(s @ w)
			z = AFTER(s @ u) }`,
	}
	rapid.Check(t, func(t *rapid.T) {
		program := rapid.SampledFrom(programs).Draw(t, "program")
		dtype := rapid.SampledFrom([]string{"bf16", "f16"}).Draw(t, "dtype")
		scale := rapid.SampledFrom([]string{"(%s * 0.125)", "(%s / 7)", "(-%s)", "(0.3 * %s * 0.5)", "T(f32(%s) * 0.11)"}).Draw(t, "scale")
		device, err := ir.DeviceNamed(rapid.SampledFrom([]string{"sm_80", "sm_90a"}).Draw(t, "device"))
		require.NoError(t, err)
		kernels := func(before, after string) int {
			src := program
			for _, at := range []struct{ name, scale string }{{"BEFORE", before}, {"AFTER", after}} {
				src = placed(src, at.name, at.scale)
			}
			src = strings.NewReplacer("T[", dtype+"[", "T(", dtype+"(").Replace(src)
			p, err := Plan(parse(t, src), Options{Device: device})
			require.NoError(t, err, src)
			return len(p.At(nil).Kernels)
		}
		assert.Equal(t, kernels("%s", scale), kernels(scale, "%s"), "%s %s", program, scale)
	})
}

// placed writes a format's text around the argument of each call of a name.
func placed(src, name, format string) string {
	for {
		at := strings.Index(src, name+"(")
		if at < 0 {
			return src
		}
		begin, depth := at+len(name)+1, 1
		end := begin
		for ; depth > 0; end++ {
			switch src[end] {
			case '(':
				depth++
			case ')':
				depth--
			}
		}
		src = src[:at] + fmt.Sprintf(format, "("+src[begin:end-1]+")") + src[end:]
	}
}
