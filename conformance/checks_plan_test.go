package conformance

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/ir"
)

// TestIndicesThatNeedNoCheck: what is shown to be inside costs nothing.
func TestIndicesThatNeedNoCheck(t *testing.T) {
	for _, text := range []string{
		`@strict graph g(x: f32[6], at: i32[N]) -> (y: f32[N]) { y[n] = x[max(min(at[n], 5), 0)] }`,
		`@strict graph g(x: f32[6], at: i32[N]) -> (y: f32[N]) { y[n] = x[i64(at[n]) % 6] }`,
		`@strict graph g(x: f32[6], at: i64[N], m: bool[N]) -> (y: f32[N]) { y[n] = x[where(m[n], at[n] % 3, 5)] }`,
		`@strict graph g(x: f32[256], at: u8[N]) -> (y: f32[N]) { y = x[at] }`,
		`@strict graph g(x: f32[V], at: i64[N]) -> (y: f32[N]) { y = x[at] else -1.0 }`,
		`@strict graph g(x: f32[N]) -> (y: f32[N]) { y[n] = x[n - 1] }`,
		`graph g(x: f32[V], at: i64[N]) -> (y: f32[N]) { y = x[at] }`,
	} {
		p, err := fusec.Compile("c.fuse", text, fusec.Options{})
		require.NoError(t, err)
		assert.Empty(t, p.Plan().Graph.Checks, text)
		assert.Len(t, p.Plan().Kernels, 1, text)
	}
}

// TestChecksOfPrintedGraphs: a graph's text says what is checked, and so does that of its
// plan, whose checks are plain results.
func TestChecksOfPrintedGraphs(t *testing.T) {
	for _, c := range checkCases {
		p, err := fusec.Compile("c.fuse", c.source(), fusec.Options{})
		require.NoError(t, err, c.name)
		again, err := fusec.Compile("c.fuse", ir.Print(p.Graph()), fusec.Options{})
		require.NoError(t, err, c.name)
		assert.Len(t, again.Plan().Graph.Checks, len(p.Plan().Graph.Checks), c.name)
		require.NoError(t, ir.Verify(p.Plan().Graph), c.name)
		planned, err := fusec.Compile("c.fuse", ir.Print(p.Plan().Graph), fusec.Options{})
		require.NoError(t, err, c.name)
		assert.Empty(t, planned.Plan().Graph.Checks, c.name)
	}
}

// TestChecksOfSizesBakedIn: what is reported does not hang on how sizes are given.
func TestChecksOfSizesBakedIn(t *testing.T) {
	dev := openCPU(t)
	for _, c := range checkCases[:2] {
		p, err := fusec.Compile("c.fuse", c.source(), fusec.Options{Specialize: "V=6,D=1"})
		require.NoError(t, err)
		f, err := p.Load(context.Background(), dev.Device)
		require.NoError(t, err)
		_, err = f.Call(context.Background(), c.arguments(t))
		c.requireFound(t, err, "CPU engine")
	}
}

// TestKernelsStayWithChecks: checks are kernels beside those of the program.
func TestKernelsStayWithChecks(t *testing.T) {
	const body = `graph g(x: f32[V, D], at: i64[N], m: bool[N]) -> (y: f32[N, D], s: f32[D]) {
    t = where(m[:, none], x[at]%s, 0)
    y = exp(t) * 2
    s = sum(t, axis=0)
}`
	text := func(other string) []string {
		p, err := fusec.Compile("c.fuse", "@strict "+strings.Replace(body, "%s", other, 1), fusec.Options{})
		require.NoError(t, err)
		program, err := p.CUDA()
		require.NoError(t, err)
		return program.Sources
	}
	assert.Subset(t, withoutPlaces(text("")), withoutPlaces(text(" else 0")))
}

// withoutPlaces drops the comments that name places in the program.
func withoutPlaces(texts []string) []string {
	place := regexp.MustCompile(`(?m)// .*c\.fuse.*$`)
	var out []string
	for _, text := range texts {
		out = append(out, place.ReplaceAllString(text, ""))
	}
	return out
}
