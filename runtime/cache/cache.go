// Package cache keeps compiled plans and kernels on disk, for this process and
// those after it.
//
// It is a content store and must not know what it stores: not programs, kernels,
// devices or compilers. A key is a hash of named fields; an entry is a few named
// byte sections in one file. Files appear complete or not at all (a temporary
// name, then a rename), carry a checksum, and are never read back by the process
// that wrote them. Whatever goes wrong with the disk is a warning, never an error:
// without a cache everything works, only slower.
//
// A Cache is safe for concurrent use, by goroutines and by processes that share
// the folder.
package cache

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// The defaults of Options.
const (
	DefaultMaxBytes = 2 << 30
	DefaultLockWait = 10 * time.Second
)

// Options configure a Cache. The zero value is the cache of the user, as the
// environment names it: see Locate.
type Options struct {
	Off      bool     // use no cache at all
	Dir      string   // writable folder; with ReadOnly it replaces the environment
	ReadOnly []string // folders that are read after Dir and never written

	// Shared is a store that many machines share; nil for none. It is asked for entries that no
	// folder has.
	Shared *Shared

	// MaxBytes is the size to keep the writable folder to; 0 is DefaultMaxBytes. A process
	// checks the size of the folder each time it has written a 32nd of this. So the folder can
	// be larger for a while, by that much for each process that writes, and by one entry.
	MaxBytes int64
	LockWait time.Duration // longest wait for another process; 0 is DefaultLockWait

	// OnWarning is told of every failure of the disk. It is called by one goroutine
	// at a time and must not use the cache.
	OnWarning func(error)

	FS     FS                  // nil is the machine's
	Now    func() time.Time    // nil is time.Now
	Getenv func(string) string // nil is os.Getenv
}

// Cache is an open cache. One that could not be opened, or is off, stores nothing.
type Cache struct {
	fs       FS
	now      func() time.Time
	warnHook func(error)
	warnMu   sync.Mutex
	maxBytes int64
	lockWait time.Duration

	rw     *layer   // nil: nothing is written
	layers []*layer // in the order of reading, rw first
	shared *shared  // nil: there is none
	flight flight

	unscanned atomic.Int64 // bytes written since the size was last checked
	scanned   atomic.Bool  // the size was checked at least once
}

// Open opens the cache. It does not fail: a folder that cannot be used, or that
// another user could have written to, is left out with a warning.
func Open(o Options) *Cache {
	c := &Cache{fs: o.FS, now: o.Now, warnHook: o.OnWarning, maxBytes: o.MaxBytes, lockWait: o.LockWait}
	c.setDefaults()
	if o.Off {
		return c
	}
	place := Place{Dir: o.Dir, ReadOnly: o.ReadOnly}
	if o.Dir == "" && len(o.ReadOnly) == 0 {
		if o.Getenv == nil {
			o.Getenv = os.Getenv
		}
		place = Locate(o.Getenv)
	}
	c.openLayers(place)
	if o.Shared != nil && o.Shared.Store != nil {
		if err := o.Shared.checkKeys(); err != nil {
			c.warn(fmt.Errorf("shared store left out: %w", err))
		} else {
			c.shared = newShared(o.Shared, c.warn)
		}
	}
	return c
}

func (c *Cache) setDefaults() {
	if c.fs == nil {
		c.fs = osFS{}
	}
	if c.now == nil {
		c.now = time.Now
	}
	if c.maxBytes <= 0 {
		c.maxBytes = DefaultMaxBytes
	}
	if c.lockWait <= 0 {
		c.lockWait = DefaultLockWait
	}
}

func (c *Cache) openLayers(place Place) {
	if place.Dir != "" {
		l, err := openWritable(c.fs, place.Dir)
		if err != nil {
			c.warn(fmt.Errorf("cache disabled: %w", err))
		} else {
			c.rw = l
			c.layers = append(c.layers, l)
		}
	}
	for _, dir := range place.ReadOnly {
		l, err := openReadOnly(c.fs, dir)
		if err != nil {
			c.warn(fmt.Errorf("read-only cache left out: %w", err))
			continue
		}
		c.layers = append(c.layers, l)
	}
}

// Dir returns the writable folder; "" where nothing is written.
func (c *Cache) Dir() string {
	if c.rw == nil {
		return ""
	}
	return c.rw.dir
}

func (c *Cache) warn(err error) {
	if c.warnHook == nil || err == nil {
		return
	}
	c.warnMu.Lock()
	defer c.warnMu.Unlock()
	c.warnHook(err)
}

// Outcome says where an entry came from.
type Outcome uint8

// The outcomes.
const (
	Missing   Outcome = iota // there is no entry
	Hit                      // it was in the writable folder
	LayerHit                 // it was in a read-only folder
	Created                  // it was created, and stored
	Unstored                 // it was created, and could not be stored
	Joined                   // another goroutine was creating it
	SharedHit                // it was in the shared store, and is now in the writable folder
	Shipped                  // it came with the application, without the cache
)

// String returns the outcome in words.
func (o Outcome) String() string {
	names := [...]string{
		"missing", "hit", "hit in a read-only folder", "created", "created, not stored", "joined",
		"hit in the shared store", "shipped with the application",
	}
	if int(o) < len(names) {
		return names[o]
	}
	return fmt.Sprintf("Outcome(%d)", uint8(o))
}

// IsHit reports whether the entry existed and did not have to be created.
func (o Outcome) IsHit() bool { return o == Hit || o == LayerHit || o == SharedHit || o == Shipped }

// Get returns the entry of k, or Missing. It looks in the folders, then in the shared
// store.
func (c *Cache) Get(k Key) (Entry, Outcome) {
	if e, o := c.local(k); o.IsHit() {
		return e, o
	}
	return c.fetch(context.Background(), k)
}

// local returns the entry of k from a folder.
func (c *Cache) local(k Key) (Entry, Outcome) {
	for _, l := range c.layers {
		e, ok, err := l.get(k, c.now())
		c.warn(err)
		switch {
		case ok && l == c.rw:
			return e, Hit
		case ok:
			return e, LayerHit
		}
	}
	return Entry{}, Missing
}

// Put stores e under k, replacing what was there. It reports whether it did in the
// writable folder; the reason why not is a warning. The shared store gets it later,
// see Flush.
func (c *Cache) Put(k Key, e Entry) bool {
	stored := c.store(k, &e)
	c.send(k, e)
	return stored
}

// GetOrCreate returns the entry of k. If there is none, in the folders or in the shared store, it calls create and
// stores the result. Of all goroutines and processes that ask for a key at the same time, only one normally
// creates it. A process waits for another one no longer than LockWait, and then creates the entry itself.
//
// The only errors are those of create, and that of ctx. A caller whose ctx ends
// returns at once; the ctx that create gets ends when nobody waits any more. A panic
// in create reaches the callers.
func (c *Cache) GetOrCreate(
	ctx context.Context, k Key, create func(context.Context) (Entry, error),
) (Entry, Outcome, error) {
	if err := context.Cause(ctx); err != nil {
		return Entry{}, Missing, err
	}
	if e, o := c.local(k); o.IsHit() {
		return e, o, nil
	}
	return c.flight.do(ctx, k.String(), func(ctx context.Context) (Entry, Outcome, error) {
		return c.createLocked(ctx, k, create)
	})
}

func (c *Cache) createLocked(
	ctx context.Context, k Key, create func(context.Context) (Entry, error),
) (Entry, Outcome, error) {
	release, err := c.lock(ctx, k)
	if err != nil {
		return Entry{}, Missing, err
	}
	defer release()
	if c.rw != nil { // another process may have stored it before this one got the lock
		if e, o := c.local(k); o.IsHit() {
			return e, o, nil
		}
	}
	if e, o := c.fetch(ctx, k); o.IsHit() {
		return e, o, nil
	}
	if err := context.Cause(ctx); err != nil {
		return Entry{}, Missing, err
	}
	e, err := create(ctx)
	if err != nil {
		return Entry{}, Missing, err
	}
	stored := c.store(k, &e)
	c.send(k, e)
	if !stored {
		return e, Unstored, nil
	}
	return e, Created, nil
}

// lock waits for the lock of k between processes, at most LockWait. The only error
// is that of ctx. Polling grows from 1 ms to 50 ms: short for quick compilations,
// cheap for long ones.
func (c *Cache) lock(ctx context.Context, k Key) (release func(), err error) {
	nothing := func() {}
	if c.rw == nil {
		return nothing, nil
	}
	deadline := time.Now().Add(c.lockWait)
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		release, held, err := c.rw.tryLock(string(k.Kind) + "-" + k.Sum.String())
		switch {
		case err != nil:
			c.warn(fmt.Errorf("compiling without the lock of %v: %w", k, err))
			return nothing, nil
		case held:
			return release, nil
		case time.Now().After(deadline):
			c.warn(fmt.Errorf("waited %v for another process to create %v: going ahead", c.lockWait, k))
			return nothing, nil
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// store publishes *e and sets its time of creation.
func (c *Cache) store(k Key, e *Entry) bool {
	e.Created = time.Unix(0, c.now().UnixNano())
	if c.rw == nil {
		return false
	}
	b, err := encodeEntry(k, *e)
	if err != nil {
		c.warn(fmt.Errorf("not stored: %w", err))
		return false
	}
	return c.publish(k, b)
}

// publish puts the file of an entry into the writable folder. Every entry comes in
// through here, whoever made it, so this is where the folder is kept within its
// bounds.
func (c *Cache) publish(k Key, b []byte) bool {
	if c.rw == nil {
		return false
	}
	var err error
	if int64(len(b)) > c.maxBytes {
		err = fmt.Errorf("entry %v has %d bytes, more than the whole cache may (%d)", k, len(b), c.maxBytes)
	} else {
		err = c.rw.publish(k, b)
	}
	if err != nil {
		c.warn(fmt.Errorf("not stored: %w", err))
		return false
	}
	c.unscanned.Add(int64(len(b)))
	c.sweepIfDue()
	return true
}
