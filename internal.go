package fusec

import (
	"context"
	"errors"
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

var errEnded = errors.New("the function that was waited for ended its goroutine")

// await runs fn on a goroutine of its own and waits for it or for the end of ctx. In the second case
// fn goes on in the background, and its result is dropped. A panic of fn reaches the caller.
func await[T any](ctx context.Context, fn func() (T, error)) (T, error) {
	type outcome struct {
		value    T
		err      error
		panicked any
	}
	if err := ctx.Err(); err != nil {
		return *new(T), err
	}
	done := make(chan outcome, 1)
	go func() {
		out := outcome{err: errEnded}
		defer func() {
			out.panicked = recover()
			done <- out
		}()
		out.value, out.err = fn()
	}()
	select {
	case out := <-done:
		if out.panicked != nil {
			panic(out.panicked)
		}
		return out.value, out.err
	case <-ctx.Done():
		return *new(T), ctx.Err()
	}
}
