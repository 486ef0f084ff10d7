//go:build linux && !nocuda

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/internal/fakecupti"
)

// counted counts two ranges of nothing.
func counted(t *testing.T, c *Context, library string, metrics ...string) ([][]float64, error) {
	lib, err := FindCUPTI(FindOptions{Path: library})
	require.NoError(t, err)
	assert.Equal(t, library, lib.Path())
	k, err := lib.Count(c, metrics, 2)
	if err != nil {
		return nil, err
	}
	passes := 0
	for done := false; !done; passes++ {
		done, err = k.Pass(func() error {
			for i := range 2 {
				require.NoError(t, k.Range(i, func() error { return nil }))
			}
			return nil
		})
		require.NoError(t, err)
	}
	assert.Equal(t, 2, passes)
	values, err := k.Values()
	require.NoError(t, err)
	require.NoError(t, k.Close())
	require.NoError(t, k.Close())
	return values, nil
}

// TestCountersAreRead: the fake refuses parameters whose fields are not where C has them.
func TestCountersAreRead(t *testing.T) {
	library, c := fakecupti.New(t, ""), fakeDriver(t).context()
	for range 2 {
		values, err := counted(t, c, library, "dram__a", "lost__b", "sm__cc")
		require.NoError(t, err)
		require.Len(t, values, 2)
		for i, row := range values {
			assert.Equal(t, float64(1000*i+7), row[0])
			assert.True(t, math.IsNaN(row[1]), "the chip has no such metric")
			assert.Equal(t, float64(1000*i+6), row[2])
		}
	}
}

func TestCountersThatCannotBeRead(t *testing.T) {
	c := fakeDriver(t).context()
	_, err := counted(t, c, fakecupti.New(t, "-DDENIED"), "dram__a")
	require.ErrorIs(t, err, ErrCountersDenied)
	assert.ErrorContains(t, err, "NVreg_RestrictProfilingToAdminUsers=0")
	assert.ErrorContains(t, err, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES (35)")

	_, err = counted(t, c, fakecupti.New(t, "-DSTRANGE"), "dram__a")
	require.ErrorContains(t, err, "the chip GF00: ")
	assert.ErrorContains(t, err, " does not count on it: ")
	assert.NotErrorIs(t, err, ErrCountersDenied)

	_, err = counted(t, c, fakecupti.New(t, ""), "lost__a", "lost__b")
	require.ErrorContains(t, err, "the chip GF00: metric lost__b: cuptiProfilerHostConfigAddMetrics: CUPTI_ERROR_INVALID_METRIC_NAME (17)")
}

// TestFindCUPTI: by a folder or a file; what is of no use is named.
func TestFindCUPTI(t *testing.T) {
	library := fakecupti.New(t, "")
	for _, path := range []string{library, filepath.Dir(library)} {
		lib, err := FindCUPTI(FindOptions{Path: path})
		require.NoError(t, err)
		assert.Equal(t, library, lib.Path())
		t.Setenv("FUSEC_CUPTI", path)
		lib, err = FindCUPTI(FindOptions{MaxMajor: 12})
		require.NoError(t, err)
		assert.Equal(t, library, lib.Path())
	}
	old := fakecupti.New(t, "-DOLD")
	_, err := FindCUPTI(FindOptions{Path: old})
	require.ErrorIs(t, err, ErrNoCUPTI)
	assert.ErrorContains(t, err, "lacks cuptiProfilerHostEvaluateToGpuValues: it is older than CUDA 12.6")

	nowhere := t.TempDir()
	_, err = FindCUPTI(FindOptions{Path: nowhere})
	require.ErrorIs(t, err, ErrNoCUPTI)
	assert.ErrorContains(t, err, "libcupti.so.13 or libcupti.so.12, of CUDA 12.6 or newer, is not in "+nowhere)
	text := filepath.Join(nowhere, "libcupti.so.12")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o666))
	_, err = FindCUPTI(FindOptions{Path: nowhere})
	require.ErrorContains(t, err, "found, and of no use: "+text)
}

// TestCUPTIIsSearchedFor: in the toolkit's folder for extras and in Python's wheels, of CUDA 12 and 13.
func TestCUPTIIsSearchedFor(t *testing.T) {
	for _, at := range []string{"usr/local/cuda-12.8/extras/CUPTI/lib64", "usr/local/cuda/lib64",
		"usr/local/lib/python3.12/site-packages/nvidia/cuda_cupti/lib", "usr/lib/python3/dist-packages/nvidia/cuda_cupti/lib",
		"opt/venv/lib/python3.13/site-packages/nvidia/cu13/lib"} {
		root := t.TempDir()
		require.NoError(t, os.MkdirAll(filepath.Join(root, at), 0o777))
		library := filepath.Join(root, at, "libcupti.so.12")
		require.NoError(t, os.Link(fakecupti.New(t, ""), library))
		f := &finder{root: root, getenv: func(string) string { return "" }}
		assert.Contains(t, cuptiPaths(f.cuptiPlaces(""), "libcupti.so.12"), library)
	}
	f := &finder{root: t.TempDir(), getenv: func(string) string { return "" }}
	if _, err := f.cupti(FindOptions{}); err != nil { // the loader may have one
		require.ErrorIs(t, err, ErrNoCUPTI)
		assert.ErrorContains(t, err, "is neither where the loader looks nor in any of")
	}
}

// TestCUPTILayouts: sizes and offsets as a C compiler has them for the declarations of CUDA 12.6.
func TestCUPTILayouts(t *testing.T) {
	stop, set := newStop(), newSetConfig()
	for name, row := range map[string][2]uintptr{
		"Profiler_Initialize": {whole[cuptiInitialize]().size, 16}, "Device_GetChipName": {whole[cuptiChipName]().size, 32},
		"Profiler_GetCounterAvailability": {whole[cuptiAvailability]().size, 40},
		"Profiler_Host_Initialize":        {whole[cuptiHostInitialize]().size, 48}, "Profiler_Host_Deinitialize": {whole[cuptiHost]().size, 24},
		"Profiler_Host_ConfigAddMetrics":   {whole[cuptiAddMetrics]().size, 40},
		"Profiler_Host_GetConfigImageSize": {whole[cuptiConfigSize]().size, 32}, "Profiler_Host_GetConfigImage": {whole[cuptiConfig]().size, 40},
		"Profiler_Host_EvaluateToGpuValues": {whole[cuptiEvaluate]().size, 72}, "RangeProfiler_Enable": {whole[cuptiEnable]().size, 32},
		"RangeProfiler_Disable": {whole[cuptiProfiler]().size, 24}, "RangeProfiler_Stop": {stop.size, 41},
		"RangeProfiler_PushRange": {whole[cuptiPush]().size, 32}, "RangeProfiler_DecodeData": {whole[cuptiDecode]().size, 32},
		"RangeProfiler_GetCounterDataSize":          {whole[cuptiDataSize]().size, 64},
		"RangeProfiler_CounterDataImage_Initialize": {whole[cuptiDataInitialize]().size, 40}, "RangeProfiler_SetConfig": {set.size, 90},
		"RangeProfiler_CounterData_GetRangeInfo": {whole[cuptiRangeInfo]().size, 56},
		"Host_Initialize.pChipName":              {unsafe.Offsetof(cuptiHostInitialize{}.chip), 24},
		"GetCounterDataSize.counterDataSize":     {unsafe.Offsetof(cuptiDataSize{}.bytes), 56},
		"SetConfig.range":                        {unsafe.Offsetof(set.ranges), 56}, "SetConfig.replayMode": {unsafe.Offsetof(set.replay), 60},
		"SetConfig.numNestingLevels": {unsafe.Offsetof(set.levels), 72}, "SetConfig.passIndex": {unsafe.Offsetof(set.pass), 80},
	} {
		assert.Equal(t, row[1], row[0], name)
	}
}

// TestCountersOnGPU reads counters of a memset on the GPU of this machine, if there is one that may be counted on.
func TestCountersOnGPU(t *testing.T) {
	ctx := requireDevice(t)
	major, _ := ctx.Driver().Version()
	lib, err := FindCUPTI(FindOptions{MaxMajor: major})
	if errors.Is(err, ErrNoCUPTI) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Log(lib.Path())
	metrics := []string{"dram__bytes_read.sum", "fusec__no_such_metric.sum", "dram__bytes_write.sum", "lts__t_sector_hit_rate.pct",
		"sm__warps_active.avg.pct_of_peak_sustained_active"}
	k, err := lib.Count(ctx, metrics, 2)
	if errors.Is(err, ErrCountersDenied) {
		t.Skip(err)
	}
	require.NoError(t, err)
	defer func() { require.NoError(t, k.Close()) }()
	const bytes = 256 << 20
	s, err := ctx.NewStream()
	require.NoError(t, err)
	p, err := ctx.Alloc(bytes)
	require.NoError(t, err)
	passes := 0
	for done := false; !done && passes < 100; passes++ {
		done, err = k.Pass(func() error {
			return errors.Join(k.Range(0, func() error { return errors.Join(s.Memset32(p, 1, bytes/4), s.Synchronize()) }),
				k.Range(1, func() error { return errors.Join(s.CopyDtoD(p+bytes/2, p, bytes/2), s.Synchronize()) }))
		})
		require.NoError(t, err)
	}
	values, err := k.Values()
	require.NoError(t, err)
	for i, row := range values {
		for j, name := range metrics {
			t.Log(fmt.Sprintf("range %d, %d passes: %-60s %.6g", i, passes, name, row[j]))
		}
	}
	assert.InEpsilon(t, bytes/2, values[1][0], 0.2, "bytes read by a copy")
	assert.True(t, math.IsNaN(values[0][1]))
	assert.InEpsilon(t, bytes/2, values[1][2], 0.2, "bytes written by a copy, behind a metric that the chip lacks")
	require.NoError(t, errors.Join(ctx.Free(p), s.Close()))
}
