package cache

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestListDescribesEntries(t *testing.T) {
	c := open(t, private(t))
	require.True(t, c.Put(testKey(1), testEntry(1)))
	plan := NewKey(Plan).String("program", "x").Sum()
	require.True(t, c.Put(plan, Entry{}))
	old := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(c.rw.path(plan), old, old))

	infos, err := c.List()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	assert.Equal(t, testKey(1), infos[0].Key, "the most recently used first")
	assert.Equal(t, []SectionInfo{{PTX, 8}, {Cubin, 8}, {Meta, 0}}, infos[0].Sections)
	assert.Equal(t, c.rw.path(testKey(1)), infos[0].Path)
	assert.WithinDuration(t, time.Now(), infos[0].Created, time.Minute)
	assert.Equal(t, plan, infos[1].Key)

	require.NoError(t, os.Truncate(infos[1].Path, 70))
	infos, err = c.List()
	require.NoError(t, err)
	assert.ErrorIs(t, infos[0].Err, errTruncated)
}

func TestListReadsLongHeaders(t *testing.T) {
	c := open(t, private(t))
	b := NewKey(Plan)
	for range 3000 {
		b.String("a long name of a field", "x")
	}
	require.True(t, c.Put(b.Sum(), kilobyte()))
	infos, err := c.List()
	require.NoError(t, err)
	assert.NoError(t, infos[0].Err)
	assert.Len(t, infos[0].Key.Fields, 3000)
}

func TestVerifyFindsDamageInThePayload(t *testing.T) {
	c := open(t, private(t))
	for n := range int64(3) {
		require.True(t, c.Put(testKey(n), kilobyte()))
	}
	checked, bad, err := c.Verify()
	require.NoError(t, err)
	assert.Equal(t, 3, checked)
	assert.Empty(t, bad)

	path := c.rw.path(testKey(1))
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	b[len(b)-5] ^= 4
	require.NoError(t, os.WriteFile(path, b, 0o600))
	other := c.rw.path(testKey(2))
	require.NoError(t, os.Rename(other, other[:len(other)-len(entryExt)-1]+"0"+entryExt))
	checked, bad, err = c.Verify()
	require.NoError(t, err)
	assert.Equal(t, 3, checked)
	assert.Len(t, bad, 2, "the damaged one and the one under another's name")
	s, err := c.Stats()
	require.NoError(t, err)
	assert.Equal(t, map[Kind]int{Kernel: 1}, s.Entries)
	assert.Equal(t, 2, s.Quarantined)
}

func TestClearLeavesAnEmptyCacheThatWorks(t *testing.T) {
	c := open(t, private(t))
	for n := range int64(3) {
		require.True(t, c.Put(testKey(n), testEntry(n)))
	}
	removed, err := c.Clear()
	require.NoError(t, err)
	assert.Equal(t, 3, removed)
	s, err := c.Stats()
	require.NoError(t, err)
	assert.Zero(t, s.Bytes)
	assert.True(t, c.Put(testKey(1), testEntry(1)))
}

// TestHalvesThatMayStillBeWrittenStay, whoever tidies up; older ones are of processes that died.
func TestHalvesThatMayStillBeWrittenStay(t *testing.T) {
	for name, tidy := range map[string]func(c *Cache) error{
		"Clear": func(c *Cache) error { _, err := c.Clear(); return err },
		"Prune": func(c *Cache) error { _, err := c.Prune(1 << 20); return err },
	} {
		c, clk := aged(t, 1<<20)
		require.True(t, c.Put(testKey(1), kilobyte()))
		half := filepath.Join(filepath.Dir(c.rw.path(testKey(1))), tempPrefix+"1")
		for age, stays := range map[time.Duration]bool{0: true, tempAge - 1: true, tempAge: true, tempAge + 1: false, 1000 * tempAge: false} {
			require.NoError(t, os.WriteFile(half, []byte("half"), 0o600))
			require.NoError(t, os.Chtimes(half, clk.t.Add(-age), clk.t.Add(-age)))
			require.NoError(t, tidy(c))
			_, err := os.Stat(half)
			assert.Equal(t, stays, err == nil, "%s, %v old", name, age)
		}
	}
}

func TestWhyNamesTheFieldsThatDiffer(t *testing.T) {
	c := open(t, private(t))
	key := func(source, nvrtc, arch string) Key {
		return NewKey(Kernel).String("source", source).String("nvrtc", nvrtc).String("arch", arch).Sum()
	}
	_, _, ok, err := c.Why(key("a", "12.4", "sm_90a"))
	require.NoError(t, err)
	assert.False(t, ok, "an empty cache explains nothing")

	require.True(t, c.Put(key("b", "12.8", "sm_80"), testEntry(1)))
	require.True(t, c.Put(key("a", "12.8", "sm_90a"), testEntry(2)))
	require.True(t, c.Put(NewKey(Plan).String("source", "a").Sum(), testEntry(3)))
	near, differ, ok, err := c.Why(key("a", "12.4", "sm_90a"))
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, []string{"nvrtc"}, differ)
	assert.Equal(t, key("a", "12.8", "sm_90a"), near.Key)
	_, differ, ok, err = c.Why(near.Key)
	require.NoError(t, err)
	assert.True(t, ok)
	assert.Empty(t, differ)
}

// TestWhyPrefersTheMostRecent of entries that share as much.
func TestWhyPrefersTheMostRecent(t *testing.T) {
	c, clk := aged(t, 1<<20)
	key := func(source string) Key { return NewKey(Kernel).String("source", source).String("arch", "sm_80").Sum() }
	for n, source := range []string{"a", "b", "c"} {
		require.True(t, c.Put(key(source), testEntry(1)))
		used := clk.t.Add(-time.Duration((n+1)%3) * time.Minute) // c is the youngest
		require.NoError(t, os.Chtimes(c.rw.path(key(source)), used, used))
	}
	near, differ, ok, err := c.Why(key("d"))
	require.NoError(t, err)
	require.True(t, ok)
	assert.Equal(t, []string{"source"}, differ)
	assert.Equal(t, key("c"), near.Key)
}
