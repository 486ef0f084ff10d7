package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestArgumentsMeet: arguments meet where they have a byte in common; what is empty meets nothing.
func TestArgumentsMeet(t *testing.T) {
	host := make([]byte, 16)
	empty, full := &Buffer{}, &Buffer{bytes: 4}
	all := []argument{{buffer: empty}, {buffer: full}, {buffer: &Buffer{bytes: 4}},
		{host: host[:0]}, {host: host[:8]}, {host: host[8:]}, {host: host[7:9]}, {host: host[:7]}, {host: host[9:]}}
	spans := map[int][2]int{4: {0, 8}, 5: {8, 16}, 6: {7, 9}, 7: {0, 7}, 8: {9, 16}} // of host
	for i := range all {
		for j := range all {
			a, b := spans[i], spans[j]
			want := i == j && i != 0 && i != 3 || a[0] < b[1] && b[0] < a[1]
			assert.Equal(t, want, all[i].meets(&all[j]), "%d and %d", i, j)
			if want {
				assert.Equal(t, i == j, all[i].is(&all[j]), "%d and %d", i, j)
			}
		}
	}
}
