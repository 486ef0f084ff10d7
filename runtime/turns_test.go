package runtime

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestEvenTurns: as many turns as before, of as few clusters as have no more; few turns stay as
// they are.
func TestEvenTurns(t *testing.T) {
	for _, c := range []struct{ work, n, want uint32 }{
		{256, 30, 29}, {240, 30, 30}, {241, 30, 27}, {8192, 264, 256}, {1 << 20, 264, 264}, {90, 30, 30}, {91, 30, 23}, {61, 30, 30}, {3, 1, 1}, {9, 1, 1},
	} {
		got := evenTurns(c.work, c.n)
		assert.Equal(t, c.want, got, c)
		assert.Equal(t, (c.work+c.n-1)/c.n, (c.work+got-1)/got, "turns of %v", c)
	}
}
