package ptxsim

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// simulate runs instructions in blocks of so many threads. The entry's registers r0, r1
// and on are the first of a warp's, of which set gives each its value; f0 and on follow.
func simulate(body string, threads uint32, shared int, set func(c *cta)) (t *cta, err error) {
	src := ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n" +
		".reg .b32 r<300>;\n.reg .b64 d<32>;\n.reg .pred p<4>;\n" + body + "\nret;\n}\n"
	m, err := Parse(src)
	if err != nil {
		return nil, err
	}
	one := [3]uint32{1, 1, 1}
	l := &Launch{Entry: m.Entries["k"], Grid: one, Block: [3]uint32{threads, 1, 1}, Shared: shared}
	if err := l.check(); err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = r.(*fault)
		}
	}()
	c := newCluster(l, [3]uint32{})
	set(c.ctas[0])
	c.run()
	return c.ctas[0], nil
}

// Registers by their names in simulate.
const (
	firstR = 0
	firstD = 300
	firstP = 332
)

func names(prefix string, from, n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d", prefix, from+i))
	}
	return "{" + strings.Join(out, ", ") + "}"
}

// A place is the row and column of element i of a lane's fragment, as the PTX ISA has it
// for each shape; g is groupID, t is threadID_in_group.
type place func(g, t, i int) (row, col int)

func pick(cond bool, yes, no int) int {
	if cond {
		return yes
	}
	return no
}

func total16(g, t, i int) (int, int) { return g + pick(i < 2, 0, 8), 2*t + i&1 }
func total8(g, t, i int) (int, int)  { return g, 2*t + i }

// An mmaCase is a shape with its figures, for types of A and B.
type mmaCase struct {
	shape   string
	types   []string
	m, n, k int
	a, b, d place
}

var mmaCases = []mmaCase{
	{"m16n8k8", []string{"f16", "bf16"}, 16, 8, 8,
		func(g, t, i int) (int, int) { return g + pick(i < 2, 0, 8), 2*t + i&1 },
		func(g, t, i int) (int, int) { return 2*t + i, g }, total16},
	{"m16n8k16", []string{"f16", "bf16"}, 16, 8, 16,
		func(g, t, i int) (int, int) {
			return g + pick(i < 2 || 4 <= i && i < 6, 0, 8), 2*t + i&1 + pick(i < 4, 0, 8)
		},
		func(g, t, i int) (int, int) { return 2*t + i&1 + pick(i < 2, 0, 8), g }, total16},
	{"m16n8k4", []string{"tf32", "f64"}, 16, 8, 4,
		func(g, t, i int) (int, int) { return g + 8*i, t },
		func(g, t, i int) (int, int) { return t, g }, total16},
	{"m16n8k8", []string{"tf32", "f64"}, 16, 8, 8,
		func(g, t, i int) (int, int) { return g + pick(i == 0 || i == 2, 0, 8), t + pick(i < 2, 0, 4) },
		func(g, t, i int) (int, int) { return t + 4*i, g }, total16},
	{"m8n8k4", []string{"f64"}, 8, 8, 4,
		func(g, t, i int) (int, int) { return g, t },
		func(g, t, i int) (int, int) { return t, g }, total8},
	{"m16n8k16", []string{"f64"}, 16, 8, 16,
		func(g, t, i int) (int, int) { return g + i%2*8, pick(i%2 == 0, 2*i+t, 2*i-2+t) },
		func(g, t, i int) (int, int) { return t + 4*i, g }, total16},
	{"m8n8k16", []string{"s8", "u8"}, 8, 8, 16,
		func(g, t, i int) (int, int) { return g, 4*t + i },
		func(g, t, i int) (int, int) { return 4*t + i, g }, total8},
	{"m16n8k16", []string{"s8", "u8", "e4m3", "e5m2"}, 16, 8, 16,
		func(g, t, i int) (int, int) { return g + pick(i < 4, 0, 8), 4*t + i&3 },
		func(g, t, i int) (int, int) { return 4*t + i, g }, total16},
	{"m16n8k32", []string{"s8", "u8", "e4m3", "e5m2"}, 16, 8, 32,
		func(g, t, i int) (int, int) {
			return g + pick(i < 4 || 8 <= i && i < 12, 0, 8), 4*t + i&3 + pick(i < 8, 0, 16)
		},
		func(g, t, i int) (int, int) { return 4*t + i&3 + pick(i < 4, 0, 16), g }, total16},
	{"m8n8k32", []string{"s4", "u4"}, 8, 8, 32,
		func(g, t, i int) (int, int) { return g, 8*t + i },
		func(g, t, i int) (int, int) { return 8*t + i, g }, total8},
	{"m16n8k32", []string{"s4", "u4"}, 16, 8, 32,
		func(g, t, i int) (int, int) { return g + pick(i < 8, 0, 8), 8*t + i&7 },
		func(g, t, i int) (int, int) { return 8*t + i, g }, total16},
	{"m16n8k64", []string{"s4", "u4"}, 16, 8, 64,
		func(g, t, i int) (int, int) {
			return g + pick(i < 8 || 16 <= i && i < 24, 0, 8), 8*t + i&7 + pick(i < 16, 0, 32)
		},
		func(g, t, i int) (int, int) { return 8*t + i&7 + pick(i < 8, 0, 32), g }, total16},
}

// A numeric is an element type as the tests read and make it.
type numeric struct {
	bits           int
	exponent, mant int // 0: an integer
	signed         bool
	unseen         int // low bits that are ignored
}

var numerics = map[string]numeric{
	"f16": {16, 5, 10, true, 0}, "bf16": {16, 8, 7, true, 0}, "tf32": {32, 8, 23, true, 13},
	"f32": {32, 8, 23, true, 0}, "f64": {64, 11, 52, true, 0},
	"e4m3": {8, 4, 3, true, 0}, "e5m2": {8, 5, 2, true, 0}, "s32": {32, 0, 0, true, 0},
	"s8": {8, 0, 0, true, 0}, "u8": {8, 0, 0, false, 0}, "s4": {4, 0, 0, true, 0}, "u4": {4, 0, 0, false, 0},
}

// value is the value of finite bits.
func (f numeric) value(bits uint64) float64 {
	sign := 1.0
	if f.signed && bits>>(f.bits-1)&1 != 0 {
		sign = -1
	}
	if f.exponent == 0 {
		if sign < 0 {
			return float64(int64(bits) - 1<<f.bits)
		}
		return float64(bits)
	}
	e := int(bits >> f.mant & (1<<f.exponent - 1))
	mant := float64(bits & (1<<f.mant - 1) &^ (1<<f.unseen - 1))
	if e == 0 {
		e = 1
	} else {
		mant += float64(uint64(1) << f.mant)
	}
	return sign * math.Ldexp(mant, e-(1<<(f.exponent-1)-1)-f.mant)
}

// random makes bits of a value near one, or of any integer.
func (f numeric) random(r *rand.Rand) uint64 {
	bits := r.Uint64() & (1<<f.bits - 1)
	if f.exponent > 0 {
		e := uint64(1<<(f.exponent-1)-1) - 2 + r.Uint64N(5)
		bits = bits&^((1<<f.exponent-1)<<f.mant) | e<<f.mant
	}
	return bits
}

// A matrix is bits and values, row after row.
type matrix struct {
	numeric
	columns int
	bits    []uint64
}

func randomMatrix(r *rand.Rand, t string, rows, columns int) matrix {
	m := matrix{numerics[t], columns, make([]uint64, rows*columns)}
	for i := range m.bits {
		m.bits[i] = m.random(r)
	}
	return m
}

func (m *matrix) at(row, col int) float64 { return m.value(m.bits[row*m.columns+col]) }

// perRegister is how many elements a register holds.
func (m *matrix) perRegister() int { return max(1, 32/m.width()) }

func (m *matrix) width() int { return m.numeric.bits }

// spread puts the matrix into registers from the first on.
func (m *matrix) spread(w *warp, first int, at place) {
	each := m.perRegister()
	for lane := range warpSize {
		for i := range len(m.bits) / warpSize {
			row, col := at(lane/4, lane%4, i)
			reg := &w.regs[first+i/each][lane]
			if i%each == 0 {
				*reg = 0xdead << 48 // what readers must not see
				if m.width() == 64 {
					*reg = 0
				}
			}
			*reg |= m.bits[row*m.columns+col] << (i % each * m.width())
		}
	}
}

// exact is the sum of products and what they are added to.
func exact(a, b, c *matrix, row, col, k int) *big.Float {
	sum := new(big.Float).SetPrec(600).SetFloat64(c.at(row, col))
	for l := range k {
		x := new(big.Float).SetPrec(200).SetFloat64(a.at(row, l))
		sum.Add(sum, x.Mul(x, new(big.Float).SetFloat64(b.at(l, col))))
	}
	return sum
}

// totalsOf are the types that products of a type are added in.
func totalsOf(t string) []string {
	switch t {
	case "f16", "e4m3", "e5m2":
		return []string{"f16", "f32"}
	case "bf16", "tf32":
		return []string{"f32"}
	case "f64":
		return []string{"f64"}
	}
	return []string{"s32"}
}

// roundedTo are the bits that hold the value in a type of totals.
func roundedTo(total string, v *big.Float) uint64 {
	switch total {
	case "f64":
		out, _ := v.Float64()
		return math.Float64bits(out)
	case "f32":
		out, _ := v.Float32()
		return uint64(math.Float32bits(out))
	case "f16":
		out, _ := new(big.Float).SetPrec(11).Set(v).Float64() // none is subnormal here
		b := math.Float64bits(out)
		return b>>48&0x8000 | (b>>52&0x7ff-1023+15)<<10&0x7c00 | b>>42&0x3ff
	}
	out, _ := v.Int64()
	return uint64(uint32(out))
}

// gather reads a matrix of results out of registers.
func gather(w *warp, like *matrix, first int, at place) []uint64 {
	out, each := make([]uint64, len(like.bits)), like.perRegister()
	for lane := range warpSize {
		for i := range len(out) / warpSize {
			row, col := at(lane/4, lane%4, i)
			bits := w.regs[first+i/each][lane] >> (i % each * like.width())
			out[row*like.columns+col] = bits & (1<<like.width() - 1)
		}
	}
	return out
}

// registers is how many of a lane's registers hold the matrix.
func (m *matrix) registers() int { return len(m.bits) / warpSize / m.perRegister() }

// sums are the bits of x times y plus z.
func sums(x, y, z *matrix, total string, k int) []uint64 {
	out := make([]uint64, len(z.bits))
	for i := range out {
		row, col := i/z.columns, i%z.columns
		if total == "f64" { // a chain of fused multiply-adds
			sum := z.at(row, col)
			for l := range k {
				sum = math.FMA(x.at(row, l), y.at(l, col), sum)
			}
			out[i] = math.Float64bits(sum)
			continue
		}
		out[i] = roundedTo(total, exact(x, y, z, row, col, k))
	}
	return out
}

// TestMMA multiplies random matrices, spread as the figures of each shape show, and
// expects the exact sums, rounded once.
func TestMMA(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range mmaCases {
		for _, typeA := range c.types {
			for _, typeB := range c.types {
				bytes := numerics[typeA].bits <= 8 && totalsOf(typeA)[0] == totalsOf(typeB)[0]
				for _, total := range totalsOf(typeA) {
					if typeA == typeB || bytes {
						c.test(t, r, typeA, typeB, total)
					}
				}
			}
		}
	}
}

func (c *mmaCase) test(t *testing.T, r *rand.Rand, typeA, typeB, total string) {
	x, y := randomMatrix(r, typeA, c.m, c.k), randomMatrix(r, typeB, c.k, c.n)
	z := randomMatrix(r, total, c.m, c.n)
	op := fmt.Sprintf("mma.sync.aligned.%s.row.col.%s.%s.%s.%s", c.shape, total, typeA, typeB, total)
	body := fmt.Sprintf("%s %s, %s, %s, %s;", op, names("r", 0, z.registers()),
		names("r", 10, x.registers()), names("r", 20, y.registers()), names("r", 30, z.registers()))
	got, err := simulate(body, warpSize, 0, func(t *cta) {
		x.spread(t.warps[0], 10, c.a)
		y.spread(t.warps[0], 20, c.b)
		z.spread(t.warps[0], 30, c.d)
	})
	require.NoError(t, err, op)
	assert.Equal(t, sums(&x, &y, &z, total, c.k), gather(got.warps[0], &z, 0, c.d), op)
}

// TestMMAQuarters does the same for the four products of m8n8k4, whose lanes have figures
// of their own.
func TestMMAQuarters(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, form := range []struct{ a, b, d, c string }{
		{"row", "col", "f32", "f32"}, {"row", "row", "f32", "f16"},
		{"col", "col", "f16", "f16"}, {"col", "row", "f32", "f32"},
	} {
		// Of lane l, in its quarter: element i.
		placeA := func(l, i int) (int, int) { return l%4 + l/16*4, i }
		if form.a == "col" {
			placeA = func(l, i int) (int, int) { return i%4 + l/16*4, l % 4 }
		}
		placeB := func(l, i int) (int, int) { return i, l%4 + l/16*4 }
		if form.b == "row" {
			placeB = func(l, i int) (int, int) { return l % 4, i + l/16*4 }
		}
		place16 := func(l, i int) (int, int) { return l%4 + l/16*4, i }
		place32 := func(l, i int) (int, int) { return l&1 + i&2 + l/16*4, i&4 + l&2 + i&1 }
		placeOf := map[string]func(l, i int) (int, int){"f16": place16, "f32": place32}
		var x, y, z [4]matrix
		for q := range 4 {
			x[q], y[q] = randomMatrix(r, "f16", 8, 4), randomMatrix(r, "f16", 4, 8)
			z[q] = randomMatrix(r, form.c, 8, 8)
		}
		spread := func(w *warp, first int, m *[4]matrix, n int, at func(l, i int) (int, int)) {
			each := m[0].perRegister()
			for lane := range warpSize {
				for i := range n {
					of := &m[lane%16/4]
					row, col := at(lane, i)
					w.regs[first+i/each][lane] |= of.bits[row*of.columns+col] << (i % each * of.width())
				}
			}
		}
		op := fmt.Sprintf("mma.sync.aligned.m8n8k4.%s.%s.%s.f16.f16.%s", form.a, form.b, form.d, form.c)
		result := randomMatrix(r, form.d, 8, 8)
		body := fmt.Sprintf("%s %s, %s, %s, %s;", op, names("r", 0, 8/result.perRegister()), names("r", 10, 2),
			names("r", 20, 2), names("r", 30, 8/z[0].perRegister()))
		got, err := simulate(body, warpSize, 0, func(t *cta) {
			spread(t.warps[0], 10, &x, 4, placeA)
			spread(t.warps[0], 20, &y, 4, placeB)
			spread(t.warps[0], 30, &z, 8, placeOf[form.c])
		})
		require.NoError(t, err, op)
		for lane := range warpSize {
			q := lane % 16 / 4
			want := sums(&x[q], &y[q], &z[q], form.d, 4)
			for i := range 8 {
				row, col := placeOf[form.d](lane, i)
				each := result.perRegister()
				have := got.warps[0].regs[i/each][lane] >> (i % each * 16) & (1<<result.width() - 1)
				assert.Equal(t, want[row*8+col], have, "%s lane %d element %d", op, lane, i)
			}
		}
	}
}

// TestMMAEdges has sums that leave their type, and what is not a number.
func TestMMAEdges(t *testing.T) {
	one := func(op string, a, b, c uint64) uint64 {
		op += " {r0, r1, r2, r3}, {r10, r11}, {r20}, {r30, r31, r32, r33};"
		got, err := simulate(op, warpSize, 0, func(t *cta) {
			for lane := range warpSize {
				for _, reg := range []int{10, 11} {
					t.warps[0].regs[reg][lane] = a
				}
				t.warps[0].regs[20][lane] = b
				for reg := range 4 {
					t.warps[0].regs[30+reg][lane] = c
				}
			}
		})
		require.NoError(t, err)
		return got.warps[0].regs[3][17]
	}
	const bytes = "mma.sync.aligned.m16n8k16.row.col"
	most := uint64(math.MaxInt32)
	assert.Equal(t, uint64(0x80000000)+16*127*127-1, one(bytes+".s32.s8.s8.s32", 0x7f7f7f7f, 0x7f7f7f7f, most))
	assert.Equal(t, most, one(bytes+".satfinite.s32.s8.s8.s32", 0x7f7f7f7f, 0x7f7f7f7f, most))
	const least = 1 << 31
	assert.Equal(t, uint64(least), one(bytes+".satfinite.s32.s8.u8.s32", 0x80808080, 0xffffffff, least))
	assert.Equal(t, uint64(0xffffffff), one(bytes+".s32.u8.u8.s32", 0, 0, 0xffffffff))
	const halves = "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32"
	assert.Equal(t, uint64(0x7f800000), one(halves, 0x7c007c00, 0x3c003c00, 0), "infinity")
	assert.Equal(t, uint64(0x7fffffff), one(halves, 0x7c007c00, 0, 0), "infinity times zero")
	assert.Equal(t, uint64(0x35000000), one(halves, 0x00010001, 0x3c003c00, 0), "subnormals: 8 * 2^-24")
	const brains = "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32"
	assert.Equal(t, uint64(0x7f800000), one(brains, 0x7f007f00, 0x7f007f00, 0), "overflow")
}

// TestMatrixErrors lists what a module or a launch may not do with matrix instructions.
func TestMatrixErrors(t *testing.T) {
	const (
		mma  = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
		load = "ldmatrix.sync.aligned.m8n8."
		one  = "{r0}, {r0}, {r0}, {r0};"
	)
	for body, want := range map[string]string{
		mma + "{r0, r1, r2}, {r4, r5, r6, r7}, {r8, r9}, {r0, r1, r2, r3};": "3 registers, not 4",
		mma + "{r0, r1, r2, r3}, {r4, r5, r6, r7}, {r8}, {r0, r1, r2, r3};": "1 registers, not 2",
		strings.Replace(mma, "bf16.f32 ", "f16.f32 ", 1) + one:              "does not know mma",
		strings.Replace(mma, "row.col", "col.row", 1) + one:                 "does not know mma",
		strings.Replace(mma, "m16n8k16", "m16n8k32", 1) + one:               "does not know mma",
		strings.Replace(mma, "col.f32", "col.f16", 1) + one:                 "does not know mma",
		strings.Replace(mma, "mma", "mma.sp", 1) + one:                      "does not know mma",
		load + "x4.shared.b16 {r0, r1}, [r2];":                              "2 registers, not 4",
		load + "x3.shared.b16 {r0, r1, r2}, [r2];":                          "does not know ldmatrix",
		load + "x1.global.b16 {r0}, [r2];":                                  "does not know ldmatrix",
		load + "x1.shared.b16 {r0}, [1032];":                                "0x408 is not a multiple of 16",
		load + "x1.shared.b16 {r0}, [1152];":                                "of shared memory, which has 128",
		load + "x1.b16 {r0}, [1024];":                                       "not an address of shared memory",
		"@p1 " + load + "x1.shared.b16 {r0}, [1024];":                       "deadlock",
		"st" + load[2:] + "x2.shared.b16 [1032], {r0, r1};":                 "0x408 is not a multiple of 16",
		"movmatrix.sync.aligned.m8n8.b16 r0, r1;":                           "does not know movmatrix",
	} {
		_, err := simulate(body, warpSize, 128, func(t *cta) { t.warps[0].regs[firstP+1][3] = 1 })
		assert.ErrorContains(t, err, want, body)
	}
	_, err := simulate("movmatrix.sync.aligned.m8n8.trans.b16 r0, r1;", 16, 0, func(*cta) {})
	assert.ErrorContains(t, err, "0000ffff are here")
}
