// Package fakecupti builds a library that counts as CUPTI does, without hardware, for tests.
package fakecupti

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

//go:embed library/fakecupti.c
var source []byte

// New builds the library and returns its path, which is another every time. A flag changes what it does:
// "-DDENIED", "-DSTRANGE" or "-DOLD", as the C file says; "" is one that counts.
func New(t testing.TB, flag string) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no C compiler (cc) here to build the library with")
	}
	folder := t.TempDir()
	path, text := filepath.Join(folder, "libcupti.so.12"), filepath.Join(folder, "fakecupti.c")
	require.NoError(t, os.WriteFile(text, source, 0o666))
	if flag == "" {
		flag = "-DCOUNTS"
	}
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", flag, "-Wl,-Bsymbolic", "-o", path, text).CombinedOutput()
	require.NoError(t, err, string(out))
	return path
}
