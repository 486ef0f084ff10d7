package cache

import (
	"context"
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"sort"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/fusec/fusec/runtime/sign"
)

// clock is a time that the test sets.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

// aged opens a cache with its own clock and a small cap.
func aged(t *testing.T, maxBytes int64) (*Cache, *clock) {
	clk := &clock{time.Now()}
	return Open(Options{
		Dir: private(t), MaxBytes: maxBytes, Now: clk.now,
		OnWarning: func(err error) { t.Errorf("warning: %v", err) },
	}), clk
}

func kilobyte() Entry { return Entry{Sections: []Section{{Cubin, make([]byte, 1000)}}} }

// put stores an entry last used at the given age.
func put(t *testing.T, c *Cache, n int64, used time.Time) {
	require.True(t, c.Put(testKey(n), kilobyte()))
	require.NoError(t, os.Chtimes(c.rw.path(testKey(n)), used, used))
}

func has(c *Cache, n int64) bool {
	_, err := os.Stat(c.rw.path(testKey(n)))
	return err == nil
}

func TestSweepDropsTheLeastRecentlyUsed(t *testing.T) {
	c, clk := aged(t, 1<<20)
	for n := range int64(10) {
		put(t, c, n, clk.t.Add(-time.Duration(n)*time.Hour))
	}
	_, o := c.Get(testKey(9)) // a use makes it young again
	require.Equal(t, Hit, o)
	s, err := c.Stats()
	require.NoError(t, err)
	most := s.Bytes - 1
	freed, err := c.Prune(most)
	require.NoError(t, err)
	after, err := c.Stats()
	require.NoError(t, err)
	assert.Equal(t, s.Bytes-after.Bytes, freed)
	assert.LessOrEqual(t, after.Bytes, most-most/10, "down to 90 %")
	assert.GreaterOrEqual(t, after.Bytes, s.Bytes*7/10, "and no further")
	assert.True(t, has(c, 9) && has(c, 0))
	assert.False(t, has(c, 8))
}

func TestUseIsRecordedAtMostHourly(t *testing.T) {
	c, clk := aged(t, 1<<20)
	mtime := func() time.Time {
		info, err := os.Stat(c.rw.path(testKey(1)))
		require.NoError(t, err)
		return info.ModTime()
	}
	for _, step := range []struct {
		used time.Duration
		kept bool
	}{{-30 * time.Minute, true}, {-2 * time.Hour, false}, {48 * time.Hour, false}} { // the last: clock set back
		put(t, c, 1, clk.t.Add(step.used))
		before := mtime()
		_, o := c.Get(testKey(1))
		require.Equal(t, Hit, o)
		assert.Equal(t, step.kept, mtime().Equal(before), "%v", step.used)
		if !step.kept {
			assert.WithinDuration(t, clk.t, mtime(), time.Second)
		}
	}
}

// A writer that goes over the cap brings the cache back below it, with no other
// process to help.
func TestWriterKeepsTheCap(t *testing.T) {
	c, _ := aged(t, 20_000)
	for n := range int64(200) {
		require.True(t, c.Put(testKey(n), kilobyte()))
		s, err := c.Stats()
		require.NoError(t, err)
		require.LessOrEqual(t, s.Bytes, int64(20_000+20_000/scanPart+2_000))
	}
	assert.True(t, has(c, 199))
}

// TestCapHoldsHoweverEntriesComeIn writes through every way that an entry has into the
// folder, and looks at all that lies there after each.
func TestCapHoldsHoweverEntriesComeIn(t *testing.T) {
	const most = 20_000
	key := sharedKey(1)
	store := newMapStore()
	full := Open(Options{Dir: private(t), Shared: &Shared{Store: store, Key: key}})
	for n := range int64(200) {
		require.True(t, full.Put(testKey(n), kilobyte()))
		if n%32 == 31 {
			flush(t, full)
		}
	}
	flush(t, full)
	require.Len(t, store.data, 200)
	make1 := func(context.Context) (Entry, error) { return kilobyte(), nil }
	never := func(context.Context) (Entry, error) { return Entry{}, errors.New("expected a hit") }
	for _, way := range []struct {
		name string
		add  func(c *Cache, n int64) Outcome
		want Outcome
	}{
		{"put", func(c *Cache, n int64) Outcome { c.Put(testKey(1000+n), kilobyte()); return Created }, Created},
		{"created", func(c *Cache, n int64) Outcome {
			_, o, err := c.GetOrCreate(t.Context(), testKey(1000+n), make1)
			require.NoError(t, err)
			return o
		}, Created},
		{"got from the shared store", func(c *Cache, n int64) Outcome { _, o := c.Get(testKey(n)); return o }, SharedHit},
		{"asked of the shared store", func(c *Cache, n int64) Outcome {
			_, o, err := c.GetOrCreate(t.Context(), testKey(n), never)
			require.NoError(t, err)
			return o
		}, SharedHit},
	} {
		t.Run(way.name, func(t *testing.T) {
			c := Open(Options{Dir: private(t), MaxBytes: most,
				OnWarning: func(err error) { t.Errorf("warning: %v", err) },
				Shared:    &Shared{Store: store, Trusted: []ed25519.PublicKey{sign.Public(key)}}})
			for n := range int64(200) {
				require.Equal(t, way.want, way.add(c, n))
				size, err := c.rw.size()
				require.NoError(t, err)
				require.LessOrEqual(t, size, int64(most+most/scanPart+2_000), "after %d", n)
			}
		})
	}
}

// Halves of entries, which killed processes leave, count for the cap until they go.
func TestHalfWrittenFilesCountForTheCap(t *testing.T) {
	c, _ := aged(t, 20_000)
	for n := range int64(10) {
		require.True(t, c.Put(testKey(n), kilobyte()))
	}
	half := filepath.Join(filepath.Dir(c.rw.path(testKey(1))), tempPrefix+"1")
	require.NoError(t, os.WriteFile(half, make([]byte, 15_000), 0o600))
	_, err := c.Prune(20_000)
	require.NoError(t, err)
	size, err := c.rw.size()
	require.NoError(t, err)
	assert.LessOrEqual(t, size, int64(18_000))
	assert.FileExists(t, half, "somebody may still be writing it")
}

func TestEntryLargerThanTheCacheIsNotStored(t *testing.T) {
	w := new(warnings)
	c := Open(Options{Dir: private(t), MaxBytes: 500, OnWarning: w.add})
	assert.False(t, c.Put(testKey(1), kilobyte()))
	require.Len(t, w.take(), 1)
	assert.False(t, has(c, 1))
}

func TestSweepIsDaily(t *testing.T) {
	c, clk := aged(t, 1<<20)
	swept := func() time.Time {
		s, err := c.Stats()
		require.NoError(t, err)
		return s.Swept
	}
	require.True(t, c.Put(testKey(1), kilobyte()))
	first := swept()
	assert.WithinDuration(t, clk.t, first, time.Second)
	for _, step := range []struct {
		by  time.Duration
		due bool
	}{{23 * time.Hour, false}, {2 * time.Hour, true}, {-72 * time.Hour, true}} { // the last: clock set back
		clk.t = clk.t.Add(step.by)
		before := swept()
		require.True(t, c.Put(testKey(2), kilobyte()))
		assert.Equal(t, step.due, !swept().Equal(before), "%v", step.by)
	}
}

func TestSweepRemovesLeftovers(t *testing.T) {
	c, clk := aged(t, 1<<20)
	require.True(t, c.Put(testKey(1), kilobyte()))
	shard := filepath.Dir(c.rw.path(testKey(1)))
	write := func(path string, age time.Duration) {
		require.NoError(t, os.WriteFile(path, []byte("half"), 0o600))
		require.NoError(t, os.Chtimes(path, clk.t.Add(-age), clk.t.Add(-age)))
	}
	old, young := filepath.Join(shard, tempPrefix+"1"), filepath.Join(shard, tempPrefix+"2")
	foreign := filepath.Join(shard, "README")
	deadLock, liveLock := filepath.Join(c.Dir(), lockDir, "dead"), filepath.Join(c.Dir(), lockDir, "live")
	release, held, err := c.fs.TryLock(liveLock)
	require.True(t, held && err == nil)
	defer release()
	write(old, 2*time.Hour)
	write(young, 10*time.Minute)
	write(foreign, 1000*time.Hour)
	write(deadLock, 2*time.Hour)
	require.NoError(t, os.Chtimes(liveLock, clk.t.Add(-2*time.Hour), clk.t.Add(-2*time.Hour)))

	_, err = c.Prune(1 << 20)
	require.NoError(t, err)
	assert.NoFileExists(t, old)
	assert.FileExists(t, young)
	assert.FileExists(t, foreign, "what is not ours stays")
	assert.NoFileExists(t, deadLock)
	assert.FileExists(t, liveLock, "a held lock stays")
	assert.True(t, has(c, 1))
}

// TestUseIsRecordedToTheHour: from an hour on, whichever way the clock went; a folder that is only read is left alone.
func TestUseIsRecordedToTheHour(t *testing.T) {
	c, clk := aged(t, 1<<20)
	for age, recorded := range map[time.Duration]bool{0: false, time.Hour - 1: false, time.Hour: true, time.Hour + 1: true,
		-time.Hour + 1: false, -time.Hour: true, 100 * time.Hour: true} {
		used := clk.t.Add(-age)
		put(t, c, 1, used)
		path := c.rw.path(testKey(1))
		for _, writable := range []bool{false, true} {
			l := *c.rw
			l.writable = writable
			require.NoError(t, l.touch(path, used, clk.t))
			info, err := os.Stat(path)
			require.NoError(t, err)
			assert.Equal(t, recorded && writable, !info.ModTime().Equal(used.Truncate(0)) && age != 0, "%v, %v", age, writable)
		}
	}
}

// TestSweepStopsAtTheCap: what is exactly as large as the cap stays, and one byte more is brought down to 90 %.
func TestSweepStopsAtTheCap(t *testing.T) {
	c, clk := aged(t, 1<<20)
	for n := range int64(20) {
		put(t, c, n, clk.t)
	}
	s, err := c.Stats()
	require.NoError(t, err)
	size, err := c.rw.size()
	require.NoError(t, err)
	assert.Equal(t, s.Bytes, size)
	freed, err := c.Prune(s.Bytes)
	require.NoError(t, err)
	assert.Zero(t, freed)
	most := s.Bytes - 1
	freed, err = c.Prune(most)
	require.NoError(t, err)
	assert.LessOrEqual(t, s.Bytes-freed, most-most/10)
	assert.Greater(t, s.Bytes-freed+s.Bytes/20, most-most/10, "no more than that takes")
}

// TestSweepLeavesNineTenths: as many entries as have no more bytes than 90 % of the cap stay, be it by a single byte.
func TestSweepLeavesNineTenths(t *testing.T) {
	const count = 5
	c, clk := aged(t, 1<<20)
	for _, left := range []int64{1, 3, 4} {
		for _, short := range []int64{0, 1} { // bytes by which these are more than 90 % of the cap
			for n := range int64(count) {
				put(t, c, n, clk.t)
			}
			s, err := c.Stats()
			require.NoError(t, err)
			each := s.Bytes / count
			most := int64(sort.Search(int(s.Bytes), func(most int) bool { return most-most/10 >= int(left*each-short) }))
			require.Equal(t, left*each-short, most-most/10)
			freed, err := c.Prune(most)
			require.NoError(t, err)
			assert.Equal(t, (left-short)*each, s.Bytes-freed, "a cap of %d bytes", most)
		}
	}
}

// TestWritersLookAtTheSizeByAndBy: once they have written a part of the cap since they last did, so that what other processes
// write is noticed.
func TestWritersLookAtTheSizeByAndBy(t *testing.T) {
	probe, _ := aged(t, 1<<20)
	put(t, probe, 0, time.Now())
	s, err := probe.Stats()
	require.NoError(t, err)
	for _, entries := range []int64{1, 2, 3} { // in that part of the cap
		most := scanPart * entries * s.Bytes
		c, _ := aged(t, most)
		for range 2 { // the first sweeps, because nobody has, and the second looks at the size
			require.True(t, c.Put(testKey(0), kilobyte()))
		}
		others := filepath.Join(c.Dir(), quarantineDir, "of others")
		require.NoError(t, os.MkdirAll(filepath.Dir(others), 0o700))
		for range 2 {
			require.NoError(t, os.WriteFile(others, make([]byte, most), 0o600))
			for n := range entries {
				assert.FileExists(t, others, "%d of %d entries written", n, entries)
				require.True(t, c.Put(testKey(0), kilobyte()))
			}
			assert.NoFileExists(t, others, "all of %d entries written", entries)
		}
	}
}
