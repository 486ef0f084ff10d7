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
		{host: host[:0]}, {host: host[:8]}, {host: host[8:]}, {host: host[7:9]}}
	for i := range all {
		for j := range all {
			want := i == j && i != 0 && i != 3 || i == 6 && (j == 4 || j == 5) || j == 6 && (i == 4 || i == 5)
			assert.Equal(t, want, all[i].meets(&all[j]), "%d and %d", i, j)
		}
	}
}
