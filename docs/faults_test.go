package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFaultsNameTests: the tests that faults.md names are there.
func TestFaultsNameTests(t *testing.T) {
	defined := regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\)`)
	there := map[string]bool{}
	err := filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range defined.FindAllStringSubmatch(string(text), -1) {
			there[m[1]] = true
		}
		return err
	})
	require.NoError(t, err)
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(readPage(t, "faults.md"), -1)
	require.NotEmpty(t, named)
	for _, m := range named {
		assert.True(t, there[m[1]], "faults.md names %s, and there is no such test", m[1])
	}
}
