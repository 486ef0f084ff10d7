package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
)

// flight lets goroutines that want the same key share one call. Unlike in singleflight, a
// caller that gives up does not disturb the others: the call is cancelled when the last one has
// left.
type flight struct {
	mu    sync.Mutex
	calls map[string]*call
}

// call is one shared call. Entry, outcome and err are set before done is closed.
type call struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiters int // guarded by flight.mu

	entry    Entry
	outcome  Outcome
	err      error
	panicked *panicValue
}

// panicValue carries a panic from the goroutine of create to its callers, with the
// stack that tells where it was.
type panicValue struct {
	value any
	stack []byte
}

func (p *panicValue) Error() string { return fmt.Sprintf("%v\n\n%s", p.value, p.stack) }

type work func(context.Context) (Entry, Outcome, error)

func (f *flight) do(ctx context.Context, id string, fn work) (Entry, Outcome, error) {
	c, joined := f.join(ctx, id, fn)
	select {
	case <-c.done:
	case <-ctx.Done():
		f.leave(id, c)
		return Entry{}, 0, context.Cause(ctx)
	}
	if c.panicked != nil {
		panic(c.panicked)
	}
	if joined && c.err == nil {
		return c.entry, Joined, nil
	}
	return c.entry, c.outcome, c.err
}

// join returns the call of id that is under way, or starts it.
func (f *flight) join(ctx context.Context, id string, fn work) (c *call, joined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c := f.calls[id]; c != nil {
		c.waiters++
		return c, true
	}
	if f.calls == nil {
		f.calls = map[string]*call{}
	}
	shared, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c = &call{done: make(chan struct{}), cancel: cancel, waiters: 1}
	f.calls[id] = c
	go f.run(shared, id, c, fn)
	return c, false
}

var errGoexit = errors.New("the function that creates a cache entry ended its goroutine")

// run passes a panic on to the callers.
func (f *flight) run(ctx context.Context, id string, c *call, fn work) {
	c.err = errGoexit
	defer func() {
		if p := recover(); p != nil {
			c.panicked = &panicValue{p, debug.Stack()}
		}
		c.cancel()
		f.forget(id, c)
		close(c.done)
	}()
	c.entry, c.outcome, c.err = fn(ctx)
}

// leave cancels and forgets in one step, so that no new caller joins a call that is about to be
// cancelled.
func (f *flight) leave(id string, c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if c.waiters--; c.waiters > 0 {
		return
	}
	c.cancel()
	if f.calls[id] == c {
		delete(f.calls, id)
	}
}

// forget makes the next caller start a new call.
func (f *flight) forget(id string, c *call) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.calls[id] == c {
		delete(f.calls, id)
	}
}
