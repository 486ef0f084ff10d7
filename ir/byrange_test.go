package ir

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestByRange(t *testing.T) {
	w := newWorld("i:N j:M k:4")
	for in, want := range map[string]string{
		"i*(M-2)*N + j*(M-2) + k":   "i * (M * N - N * 2) + j * (M - 2) + k",
		"i*M + j":                   "i * M + j",
		"i*M - j":                   "i * M - j",
		"N*M - 2":                   "M * N - 2",
		"(i*(M-2) + j)/4 + j*(N-1)": "j * (N - 1) + (i * M - i * 2 + j) / 4",
	} {
		e := Simplify(w.parse(in), Facts{})
		got := ByRange(e)
		assert.Equal(t, want, show(got), in)
		assert.True(t, SameIndex(e, got, Facts{}), in)
	}
}
