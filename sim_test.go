package fusec

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime"
	"github.com/fusec/fusec/runtime/cache"
	"github.com/fusec/fusec/runtime/simtest"
)

// openSimulated opens a simulated device with a cache of the test's own.
func openSimulated(t testing.TB, c simtest.Config) (*simtest.Simulator, *runtime.Device) {
	t.Helper()
	RequireNVRTC(t)
	s := simtest.New(t, c)
	return s, s.Open(t, runtime.Options{Cache: cache.Open(cache.Options{Dir: t.TempDir()})})
}

// TestSimulatedDevice takes two examples through all of the runtime to kernels that run on
// the CPU.
func TestSimulatedDevice(t *testing.T) {
	for _, arch := range []string{"sm_80", "sm_90a"} {
		s, dev := openSimulated(t, simtest.Config{Arch: arch})
		require.Equal(t, arch, dev.Arch())
		for _, name := range []string{"softmax", "gelu_chain"} {
			text, err := examples.ReadFile("examples/" + name + ".fuse")
			require.NoError(t, err)
			p, f := loaded(t, dev, string(text))
			for _, set := range [][]int64{{3, 70}, {2, 1025}, {5, 64}} {
				sizes, fit := sizesOf(p.Graph(), set)
				require.True(t, fit)
				ran := len(s.Ran())
				t.Run(fmt.Sprint(arch, name, set), func(t *testing.T) { compareWithInterpreter(t, p.Graph(), f, sizes) })
				require.Greater(t, len(s.Ran()), ran)
			}
		}
	}
}
