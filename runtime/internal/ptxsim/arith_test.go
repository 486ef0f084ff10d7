package ptxsim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bench is a kernel of one instruction: %d is its result, %x0, %x1, ... its sources, %p
// and %q predicates.
type bench struct {
	w    *warp
	code []instr
}

// registers of a bench, in the order of their declaration.
const (
	benchD = iota
	benchX // and those after it
	benchP = benchX + 4
	benchQ = benchP + 1
	benchC = benchP + 2
)

// newBench compiles instructions whose result is in a register of a class.
func newBench(t testing.TB, class, code string) *bench {
	t.Helper()
	m, err := Parse(fmt.Sprintf(".target sm_90a\n.visible .entry e()\n{\n.reg .%s %%d;\n.reg .b64 %%x<4>;\n"+
		".reg .pred %%p, %%q, %%c;\n%s\n}", class, code))
	require.NoError(t, err, code)
	e := m.Entries["e"]
	w := &warp{regs: make([]lanes, e.regs)}
	for _, c := range e.consts {
		for lane := range warpSize {
			w.regs[c.reg][lane] = c.bits
		}
	}
	return &bench{w, e.code[:len(e.code)-1]}
}

func (b *bench) run(mask uint32) {
	for i := range b.code {
		b.code[i].run(b.w, mask)
	}
}

// call runs an instruction on sources, in one lane of a diverged warp and, for the same
// result, in all of a converged one.
func (b *bench) call(t testing.TB, sources ...uint64) uint64 {
	t.Helper()
	const lane = 5
	for i, v := range sources {
		for l := range warpSize {
			b.w.regs[benchX+i][l] = v
		}
	}
	b.w.regs[benchD] = lanes{}
	carry := b.w.carry
	b.run(1 << lane)
	got := b.w.regs[benchD]
	want := lanes{}
	want[lane] = got[lane]
	require.Equal(t, want, got, "idle lanes")
	b.w.carry = carry
	b.run(allLanes)
	for l := range warpSize {
		require.Equal(t, got[lane], b.w.regs[benchD][l])
	}
	return got[lane]
}

// check runs rows "opcode class a b c = d"; numbers are hexadecimal bits.
func check(t *testing.T, table string) {
	t.Helper()
	for _, row := range strings.Split(strings.TrimSpace(table), "\n") {
		words := strings.Fields(row)
		var sources []uint64
		args := "%d"
		at := 2
		for ; words[at] != "="; at++ {
			var v uint64
			_, err := fmt.Sscanf(words[at], "%x", &v)
			require.NoError(t, err, row)
			args += fmt.Sprintf(", %%x%d", len(sources))
			sources = append(sources, v)
		}
		var want uint64
		_, err := fmt.Sscanf(words[at+1], "%x", &want)
		require.NoError(t, err, row)
		got := newBench(t, words[1], words[0]+" "+args+";").call(t, sources...)
		assert.Equal(t, fmt.Sprintf("%#x", want), fmt.Sprintf("%#x", got), row)
	}
}

func TestIntegers(t *testing.T) {
	check(t, `
add.s32 b32 ffffffff 2 = 1
add.u64 b64 ffffffffffffffff 2 = 1
add.s16 b16 7fff 1 = 8000
add.sat.s32 b32 7fffffff 1 = 7fffffff
sub.sat.s32 b32 80000000 1 = 80000000
sub.u16 b16 0 1 = ffff
add.u16x2 b32 ffff0001 00010001 = 2
min.s16x2 b32 ffff0001 00010002 = ffff0001
max.u16x2 b32 ffff0001 00010002 = ffff0002
max.relu.s16x2 b32 ffff0003 80000001 = 3
min.s32.relu b32 5 fffffff0 = 0
mul.lo.s32 b32 ffffffff 3 = fffffffd
mul.hi.u32 b32 ffffffff ffffffff = fffffffe
mul.hi.s32 b32 ffffffff ffffffff = 0
mul.hi.s32 b32 80000000 2 = ffffffff
mul.hi.u64 b64 ffffffffffffffff ffffffffffffffff = fffffffffffffffe
mul.hi.s64 b64 8000000000000000 8000000000000000 = 4000000000000000
mul.hi.s64 b64 ffffffffffffffff 3 = ffffffffffffffff
mul.wide.s32 b64 ffffffff 2 = fffffffffffffffe
mul.wide.u32 b64 ffffffff ffffffff = fffffffe00000001
mul.wide.s16 b32 ffff 2 = fffffffe
mul.wide.u16 b32 ffff ffff = fffe0001
mul24.lo.u32 b32 01000003 5 = f
mul24.hi.s32 b32 ffffff ffffff = 0
mad.lo.u32 b32 ffffffff 2 3 = 1
mad.hi.s32 b32 80000000 2 5 = 4
mad.hi.sat.s32 b32 7fffffff 7fffffff 7fffffff = 7fffffff
mad.wide.s32 b64 ffffffff 3 100000000 = fffffffd
div.s32 b32 fffffff9 2 = fffffffd
div.s32 b32 80000000 ffffffff = 80000000
div.u32 b32 7 0 = ffffffff
div.s64 b64 7 0 = ffffffffffffffff
rem.s32 b32 fffffff9 2 = ffffffff
rem.u64 b64 7 4 = 3
rem.s32 b32 80000000 ffffffff = 0
abs.s32 b32 fffffffb = 5
abs.s32 b32 80000000 = 80000000
neg.s16 b16 1 = ffff
min.s32 b32 ffffffff 1 = ffffffff
min.u32 b32 ffffffff 1 = 1
max.s64 b64 ffffffffffffffff 1 = 1
max.relu.s32 b32 fffffff0 ffffffff = 0
sad.s32 b32 fffffffe 3 a = f
sad.u32 b32 3 5 1 = 3
`[1:])
}

func TestCarry(t *testing.T) {
	wide := newBench(t, "b64", `{
.reg .b32 lo, hi, a0, a1, b0, b1;
mov.b64 {a0, a1}, %x0;
mov.b64 {b0, b1}, %x1;
add.cc.u32 lo, a0, b0;
addc.u32 hi, a1, b1;
mov.b64 %d, {lo, hi};
}`)
	less := newBench(t, "b64", `{
.reg .b32 lo, hi, a0, a1, b0, b1;
mov.b64 {a0, a1}, %x0;
mov.b64 {b0, b1}, %x1;
sub.cc.u32 lo, a0, b0;
subc.u32 hi, a1, b1;
mov.b64 %d, {lo, hi};
}`)
	product := newBench(t, "b64", `{
.reg .b32 lo, hi, a0, a1, b0, b1;
mov.b64 {a0, a1}, %x0;
mov.b64 {b0, b1}, %x1;
mul.lo.u32 lo, a0, b0;
mul.hi.u32 hi, a0, b0;
mad.lo.cc.u32 lo, 0, 0, lo;
madc.lo.u32 hi, a0, b1, hi;
mad.lo.u32 hi, a1, b0, hi;
mov.b64 %d, {lo, hi};
}`)
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		x, y := random.Uint64(), random.Uint64()
		if random.IntN(4) == 0 {
			y = x & 0xffffffff
		}
		require.Equal(t, x+y, wide.call(t, x, y))
		require.Equal(t, x-y, less.call(t, x, y))
		require.Equal(t, x*y, product.call(t, x, y))
	}
}

func TestCarryIsOfALane(t *testing.T) {
	b := newBench(t, "b32", "add.cc.u32 %d, %x0, %x1;\naddc.u32 %d, 0, 0;")
	for lane := range warpSize {
		b.w.regs[benchX][lane], b.w.regs[benchX+1][lane] = 0xffffffff, uint64(lane%2)
	}
	b.run(0x0000ffff)
	for lane := range warpSize {
		assert.Equal(t, truth(lane < 16 && lane%2 == 1), b.w.regs[benchD][lane], lane)
	}
}

func TestBits(t *testing.T) {
	check(t, `
and.b32 b32 ff0f f0ff = f00f
or.b16 b16 0f f0 = ff
xor.b64 b64 ff0f f0ff = ff0
not.b32 b32 0 = ffffffff
not.b16 b16 0 = ffff
cnot.b32 b32 0 = 1
cnot.b32 b32 80000000 = 0
shl.b32 b32 1 1f = 80000000
shl.b32 b32 1 20 = 0
shl.b32 b32 1 ffffffff = 0
shl.b64 b64 1 3f = 8000000000000000
shr.u32 b32 80000000 1f = 1
shr.u32 b32 80000000 40 = 0
shr.s32 b32 80000000 1f = ffffffff
shr.s32 b32 80000000 ff = ffffffff
shr.b32 b32 80000000 4 = 8000000
shr.s64 b64 8000000000000000 3f = ffffffffffffffff
shr.s16 b16 8000 f = ffff
shf.l.wrap.b32 b32 80000000 1 1 = 3
shf.l.wrap.b32 b32 80000000 1 21 = 3
shf.l.clamp.b32 b32 80000000 1 21 = 80000000
shf.r.wrap.b32 b32 80000000 1 1 = c0000000
shf.r.clamp.b32 b32 80000000 7 40 = 7
bfe.u32 b32 12345678 4 8 = 67
bfe.s32 b32 12345678 4 3 = ffffffff
bfe.s32 b32 00000f80 4 8 = fffffff8
bfe.s32 b32 80000000 1c 8 = fffffff8
bfe.s32 b32 80000000 40 8 = ffffffff
bfe.u32 b32 80000000 40 8 = 0
bfe.u64 b64 8000000000000000 3f 5 = 1
bfe.u32 b32 ffffffff 4 0 = 0
bfi.b32 b32 ff 0 1c 8 = f0000000
bfi.b32 b32 5 ffffffff 4 4 = ffffff5f
bfi.b64 b64 1 0 3f 1 = 8000000000000000
bfind.u32 b32 00010000 = 10
bfind.s32 b32 fffffff0 = 3
bfind.u32 b32 0 = ffffffff
bfind.shiftamt.u32 b32 00010000 = f
bfind.s64 b32 ffffffffffffffff = ffffffff
brev.b32 b32 1 = 80000000
brev.b64 b64 2 = 4000000000000000
clz.b32 b32 1 = 1f
clz.b32 b32 0 = 20
clz.b64 b32 1 = 3f
popc.b32 b32 f0f0f0f0 = 10
popc.b64 b32 ffffffffffffffff = 40
prmt.b32 b32 33221100 77665544 7530 = 77553300
prmt.b32 b32 000000ff 0 8888 = ffffffff
prmt.b32.f4e b32 33221100 77665544 1 = 44332211
prmt.b32.b4e b32 33221100 77665544 3 = 112233
prmt.b32.rc8 b32 33221100 0 2 = 22222222
prmt.b32.rc16 b32 33221100 0 1 = 33223322
prmt.b32.ecl b32 33221100 0 2 = 33222222
prmt.b32.ecr b32 33221100 0 1 = 11111100
fns.b32 b32 f0 0 1 = 4
fns.b32 b32 f0 0 3 = 6
fns.b32 b32 f0 5 0 = 5
fns.b32 b32 f0 1f fffffffe = 6
fns.b32 b32 f0 0 0 = ffffffff
szext.clamp.s32 b32 80 8 = ffffff80
szext.wrap.u32 b32 ff80 28 = 80
szext.clamp.s32 b32 12345678 64 = 12345678
bmsk.clamp.b32 b32 4 8 = ff0
bmsk.clamp.b32 b32 4 64 = fffffff0
bmsk.wrap.b32 b32 24 4 = f0
dp4a.u32.u32 b32 01020304 01010101 a = 14
dp4a.s32.s32 b32 000000ff 00000002 0 = fffffffe
dp4a.u32.s32 b32 000000ff 000000ff 0 = ffffff01
dp2a.lo.s32.u32 b32 0001ffff 00000302 0 = 1
dp2a.hi.u32.u32 b32 00020001 04030000 1 = c
`)
}

func TestLop3IsItsTable(t *testing.T) {
	const a, b, c = 0xf0f0aaaa, 0xccccff00, 0xaaaa1234
	for table := range 256 {
		want := uint32(0)
		for bit := range 32 {
			at := a>>bit&1<<2 | b>>bit&1<<1 | c>>bit&1
			want |= uint32(table>>at&1) << bit
		}
		got := newBench(t, "b32", fmt.Sprintf("lop3.b32 %%d, %%x0, %%x1, %%x2, %d;", table)).call(t, a, b, c)
		require.Equal(t, uint64(want), got, table)
	}
	both := newBench(t, "b32", "lop3.or.b32 %d|%p, %x0, %x1, %x2, 0x80, !%q;")
	both.w.regs[benchQ] = lanes{7: 1}
	both.call(t, a, b, 0)
	for lane := range warpSize {
		assert.Equal(t, truth(lane != 7), both.w.regs[benchP][lane])
	}
}
