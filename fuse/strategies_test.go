package fuse

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// TestStrategiesHaveRows: every strategy of ir is made by a row of the table.
func TestStrategiesHaveRows(t *testing.T) {
	for _, s := range ir.Strategies() {
		assert.True(t, slices.ContainsFunc(strategies, func(row strategy) bool { return slices.Contains(row.makes, s) }), s)
	}
}

// TestRowsMakeWhatTheySay: the variants that a row of the table of strategies makes for the examples are those that it
// lists. The rows are those of the table, with a look at what comes out of each.
func TestRowsMakeWhatTheySay(t *testing.T) {
	table := slices.Clone(strategies)
	defer func() { copy(strategies, table) }()
	made := 0
	for i := range strategies {
		row := &strategies[i]
		strategies[i].variants = func(c *gathering) []*ir.Variant {
			out := table[i].variants(c)
			for _, v := range out {
				made++
				assert.Contains(t, row.makes, ir.StrategyOf(c.k, v.Schedule), "row %d, kernel %s", i, c.k.Name)
			}
			return out
		}
	}
	for _, text := range examplePrograms(t) {
		for _, d := range []string{"sm_90a", "sm_80"} {
			device, err := ir.DeviceNamed(d)
			require.NoError(t, err)
			_, err = Plan(parse(t, text), Options{Device: device})
			require.NoError(t, err)
		}
	}
	assert.NotZero(t, made)
}
