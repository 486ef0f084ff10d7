package diag_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir/diag"
)

func TestChoices(t *testing.T) {
	assert.Empty(t, diag.Choices("x", nil))
	assert.Equal(t, ": did you mean first?", diag.Choices("frist", []string{"first"}))
	assert.Equal(t, ": did you mean first? It has second, first", diag.Choices("frist", []string{"second", "first"}))
	assert.Equal(t, ": it has second, first", diag.Choices("softmax", []string{"second", "first"}))
	var many []string
	for i := range 15 {
		many = append(many, fmt.Sprint("name", i))
	}
	assert.Contains(t, diag.Choices("other", many), "name11 and 3 more")
}
