package std

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/parser"
)

const misuse = `graph g(x: %s, z: f32[3]) -> (y: f32[]) {
    t = %s(x%s)
    y = 0
}
`

// TestMisuse calls every function with arguments that mostly do not fit: it must
// give a diagnostic or a valid graph.
func TestMisuse(t *testing.T) {
	library, err := parser.Library()
	require.NoError(t, err)
	shapes := []string{"f32[]", "i64[N]", "bf16[N, M, 4]"}
	arguments := []string{"", ", 2", ", none", ", z", ", axis=7"}
	refused := 0
	for _, f := range append(library, parser.Builtins()...) {
		for _, shape := range shapes {
			for _, args := range arguments {
				src := fmt.Sprintf(misuse, shape, f.Name, args)
				if !compiles(t, src) {
					refused++
				}
			}
		}
	}
	assert.NotZero(t, refused)
}

func compiles(t *testing.T, src string) bool {
	t.Helper()
	defer func() {
		if r := recover(); r != nil {
			t.Errorf("panic: %v\n%s", r, src)
		}
	}()
	file, err := parser.Parse("misuse.fuse", []byte(src), parser.Options{})
	if err != nil {
		return false
	}
	assert.NoError(t, ir.Verify(file.Graphs[0]), "%s", src)
	return true
}

// TestNamesOfOthers: what other libraries call a function, or an argument, says what it is here.
func TestNamesOfOthers(t *testing.T) {
	for call, want := range map[string]string{
		"scaled_dot_product_attention(x, x, x)": "write attention(q, k, v)",
		`kl_div(x, x, reduction="batch")`:       `kl_div: reduction is "mean", "sum", "none" or "batchmean"`,
		`mse_loss(x, x, reduction="batchmean")`: `mse_loss: reduction is "mean", "sum" or "none"`,
	} {
		_, err := parser.Parse("names.fuse", fmt.Appendf(nil, "graph g(x: f32[8, 4]) -> (y: f32[]) { y = %s }", call), parser.Options{})
		assert.ErrorContains(t, err, want, call)
	}
}
