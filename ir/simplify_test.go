package ir

import (
	"testing"

	"github.com/fusec/fusec/ir/diag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestParserOfTheseTestsRoundTrips(t *testing.T) {
	w := newWorld("i:4 j:N")
	for _, text := range []string{
		"i * N + j", "(i + j) / 4 % 2", "min(i, j) - (N - 1)", "i < N && j <= 3 || !(i == j)",
	} {
		assert.Equal(t, text, show(w.parse(text)))
	}
}

func TestIdentities(t *testing.T) {
	tests := []struct {
		name, ranges, in, want string
		facts                  Facts
	}{
		{name: "collect", ranges: "i:8 j:8", in: "i + 2*j - i + j", want: "j * 3"},
		{name: "order", ranges: "i:8 j:N", in: "3 - N + j*4 + i*N", want: "i * N + j * 4 - N + 3"},
		{name: "only negative", ranges: "i:8", in: "0 - i", want: "-i"},
		{name: "positive first", ranges: "i:8", in: "7 - i", want: "7 - i"},
		{name: "range of one", ranges: "i:1 j:N", in: "i*N + j", want: "j"},
		{name: "divide by one", ranges: "i:8", in: "i/1 + i%1", want: "i"},
		{name: "zero over", ranges: "i:8", in: "(i-i)/N + (i-i)%N", want: "0"},
		{name: "split constant", ranges: "i:N j:4", in: "(i*4 + j)/4", want: "i"},
		{name: "split remainder", ranges: "i:N j:4", in: "(i*4 + j)%4", want: "j"},
		{name: "split symbol", ranges: "i:N j:M", in: "(i*M + j)/M", want: "i"},
		{name: "split symbol remainder", ranges: "i:N j:M", in: "(i*M + j)%M", want: "j"},
		{name: "split product", ranges: "i:A j:B k:C", in: "((i*B + j)*C + k)/(B*C)", want: "i"},
		{name: "split product remainder", ranges: "i:A j:B k:C", in: "((i*B + j)*C + k)%(B*C)",
			want: "j * C + k"},
		{name: "middle digit", ranges: "i:A j:B k:C", in: "((i*B + j)*C + k)/C%B", want: "j"},
		{name: "sum extent", ranges: "i:A j:N+1", in: "(i*(N+1) + j)/(N+1)", want: "i"},
		{name: "difference extent", ranges: "i:A j:N-2", in: "(i*(N-2) + j)%(N-2)", want: "j"},
		{name: "zero divisor", ranges: "i:4", in: "(i*N)/N", want: "i * N / N"},
		{name: "common factor", ranges: "i:9 j:4", in: "(i*4 + j)/8", want: "i / 2"},
		{name: "common symbol", ranges: "i:A j:M", in: "(i*M + j)/(4*M)", want: "i / 4"},
		{name: "nested", ranges: "i:N", in: "i/4/8", want: "i / 32"},
		{name: "nested with a sum", ranges: "i:N", in: "(i/4 + 3)/2", want: "(i + 4) / 8 + 1"},
		{name: "mod of mod", ranges: "i:N", in: "i%12%4", want: "i % 4"},
		{name: "quotient of mod", ranges: "i:N", in: "i%12/4", want: "i / 4 % 3"},
		{name: "divisible part", ranges: "i:N", in: "(i*9 + 17)/4", want: "i * 2 + (i + 1) / 4 + 4"},
		{name: "recombine", ranges: "i:N", in: "i/4*4 + i%4", want: "i"},
		{name: "recombine scaled", ranges: "i:N", in: "i/4*12 + i%4*3 + 1", want: "i * 3 + 1"},
		{name: "recombine symbol", ranges: "i:N j:M", in: "i/M*M + i%M + j", want: "i + j"},
		{name: "negative", ranges: "i:8", in: "(i - 8)/8", want: "-1"},
		{name: "reversed", ranges: "i:N j:8", in: "(i*8 + 7 - j)/8", want: "i"},
		{name: "negative divisor", ranges: "i:8", in: "i*4/(0-4)", want: "-i"},
		{name: "transposed reshape", ranges: "i:N j:M", in: "(i*M + j)%M*N + (i*M + j)/M", want: "i + j * N"},
		{name: "flat transposed", ranges: "f:N*M i:M", in: "f%M*N + f/M", want: "f / M + f % M * N"},
		{name: "scaled digits", ranges: "f:64", in: "f%8*16 + f/8", want: "f / 8 + f % 8 * 16"},
		{name: "im2col row", ranges: "o:H i:3", in: "(o*3 + i)/3*3 + (o*3 + i)%3 - 1", want: "o * 3 + i - 1"},
		{name: "im2col window", ranges: "n:N h:H w:W c:C i:3 j:3",
			in: "(((n*C + c)*3 + i)*3 + j)/9%C", want: "c"},
		{name: "group norm", ranges: "n:N c:C/32 g:32", in: "(g*(C/32) + c)/(C/32)", want: "g", facts: Facts{
			Divisible: map[string]int64{"C": 32}}},
		{name: "group of channel", ranges: "c:C", in: "c/(C/32)*(C/32) + c%(C/32)", want: "c", facts: Facts{
			Divisible: map[string]int64{"C": 32}}},
		{name: "divisible symbol", ranges: "i:4", in: "N/8*8 + i*(N%8)", want: "N", facts: Facts{
			Divisible: map[string]int64{"N": 8}}},
		{name: "divisible product", ranges: "i:4", in: "(N*M)%8 + N*M/16", want: "N / 8 * M / 2", facts: Facts{
			Divisible: map[string]int64{"N": 8}}},
		{name: "min by bounds", ranges: "i:N", in: "min(i, N) + max(i, 0)", want: "i * 2"},
		{name: "min open", ranges: "i:N j:M", in: "min(j, i)", want: "min(i, j)"},
		{name: "where by bounds", ranges: "i:N", in: "where(i < N, i, 7)", want: "i"},
		{name: "same branches", ranges: "i:N j:N", in: "where(i < j, i + j, j + i)", want: "i + j"},
		{name: "concatenation", ranges: "i:N", in: "where(i + N < N, i + N, i + N - N)", want: "i"},
		{name: "always", ranges: "i:N j:M", in: "i*M + j < N*M", want: "1"},
		{name: "never", ranges: "i:N", in: "i + N < N", want: "0"},
		{name: "parity", ranges: "i:N j:N", in: "2*i == 2*j + 1", want: "0"},
		{name: "canonical", ranges: "i:N j:N", in: "i + 1 > j", want: "j <= i"},
		{name: "canonical strict", ranges: "i:N j:N", in: "2*i >= 2*j + 2", want: "j < i"},
		{name: "canonical constant", ranges: "i:N", in: "3*i < 10", want: "i < 4"},
		{name: "canonical low", ranges: "i:N", in: "i - 3 >= 0", want: "3 <= i"},
		{name: "not", ranges: "i:N j:N", in: "!(i < j)", want: "j <= i"},
		{name: "and of always", ranges: "i:N j:N", in: "i < j && i < N && 0 <= j", want: "i < j"},
		{name: "or of always", ranges: "i:N j:N", in: "i < j || i < N", want: "1"},
		{name: "implied", ranges: "i:N j:N k:M", in: "k < 4 && k < 9 && k <= 3", want: "k < 4"},
		{name: "contradiction", ranges: "i:N j:N", in: "i < j && j <= i", want: "0"},
		{name: "tautology", ranges: "i:N j:N", in: "i < j || j < i + 1", want: "1"},
		{name: "group norm of channels", ranges: "n:N c:C h:H w:W",
			in: "(((n*C + c)*H + h)*W + w)/(C/32*H*W)%32", want: "c / (C / 32)",
			facts: Facts{Divisible: map[string]int64{"C": 32}}},
		{name: "in the group", ranges: "n:N c:C h:H w:W", in: "(((n*C + c)*H + h)*W + w)%(C/32*H*W)",
			want: "c % (C / 32) * H * W + h * W + w", facts: Facts{Divisible: map[string]int64{"C": 32}}},
		{name: "back from the group", ranges: "n:N g:32 e:C/32*H*W", in: "((n*32 + g)*(C/32*H*W) + e)/(H*W)%C",
			want: "g * (C / 32) + e / (H * W)", facts: Facts{Divisible: map[string]int64{"C": 32}}},
		{name: "tiles divide", ranges: "a:(N+31)/32 b:32", in: "a*32 + b < N", want: "1", facts: Facts{
			Divisible: map[string]int64{"N": 32}}},
		{name: "tiles with a tail", ranges: "a:(N+31)/32 b:32", in: "a*32 + b < N", want: "a * 32 + b < N"},
		{name: "transpose round trip", ranges: "f:N*M*K", in: "(f/K%M*N + f/(M*K))%N", want: "f / (K * M)"},
		{name: "digits are inside", ranges: "f:N*M*K", in: "f/K%M < M && f/(M*K) < N && f%K < K", want: "1"},
		{name: "pixel shuffle", ranges: "c:C y:H x:W a:2 b:2",
			in:   "((c*4 + (y*2+a)%2*2 + (x*2+b)%2)*H + (y*2+a)/2)*W + (x*2+b)/2",
			want: "c * H * W * 4 + y * W + x + a * H * W * 2 + b * H * W"},
		{name: "roll", ranges: "i:N", in: "(i + N - 1)%N", want: "(i + N - 1) % N"},
		{name: "negative numerator", ranges: "i:N", in: "(i - 1)%N", want: "(i + N - 1) % N"},
		{name: "wrapping select", ranges: "i:N", want: "1",
			in: "where(i == 0, N - 1, i - 1) < N && 0 <= where(i == 0, N - 1, i - 1)"},
		{name: "clamped", ranges: "y:H", in: "min(max(y-1, 0), H-1) < H", want: "1"},
		{name: "guard of a quotient", ranges: "y:2*H i:3", in: "0 <= (y+i-1)/2 && (y+i-1)/2 < H",
			want: "1 <= y + i && y + i <= H * 2"},
		{name: "causal with offset", ranges: "q:Q k:K", in: "k <= q + K - Q && k < K", want: "k + Q <= q + K"},
		{name: "equal rows", ranges: "i:N j:N", in: "i*N + j == i*N + i", want: "i == j"},
		{name: "wrapped digits", ranges: "i:N*M j:4", in: "(i*4 + j)/4/M*M + (i*4 + j)/4%M", want: "i"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(test.ranges)
			assert.Equal(t, test.want, show(Simplify(w.parse(test.in), test.facts)))
		})
	}
}

func TestSimplifyLeavesDataAlone(t *testing.T) {
	w := newWorld("i:N j:4")
	g := NewGraph("g")
	x := g.Input("x", F32, []*Expr{Sym("N")}, w.parse("i").Span)
	at := w.parse("(i*4 + j)/4")
	body := Apply(OpAdd, Load(x, []*Expr{at}, Num(F32, 0)), Apply(OpMul, Num(F32, 1), Num(F32, 2)))
	got := Simplify(body, Facts{})
	require.Equal(t, OpAdd, got.Op)
	assert.Equal(t, "i", show(got.Args[0].Args[0]))
	assert.Same(t, body.Args[1], got.Args[1])
	assert.Same(t, got, Simplify(got, Facts{}), "nothing to do returns the same expression")
}

func TestSimplifyKeepsSpans(t *testing.T) {
	w := newWorld("i:N")
	span := diag.Span{Start: diag.Pos{Line: 3, Column: 7}}
	got := Simplify(w.parse("i + 2 - 1").At(span), Facts{})
	assert.Equal(t, "i + 1", show(got))
	assert.Equal(t, span, got.Span)
}

func TestSimplifyAllSharesWhatIsKnown(t *testing.T) {
	w := newWorld("i:N j:M")
	got := SimplifyAll([]*Expr{w.parse("M*4/M"), w.parse("j")}, Facts{})
	assert.Equal(t, "4", show(got[0]))
	assert.Equal(t, "M * 4 / M", show(Simplify(w.parse("M*4/M"), Facts{})))
}

func TestSimplifyInsideReductions(t *testing.T) {
	w := newWorld("i:N k:M")
	g := NewGraph("g")
	x := g.Input("x", F32, []*Expr{Sym("M")}, diag.Span{})
	body := Load(x, []*Expr{w.parse("(i*M + k)%M")}, nil)
	sum := &Reduction{Op: Sum, Ranges: []*Range{w.ranges["k"]}, Where: w.parse("k < M + i")}
	got := Simplify(Apply(OpAdd, Reduce(sum, body), Cast(w.parse("M/M"), F32)), Facts{})
	inner := got.Args[0]
	require.Equal(t, OpReduce, inner.Op)
	assert.Nil(t, inner.Reduce.Where)
	assert.Equal(t, "k", show(inner.Args[0].Args[0]))
	assert.Equal(t, "M / M", show(got.Args[1].Args[0]), "M is only known to be positive inside the sum")
}

// A chain in which each index uses the one before twice has exponentially many
// paths, and is simplified in linear time.
func TestSimplifyVisitsSharedPartsOnce(t *testing.T) {
	w := newWorld("i:N")
	g := NewGraph("g")
	x := g.Input("x", I64, []*Expr{Sym("N"), Sym("N")}, diag.Span{})
	e := w.parse("i")
	for range 200 {
		e = Cast(Load(x, []*Expr{Apply(OpAdd, e, IntConst(1)), Apply(OpMul, e, IntConst(2))}, nil), Index)
	}
	assert.Same(t, e, Simplify(e, Facts{}))
}
