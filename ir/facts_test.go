package ir

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSameIndex(t *testing.T) {
	tests := []struct {
		ranges, a, b string
		facts        Facts
		want         bool
	}{
		{ranges: "i:N j:M", a: "i*M + j", b: "j + M*i", want: true},
		{ranges: "i:N j:M", a: "i*M + j", b: "j*N + i"},
		{ranges: "i:N j:M k:4", a: "((i*M + j)*4 + k)/4/M", b: "i", want: true},
		{ranges: "f:N*M*4", a: "f/(4*M)*(M*4) + f/4%M*4 + f%4", b: "f", want: true},
		{ranges: "i:N", a: "i%8/4*4 + i%4", b: "i%8", want: true},
		{ranges: "i:N", a: "(i/2)%3", b: "(i%6)/2", want: true},
		{ranges: "i:N", a: "(N/8)*8", b: "N"},
		{ranges: "i:N", a: "(N/8)*8", b: "N", facts: Facts{Divisible: map[string]int64{"N": 16}}, want: true},
		{ranges: "i:N", a: "(i*N)/N", b: "i", want: true},
		{ranges: "i:4", a: "(i*N)/N", b: "i"},
		{ranges: "i:4", a: "(i*N)/N", b: "i", facts: Facts{Positive: true}, want: true},
	}
	for _, test := range tests {
		w := newWorld(test.ranges)
		got := SameIndex(w.parse(test.a), w.parse(test.b), test.facts)
		assert.Equal(t, test.want, got, "%s = %s", test.a, test.b)
	}
}

func TestSameSize(t *testing.T) {
	w := newWorld("")
	assert.True(t, SameSize(w.parse("(N+M)*2"), w.parse("M*2+N*2")))
	assert.False(t, SameSize(w.parse("N"), w.parse("M")))
	assert.False(t, SameSize(w.parse("N/2*2"), w.parse("N")))
}

func TestDecide(t *testing.T) {
	tests := []struct {
		ranges, cond string
		want         Truth
	}{
		{"i:N j:M", "i*M + j < N*M", True},
		{"i:N j:M", "i*M + j <= N*M - 1", True},
		{"i:N j:M", "i*M + j < N*M - 1", Unknown},
		{"i:N", "i/2 < (N+1)/2", True},
		{"i:N", "i/2 < N/2", Unknown},
		{"i:N/2", "2*i + 1 < N", True},
		{"i:16", "i/4 < 4", True},
		{"i:16", "i%4 + i/4 <= 6", True},
		{"i:N", "i - i/4 >= 0", True},
		{"i:N j:N", "min(i, j) <= max(i, j)", True},
		{"i:N j:N", "where(i < j, i, j) < N", True},
		{"i:N j:N", "i*j <= (N-1)*(N-1)", True},
		{"i:N", "i*i >= i", True},
		{"i:N", "i*i <= i", Unknown},
		{"i:N", "i*i <= i*N", True},
		{"i:N", "i*i*i <= i*N*N", True},
		{"i:N j:N", "i*i*j - i*j < 0", False},
		{"i:N j:M", "i + j < N + M - 1", True},
		{"i:N+M-1", "0*i + N + M >= 1", True},
		{"i:N*M", "0*i + N >= 1 && M >= 1", True},
		{"i:N/2", "0*i + N >= 2", True},
		{"i:N-2", "0*i + N >= 3", True},
		{"i:N-2", "0*i + N >= 4", Unknown},
		{"i:N j:M", "i == i + 1 + j", False},
		{"i:N", "i < 0 || i >= N", False},
		{"i:N", "N >= 0", True},
		{"i:4", "N >= 1", Unknown},
		{"i:N", "i%N == i", True},
	}
	for _, test := range tests {
		got := Decide(newWorld(test.ranges).parse(test.cond), Facts{})
		assert.Equal(t, test.want, got, "%s over %s is %s", test.cond, test.ranges, got)
	}
}

// TestDecideBySamples: what sizes decide differently is not looked at further, and what they do not is.
func TestDecideBySamples(t *testing.T) {
	for cond, want := range map[string]bool{
		"N <= 64": true, "N % 8 == 0": true, "N * M < 2147483648": true, "N <= M": true, "N == 64 || M < 3": true, "N < 64 && M >= 0": true,
		"N >= 0": false, "N / 2 * 2 <= N": false, "N + 1 == N": false, "0 <= 1": false,
	} {
		parsed := newWorld("").parse(cond)
		assert.Equal(t, want, depends(parsed), cond)
		if want {
			assert.NotEqual(t, OpConst, Simplify(parsed, Facts{}).Op, "%s is no question of sizes", cond)
		}
	}
	world := newWorld("i:N")
	assert.False(t, depends(world.parse("i < N")), "i is no size")
	assert.Equal(t, True, Decide(newWorld("").parse("N % 8 == 0"), Facts{Divisible: map[string]int64{"N": 8}}), "facts are not sampled")
}

func TestImplies(t *testing.T) {
	tests := []struct {
		ranges, a, b string
		want         bool
	}{
		{"i:N k:M", "k <= i", "k < N", true},
		{"i:N k:M", "k < i", "k <= i", true},
		{"i:N k:M", "k <= i", "k < i", false},
		{"i:N k:M", "k <= i && i < 7", "k < 7", true},
		{"i:N k:M", "k <= i", "k < N || i < 2", true},
		{"i:N k:M", "k <= i - 4", "k <= i && k < N", true},
		{"i:N k:M", "i - 3 <= k && k <= i", "k <= i", true},
		{"i:N k:M", "k <= i || k < 3", "k <= i", false},
	}
	for _, test := range tests {
		w := newWorld(test.ranges)
		got := Implies(w.parse(test.a), w.parse(test.b), Facts{})
		assert.Equal(t, test.want, got, "%s implies %s", test.a, test.b)
	}
}

func TestSimplifyGiven(t *testing.T) {
	tests := []struct{ ranges, in, given, want string }{
		{"i:N+M", "where(i < N, i, i - N)", "i < N", "i"},
		{"i:N+M", "where(i < N, i, i - N)", "N <= i", "i - N"},
		{"i:N k:N", "where(k <= i && k < N && 2 <= k, i, k)", "2 <= k && k <= i", "i"},
		{"i:N", "i/M*M", "1 <= M", "i / M * M"},
		{"i:N", "i*M/M", "1 <= M", "i"},
		{"i:N", "i*M/M", "M == 3 || M == 4", "i"},
		{"i:N", "i*M/M", "M == 3 || M == 0", "i * M / M"},
	}
	for _, test := range tests {
		w := newWorld(test.ranges)
		got := SimplifyGiven(w.parse(test.in), w.parse(test.given), Facts{})
		assert.Equal(t, test.want, show(got), "%s given %s", test.in, test.given)
	}
}

func TestFactsWithin(t *testing.T) {
	w := newWorld("i:N")
	facts := Facts{Within: []*Range{w.ranges["i"]}}
	assert.Equal(t, "M", show(Simplify(w.parse("M*N/N"), facts)))
	assert.Equal(t, "M * N / N", show(Simplify(w.parse("M*N/N"), Facts{})))
}

// TestFactsAtLeast0: a size that is not negative and a factor of the extent of a loop is at least 1, so that
// what was joined comes apart.
func TestFactsAtLeast0(t *testing.T) {
	w := newWorld("f:(H-2)*(W-2) i:N")
	sizes := Facts{AtLeast0: []*Expr{w.parse("H-2"), w.parse("W-2")}}
	for _, test := range []struct {
		a, b  string
		facts Facts
		want  bool
	}{
		{"f/(W-2)*(W-2) + f%(W-2)", "f", sizes, true},
		{"f/(W-2)*(W-2) + f%(W-2)", "f", Facts{}, false}, // both factors may be negative
		{"i/(W-2)*(W-2) + i%(W-2)", "i", sizes, false},   // W may be 2
	} {
		assert.Equal(t, test.want, SameIndex(w.parse(test.a), w.parse(test.b), test.facts), "%s = %s", test.a, test.b)
	}
	assert.True(t, ProveInside(w.parse("f/(W-2)"), w.parse("H-2"), sizes))
	assert.True(t, ProveNonNegative(w.parse("W-2"), sizes))
	assert.False(t, ProveNonNegative(w.parse("W-3"), sizes))
}

func TestBounds(t *testing.T) {
	tests := []struct{ ranges, in, lo, hi string }{
		{"i:N j:M", "i*M + j", "0", "M * N - 1"},
		{"i:N", "7 - i", "8 - N", "7"},
		{"i:N", "i%8", "0", "7"},
		{"i:16", "i/4", "0", "3"},
		{"i:N", "i/4", "0", "(N + 3) / 4 - 1"},
		{"o:H k:3", "o*2 + k - 1", "-1", "H * 2 - 1"},
		{"i:N j:M", "min(i, j)", "0", "min(M, N) - 1"},
		{"i:N j:M", "where(i < j, i, j + 3)", "0", "max(M + 2, N - 1)"},
		{"i:N j:N", "i*j - j", "1 - N", "nil"},
		{"i:N j:N", "i*i - j*j", "nil", "nil"},
	}
	for _, test := range tests {
		lo, hi := Bounds(newWorld(test.ranges).parse(test.in), Facts{})
		assert.Equal(t, []string{test.lo, test.hi}, []string{showOrNil(lo), showOrNil(hi)}, test.in)
	}
}

func showOrNil(e *Expr) string {
	if e == nil {
		return "nil"
	}
	return show(e)
}

func TestStride(t *testing.T) {
	tests := []struct{ ranges, in, want string }{
		{"r:N i:M", "i*N + r", "1"},
		{"r:N i:M", "r*M + i", "M"},
		{"r:N i:M", "i", "0"},
		{"r:N i:M", "(i*N + r)%N*3", "3"},
		{"r:N i:M", "(i*N + r)/N", "0"},
		{"r:N i:M", "r*i", "nil"},
		{"r:N i:M", "r/2", "nil"},
		{"r:N i:M", "r*r", "nil"},
		{"r:1 i:M", "r*r + i", "0"},
		{"r:N i:M", "i - r*4", "-4"},
	}
	for _, test := range tests {
		w := newWorld(test.ranges)
		stride, ok := Stride(w.parse(test.in), w.ranges["r"], Facts{})
		assert.Equal(t, test.want, showOrNil(stride), test.in)
		assert.Equal(t, test.want != "nil", ok, test.in)
	}
}

func TestMultiple(t *testing.T) {
	facts := Facts{Divisible: map[string]int64{"C": 8}}
	tests := []struct {
		in   string
		n    int64
		want bool
	}{
		{"i*8 + 16", 8, true}, {"i*C + C", 8, true}, {"i*C + 4", 8, false}, {"i*4", 8, false},
		{"C*C", 64, true}, {"i/8*8", 8, true}, {"i - i%8", 8, true}, {"min(i*8, C)", 8, true},
		{"where(i < 3, 0, i*4)*2", 8, true}, {"i", 1, true}, {"0", 8, true},
	}
	for _, test := range tests {
		got := Multiple(newWorld("i:N").parse(test.in), test.n, facts)
		assert.Equal(t, test.want, got, "%s by %d", test.in, test.n)
	}
}

// A product that is a multiple makes one of what has it as a factor, and of nothing else.
func TestMultipleOfProducts(t *testing.T) {
	w := newWorld("i:N l:H*W")
	known := func(size string, by int64) MultipleOf { return MultipleOf{Size: w.parse(size), By: by} }
	tests := []struct {
		multiples []MultipleOf
		divisible map[string]int64
		in        string
		n         int64
		want      bool
	}{
		{[]MultipleOf{known("H*W", 8)}, nil, "i*C*H*W", 8, true},
		{[]MultipleOf{known("H*W", 8)}, nil, "H*W*2", 16, true},
		{[]MultipleOf{known("H*W", 8)}, nil, "H*W", 16, false},
		{[]MultipleOf{known("H*W", 8)}, nil, "H*C", 8, false},
		{[]MultipleOf{known("H*W", 8)}, nil, "H*W + H", 8, false},
		{[]MultipleOf{known("H*W", 8)}, nil, "H*H*W*W", 64, true},
		{[]MultipleOf{known("H*W", 8)}, nil, "H*H*W", 64, false},
		{[]MultipleOf{known("2*H*W", 8)}, nil, "H*W", 4, true},
		{[]MultipleOf{known("2*H*W", 8)}, nil, "H*W", 8, false},
		{[]MultipleOf{known("C/32*H*W", 8)}, map[string]int64{"C": 32}, "C*H*W", 256, true},
		{[]MultipleOf{known("C*H*W", 8)}, map[string]int64{"C": 32}, "C*H*W", 64, false},
		{[]MultipleOf{known("H*W", 4), known("H*C", 8)}, nil, "H*W*C", 32, false},
		{[]MultipleOf{known("H + W", 8)}, nil, "H*(H + W)", 8, false}, // nothing follows from sums
	}
	for _, test := range tests {
		facts := Facts{Multiples: test.multiples, Divisible: test.divisible}
		assert.Equal(t, test.want, Multiple(w.parse(test.in), test.n, facts), "%s by %d", test.in, test.n)
	}
	assert.True(t, known("H*W", 8).Holds(map[string]int64{"H": 2, "W": 4}))
	assert.False(t, known("H*W", 8).Holds(map[string]int64{"H": 2, "W": 3}))
}

func TestInside(t *testing.T) {
	w := newWorld("y:H x:W i:3")
	shape := []*Expr{Sym("H"), Sym("W")}
	at := []*Expr{w.parse("y + i - 1"), w.parse("x")}
	assert.Equal(t, "1 <= y + i && y + i <= H", show(Inside(shape, at, Facts{})))
	assert.Nil(t, Inside(shape, []*Expr{w.parse("H - 1 - y"), w.parse("x")}, Facts{}))
}

func TestFlatOffset(t *testing.T) {
	w := newWorld("n:N c:C h:H")
	shape := []*Expr{Sym("N"), Sym("C"), Sym("H")}
	at := []*Expr{w.parse("n"), w.parse("c"), w.parse("h")}
	assert.Equal(t, "n * C * H + c * H + h", show(Simplify(FlatOffset(shape, at), Facts{})))
	assert.Equal(t, "0", show(FlatOffset(nil, nil)))
	assert.True(t, ProveInside(FlatOffset(shape, at), w.parse("N*C*H"), Facts{}))
}

func TestOverflowKeepsTheExpression(t *testing.T) {
	w := newWorld("i:N j:M")
	big := IntConst(math.MaxInt64 / 2)
	twice := Apply(OpMul, Apply(OpMul, w.parse("i"), big), IntConst(4))
	for _, e := range []*Expr{
		twice, Apply(OpAdd, twice, twice), Apply(OpFloorDiv, twice, big), IntConst(math.MinInt64),
		Apply(OpSub, w.parse("i"), IntConst(math.MinInt64)), Apply(OpMod, twice, IntConst(math.MinInt64)),
	} {
		got := Simplify(e, Facts{})
		at := point{map[*Range]int64{w.ranges["i"]: 3}, map[string]int64{"N": 5, "M": 5}}
		assert.Equal(t, at.eval(e), at.eval(got), show(e))
	}
	assert.Equal(t, Unknown, Decide(Apply(OpLt, twice, w.parse("N")), Facts{}))
	assert.False(t, ProveInside(twice, IntConst(math.MaxInt64), Facts{}))
}

func TestGatheredIndices(t *testing.T) {
	w := newWorld("i:N j:4")
	g := NewGraph("g")
	ids := g.Input("ids", U8, []*Expr{Sym("N")}, w.parse("i").Span)
	row := Cast(Load(ids, []*Expr{w.parse("(i*4 + j)/4")}, nil), Index)
	at := Apply(OpFloorDiv, Apply(OpAdd, Apply(OpMul, row, IntConst(4)), w.parse("j")), IntConst(4))
	got := Simplify(at, Facts{})
	require.Equal(t, OpCast, got.Op)
	assert.Equal(t, "i", show(got.Args[0].Args[0]))
	assert.True(t, ProveInside(row, IntConst(256), Facts{}))
	assert.False(t, ProveInside(row, IntConst(255), Facts{}))
	assert.True(t, DependsOn(at, w.ranges["j"]))
	assert.False(t, DependsOn(got, w.ranges["j"]))
}

func BenchmarkSimplifyLoadIndex(b *testing.B) {
	w := newWorld("n:N c:C h:H x:W")
	e := w.parse("(((n*C + c)*H + h)*W + x)/(H*W)%C")
	for b.Loop() {
		Simplify(e, Facts{})
	}
}

func BenchmarkSimplifyConvolutionIndex(b *testing.B) {
	w := newWorld("n:N c:64 h:H x:W i:3 j:3")
	e := w.parse("((n*64 + c)*H + (h*2 + i - 1))*W + (x*2 + j - 1)")
	for b.Loop() {
		Simplify(e, Facts{})
	}
}

func BenchmarkDecideGuard(b *testing.B) {
	w := newWorld("n:N c:C h:H x:W")
	e := w.parse("((n*C + c)*H + h)*W + x < N*C*H*W")
	for b.Loop() {
		Decide(e, Facts{})
	}
}
