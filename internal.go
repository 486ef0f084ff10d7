package fusec

import (
	"fmt"
	"runtime/debug"
)

// An InternalError is a mistake of fusec, not of its user: an invariant that does
// not hold. Please report it with the source that showed it.
type InternalError struct {
	Stage string // where it was found
	Input string // what was being compiled
	Value any    // what was wrong
	Stack string // of the goroutine that found it
}

// Error says where and what; the stack is for the report.
func (e *InternalError) Error() string {
	return fmt.Sprintf("internal error in %s while compiling %s: %v", e.Stage, e.Input, e.Value)
}

// guard turns a panic of a stage into an error.
func guard(stage *string, input string, err *error) {
	if v := recover(); v != nil {
		*err = &InternalError{Stage: *stage, Input: input, Value: v, Stack: string(debug.Stack())}
	}
}
