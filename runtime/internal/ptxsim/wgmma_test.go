package ptxsim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A canonical is a layout of the table "Canonical Layouts" of the PTX ISA: shapes and
// strides of both of its modes, the strides in elements. A shape of 0 goes on.
type canonical struct {
	mnShape, mnStride, kShape, kStride []int
}

func walk(shape, stride []int, i int) (at int) {
	for n, s := range shape {
		if s == 0 {
			return at + i*stride[n]
		}
		at += i % s * stride[n]
		i /= s
	}
	return at
}

func (c *canonical) at(mn, k int) int {
	return walk(c.mnShape, c.mnStride, mn) + walk(c.kShape, c.kStride, k)
}

// layoutOf is the table's row, for elements of which t make 16 bytes.
func layoutOf(across bool, swizzle, t, leading, stride int) canonical {
	if !across {
		c := canonical{[]int{8, 0}, []int{max(1, swizzle/16) * t, stride}, []int{t, 0}, []int{1, t}}
		if swizzle == 0 {
			c.kStride[1] = leading
		}
		return c
	}
	if swizzle == 0 {
		return canonical{[]int{t, 1, 0}, []int{1, t, stride}, []int{8, 0}, []int{t, leading}}
	}
	n := swizzle / 16
	return canonical{[]int{t, n, 0}, []int{1, t, leading}, []int{8, 0}, []int{n * t, stride}}
}

// swizzled is the Swizzle<B, 4, 3> of the table, on an address.
func swizzled(addr, swizzle int) int {
	b := map[int]int{0: 0, 32: 1, 64: 2, 128: 3}[swizzle]
	return addr ^ addr>>7&(1<<b-1)<<4
}

// A sharedMatrix is an operand in shared memory, rows of M or N by columns of K.
type sharedMatrix struct {
	matrix
	across          bool
	swizzle         int
	start           int // address
	leading, stride int // bytes
}

func (m *sharedMatrix) descriptor() uint64 {
	mode := map[int]uint64{0: 0, 128: 1, 64: 2, 32: 3}[m.swizzle]
	return uint64(m.start)>>4 | uint64(m.leading)>>4<<16 | uint64(m.stride)>>4<<32 | mode<<62
}

// place chooses offsets that leave gaps.
func (m *sharedMatrix) place(start int) {
	line := max(16, m.swizzle)
	m.start = start
	rows, atom := len(m.bits)/m.columns, 8*line
	switch {
	case !m.across && m.swizzle == 0:
		m.stride, m.leading = atom+16, rows/8*(atom+16)+64
	case !m.across:
		m.stride, m.leading = atom, 16 // not used
	case m.swizzle == 0:
		m.stride, m.leading = 2*atom+32, atom
	default:
		m.stride, m.leading = atom, 2*atom
	}
}

func (m *sharedMatrix) store(c *cta) {
	size := m.width() / 8
	layout := layoutOf(m.across, m.swizzle, 16/size, m.leading/size, m.stride/size)
	for i, bits := range m.bits {
		addr := swizzled(m.start+size*layout.at(i/m.columns, i%m.columns), m.swizzle)
		write(c.shared[addr-sharedStart:], size, bits)
	}
}

// totalPlace is the figure of accumulators: D of m64nN, of the warp's sixteen rows.
func totalPlace(g, t, i int) (int, int) { return g + i/2%2*8, i/4*8 + 2*t + i%2 }

// rowsOf is a warp's sixteen rows.
func (m *matrix) rowsOf(warp int) *matrix {
	return &matrix{m.numeric, m.columns, m.bits[16*warp*m.columns:][:16*m.columns]}
}

// A groupCase is one wgmma.mma_async.
type groupCase struct {
	total, a, b        string
	n, k               int
	swizzleA, swizzleB int
	acrossA, acrossB   bool
	registers          bool // hold A
	scaleA, scaleB     int
	add                bool
}

func (c *groupCase) operands() string {
	out := "p1"
	if c.total != "s32" {
		out += fmt.Sprintf(", %d, %d", c.scaleA, c.scaleB)
	}
	bit := map[bool]int{true: 1}
	if numerics[c.a].bits == 16 && !c.registers {
		out += fmt.Sprintf(", %d", bit[c.acrossA])
	}
	if numerics[c.a].bits == 16 {
		out += fmt.Sprintf(", %d", bit[c.acrossB])
	}
	return out
}

// want are the results; every sum is exact in f64.
func (c *groupCase) want(x, y, z *matrix) []uint64 {
	out := make([]uint64, len(z.bits))
	for i := range out {
		row, col, sum := i/c.n, i%c.n, 0.0
		for l := range c.k {
			sum += x.at(row, l) * y.at(col, l)
		}
		sum *= float64(c.scaleA * c.scaleB)
		if c.add {
			sum += z.at(row, col)
		}
		switch c.total {
		case "s32":
			out[i] = uint64(uint32(int64(sum)))
		case "f32":
			out[i] = uint64(math.Float32bits(float32(sum)))
		default:
			out[i] = halfBits(sum)
		}
	}
	return out
}

func (c *groupCase) test(t *testing.T, r *rand.Rand) {
	x := sharedMatrix{matrix: randomMatrix(r, c.a, 64, c.k), across: c.acrossA, swizzle: c.swizzleA}
	y := sharedMatrix{matrix: randomMatrix(r, c.b, c.n, c.k), across: c.acrossB, swizzle: c.swizzleB}
	z := randomMatrix(r, c.total, 64, c.n)
	x.place(2048)
	y.place(40960)
	operandA := "d0"
	if c.registers {
		operandA = names("r", 200, 4)
	}
	op := fmt.Sprintf("wgmma.mma_async.sync.aligned.m64n%dk%d.%s.%s.%s", c.n, c.k, c.total, c.a, c.b)
	body := fmt.Sprintf("wgmma.fence.sync.aligned;\n%s %s, %s, d1, %s;\nwgmma.commit_group.sync.aligned;\n"+
		"wgmma.wait_group.sync.aligned 0;", op, names("r", 0, z.rowsOf(0).registers()), operandA, c.operands())
	figureA := map[int]place{8: mmaCases[3].a, 16: mmaCases[1].a, 32: mmaCases[8].a}[c.k]
	got, err := simulate(body, 128, 100000, func(t *cta) {
		x.store(t)
		y.store(t)
		for i, w := range t.warps {
			z.rowsOf(i).spread(w, 0, totalPlace)
			if c.registers {
				x.rowsOf(i).spread(w, 200, figureA)
			}
			for lane := range warpSize {
				w.regs[firstD][lane], w.regs[firstD+1][lane] = x.descriptor(), y.descriptor()
				if c.add {
					w.regs[firstP+1][lane] = 1
				}
			}
		}
	})
	require.NoError(t, err, "%+v", c)
	var have []uint64
	for i, w := range got.warps {
		have = append(have, gather(w, z.rowsOf(i), 0, totalPlace)...)
	}
	assert.Equal(t, c.want(&x.matrix, &y.matrix, &z), have, "%+v", c)
}

// TestGroupProducts multiplies random matrices that lie in shared memory as the canonical
// layouts have them.
func TestGroupProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	swizzles := []int{0, 32, 64, 128}
	widths := []int{8, 24, 64, 80, 256}
	count := 0
	for _, f := range wgmmaForms {
		for _, a := range f.operands {
			for _, b := range f.operands {
				for _, total := range f.totals {
					for i, swizzle := range swizzles {
						count++
						c := groupCase{total: total, a: a, b: b, n: widths[count%len(widths)], k: f.k,
							swizzleA: swizzle, swizzleB: swizzles[(i+count)%4], registers: count%3 == 0,
							scaleA: 1, scaleB: 1, add: count%5 != 0}
						if f.scales {
							c.scaleA, c.scaleB = 1-count%2*2, 1-count/2%2*2
						}
						if f.orders {
							c.acrossA, c.acrossB = !c.registers && count%2 == 0, count/4%2 == 0
						}
						c.test(t, r)
					}
				}
			}
		}
	}
	for _, swizzle := range swizzles { // every order with every swizzle, of the type used most
		for bits := range 4 {
			c := groupCase{total: "f32", a: "bf16", b: "bf16", n: 128, k: 16, scaleA: 1, scaleB: 1, add: true,
				swizzleA: swizzle, swizzleB: swizzle, acrossA: bits&1 != 0, acrossB: bits&2 != 0}
			c.test(t, r)
		}
	}
}

// TestDescriptorWithinAtom walks along K by adding to the start address: in lines of 128
// bytes, as a tensor copy leaves them, 32 bytes an instruction; across, 2048.
func TestDescriptorWithinAtom(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	const start, k = 4096, 64
	for step := range k / 16 {
		all := randomMatrix(r, "bf16", 128, k)
		d := map[bool]descriptor{
			false: {start: start + 32*uint64(step), stride: 1024, line: 128},
			true:  {start: start + 2048*uint64(step), leading: 8192, stride: 1024, line: 128},
		}
		for across, d := range d {
			got, err := simulate("", 32, 32768, func(c *cta) {
				for i, bits := range all.bits {
					row, column := i/k, i%k
					at := 128*row + (2*column ^ row%8<<4)
					if across { // slabs of 64 rows, a line for each column
						at = 8192*(row/64) + 128*column + (2*(row%64) ^ column%8<<4)
					}
					write(c.shared[start-sharedStart+at:], 2, bits)
				}
			})
			require.NoError(t, err)
			var have [128 * 16]float64
			if across {
				d.gatherAcross(got.warps[0], elements["bf16"], have[:], 0, 128, 16)
			} else {
				d.gather(got.warps[0], elements["bf16"], have[:], 0, 128, 16)
			}
			for i, v := range have {
				require.Equal(t, all.at(i/16, step*16+i%16), v, "step %d, across %v, element %d", step, across, i)
			}
		}
	}
}

// TestDescriptorBaseOffset has a pattern that does not begin at a multiple of its size.
func TestDescriptorBaseOffset(t *testing.T) {
	const start = 4096 + 3*128
	all := randomMatrix(rand.New(rand.NewPCG(9, 10)), "bf16", 16, 16)
	d := descriptor{start: start, stride: 1024, base: start >> 7 & 7, line: 128}
	got, err := simulate("", 32, 16384, func(c *cta) {
		for i, bits := range all.bits {
			row, column := i/16, i%16
			write(c.shared[start-sharedStart+128*row+(2*column^row%8<<4):], 2, bits)
		}
	})
	require.NoError(t, err)
	var have [16 * 16]float64
	d.gather(got.warps[0], elements["bf16"], have[:], 0, 16, 16)
	for i, v := range have {
		require.Equal(t, all.at(i/16, i%16), v, "element %d", i)
	}
}

// TestGroupErrors lists what a module or a launch may not do with warpgroups.
func TestGroupErrors(t *testing.T) {
	const (
		fence = "wgmma.fence.sync.aligned;\n"
		shape = "wgmma.mma_async.sync.aligned.m64n8k16."
		half  = shape + "f32.bf16.bf16 "
		d     = "{r0, r1, r2, r3}, d0, d1, p1"

		commit = "wgmma.commit_group.sync.aligned;\n"
		wait   = "wgmma.wait_group.sync.aligned "
		here   = sharedStart >> 4
		first  = fence + half + d + ", 1, 1, 0, 0;\n"
	)
	for _, c := range []struct {
		body, want string
		threads    uint32
		descriptor uint64
	}{
		{half + "{r0, r1}, d0, d1, p1, 1, 1, 0, 0;", "2 registers, not 4", 128, 0},
		{half + "{r0, r1, r2, r3}, {r4, r5}, d1, p1, 1, 1, 0;", "2 registers, not 4", 128, 0},
		{half + d + ", 1, 1, 0;", "does not know wgmma", 128, 0},
		{half + d + ", 2, 1, 0, 0;", "does not know wgmma", 128, 0},
		{half + d + ", 1, 1, 2, 0;", "does not know wgmma", 128, 0},
		{half + "{r0, r1, r2, r3}, {r4, r5, r6, r7}, d1, p1, 1, 1, 0, 0;", "does not know wgmma", 128, 0},
		{shape + "f16.bf16.bf16 " + d + ", 1, 1, 0, 0;", "does not know wgmma", 128, 0},
		{shape + "f32.bf16.f16 " + d + ", 1, 1, 0, 0;", "does not know wgmma", 128, 0},
		{"wgmma.mma_async.sync.aligned.m64n40k32.s32.s8.s8 " + d + ";", "does not know wgmma", 128, 0},
		{strings.Replace(half, "n8", "n264", 1) + d + ", 1, 1, 0, 0;", "does not know wgmma", 128, 0},
		{half + d + ", 1, 1, 0, 0;", "before any wgmma.fence", 128, 0},
		{fence, "a block that ends after 3", 96, 0},
		{fence + half + d + ", 1, 1, 0, 0;", "of shared memory, which has 4096", 128, 0},
		{fence + half + d + ", 1, 1, 0, 0;", "bits of no field", 128, 1 << 15},
		{fence + half + d + ", 1, 1, 0, 0;", "a base offset without a swizzle", 128, 1 << 49},
		{first + "add.u32 r5, r5, r1;", "r1 holds a result", 128, here},
		{first + "mov.b32 r6, r1;\n" + commit + wait + "1;\nadd.u32 r5, r5, r6;", "r6 holds a result", 128, here},
		{first + half + "{r4, r5, r6, r7}, {r0, r1, r2, r3}, d1, p1, 1, 1, 0;", "r0 holds a result", 128, here},
		{first + commit + "st.shared.u32 [1024], r2;", "r2 holds a result", 128, here},
		{"mov.b64 d0, d2;\n" + fence + half + d + ", 1, 1, 0, 0;", "differs between lanes", 128, here},
	} {
		_, err := simulate(c.body, c.threads, 4096, func(t *cta) {
			for _, w := range t.warps {
				for lane := range warpSize {
					w.regs[firstD][lane], w.regs[firstD+1][lane] = c.descriptor, c.descriptor
				}
				w.regs[firstD+2][5] = 1
			}
		})
		assert.ErrorContains(t, err, c.want, c.body)
	}
}

// TestGroupsInFlight uses results as soon as PTX lets it, and not the last group's.
func TestGroupsInFlight(t *testing.T) {
	const body = `wgmma.fence.sync.aligned;
		wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {r0, r1, r2, r3}, d0, d0, p1, 1, 1, 0, 0;
		wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {r0, r1, r2, r3}, d0, d0, p1, 1, 1, 0, 0;
		mov.b32 r10, r0;
		wgmma.commit_group.sync.aligned;
		wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {r4, r5, r6, r7}, d0, d0, p1, 1, 1, 0, 0;
		wgmma.commit_group.sync.aligned;
		wgmma.wait_group.sync.aligned 1;
		add.u32 r11, r10, r0;
		mov.b32 r4, r11;
		add.u32 r11, r4, r1;`
	_, err := simulate(body, 128, 4096, func(c *cta) {
		for _, w := range c.warps {
			for lane := range warpSize {
				w.regs[firstD][lane] = 1024 >> 4
			}
		}
	})
	assert.NoError(t, err)
}
