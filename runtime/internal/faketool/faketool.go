// Package faketool builds a library that takes NVTX's ranges as a profiler's does, for tests.
package faketool

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed tool/faketool.c
var source []byte

// New builds a tool, which writes the names of ranges to log. One that refuses takes none.
func New(t testing.TB, refuse bool) (library, log string) {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc) here to build the tool with")
	}
	folder := t.TempDir()
	library, log = filepath.Join(folder, "tool.so"), filepath.Join(folder, "ranges.txt")
	text := filepath.Join(folder, "tool.c")
	require.NoError(t, os.WriteFile(text, source, 0o666))
	refusal := 0
	if refuse {
		refusal = 1
	}
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", "-DLOG="+strconv.Quote(log), "-DREFUSE="+strconv.Itoa(refusal),
		"-o", library, text).CombinedOutput()
	require.NoError(t, err, string(out))
	return library, log
}
