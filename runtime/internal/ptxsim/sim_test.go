package ptxsim

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// testMemory is one allocation.
type testMemory struct {
	base uint64
	data []byte
}

func (m *testMemory) Bytes(addr uint64, n int) []byte {
	if addr < m.base || addr+uint64(n) > m.base+uint64(len(m.data)) {
		return nil
	}
	return m.data[addr-m.base:][:n]
}

const reverse = `
.version 8.4
.target sm_90a
.address_size 64
.visible .entry reverse(
	.param .u64 reverse_param_0
)
.maxntid 64, 1, 1
{
	.reg .b32 %r<8>;
	.reg .b64 %rd<8>;
	.shared .align 4 .b8 slots[256];
	ld.param.u64 %rd1, [reverse_param_0];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, slots;
	{
	.reg .b32 t;
	mov.b32 t, %r1;
	mov.b32 %r3, t;
	}
	mov.b64 %rd2, {%r3, %r3};
	st.shared.u32 [slots+4], %r1;
	bar.sync 0;
	@%p1 bra $L_end;
$L_end:
	ld.shared.u32 %r4, [%r2+4];
	st.global.u32 [%rd1], %r4;
	ret;
}
`

func TestLaunch(t *testing.T) {
	src := reverse
	m, err := Parse(src)
	require.ErrorContains(t, err, "a guard is not a predicate")
	require.Nil(t, m)
	m, err = Parse("\t.reg") // outside of an entry
	require.Error(t, err)
	require.Nil(t, m)
	m, err = Parse(strings.Replace(src, "@%p1 ", "", 1))
	require.NoError(t, err)
	assert.Equal(t, "sm_90a", m.Target)
	e, err := m.Lookup("reverse")
	require.NoError(t, err)
	memory := &testMemory{0x1000, make([]byte, 64)}
	params := binary.LittleEndian.AppendUint64(nil, 0x1000)
	l := Launch{Entry: e, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params, Memory: memory}
	require.NoError(t, l.Run())
	assert.Equal(t, uint32(63), binary.LittleEndian.Uint32(memory.data))
	l.Params = binary.LittleEndian.AppendUint64(nil, 0x2000)
	assert.ErrorContains(t, l.Run(), "4 bytes at 0x2000 of global memory are not allocated")
}
