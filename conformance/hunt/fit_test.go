package hunt

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance/gen"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

// fitLength is the number of elements that the programs read; element k is k.
const fitLength = 9

// An index is an expression of ranges, sizes and numbers, which the test evaluates without any bound.
type index struct {
	op   string // "" for a leaf
	leaf string // a number or a name
	args []*index
}

// largeNumbers lie around the powers of two at which something may wrap.
func largeNumber(r *rand.Rand) string {
	n := new(big.Int).Lsh(big.NewInt(1), pick[uint](r, 1, 2, 3, 16, 31, 32, 33, 40, 58, 60, 61, 61, 62, 62, 63))
	n.Add(n, big.NewInt(pick[int64](r, -9, -3, -1, -1, 0, 0, 1, 3)))
	if r.IntN(4) == 0 {
		n.Neg(n)
	}
	return n.String()
}

func drawLargeIndex(r *rand.Rand, depth int) *index {
	if depth == 0 || r.IntN(8) == 0 {
		return &index{leaf: pick(r, "i", "j", "i", "j", "N", "M", "2", "3", "1", largeNumber(r))}
	}
	op := pick(r, "+", "+", "+", "-", "-", "-", "*", "*", "*", "/", "/", "%", "%", "min", "max")
	b := drawLargeIndex(r, depth-1)
	if op == "/" || op == "%" { // by what is positive, and not 1, which leaves nothing to compute
		b = &index{leaf: strings.TrimPrefix(pick(r, "2", "3", "N", "M", largeNumber(r)), "-")}
		if b.leaf == "1" {
			b.leaf = "2"
		}
	}
	return &index{op: op, args: []*index{drawLargeIndex(r, depth-1), b}}
}

func (x *index) String() string {
	switch x.op {
	case "":
		return x.leaf
	case "min", "max":
		return fmt.Sprintf("%s(%s, %s)", x.op, x.args[0], x.args[1])
	}
	return fmt.Sprintf("(%s %s %s)", x.args[0], x.op, x.args[1])
}

// at is the index at a point, which has the values of names.
func (x *index) at(point map[string]int64) *big.Int {
	if x.op == "" {
		if v, name := point[x.leaf]; name {
			return big.NewInt(v)
		}
		n, _ := new(big.Int).SetString(x.leaf, 10)
		return n
	}
	a, b := x.args[0].at(point), x.args[1].at(point)
	out := new(big.Int)
	switch x.op {
	case "+":
		return out.Add(a, b)
	case "-":
		return out.Sub(a, b)
	case "*":
		return out.Mul(a, b)
	case "/": // towards minus infinity: all divisors are positive
		return out.Div(a, b)
	case "%":
		return out.Mod(a, b)
	}
	if (a.Cmp(b) < 0) == (x.op == "min") {
		return a
	}
	return b
}

// isNumber reports whether an index is made of numbers alone; sizes are numbers where the program has no symbols.
func (x *index) isNumber(numbers bool) bool {
	if x.op == "" {
		return strings.ContainsAny(x.leaf, "0123456789") || numbers && strings.ContainsAny(x.leaf, "NM")
	}
	return x.args[0].isNumber(numbers) && x.args[1].isNumber(numbers)
}

// magnitude is what the language bounds: ranges count as their extents, and nothing cancels but what is made of numbers alone.
func (x *index) magnitude(sizes map[string]int64, numbers bool) *big.Int {
	if x.isNumber(numbers) {
		return new(big.Int).Abs(x.at(sizes))
	}
	if x.op == "" {
		return big.NewInt(sizes[map[string]string{"i": "N", "j": "M", "N": "N", "M": "M"}[x.leaf]])
	}
	a, b := x.args[0].magnitude(sizes, numbers), x.args[1].magnitude(sizes, numbers)
	switch out := new(big.Int); {
	case x.op == "+" || x.op == "-":
		return out.Add(a, b)
	case x.op == "*":
		return out.Mul(a, b)
	case a.Cmp(b) > 0:
		return a
	}
	return b
}

// fitForms are results of two indices A and B, and what they are at a point.
var fitForms = []struct {
	text    string
	element func(a, b *index, point map[string]int64) int64
}{
	{"[i: N, j: M] = (x[A] else 7)", func(a, _ *index, point map[string]int64) int64 { return readAt(a.at(point)) }},
	{"[i: N, j: M] = where(A < B, i64(1), i64(0))", func(a, b *index, point map[string]int64) int64 {
		return map[bool]int64{true: 1}[a.at(point).Cmp(b.at(point)) < 0]
	}},
	{"[i: N, l: M] = sum[j: M where A < B] (x[A] else 7)", func(a, b *index, point map[string]int64) (sum int64) {
		for point["j"] = 0; point["j"] < point["M"]; point["j"]++ {
			if at := a.at(point); at.Cmp(b.at(point)) < 0 {
				sum += readAt(at)
			}
		}
		return sum
	}},
}

// readAt is element at of the tensor that is read.
func readAt(at *big.Int) int64 {
	if at.Sign() < 0 || at.Cmp(big.NewInt(fitLength)) >= 0 {
		return 7
	}
	return at.Int64()
}

// A fitLine is a result.
type fitLine struct {
	form int
	a, b *index
}

// magnitude is the largest of all indices that the line has.
func (l *fitLine) magnitude(sizes map[string]int64, numbers bool) *big.Int {
	m := l.a.magnitude(sizes, numbers)
	if b := l.b.magnitude(sizes, numbers); l.form > 0 && b.Cmp(m) > 0 {
		return b
	}
	return m
}

// fitText is a program of such results.
func fitText(lines []fitLine) string {
	var outputs, body []string
	for n, l := range lines {
		outputs = append(outputs, fmt.Sprintf("y%d: i64[N, M]", n))
		body = append(body, fmt.Sprintf("y%d", n)+strings.NewReplacer("A", l.a.String(), "B", l.b.String()).Replace(fitForms[l.form].text))
	}
	return fmt.Sprintf("graph g(x: i64[%d], n: bool[N], m: bool[M]) -> (%s) {\n    %s\n}\n", fitLength, strings.Join(outputs, ", "),
		strings.Join(body, "\n    "))
}

// withNumbers puts sizes in place of their symbols.
func withNumbers(text string, sizes map[string]int64) string {
	return regexp.MustCompile(`\b[NM]\b`).ReplaceAllStringFunc(text, func(name string) string { return fmt.Sprint(sizes[name]) })
}

// refusal is the error of a program at sizes, from the parser or when the sizes are bound.
func refusal(text string, sizes map[string]int64) error {
	file, err := parser.Parse("g.fuse", []byte(text), parser.Options{})
	if err != nil {
		return err
	}
	g, err := file.Graph("")
	if err != nil {
		return err
	}
	_, err = ir.BindGraph(g, [][]int{{fitLength}, {int(sizes["N"])}, {int(sizes["M"])}})
	return err
}

// TestLargeIndicesFit: an index of ranges, sizes and numbers is refused, or every engine computes it as integers without a bound
// give it. Which of the two follows from its magnitude, whether sizes are literals or symbols.
func TestLargeIndicesFit(t *testing.T) {
	t.Parallel()
	counts := map[string]int{"interpreter": fullOr(3000, 300), "cpu": fullOr(100, 10), "sm_80": fullOr(6, 1), "sm_90a": fullOr(6, 1)}
	for name, count := range counts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var engines []Engine
			if name != "interpreter" {
				engines = openKept(t, name)
			}
			r, refused := rand.New(rand.NewPCG(uint64(len(name))+5, uint64(count))), 0
			for range count {
				sizes := map[string]int64{"N": pick[int64](r, 3, 5), "M": pick[int64](r, 4, 40)}
				numbers := r.IntN(2) == 0
				var lines []fitLine
				for len(lines) < 3 {
					moving := &index{op: pick(r, "+", "-"), args: []*index{drawLargeIndex(r, 3), {leaf: "j"}}} // a number may count from the end
					l := fitLine{r.IntN(len(fitForms)), moving, drawLargeIndex(r, 2)}
					if l.fits(t, sizes, numbers) {
						lines = append(lines, l)
					} else {
						refused++
					}
				}
				compareFit(t, lines, sizes, numbers, engines)
			}
			require.True(t, refused > count/2 || engines != nil)
		})
	}
}

// fits reports whether a line is taken, and fails the test where its magnitude says another thing.
func (l *fitLine) fits(t *testing.T, sizes map[string]int64, numbers bool) bool {
	text := fitText([]fitLine{*l})
	if numbers {
		text = withNumbers(text, sizes)
	}
	err := refusal(text, sizes)
	most := new(big.Int).Lsh(big.NewInt(1), 62)
	slack := big.NewInt(1 << 12) // as bounds are floats
	if err == nil {
		require.Negative(t, l.magnitude(sizes, numbers).Cmp(most.Add(most, slack)), "%s at %v", text, sizes)
		return true
	}
	require.Regexp(t, "below 2\\^62 in magnitude|does not fit in 64 bits", err.Error(), text)
	if !strings.Contains(err.Error(), "64 bits") {
		require.GreaterOrEqual(t, l.magnitude(sizes, numbers).Cmp(most.Sub(most, slack)), 0, "%s at %v: %v", text, sizes, err)
	}
	return false
}

// compareFit compares the lines on engines, and the interpreter, with integers that have no bound.
func compareFit(t *testing.T, lines []fitLine, sizes map[string]int64, numbers bool, engines []Engine) {
	text := fitText(lines)
	if numbers {
		text = withNumbers(text, sizes)
	}
	g := graph(t, text)
	inputs, err := gen.Inputs(g, sizes, 1, false)
	require.NoError(t, err)
	for k := range inputs[0].I {
		inputs[0].I[k] = int64(k)
	}
	r, err := NewReference(g, inputs)
	require.NoError(t, err, text)
	for n, l := range lines {
		want := make([]int64, 0, sizes["N"]*sizes["M"])
		for i := range sizes["N"] {
			for j := range sizes["M"] {
				want = append(want, fitForms[l.form].element(l.a, l.b, map[string]int64{"i": i, "j": j, "N": sizes["N"], "M": sizes["M"]}))
			}
		}
		require.Equal(t, want, r.Want[n].I, "y%d of the interpreter at %v: %s", n, sizes, text)
	}
	for _, e := range engines {
		require.NoError(t, r.Run(t.Context(), text, e.Device), "%s at %v: %s", e.Name, sizes, text)
	}
}
