package runtime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// What callers can do wrong, for errors.Is.
var (
	// ErrClosed is what calls on a device, function, stream or buffer get that was closed, or
	// that is the zero value and was never open.
	ErrClosed = errors.New("closed")
	// ErrArgument is an argument that does not fit: missing, of another type or shape, in the
	// memory of another device.
	ErrArgument = errors.New("the arguments do not fit")
)

// misuse is an error that also matches one of the above, without the text of that.
type misuse struct{ err, kind error }

func (e misuse) Error() string   { return e.err.Error() }
func (e misuse) Unwrap() []error { return []error{e.err, e.kind} }

// asArgument makes an error one of arguments; nil stays nil.
func asArgument(err error) error {
	if err == nil {
		return nil
	}
	return misuse{err, ErrArgument}
}

var (
	errClosed       = fmt.Errorf("the device is %w", ErrClosed)
	errStreamClosed = fmt.Errorf("the stream is %w", ErrClosed)
	errBufferClosed = fmt.Errorf("the buffer is %w", ErrClosed)
)

// A gate counts the calls under way on something that can be closed. Closing it refuses new
// calls, and waits for those that have entered.
type gate struct {
	state atomic.Int64  // two for each call, and one when the gate is closed
	idle  chan struct{} // is sent to when the last call leaves a closed gate
}

func newGate() gate { return gate{idle: make(chan struct{}, 1)} }

// enter begins a call, which leave ends. It is false if the gate is closed; the gate of a zero
// value always is.
func (g *gate) enter() bool {
	if g.idle == nil {
		return false
	}
	if g.state.Add(2)&1 != 0 {
		g.leave()
		return false
	}
	return true
}

func (g *gate) leave() {
	if g.state.Add(-2) != 1 {
		return
	}
	select {
	case g.idle <- struct{}{}:
	default: // a refused call has left before
	}
}

// close closes the gate and waits for the calls under way. It returns false, at once, where
// the gate was closed already.
func (g *gate) close() bool {
	if g.idle == nil {
		return false
	}
	switch before := g.state.Or(1); {
	case before&1 != 0:
		return false
	case before > 0:
		<-g.idle
	}
	return true
}

var errEnded = errors.New("the function that was to do it ended its goroutine")

// shared is work that several calls want and that one goroutine does. A call whose context ends
// does not disturb the others; the context of the work ends when the last call has left. New
// work may begin before such abandoned work has ended.
type shared struct {
	mu   sync.Mutex
	call *sharedCall // under way; nil for none
}

type sharedCall struct {
	done     chan struct{} // closed when err and panicked are set
	cancel   context.CancelFunc
	waiters  int // guarded by shared.mu
	err      error
	panicked any
}

// do waits for the work that is under way or, where there is none, for work, which start
// runs on a goroutine.
func (s *shared) do(ctx context.Context, start func(func()), work func(context.Context) error) error {
	c := s.join(ctx, start, work)
	select {
	case <-c.done:
	case <-ctx.Done():
		s.leave(c)
		return ctx.Err()
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	return c.err
}

func (s *shared) join(ctx context.Context, start func(func()), work func(context.Context) error) *sharedCall {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.call != nil {
		s.call.waiters++
		return s.call
	}
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &sharedCall{done: make(chan struct{}), cancel: cancel, waiters: 1}
	s.call = c
	start(func() {
		c.err = errEnded
		defer func() {
			c.panicked = recover() // passed on to the calls that wait
			cancel()
			s.forget(c)
			close(c.done)
		}()
		c.err = work(own)
	})
	return c
}

// leave ends the work where nobody waits for it any more.
func (s *shared) leave(c *sharedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.waiters--; c.waiters > 0 {
		return
	}
	c.cancel()
	if s.call == c {
		s.call = nil
	}
}

func (s *shared) forget(c *sharedCall) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.call == c {
		s.call = nil
	}
}
