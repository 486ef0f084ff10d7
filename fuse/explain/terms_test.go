package explain_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/fuse/explain"
	"github.com/fusec/fusec/ir"
)

// TestTermsAreOneOperation: a kernel that splits f32 into terms of bf16 says what it splits, and lists the operations of the
// program and one for the terms.
func TestTermsAreOneOperation(t *testing.T) {
	for _, c := range []struct {
		left  string
		terms []string   // of the kernels that split
		names [][]string // of their operations
	}{
		{"a", []string{"a", "b"}, [][]string{{explain.TermsOperation}, {explain.TermsOperation}}},
		{"relu(a)", []string{"", "b"}, [][]string{{"max", explain.TermsOperation}, {explain.TermsOperation}}},
	} {
		x := Explain(t, "graph g(a: f32[2048, 2048], b: f32[2048, 2048]) -> (y: f32[2048, 2048]) { y = "+c.left+" @ b }", explain.Options{})
		require.Len(t, x.Kernels, 3)
		for i, k := range x.Kernels[:2] {
			assert.Equal(t, []string{c.terms[i]}, k.Terms)
			assert.Nil(t, k.Copies)
			assert.Equal(t, c.names[i], namesOf(k.Operations))
		}
		assert.Empty(t, x.Kernels[2].Terms)
		assert.Equal(t, []string{"sum", "mul"}, namesOf(x.Kernels[2].Operations))
	}
	eachExplained(t, func(t *testing.T, _ string, _ ir.Device, x knownPlan) {
		for _, k := range x.Kernels {
			assert.False(t, len(k.Terms) > 0 && k.Copies != nil)
		}
	})
}

func namesOf(ops []explain.Operation) (names []string) {
	for _, o := range ops {
		names = append(names, o.Name)
	}
	return names
}
