package ptxsim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A machine runs a few instructions with registers that a test sets and reads.
type machine struct {
	body    string
	shared  int // bytes, from address 1024
	blocks  int // of one cluster; 0: 1
	threads int // of a block; 0: 32
	memory  *testMemory
	early   bool
	back    bool
	races   bool
	set     func(block, thread int) []uint64 // values of %a0, %a1, ...

	cluster *cluster
}

// Registers of machines by number: %a0 (b64), %r0 (b32), %p0 (pred), %h0 (b16).
const (
	aReg = 0
	rReg = 8
	pReg = 24
	hReg = 32
)

const machineText = `
.version 8.6
.target sm_90a
.address_size 64
.visible .entry test()
{
.reg .b64 %a<8>;
.reg .b32 %r<16>;
.reg .pred %p<8>;
.reg .b16 %h<8>;
`

// run returns the error of Parse or of the launch.
func (m *machine) run(t *testing.T) (err error) {
	t.Helper()
	module, err := Parse(machineText + m.body + "\nret;\n}\n")
	if err != nil {
		return err
	}
	blocks, threads := uint32(max(m.blocks, 1)), uint32(m.threads)
	if threads == 0 {
		threads = warpSize
	}
	one := [3]uint32{1, 1, 1}
	l := &Launch{Entry: module.Entries["test"], Grid: one, Block: one, Cluster: one, Shared: m.shared,
		Early: m.early, Backwards: m.back, Races: m.races, Limit: 1 << 20, Memory: m.memory}
	l.Grid[0], l.Cluster[0], l.Block[0] = blocks, blocks, threads
	require.NoError(t, l.check())
	defer func() {
		if f, ok := recover().(*fault); ok {
			err = f
		}
	}()
	m.cluster = newCluster(l, [3]uint32{})
	for i, c := range m.cluster.ctas {
		for thread := range int(threads) {
			if m.set == nil {
				break
			}
			for r, v := range m.set(i, thread) {
				c.warps[thread/warpSize].regs[aReg+r][thread%warpSize] = v
			}
		}
	}
	m.cluster.run()
	return nil
}

// must runs without an error.
func (m *machine) must(t *testing.T) *machine {
	t.Helper()
	require.NoError(t, m.run(t))
	return m
}

// reg is what a register of a thread holds after the run.
func (m *machine) reg(block, thread, reg int) uint64 {
	return m.cluster.ctas[block].warps[thread/warpSize].regs[reg][thread%warpSize]
}

// each runs a machine with early and late copies, forwards and backwards.
func each(t *testing.T, make func() *machine, check func(t *testing.T, m *machine)) {
	t.Helper()
	for _, early := range []bool{false, true} {
		for _, back := range []bool{false, true} {
			m := make()
			m.early, m.back = early, back
			check(t, m.must(t))
		}
	}
}
