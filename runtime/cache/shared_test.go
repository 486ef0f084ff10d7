package cache

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"io/fs"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/sign"
)

func sharedKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
}

// mapStore is a Store in memory that can be slow or out of order.
type mapStore struct {
	mu    sync.Mutex
	data  map[string][]byte
	delay time.Duration
	err   error
	gets  int
}

func newMapStore() *mapStore { return &mapStore{data: map[string][]byte{}} }

func (s *mapStore) pass(ctx context.Context) error {
	s.mu.Lock()
	delay, err := s.delay, s.err
	s.mu.Unlock()
	select {
	case <-time.After(delay):
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *mapStore) Get(ctx context.Context, name string) ([]byte, error) {
	s.mu.Lock()
	s.gets++
	s.mu.Unlock()
	if err := s.pass(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.data[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return bytes.Clone(b), nil
}

func (s *mapStore) Put(ctx context.Context, name string, data []byte) error {
	if err := s.pass(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data[name] = data
	return nil
}

// machine opens a cache of its own on a store.
func machine(t *testing.T, s Store, w *warnings) *Cache {
	return Open(Options{Dir: private(t), OnWarning: w.add, Shared: &Shared{Store: s,
		Key: sharedKey(1), Trusted: []ed25519.PublicKey{sign.Public(sharedKey(1))}}})
}

func flush(t *testing.T, c *Cache) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	require.NoError(t, c.Flush(ctx))
}

func TestEntriesTravelBetweenMachines(t *testing.T) {
	s, w := newMapStore(), new(warnings)
	a, b := machine(t, s, w), machine(t, s, w)
	create, _ := creator(1)
	_, o, err := a.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
	require.True(t, a.Put(testKey(2), testEntry(2)))
	choice := NewKey(Choice).String("device", "x").Sum()
	require.True(t, a.Put(choice, testEntry(3)))
	flush(t, a)
	assert.Len(t, s.data, 2, "choices stay at home")

	e, o, err := b.GetOrCreate(t.Context(), testKey(1), mustNotCreate(t))
	require.NoError(t, err)
	assert.Equal(t, SharedHit, o)
	assert.Equal(t, testEntry(1).Sections, e.Sections)
	_, o = b.Get(testKey(2))
	assert.Equal(t, SharedHit, o)
	_, o = b.Get(testKey(2))
	assert.Equal(t, Hit, o, "it is kept")
	_, o = b.Get(choice)
	assert.Equal(t, Missing, o)
	assert.Empty(t, w.take())
}

func TestMalformedKeysLeaveTheStoreOut(t *testing.T) {
	for what, shared := range map[string]*Shared{
		"trusted": {Trusted: []ed25519.PublicKey{sign.Public(sharedKey(1)), {}}},
		"own":     {Key: ed25519.PrivateKey{}, Trusted: []ed25519.PublicKey{sign.Public(sharedKey(1))}},
	} {
		s, w := newMapStore(), new(warnings)
		shared.Store = s
		c := Open(Options{Dir: private(t), OnWarning: w.add, Shared: shared})
		require.True(t, c.Put(testKey(1), testEntry(1)), what)
		_, o := c.Get(testKey(2))
		assert.Equal(t, Missing, o, what)
		flush(t, c)
		assert.Zero(t, s.gets+len(s.data), what)
		assert.ErrorIs(t, errors.Join(w.take()...), sign.ErrKeyLength, what)
	}
}

// What the compiler of the day is must be asked for anew each time.
func TestCompilerIsNotKept(t *testing.T) {
	s, w := newMapStore(), new(warnings)
	a, b := machine(t, s, w), machine(t, s, w)
	k := NewKey(Compiler).Sum()
	require.True(t, a.Put(k, testEntry(1)))
	flush(t, a)
	for range 2 {
		_, o := b.Get(k)
		assert.Equal(t, SharedHit, o)
	}
}

func TestOnlyTrustedEntriesAreUsed(t *testing.T) {
	s, w := newMapStore(), new(warnings)
	good := machine(t, s, w)
	require.True(t, good.Put(testKey(1), testEntry(1)))
	flush(t, good)
	name, other := testKey(1).Sum.String(), testKey(2).Sum.String()
	entry := s.data[name]
	strange := Open(Options{Dir: private(t), Shared: &Shared{Store: s, Key: sharedKey(2)}})
	foreign, err := encodeEntry(testKey(1), testEntry(1))
	require.NoError(t, err)
	foreign = append(foreign, sign.Seal(sharedKey(2), sealPurpose, foreign)...)
	version := bytes.Clone(entry[:len(entry)-sign.SealSize])
	version[8]++
	version = append(version, sign.Seal(sharedKey(1), sealPurpose, version)...)
	for what, c := range map[string]struct {
		name string
		data []byte
		want error
	}{
		"another's key":   {name, foreign, sign.ErrForeignKey},
		"under a name":    {other, entry, errWrongKey},
		"torn":            {name, entry[:len(entry)/2], sign.ErrForeignKey},
		"shorter than it": {name, entry[:10], errTruncated},
		"empty":           {name, nil, errTruncated},
		"other version":   {name, version, errVersion},
	} {
		clear(s.data)
		s.data[c.name] = c.data
		key := testKey(1)
		if c.name == other {
			key = testKey(2)
		}
		m := machine(t, s, w)
		_, o := m.Get(key)
		assert.Equal(t, Missing, o, what)
		assert.ErrorIs(t, errors.Join(w.take()...), c.want, what)
		assert.False(t, has(m, 1), "nothing bad is kept")
	}
	_, o := strange.Get(testKey(1))
	assert.Equal(t, Missing, o, "who trusts nobody uses nothing")
}

// Every bit of what is stored counts.
func TestFlippedBitsInTheStore(t *testing.T) {
	s, w := newMapStore(), new(warnings)
	a := machine(t, s, w)
	require.True(t, a.Put(testKey(1), testEntry(1)))
	flush(t, a)
	whole := maps.Clone(s.data)[testKey(1).Sum.String()]
	for at := range whole {
		bad := bytes.Clone(whole)
		bad[at] ^= 1 << (at % 8)
		_, err := a.shared.open(bad)
		require.Error(t, err, "byte %d", at)
	}
}

// A store that hangs costs a process its wait once, and then nothing for a while,
// however many kernels it needs.
func TestSlowStoreCostsABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newMapStore(), new(warnings)
		s.delay = time.Hour
		c := machine(t, s, w)
		start := time.Now()
		var running sync.WaitGroup
		for n := range int64(20) {
			running.Go(func() {
				for step := range int64(5) {
					create, _ := creator(1)
					_, o, err := c.GetOrCreate(t.Context(), testKey(100*n+step), create)
					assert.NoError(t, err)
					assert.Equal(t, Created, o)
				}
			})
		}
		running.Wait()
		assert.Equal(t, DefaultSharedWait, time.Since(start), "a hundred kernels, one wait")
		assert.LessOrEqual(t, s.gets, 20)
		flush(t, c) // what was not sent is given up
	})
}

func TestStoreIsTriedAgainLaterAndLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newMapStore(), new(warnings)
		s.err = errors.New("connection refused")
		c := machine(t, s, w)
		var tries []time.Duration
		start := time.Now()
		for n := int64(0); time.Since(start) < 30*time.Minute; n++ {
			before := s.gets
			if c.Get(testKey(n)); s.gets > before {
				tries = append(tries, time.Since(start))
			}
			time.Sleep(time.Second)
		}
		assert.Equal(t, []time.Duration{0, 10e9, 30e9, 70e9, 150e9, 310e9, 610e9, 910e9, 1210e9, 1510e9}, tries)
		assert.Len(t, w.take(), len(tries), "a warning for each")
		s.err = nil
		time.Sleep(longestPause)
		assert.True(t, c.Put(testKey(1), testEntry(1)))
		flush(t, c)
		assert.Len(t, s.data, 1, "it is back")
	})
}

// A store that answers, but late, is used as far as the wait goes.
func TestWaitIsSharedBySuccesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newMapStore()
		c := machine(t, s, new(warnings))
		s.delay = 300 * time.Millisecond
		start := time.Now()
		for n := range int64(50) {
			c.Get(testKey(n))
		}
		assert.Equal(t, DefaultSharedWait, time.Since(start))
		time.Sleep(waitWindow)
		before := s.gets
		time.Sleep(waitWindow)
		c.Get(testKey(99))
		assert.Greater(t, s.gets, before, "in the next window again")
	})
}

func TestCallerWhoGivesUpDoesNotBlameTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newMapStore(), new(warnings)
		s.delay = 100 * time.Millisecond
		c := machine(t, s, w)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		create, _ := creator(1)
		_, _, err := c.GetOrCreate(ctx, testKey(1), create)
		assert.ErrorIs(t, err, context.DeadlineExceeded)
		synctest.Wait()
		assert.False(t, c.shared.budget.paused(time.Now()))
		assert.Empty(t, w.take())
	})
}

func TestFullOutboxDropsEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, w := newMapStore(), new(warnings)
		s.delay = time.Second
		c := machine(t, s, w)
		for n := range int64(maxSends + 3) {
			c.send(testKey(n), testEntry(n))
		}
		assert.Len(t, w.take(), 3)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, c.Flush(ctx), context.DeadlineExceeded)
		assert.NoError(t, c.Flush(t.Context()))
		assert.Len(t, s.data, maxSends)
	})
}

func TestReadersSendNothing(t *testing.T) {
	s := newMapStore()
	c := Open(Options{Dir: private(t), Shared: &Shared{Store: s}})
	require.True(t, c.Put(testKey(1), testEntry(1)))
	flush(t, c)
	assert.Empty(t, s.data)
	assert.NoError(t, Open(Options{Off: true}).Flush(t.Context()), "without a store there is nothing to wait for")
}
