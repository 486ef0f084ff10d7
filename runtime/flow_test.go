package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func reads(items ...int) []access {
	var out []access
	for _, i := range items {
		out = append(out, access{item: i})
	}
	return out
}

func TestDependencesFollowTheData(t *testing.T) {
	w := func(item int, from ...int) []access { return append(reads(from...), access{item, true}) }
	elsewhere := make([]span, 6)
	// Two branches of one input meet; a chain's skip follows from the chain.
	assert.Equal(t, [][]int{nil, nil, {1, 0}, {2}},
		dependences([][]access{w(1, 0), w(2, 0), w(3, 1, 2), w(4, 3, 1)}, elsewhere))
	// Written again, after who reads it.
	assert.Equal(t, [][]int{nil, {0}, {1}}, dependences([][]access{w(1, 0), w(2, 1), w(1, 0)}, elsewhere))
	// Tensors 1 and 3 share memory, so that the second branch waits for the first.
	shared := []span{{}, {0, 256}, {256, 512}, {0, 100}, {}, {}}
	assert.Equal(t, [][]int{nil, {0}, {1}}, dependences([][]access{w(1, 0), w(2, 1), w(3, 0)}, shared))
}

// TestDependencesOrderAllConflicts: whoever conflicts is ordered, directly or not, and
// no edge follows from others.
func TestDependencesOrderAllConflicts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := make([]span, 8)
		for i := range spans {
			from := rapid.Int64Range(0, 20).Draw(t, "from")
			spans[i] = span{from, from + rapid.Int64Range(0, 4).Draw(t, "bytes")}
		}
		launches := rapid.SliceOfN(rapid.SliceOfN(rapid.Custom(func(t *rapid.T) access {
			return access{rapid.IntRange(0, 7).Draw(t, "item"), rapid.Bool().Draw(t, "write")}
		}), 0, 4), 0, 12).Draw(t, "launches")
		after := dependences(launches, spans)
		var reach func(i, j int, skip bool) bool
		reach = func(i, j int, skip bool) bool {
			for _, k := range after[i] {
				if k == j && !skip || k > j && reach(k, j, false) {
					return true
				}
			}
			return false
		}
		for i := range launches {
			for j := range i {
				if conflict(launches[j], launches[i], spans) {
					require.True(t, reach(i, j, false), "%d after %d", i, j)
				}
			}
			for _, j := range after[i] {
				require.False(t, reach(i, j, true), "%d after %d follows from others", i, j)
			}
		}
	})
}
