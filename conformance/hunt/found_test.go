package hunt

import (
	"context"
	"hash/crc32"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec"
	"github.com/fusec/fusec/conformance"
	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/ir/interp"
	"github.com/fusec/fusec/parser"
)

// TestFound runs every program that went wrong once, on the CPU engine and on simulated devices
// of both kinds. Unless FUSEC_TEST_FULL is set, it runs on one of the three, which its text draws: on the CPU engine in half of
// the draws.
func TestFound(t *testing.T) {
	files, err := filepath.Glob("../../testdata/found/*.fuse")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, name := range []string{"sm_80", "sm_90a", "cpu"} {
		t.Run(name, func(engine *testing.T) {
			engine.Parallel()
			e := []Engine{{name, conformance.Open(engine, name, conformance.Options{}).Device}} // whose kernels are kept
			for _, file := range files {
				text, err := os.ReadFile(file)
				require.NoError(engine, err)
				if !inFull() && min(crc32.ChecksumIEEE(text)%4, 2) != uint32(i) {
					continue
				}
				engine.Run(filepath.Base(file), func(t *testing.T) {
					c, err := ParseCase(string(text))
					require.NoError(t, err)
					for _, sizes := range c.Sizes {
						runCase(t, engine, c, sizes, e)
					}
				})
			}
		})
	}
}

func runCase(t, engine *testing.T, c *Case, sizes map[string]int64, engines []Engine) {
	if c.Fails != "" {
		failsEverywhere(t, c, sizes, engines)
		return
	}
	g := graph(t, c.Text)
	if interp.Cost(g, sizes) > dear {
		compileCase(t, c, sizes, engines)
		return
	}
	inputs, err := c.Inputs(g, sizes)
	require.NoError(t, err)
	r, err := NewReference(g, inputs)
	require.NoError(t, err)
	for _, e := range engines {
		if err := r.Run(context.Background(), c.Text, e.Device); err != nil {
			t.Errorf("%s at %v: %v", e.Name, sizes, err)
			reopen(engine, engines, e.Name)
		}
	}
}

// failsEverywhere wants the error that a case names, from the parser or from a run.
func failsEverywhere(t *testing.T, c *Case, sizes map[string]int64, engines []Engine) {
	var g *ir.Graph
	file, err := parser.Parse("g.fuse", []byte(c.Text), parser.Options{})
	if err == nil {
		g, err = file.Graph("")
	}
	if err != nil {
		require.ErrorContains(t, err, c.Fails)
		return
	}
	inputs, err := c.Inputs(g, sizes)
	require.NoError(t, err)
	r := &Reference{Graph: g, Inputs: inputs}
	for _, e := range engines {
		assert.ErrorContains(t, r.Run(context.Background(), c.Text, e.Device), c.Fails, e.Name)
	}
}

// dear is the work, in scalar operations, from which a case is compiled and not run: it went
// wrong before it ran.
const dear = 2e7

func compileCase(t *testing.T, c *Case, sizes map[string]int64, engines []Engine) {
	for _, e := range engines {
		p, err := fusec.Compile("g.fuse", c.Text, fusec.Options{Arch: e.Device.Arch()})
		require.NoError(t, err)
		f, err := p.Load(context.Background(), e.Device)
		require.NoError(t, err)
		require.NoError(t, f.Prepare(context.Background(), sizes))
		require.NoError(t, f.Close())
	}
}
