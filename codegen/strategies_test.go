package codegen

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
)

// TestEveryStrategyIsSpelled: the table has a row for each strategy, which says what its kernels do and
// how many blocks they have.
func TestEveryStrategyIsSpelled(t *testing.T) {
	for _, s := range ir.Strategies() {
		row, ok := strategies[s]
		assert.True(t, ok && row.body != nil && row.blocks != nil, "strategy %s", s)
	}
	assert.Len(t, strategies, len(ir.Strategies()))
}
