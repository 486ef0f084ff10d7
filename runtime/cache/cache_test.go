package cache

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// open returns a cache in dir that fails the test on any warning.
func open(t testing.TB, dir string) *Cache {
	return Open(Options{Dir: dir, OnWarning: func(err error) { t.Errorf("warning: %v", err) }})
}

func private(t testing.TB) string {
	dir := filepath.Join(t.TempDir(), "cache")
	require.NoError(t, os.Mkdir(dir, 0o700))
	return dir
}

// creator returns a create function for n and the number of its calls.
func creator(n int64) (func(context.Context) (Entry, error), *atomic.Int64) {
	calls := new(atomic.Int64)
	return func(context.Context) (Entry, error) {
		calls.Add(1)
		return testEntry(n), nil
	}, calls
}

func mustNotCreate(t testing.TB) func(context.Context) (Entry, error) {
	return func(context.Context) (Entry, error) {
		t.Error("created again")
		return Entry{}, nil
	}
}

func TestCreateThenHit(t *testing.T) {
	dir := private(t)
	create, calls := creator(1)
	made, o, err := open(t, dir).GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)

	got, o, err := open(t, dir).GetOrCreate(t.Context(), testKey(1), mustNotCreate(t))
	require.NoError(t, err)
	assert.Equal(t, Hit, o)
	assert.Equal(t, made, got)
	assert.EqualValues(t, 1, calls.Load())

	_, o = open(t, dir).Get(testKey(2))
	assert.Equal(t, Missing, o)
}

func TestEverythingIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	require.True(t, open(t, dir).Put(testKey(1), testEntry(1)))
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		info, e := d.Info()
		require.NoError(t, e)
		assert.Zero(t, info.Mode().Perm()&0o077, path)
		return err
	})
	require.NoError(t, err)
}

func TestErrorsOfCreateAreReturnedAndNotStored(t *testing.T) {
	c := open(t, private(t))
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), func(context.Context) (Entry, error) {
		return Entry{}, errors.New("no such instruction")
	})
	assert.EqualError(t, err, "no such instruction")
	assert.Equal(t, Missing, o)
	create, _ := creator(1)
	_, o, err = c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
}

// Every way in which the file of an entry can be bad ends in a rebuilt entry, one
// warning, and the bad file in quarantine.
func TestBadEntriesAreMovedAsideAndRebuilt(t *testing.T) {
	good := encoded(t, testKey(1), testEntry(1))
	version := append([]byte(nil), good...)
	version[8] = 99
	flipped := append([]byte(nil), good...)
	flipped[len(flipped)-1] ^= 1
	for name, content := range map[string][]byte{
		"empty": {}, "torn": good[:len(good)/2], "flipped": flipped, "other version": resealed(version),
		"wrong key": encoded(t, testKey(2), testEntry(2)), "text": []byte("hello"),
	} {
		dir := private(t)
		w := new(warnings)
		c := Open(Options{Dir: dir, OnWarning: w.add})
		path := c.rw.path(testKey(1))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, content, 0o600))

		create, _ := creator(1)
		got, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
		require.NoError(t, err, name)
		assert.Equal(t, Created, o, name)
		assert.Equal(t, testEntry(1).Sections, got.Sections, name)
		if errs := w.take(); assert.Len(t, errs, 1, name) {
			assert.ErrorContains(t, errs[0], path, name)
		}
		s, err := c.Stats()
		require.NoError(t, err)
		assert.Equal(t, 1, s.Quarantined, name)
		_, o = open(t, dir).Get(testKey(1))
		assert.Equal(t, Hit, o, name)
	}
}

func TestQuarantineIsBounded(t *testing.T) {
	c := Open(Options{Dir: private(t)})
	for n := range int64(maxQuarantine + 10) {
		require.True(t, c.Put(testKey(n), testEntry(n)))
		require.NoError(t, os.Truncate(c.rw.path(testKey(n)), 10))
		c.Get(testKey(n))
	}
	s, err := c.Stats()
	require.NoError(t, err)
	assert.Equal(t, maxQuarantine, s.Quarantined)
}

func TestManyGoroutinesCreateOnce(t *testing.T) {
	c := open(t, private(t))
	const keys, perKey = 8, 16
	var calls [keys]atomic.Int64
	var wg sync.WaitGroup
	for i := range keys * perKey {
		wg.Go(func() {
			n := int64(i % keys)
			e, _, err := c.GetOrCreate(t.Context(), testKey(n), func(context.Context) (Entry, error) {
				calls[n].Add(1)
				time.Sleep(5 * time.Millisecond)
				return testEntry(n), nil
			})
			assert.NoError(t, err)
			assert.Equal(t, testEntry(n).Sections, e.Sections)
		})
	}
	wg.Wait()
	for n := range calls {
		assert.EqualValues(t, 1, calls[n].Load(), "key %d", n)
	}
}

// One caller gives up: the other still gets the entry, and create goes on.
func TestCancellingOneWaiterLeavesTheOthers(t *testing.T) {
	c := open(t, private(t))
	started, finish := make(chan struct{}), make(chan struct{})
	create := func(ctx context.Context) (Entry, error) {
		close(started)
		<-finish
		return testEntry(1), ctx.Err()
	}
	first, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() {
		_, _, err := c.GetOrCreate(first, testKey(1), create)
		errs <- err
	}()
	<-started
	outcomes := make(chan Outcome)
	go func() {
		_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
		assert.NoError(t, err)
		outcomes <- o
	}()
	require.Eventually(t, func() bool {
		c.flight.mu.Lock()
		defer c.flight.mu.Unlock()
		return c.flight.calls[testKey(1).String()].waiters == 2
	}, 5*time.Second, time.Millisecond)
	cancel()
	assert.ErrorIs(t, <-errs, context.Canceled)
	close(finish)
	assert.Equal(t, Joined, <-outcomes)
}

func TestCreateIsCancelledWhenNobodyWaits(t *testing.T) {
	c := open(t, private(t))
	ctx, cancel := context.WithCancel(t.Context())
	stopped := make(chan struct{})
	_, _, err := c.GetOrCreate(ctx, testKey(1), func(shared context.Context) (Entry, error) {
		cancel()
		<-shared.Done()
		close(stopped)
		return Entry{}, shared.Err()
	})
	assert.ErrorIs(t, err, context.Canceled)
	<-stopped
	_, _, err = c.GetOrCreate(ctx, testKey(1), mustNotCreate(t))
	assert.ErrorIs(t, err, context.Canceled)
	create, _ := creator(1)
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o, "the next one starts anew")
}

func TestPanicAndGoexitInCreateReachTheCaller(t *testing.T) {
	c := open(t, private(t))
	func() {
		defer func() {
			p, ok := recover().(error)
			require.True(t, ok)
			assert.ErrorContains(t, p, "BUG: x\n")
			assert.ErrorContains(t, p, "cache_test.go", "the stack of create")
		}()
		c.GetOrCreate(t.Context(), testKey(1), func(context.Context) (Entry, error) { panic("BUG: x") })
	}()
	_, _, err := c.GetOrCreate(t.Context(), testKey(1), func(context.Context) (Entry, error) {
		runtime.Goexit()
		return Entry{}, nil
	})
	assert.ErrorIs(t, err, errGoexit)
	create, _ := creator(1)
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o, "the lock was released")
}

func TestWaitForALockIsBounded(t *testing.T) {
	dir := private(t)
	holder := open(t, dir)
	release, err := holder.lock(t.Context(), testKey(1))
	require.NoError(t, err)

	w := new(warnings)
	c := Open(Options{Dir: dir, LockWait: 30 * time.Millisecond, OnWarning: w.add})
	create, _ := creator(1)
	start := time.Now()
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
	assert.GreaterOrEqual(t, time.Since(start), 30*time.Millisecond)
	assert.ErrorContains(t, errors.Join(w.take()...), "waited 30ms for another process")

	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, err = holder.lock(ctx, testKey(1))
	assert.ErrorIs(t, err, context.DeadlineExceeded)
	release()
	left, err := os.ReadDir(filepath.Join(dir, lockDir))
	require.NoError(t, err)
	assert.Empty(t, left, "lock files go with the lock")
}

// The lock file goes with each holder: whoever locked a file that is no longer
// there must not take it for the lock.
func TestLockExcludes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	var holders, taken atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for taken.Load() < 2000 {
				release, held, err := osFS{}.TryLock(path)
				if !assert.NoError(t, err) {
					return
				}
				if !held {
					runtime.Gosched()
					continue
				}
				assert.EqualValues(t, 1, holders.Add(1), "holders at a time")
				taken.Add(1)
				holders.Add(-1)
				release()
			}
		})
	}
	wg.Wait()
}

// Whatever operation fails, however it fails: the entry comes, the user is told,
// and no half-written file stays under a name that readers know.
func TestDiskFailuresAreWarnings(t *testing.T) {
	ops := []string{"read", "create", "mkdir", "write", "sync", "rename", "lock", "chtimes", "readdir"}
	for _, op := range ops {
		for _, failure := range []error{syscall.ENOSPC, syscall.EROFS, syscall.EIO, syscall.EACCES} {
			dir := private(t)
			w := new(warnings)
			armed := false
			c := Open(Options{Dir: dir, OnWarning: w.add, FS: faultFS{fail: func(o, path string) error {
				if armed && o == op {
					return &fs.PathError{Op: op, Path: path, Err: failure}
				}
				return nil
			}}})
			armed = true
			create, calls := creator(1)
			e, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
			name := op + ": " + failure.Error()
			require.NoError(t, err, name)
			assert.Equal(t, testEntry(1).Sections, e.Sections, name)
			assert.EqualValues(t, 1, calls.Load(), name)
			assert.ErrorIs(t, errors.Join(w.take()...), failure, name)
			lost := op == "create" || op == "mkdir" || op == "write" || op == "sync" || op == "rename"
			assert.Equal(t, lost, o == Unstored, "%s: %v", name, o)

			armed = false
			s, err := c.Stats()
			require.NoError(t, err)
			assert.Zero(t, s.Temporary, name)
			_, o = c.Get(testKey(1))
			assert.Equal(t, !lost, o == Hit, name)
			assert.Empty(t, w.take(), name)
		}
	}
}

// A network file system may say ESTALE where a file was removed: that is no fault.
func TestStaleHandlesAreMisses(t *testing.T) {
	c := Open(Options{Dir: private(t), OnWarning: func(err error) { t.Errorf("warning: %v", err) },
		FS: faultFS{fail: func(op, path string) error {
			if (op == "read" || op == "remove") && filepath.Ext(path) == entryExt {
				return &fs.PathError{Op: op, Path: path, Err: syscall.ESTALE}
			}
			return nil
		}}})
	create, _ := creator(1)
	_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
	_, err = c.Prune(1)
	assert.NoError(t, err)
}

func TestOffStoresNothing(t *testing.T) {
	c := Open(Options{Off: true, Dir: private(t)})
	create, calls := creator(1)
	for range 2 {
		_, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
		require.NoError(t, err)
		assert.Equal(t, Unstored, o)
	}
	assert.EqualValues(t, 2, calls.Load())
	assert.Empty(t, c.Dir())
	infos, err := c.List()
	assert.NoError(t, err)
	assert.Empty(t, infos)
}

func BenchmarkHit(b *testing.B) {
	c := open(b, private(b))
	e := Entry{Sections: []Section{{Cubin, make([]byte, 50<<10)}, {PTX, make([]byte, 50<<10)}}}
	c.Put(testKey(1), e)
	for b.Loop() {
		c.Get(testKey(1))
	}
}
