//go:build linux && !nocuda

package runtime

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/ir"
)

// sizesOf calls use for every formula of a program, with where it is.
func sizesOf(v reflect.Value, where string, use func(where string, s *ir.Size)) {
	if s, ok := v.Addr().Interface().(*ir.Size); ok {
		use(where, s)
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			sizesOf(v.Field(i), where+"."+v.Type().Field(i).Name, use)
		}
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			sizesOf(v.Index(i), where, use)
		}
	}
}

// TestFormulasNameSymbolsThatThereAre: whichever formula of a stored program names another is refused before anything is computed by it.
func TestFormulasNameSymbolsThatThereAre(t *testing.T) {
	program := func() *ir.Program {
		p := mappedProgram()
		p.Counters = countedProgram().Counters
		p.Checks = []ir.IndexCheck{{Tensor: "x", Extent: symbol(0), Names: []string{"i"}, Shape: []ir.Size{symbol(0)}}}
		return p
	}
	require.NoError(t, checkProgram(program()))
	count := 0
	sizesOf(reflect.ValueOf(program()).Elem(), "", func(string, *ir.Size) { count++ })
	require.Greater(t, count, 20)
	for n := range count {
		p, at, changed := program(), 0, ""
		sizesOf(reflect.ValueOf(p).Elem(), "", func(where string, s *ir.Size) {
			if at++; at == n+1 {
				*s, changed = symbol(9), where
			}
		})
		assert.Error(t, checkProgram(p), changed)
	}
}
