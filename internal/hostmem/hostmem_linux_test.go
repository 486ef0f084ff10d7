package hostmem

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// machine writes the files of a system.
func machine(t *testing.T, files map[string]string) system {
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return system{root, math.MaxInt64, 0}
}

func TestRead(t *testing.T) {
	const meminfo = "MemTotal:  1000 kB\nMemFree: 100 kB\nMemAvailable:  600 kB\nSwapTotal: 0 kB\nSwapFree: 0 kB\n"
	pages := func(mapped, resident, shared int) string {
		return fmt.Sprintf("%d %d %d 5 0 123 0\n", mapped, resident, shared)
	}
	page := int64(os.Getpagesize())
	for name, c := range map[string]struct {
		files              map[string]string
		address, handedOut int64
		want               Space
	}{
		"a machine": {map[string]string{"proc/meminfo": meminfo}, 0, 0, Space{1000 << 10, 600 << 10}},
		"swap": {map[string]string{"proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 600 kB\nSwapTotal: 500 kB\nSwapFree: 300 kB\n"},
			0, 0, Space{1500 << 10, 900 << 10}},
		"what is not touched": {map[string]string{"proc/meminfo": meminfo, "proc/self/statm": pages(100, 3, 1)},
			0, 12 * page, Space{1000 << 10, 600<<10 - 10*page}},
		"more resident than handed out": {map[string]string{"proc/meminfo": meminfo, "proc/self/statm": pages(100, 30, 1)},
			0, 12 * page, Space{1000 << 10, 600 << 10}},
		"a limit of the process": {map[string]string{"proc/meminfo": meminfo, "proc/self/statm": pages(10, 3, 1)},
			20 * page, 0, Space{20 * page, 10 * page}},
		"a group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "500000\n", "sys/fs/cgroup/a/b/memory.current": "300000\n",
			"sys/fs/cgroup/a/b/memory.stat": "anon 1\ninactive_file 20000\nactive_file 30000\n"},
			0, 0, Space{500000, 250000}},
		"the group above": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "400000\n",
			"sys/fs/cgroup/a/memory.current": "300000\n"}, 0, 0, Space{400000, 100000}},
		"a container's own group": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "0::/docker/7f\n",
			"sys/fs/cgroup/memory.max": "400000\n", "sys/fs/cgroup/memory.current": "500000\n"}, 0, 0, Space{400000, 0}},
		"version 1": {map[string]string{"proc/meminfo": meminfo, "proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/p/q\n0::/\n",
			"sys/fs/cgroup/memory/p/q/memory.limit_in_bytes": "400000\n", "sys/fs/cgroup/memory/p/q/memory.usage_in_bytes": "300000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"sys/fs/cgroup/memory/p/q/memory.stat":       "total_inactive_file 50000\n"}, 0, 0, Space{400000, 150000}},
	} {
		t.Run(name, func(t *testing.T) {
			y := machine(t, c.files)
			y.handedOut = c.handedOut
			if c.address > 0 {
				y.address = c.address
			}
			got, known := y.read()
			assert.True(t, known)
			assert.Equal(t, c.want, got)
		})
	}
	_, known := machine(t, nil).read()
	assert.False(t, known)
}

func TestAdmit(t *testing.T) {
	space, known := Read()
	require.True(t, known)
	assert.Positive(t, space.Free)
	assert.LessOrEqual(t, space.Free, space.Total)
	require.NoError(t, Admit("x", space.Free/2))
	err := Admit("tensor x", math.MaxInt64)
	var refused *ir.MemoryError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, space.Total, refused.Total)
	assert.True(t, refused.NeverFits())
	assert.Regexp(t, `^tensor x takes 8.0 EiB: this machine has .*iB of memory, .*iB of it free$`, err.Error())
}

// What was allocated and not touched counts, though the system does not know of it; what
// is garbage does not.
func TestUntouchedMemoryCounts(t *testing.T) {
	before, _ := Read()
	const size = 1 << 30
	if before.Free < 3*size {
		t.Skip("too little memory")
	}
	x := make([]byte, size)
	after, _ := Read()
	assert.InDelta(t, size, float64(before.Free-after.Free), size/4)
	x[0] = 1
	require.NoError(t, Admit("garbage", before.Free-size/4))
}

// TestLimitsOfTheProcess runs this test again where the address space is limited.
func TestLimitsOfTheProcess(t *testing.T) {
	if os.Getenv("HOSTMEM_LIMITED") != "" {
		var refused *ir.MemoryError
		if err := Admit("x", 3<<30); !errors.As(err, &refused) {
			t.Fatalf("found %v", err)
		}
		return
	}
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command("sh", "-c", "ulimit -v 3000000; exec \"$0\" -test.run 'TestLimitsOfTheProcess$'", self)
	cmd.Env = append(os.Environ(), "HOSTMEM_LIMITED=1")
	out, err := cmd.CombinedOutput()
	assert.NoError(t, err, string(out))
}

func BenchmarkRead(b *testing.B) {
	for b.Loop() {
		Read()
	}
}
