package hunt

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/conformance"
)

// TestFound runs every program that went wrong once, on the CPU engine and on simulated devices
// of both kinds.
func TestFound(t *testing.T) {
	files, err := filepath.Glob("../../testdata/found/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range []string{"cpu", "sm_80", "sm_90a"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := []Engine{{name, conformance.Open(t, name, conformance.Options{}).Device}} // whose kernels are kept
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				t.Run(filepath.Base(file), func(t *testing.T) {
					c, err := ParseCase(string(text))
					require.NoError(t, err)
					for _, sizes := range c.Sizes {
						runCase(t, c, sizes, e)
					}
				})
			}
		})
	}
}

func runCase(t *testing.T, c *Case, sizes map[string]int64, engines []Engine) {
	g := graph(t, c.Text)
	inputs, err := c.Inputs(g, sizes)
	require.NoError(t, err)
	r, err := NewReference(g, inputs)
	require.NoError(t, err)
	for _, e := range engines {
		err := r.Run(context.Background(), c.Text, e.Device)
		what := fmt.Sprintf("%s at %v", e.Name, sizes)
		if c.Fails == "" {
			assert.NoError(t, err, what)
		} else if assert.Error(t, err, what) {
			assert.Contains(t, err.Error(), c.Fails, what)
		}
	}
}
