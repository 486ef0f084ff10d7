package passes

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestKeepsBusy: the share of a device of 132 multiprocessors that clusters keep at work.
func TestKeepsBusy(t *testing.T) {
	for _, c := range []struct {
		rows, bytes float64
		want        bool
	}{
		{256, 802816, true}, {256, 401408, true}, // clusters of 8 and of 4
		{1024, 100352, true}, {132, 1 << 17, true}, // blocks
		{1, 1 << 17, false}, {64, 1 << 18, false}, {133, 1 << 17, false}, // the last turn is of few
		{56, 1 << 18, true}, {57, 1 << 18, false}, // as many clusters of 2 as there are at once, and one more
		{4096, 1 << 20, true}, {4096, 1<<20 + 16, false}, // no larger cluster
		{0, 1 << 20, false},
	} {
		assert.Equal(t, c.want, keepsBusy(c.rows, c.bytes), "%v rows of %v bytes", c.rows, c.bytes)
	}
}
