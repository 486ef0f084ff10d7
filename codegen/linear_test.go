package codegen

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestColumnsReadAtTheirPosition: the columns of a group are channels by
// positions. Reads and writes of the tensor walk both as one, without a division;
// a weight a channel costs one division a vector.
func TestColumnsReadAtTheirPosition(t *testing.T) {
	_, p := generate(t, `graph g(x: bf16[N, 6, L], w: bf16[6]) -> (y: bf16[N, 6, L]) { y = group_norm(x, 3, w) }`)
	require.NotEmpty(t, p.Units)
	text := p.Text(0)
	text = text[strings.Index(text, `extern "C"`):]
	accesses := regexp.MustCompile(`(load|store)(?:_under)?<VECTOR>\((x|y) \+ ([^;]*);`).FindAllStringSubmatch(text, -1)
	require.Len(t, accesses, 2, text)
	for _, a := range accesses {
		assert.NotContains(t, a[3], "/", "%s of %s", a[1], a[2])
		assert.NotContains(t, a[3], "k ", "%s of %s", a[1], a[2])
	}
	assert.Equal(t, 1, strings.Count(text, "c / l_extent"), text)
}
