package ptxsim

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// calls has functions declared before and defined after the entry, one that calls another
// and returns early for some lanes, and a call that only some lanes make.
const calls = `
.version 8.4
.target sm_90a
.address_size 64
.func  (.param .b32 func_retval0) twice
(
	.param .b32 twice_param_0
)
;
.visible .entry e(
	.param .u64 e_param_0
)
{
	.reg .pred %p<3>;
	.reg .b32 %r<9>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [e_param_0];
	mov.u32 %r1, %tid.x;
	mul.wide.u32 %rd2, %r1, 4;
	add.s64 %rd1, %rd1, %rd2;
	mov.u32 %r2, 1000;
	{ // callseq 0, 0
	.reg .b32 temp_param_reg;
	.param .b32 param0;
	st.param.b32 [param0+0], %r1;
	.param .b64 param1;
	st.param.b64 [param1+0], 7;
	.param .b32 retval0;
	call.uni (retval0),
	chosen,
	(
	param0,
	param1
	);
	ld.param.b32 %r3, [retval0+0];
	} // callseq 0
	setp.lt.u32 %p1, %r1, 8;
	{
	.param .b32 param0;
	st.param.b32 [param0], %r3;
	.param .b32 retval0;
	st.param.b32 [retval0], %r2;
	@%p1 call (retval0), twice, (param0);
	ld.param.b32 %r4, [retval0+0];
	}
	st.global.u32 [%rd1], %r4;
	ret;
}
.func  (.param .b32 func_retval0) chosen(
	.param .b32 chosen_param_0,
	.param .b64 chosen_param_1
)
{
	.local .align 8 .b8 __local_depot0[8];
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	ld.param.u32 %r1, [chosen_param_0];
	ld.param.u32 %r2, [chosen_param_1];
	st.local.u32 [__local_depot0], %r2;
	setp.lt.u32 %p1, %r1, 4;
	@%p1 bra $L_1;
	st.param.b32 [func_retval0+0], %r1;
	ret;
$L_1:
	{
	.param .b32 param0;
	st.param.b32 [param0+0], %r1;
	.param .b32 retval0;
	call.uni (retval0), twice, (param0);
	ld.param.b32 %r3, [retval0+0];
	}
	ld.local.u32 %r2, [__local_depot0];
	add.s32 %r3, %r3, %r2;
	st.param.b32 [func_retval0+0], %r3;
	ret;
}
.func  (.param .b32 func_retval0) twice(
	.param .b32 twice_param_0
)
{
	.reg .b32 %r<3>;
	ld.param.u32 %r1, [twice_param_0];
	shl.b32 %r2, %r1, 1;
	st.param.b32 [func_retval0+0], %r2;
	ret;
}
`

func TestCalls(t *testing.T) {
	m, err := Parse(calls)
	require.NoError(t, err)
	memory := &testMemory{0x1000, make([]byte, 128)}
	l := Launch{Entry: m.Entries["e"], Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1},
		Params: binary.LittleEndian.AppendUint64(nil, 0x1000), Memory: memory}
	require.NoError(t, l.Run())
	for i := range uint32(32) {
		want := i
		if i < 4 {
			want = 2*i + 7
		}
		if want *= 2; i >= 8 {
			want = 1000
		}
		assert.Equal(t, want, binary.LittleEndian.Uint32(memory.data[4*i:]), i)
	}
}

func TestCallsThatCannotBe(t *testing.T) {
	head := ".func f(.param .b32 a)\n{\n"
	entry := ".visible .entry e()\n{\n.param .b32 x;\n.reg .b32 %r;\n"
	for text, want := range map[string]string{
		head + "ret;\n}\n" + entry + "call g, (x);\n}":               "no function g to call",
		head + "ret;\n}\n" + entry + "call f, (x, x);\n}":            "called with 2 operands; it has 1",
		head + "ret;\n}\n" + entry + "call f, (%r);\n}":              "not a variable of .param",
		head + "call f, (a);\nret;\n}\n" + entry + "call f, (x);\n}": "nested too deeply",
		head + "ret;\n": "it ends too early",
	} {
		_, err := Parse(text)
		assert.ErrorContains(t, err, want)
	}
}
