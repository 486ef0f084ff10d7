package ptxsim

import (
	"math"
	"math/bits"
	"strings"
)

// compareFamilies compare and choose.
var compareFamilies = map[string]family{
	"setp": setpFamily, "set": setFamily, "selp": selpFamily, "slct": slctFamily,
	"testp": testpFamily, "copysign": copysignFamily,
}

// unsigned spells the comparisons that have a name of their own for unsigned numbers.
var unsigned = map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}

// comparison is what a comparison of two registers of a type gives, 0 or 1; nil where
// there is none.
func comparison(op, typ string, ftz bool) operation {
	if name, ok := unsigned[op]; ok && typ[0] == 'u' {
		op = name
	}
	switch typ {
	case "b16", "b32", "b64":
		if op != "eq" && op != "ne" {
			return nil
		}
		typ = "u" + typ[1:]
	case "f16", "bf16", "f32", "f64":
		return floatComparison(op, &floatForm{format: formats[typ], ftz: ftz})
	}
	switch typ {
	case "u16":
		return integerComparison[uint16](op)
	case "u32":
		return integerComparison[uint32](op)
	case "u64":
		return integerComparison[uint64](op)
	case "s16":
		return integerComparison[int16](op)
	case "s32":
		return integerComparison[int32](op)
	case "s64":
		return integerComparison[int64](op)
	}
	return nil
}

func integerComparison[T integer](op string) operation {
	switch op {
	case "eq":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = truth(T(a[i]) == T(b[i]))
			}
		})
	case "ne":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = truth(T(a[i]) != T(b[i]))
			}
		})
	case "lt":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = truth(T(a[i]) < T(b[i]))
			}
		})
	case "le":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = truth(T(a[i]) <= T(b[i]))
			}
		})
	case "gt":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = truth(T(a[i]) > T(b[i]))
			}
		})
	case "ge":
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = truth(T(a[i]) >= T(b[i]))
			}
		})
	}
	return nil
}

// A relation says for which of the four cases of two floats a comparison holds: 0 or 1.
type relation struct{ less, equal, greater, unordered uint64 }

// relations are the comparisons of floats (section 9.3.1.2); with a u they hold for NaNs.
var relations = map[string]relation{
	"lt": {1, 0, 0, 0}, "eq": {0, 1, 0, 0}, "le": {1, 1, 0, 0},
	"gt": {0, 0, 1, 0}, "ne": {1, 0, 1, 0}, "ge": {0, 1, 1, 0}, "num": {1, 1, 1, 0},
	"ltu": {1, 0, 0, 1}, "equ": {0, 1, 0, 1}, "leu": {1, 1, 0, 1},
	"gtu": {0, 0, 1, 1}, "neu": {1, 0, 1, 1}, "geu": {0, 1, 1, 1}, "nan": {0, 0, 0, 1},
}

func floatComparison(op string, q *floatForm) operation {
	r, ok := relations[op]
	switch {
	case !ok:
		return nil
	case q.plain():
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = r.holds(float64(value32(a[i])), float64(value32(b[i])))
			}
		})
	case q.format == f64:
		return whole2(func(d, a, b *lanes) {
			for i := range d {
				d[i] = r.holds(math.Float64frombits(a[i]), math.Float64frombits(b[i]))
			}
		})
	}
	return single2(func(a, b uint64) uint64 { return r.holds(q.in(a), q.in(b)) })
}

func (r *relation) holds(x, y float64) uint64 {
	less, equal, greater := truth(x < y), truth(x == y), truth(x > y)
	return r.less&less | r.equal&equal | r.greater&greater | r.unordered&^(less|equal|greater)
}

// boolean is what joins a comparison and a predicate; nil for other names.
func boolean(op string) func(x, y uint64) uint64 {
	switch op {
	case "and":
		return func(x, y uint64) uint64 { return x & y }
	case "or":
		return func(x, y uint64) uint64 { return x | y }
	case "xor":
		return func(x, y uint64) uint64 { return x ^ y }
	}
	return nil
}

// A test is setp or set without its result: .cmp{.bool}{.ftz}, a, b{, {!}c}.
type test struct {
	op      string
	join    func(x, y uint64) uint64 // nil: there is no c
	ftz     bool
	a, b, c int
	flip    uint64 // 1: !c
}

// testOf reads a test of sources of a type; nil where it is none.
func (b *builder) testOf(s *statement, mods []string, typ string) *test {
	if len(mods) == 0 || len(s.Args) < 3 {
		return nil
	}
	t := &test{op: mods[0]}
	for _, m := range mods[1:] {
		switch join := boolean(m); {
		case join != nil && t.join == nil:
			t.join = join
		case m == "ftz":
			t.ftz = true
		default:
			return nil
		}
	}
	want := 3
	if t.join != nil {
		want = 4
	}
	if len(s.Args) != want {
		return nil
	}
	t.a, t.b = b.value(s.Args[1], typ), b.value(s.Args[2], typ)
	if t.join != nil {
		t.c, t.flip = b.use(s.Args[3]), truth(s.Args[3].negate)
	}
	return t
}

// setpFamily: setp.cmp{.bool}{.ftz}.type p{|q}, a, b{, {!}c}: q is of the opposite
// comparison. Of packed types p is the lower half's, q the upper's (section 9.7.7).
func setpFamily(b *builder, s *statement) exec {
	typ, packed := strings.CutSuffix(s.last(), "x2")
	t := b.testOf(s, s.Mods[:max(len(s.Mods)-1, 0)], typ)
	if t == nil {
		return nil
	}
	f := comparison(t.op, typ, t.ftz)
	if f == nil {
		return nil
	}
	p, q := b.predicate(s.Args[0]), -1
	if s.Args[0].pair != nil {
		q = b.predicate(*s.Args[0].pair)
	}
	switch {
	case packed:
		return t.packed(f, p, q)
	case t.join == nil && q < 0:
		return f.exec([]int{p, t.a, t.b})
	}
	return t.exec(f, b.newReg(), p, q)
}

// predicate is the register of a result that may be left out, which goes to one that
// nobody reads.
func (b *builder) predicate(o operand) int {
	if o.kind == sinkOperand {
		return b.newReg()
	}
	return b.use(o)
}

// exec compares, joins and gives both results.
func (t *test) exec(f operation, temp, p, q int) exec {
	compare := f.exec([]int{temp, t.a, t.b})
	return func(w *warp, mask uint32) {
		compare(w, mask)
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			yes := w.regs[temp][lane]
			t.give(w, lane, p, yes, q, yes^1)
		}
	}
}

// packed compares both halves.
func (t *test) packed(f operation, p, q int) exec {
	compare, ok := f.(single2)
	if !ok || q < 0 {
		return nil
	}
	return func(w *warp, mask uint32) {
		for m := mask; m != 0; m &= m - 1 {
			lane := bits.TrailingZeros32(m)
			x, y := w.regs[t.a][lane], w.regs[t.b][lane]
			t.give(w, lane, p, compare(x, y), q, compare(x>>16, y>>16))
		}
	}
}

// give writes two results after joining them with the third source.
func (t *test) give(w *warp, lane, p int, yes uint64, q int, no uint64) {
	if t.join != nil {
		c := w.regs[t.c][lane]&1 ^ t.flip
		yes, no = t.join(yes, c), t.join(no, c)
	}
	w.regs[p][lane] = yes
	if q >= 0 {
		w.regs[q][lane] = no
	}
}
