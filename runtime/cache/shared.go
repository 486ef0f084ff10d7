package cache

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fusec/fusec/runtime/sign"
)

// A Store is a server on the network that the caches of many machines share. It is a plain map
// from names to bytes, and it is not trusted. It must be safe for concurrent use.
type Store interface {
	// Get returns the bytes under a name; an error that is fs.ErrNotExist where there
	// are none.
	Get(ctx context.Context, name string) ([]byte, error)
	// Put stores bytes under a name, in place of what was there.
	Put(ctx context.Context, name string, data []byte) error
}

// Shared says how to use a Store. Names are the hashes of keys, 64 hexadecimal digits. Entries
// are signed, and an entry without a signature by a trusted key is not used.
//
// A store that is slow or down costs a process no more than Wait in ten seconds. After a
// failure it is not used for ten seconds, and longer after each further one. Entries are sent
// in the background.
type Shared struct {
	Store   Store
	Trusted []ed25519.PublicKey // whose entries are used
	Key     ed25519.PrivateKey  // signs what this process creates; nil: nothing is sent
	// Wait is the longest time in which runs wait for the store, in any ten seconds,
	// however many entries they look for; 0 is DefaultSharedWait.
	Wait time.Duration
}

// The bounds of a Shared.
const (
	DefaultSharedWait = time.Second
	waitWindow        = 10 * time.Second // time in which Wait may be used up once
	longestPause      = 5 * time.Minute  // after failures in a row
	sendLimit         = 10 * time.Second // for one entry
	maxSends          = 64               // entries waiting to be sent; more are not sent
	sendsAtOnce       = 4
	sealPurpose       = "fusec cache entry"
)

// shared is a Shared in use.
type shared struct {
	Shared
	warn   func(error)
	budget budget

	slots   chan struct{} // held by sends under way
	pending atomic.Int64
	sends   sync.WaitGroup
}

// checkKeys looks at the lengths of all keys.
func (s *Shared) checkKeys() error {
	err := sign.CheckKeys(s.Trusted...)
	if s.Key != nil {
		err = errors.Join(err, sign.CheckSecret(s.Key))
	}
	return err
}

func newShared(o *Shared, warn func(error)) *shared {
	s := &shared{Shared: *o, warn: warn, slots: make(chan struct{}, sendsAtOnce)}
	if s.Wait <= 0 {
		s.Wait = DefaultSharedWait
	}
	s.budget.limit = s.Wait
	return s
}

// travels reports whether entries of a kind are the same for every machine. Choices are not:
// they are measured on one device, for that device.
func travels(kind Kind) bool { return kind != Choice }

// fetch returns the entry of k from the shared store, and keeps it in the writable
// folder.
func (c *Cache) fetch(ctx context.Context, k Key) (Entry, Outcome) {
	if c.shared == nil || !travels(k.Kind) {
		return Entry{}, Missing
	}
	b, err := c.shared.get(ctx, k)
	if err != nil {
		c.warn(fmt.Errorf("shared store: %w", err))
	}
	if b == nil || err != nil {
		return Entry{}, Missing
	}
	found, e, err := decodeEntry(b)
	if err == nil && found.Sum != k.Sum {
		err = fmt.Errorf("%w: expected %v, found %v", errWrongKey, k, found)
	}
	if err != nil { // it is signed, so another version of fusec wrote it
		c.warn(fmt.Errorf("shared store: %v: %w", k, err))
		return Entry{}, Missing
	}
	if k.Kind != Compiler { // such an entry names the current NVRTC, which changes
		c.publish(k, b)
	}
	return e, SharedHit
}

// get returns the file of an entry, nil where there is none or no time for it.
func (s *shared) get(ctx context.Context, k Key) ([]byte, error) {
	left, ok := s.budget.begin(time.Now())
	if !ok {
		return nil, nil
	}
	limited, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	data, err := s.Store.Get(limited, k.Sum.String())
	missing := errors.Is(err, fs.ErrNotExist)
	gaveUp := ctx.Err() != nil // the caller gave up, not the store
	pause := s.budget.end(time.Now(), err != nil && !missing && !gaveUp)
	switch {
	case missing, gaveUp:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: going on without it for %v", err, pause)
	}
	return s.open(data)
}

// open checks the seal of an entry and removes it.
func (s *shared) open(data []byte) ([]byte, error) {
	if len(data) < sign.SealSize {
		return nil, fmt.Errorf("%w: it has %d bytes", errTruncated, len(data))
	}
	at := len(data) - sign.SealSize
	if err := sign.Check(s.Trusted, sealPurpose, data[:at], data[at:]); err != nil {
		return nil, fmt.Errorf("entry not used: %w", err)
	}
	return data[:at:at], nil
}

// send sends an entry to the shared store, in the background.
func (c *Cache) send(k Key, e Entry) {
	s := c.shared
	if s == nil || s.Key == nil || !travels(k.Kind) {
		return
	}
	if s.pending.Add(1) > maxSends {
		s.pending.Add(-1)
		c.warn(fmt.Errorf("shared store: %v is not sent: %d entries are waiting already", k, maxSends))
		return
	}
	s.sends.Go(func() {
		defer s.pending.Add(-1)
		s.slots <- struct{}{}
		defer func() { <-s.slots }()
		if err := s.put(k, e); err != nil {
			s.warn(fmt.Errorf("shared store: %v is not sent: %w", k, err))
		}
	})
}

func (s *shared) put(k Key, e Entry) error {
	if s.budget.paused(time.Now()) {
		return errors.New("the store failed a moment ago")
	}
	b, err := encodeEntry(k, e)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), sendLimit)
	defer cancel()
	err = s.Store.Put(ctx, k.Sum.String(), append(b, sign.Seal(s.Key, sealPurpose, b)...))
	if err != nil {
		s.budget.fail(time.Now())
	}
	return err
}

// Flush waits until all entries are sent to the shared store, or ctx ends. It is for a process
// that is about to end. The error is that of ctx.
func (c *Cache) Flush(ctx context.Context) error {
	if c.shared == nil {
		return nil
	}
	done := make(chan struct{})
	go func() { // ends with the sends, each of which has its own limit
		c.shared.sends.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// budget bounds the time that callers wait for something that may be slow. Time in which
// several callers wait counts once. It is safe for concurrent use.
type budget struct {
	limit time.Duration // of each window

	mu       sync.Mutex
	began    time.Time     // of the window
	used     time.Duration // in the window, by waits that are over
	waiting  int
	since    time.Time     // waiting > 0: when the first of them began
	pause    time.Duration // after the last failure; 0 for none
	openFrom time.Time
}

// begin starts a wait, which end ends, and returns how long it may last; ok is false if the
// caller may not wait at all.
func (b *budget) begin(now time.Time) (left time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.openFrom) {
		return 0, false
	}
	if age := now.Sub(b.began); b.waiting == 0 && age.Abs() >= waitWindow {
		b.began, b.used = now, 0
	}
	left = b.limit - b.used
	if b.waiting > 0 {
		left -= now.Sub(b.since)
	}
	if left <= 0 {
		return 0, false
	}
	if b.waiting == 0 {
		b.since = now
	}
	b.waiting++
	return left, true
}

// end ends a wait. After a failure it returns the pause in which no caller waits.
func (b *budget) end(now time.Time, failed bool) (pause time.Duration) {
	b.mu.Lock()
	if b.waiting--; b.waiting == 0 {
		b.used += now.Sub(b.since)
	}
	if !failed {
		b.pause = 0
	}
	b.mu.Unlock()
	if failed {
		return b.fail(now)
	}
	return 0
}

// fail begins a pause, which is twice as long as the one before if that was recent. Failures of
// waits that began together count as one.
func (b *budget) fail(now time.Time) (pause time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if now.Before(b.openFrom) {
		return b.openFrom.Sub(now)
	}
	b.pause = min(max(waitWindow, 2*b.pause), longestPause)
	b.openFrom = now.Add(b.pause)
	return b.pause
}

func (b *budget) paused(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return now.Before(b.openFrom)
}
