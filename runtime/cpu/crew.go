package cpu

import (
	"context"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"time"
)

// call is what the kernels of one run share.
type call struct {
	stop   atomic.Bool     // set when the caller gave up
	labels context.Context // those of the present kernel, for who helps with it; nil for none
}

// together calls work on so many goroutines, the present one among them, and returns when all have ended.
func (c *call) together(threads int64, work func()) {
	if threads <= 1 {
		work()
		return
	}
	// The last one unlocks done. It is no WaitGroup because those belong to the tests (testing/synctest) that use them, and
	// helpers go from one caller to the next.
	var left atomic.Int64
	var done sync.Mutex
	left.Store(threads)
	done.Lock()
	for range threads - 1 {
		hire(&errand{c.labels, func() {
			work()
			if left.Add(-1) == 0 {
				done.Unlock()
			}
		}})
	}
	work()
	if left.Add(-1) > 0 {
		done.Lock()
	}
}

// errand is what a helper does, and the labels that it has meanwhile.
type errand struct {
	labels context.Context
	do     func()
}

// A helper is a goroutine that shares a caller's work. Starting one takes 50 to 100 us where a processor has to be woken, as
// much as half of a small product takes. So a helper that is done looks out for the next kernel for as long before it ends:
// it gives way to any goroutine that can run, and after lookOutTime, or so many looks, it is gone. (Looks are counted as
// well because the time of tests may stand still.)
const (
	lookOutTime = 100 * time.Microsecond
	mostLooks   = 4000
)

// crew are the places at which helpers look out: nil where there is none, lookingOut, or what the helper is to do.
var crew [64]atomic.Pointer[errand]

var lookingOut = &errand{}

// hire has a helper do an errand: one that looks out for it, or else a new one.
func hire(e *errand) {
	for i := range crew {
		if crew[i].Load() == lookingOut && crew[i].CompareAndSwap(lookingOut, e) {
			return
		}
	}
	go help(e)
}

func help(e *errand) {
	for e != nil {
		if e.labels != nil {
			pprof.SetGoroutineLabels(e.labels)
		}
		e.do()
		pprof.SetGoroutineLabels(context.Background())
		e = lookOut()
	}
}

// lookOut waits for an errand; nil where none came.
func lookOut() *errand {
	for i := range crew {
		place := &crew[i]
		if place.Load() != nil || !place.CompareAndSwap(nil, lookingOut) {
			continue
		}
		begun := time.Now()
		for looks := 0; place.Load() == lookingOut && looks < mostLooks && time.Since(begun) < lookOutTime; looks++ {
			runtime.Gosched()
		}
		if place.CompareAndSwap(lookingOut, nil) {
			return nil
		}
		return place.Swap(nil)
	}
	return nil
}
