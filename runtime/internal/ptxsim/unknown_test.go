package ptxsim

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestUnknownFormsAreListed(t *testing.T) {
	src := `.version 8.4
.target sm_90a
.address_size 64
.visible .entry f() {
	.reg .b32 %r<3>;
	frob.x.u32 %r1, %r2;
	mov.u32 %r1, %r2;
	frob.x.u32 %r2, %r2;
	frob.u32 %r2;
	ret;
}
`
	forms, err := Unknown(src)
	require.NoError(t, err)
	require.Equal(t, []string{"frob.u32 with 1 operands", "frob.x.u32 with 2 operands"}, forms)
	_, err = Parse(src)
	require.ErrorContains(t, err, "ptx line 6: the simulator does not know frob.x.u32 with 2 operands")
}
