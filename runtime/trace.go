package runtime

import (
	"sync"
	"time"
)

// A Step is something that took time: opening the driver, reading the cache.
type Step struct {
	Name   string        // "nvrtc open"
	Detail string        // what it was done to; may be ""
	Start  time.Duration // since the Trace was made
	Took   time.Duration
}

// A Trace records the steps to a first result. It is safe for concurrent use; the
// nil Trace records nothing.
type Trace struct {
	began time.Time
	mu    sync.Mutex
	steps []Step
}

// NewTrace returns an empty trace whose clock starts now.
func NewTrace() *Trace { return &Trace{began: time.Now()} }

// Steps returns what was recorded so far, in the order in which it ended.
func (t *Trace) Steps() []Step {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]Step(nil), t.steps...)
}

// Note records a step that began at some time and ends now. If it began before the trace was
// made, Start is negative.
func (t *Trace) Note(name string, began time.Time) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, Step{Name: name, Start: began.Sub(t.began), Took: time.Since(began)})
}

// Step starts a step; the function it returns ends it.
func (t *Trace) Step(name, detail string) (end func()) {
	if t == nil {
		return func() {}
	}
	start := time.Now()
	return func() {
		step := Step{Name: name, Detail: detail, Start: start.Sub(t.began), Took: time.Since(start)}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.steps = append(t.steps, step)
	}
}
