package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/fusec/fusec/ir"
	"github.com/fusec/fusec/runtime/cuda"
)

// TestExitCodes: too much data is the data's fault, a device that others use up the
// machine's.
func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, exitOK},
		{errors.New("x"), exitDiagnostics},
		{usagef("x"), exitUsage},
		{cuda.ErrNoDevice, exitDevice},
		{cuda.ErrOutOfMemory, exitDevice},
		{&ir.MemoryError{Bytes: 3, Total: 2}, exitDiagnostics},
		{&ir.MemoryError{Bytes: 3, Free: 2, Total: 4}, exitDiagnostics},
		{&ir.MemoryError{Bytes: 3, Total: 2, Err: cuda.ErrOutOfMemory}, exitDiagnostics},
		{&ir.MemoryError{Bytes: 3, Free: 2, Total: 4, Err: cuda.ErrOutOfMemory}, exitDevice},
	} {
		assert.Equal(t, c.want, exitCode(c.err), "%v", c.err)
		if c.err != nil {
			assert.Equal(t, c.want, exitCode(fmt.Errorf("graph g: %w", c.err)))
		}
	}
}
