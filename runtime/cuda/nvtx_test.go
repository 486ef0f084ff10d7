//go:build linux && !nocuda

package cuda

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/internal/faketool"
)

func TestRangesReachATool(t *testing.T) {
	library, log := faketool.New(t, false)
	r, err := RangesFor(library)
	require.NoError(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	r.Push(RangeName("outer"))
	r.Push(RangeName("inner"))
	r.Pop()
	r.Pop()
	r.Push(RangeName("next"))
	r.Pop()
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Equal(t, "outer\n  inner\nnext\n", string(text))
	again, err := RangesFor(library)
	require.NoError(t, err)
	assert.Same(t, r, again, "a tool is called once")
}

func TestToolsThatTakeNoRanges(t *testing.T) {
	library, _ := faketool.New(t, true)
	_, err := RangesFor(library)
	assert.ErrorContains(t, err, "takes no ranges")
	_, err = RangesFor(fakeDriver(t).Path)
	assert.ErrorContains(t, err, "lacks InitializeInjectionNvtx2")
	_, err = RangesFor("/missing/tool.so")
	assert.ErrorContains(t, err, "NVTX: ")
	var none *Ranges
	none.Push(RangeName("nothing"))
	none.Pop()
}

// A tool asks for the functions of modules by number: those there are have tables of their own.
func TestRangesHaveATableForEachModule(t *testing.T) {
	r, met := new(Ranges), map[*[nvtxSlots]*uintptr]bool{}
	for module := range uint32(nvtxModules + 2) {
		var table *[nvtxSlots]*uintptr
		var size uint32
		known := r.table(module, &table, &size) == 1
		assert.Equal(t, module > 0 && module < nvtxModules, known, module)
		assert.Equal(t, known, table != nil, module)
		if known {
			assert.EqualValues(t, nvtxSlots-1, size)
			assert.False(t, met[table], module)
			met[table] = true
		}
	}
	assert.EqualValues(t, 1, r.table(1, nil, nil), "and asks for nothing of them")
}
