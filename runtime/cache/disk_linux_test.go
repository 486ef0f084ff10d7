package cache

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tmpfs mounts a small file system, or skips where that is not allowed.
func tmpfs(t *testing.T, options string) string {
	dir := private(t)
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("cannot mount a file system here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(dir, 0)) })
	return dir
}

// On a disk that is really full entries come all the same, what is stored is whole,
// and there is room again when something goes.
func TestFullDisk(t *testing.T) {
	dir, w := tmpfs(t, "size=128k,mode=700"), new(warnings)
	c := Open(Options{Dir: dir, OnWarning: w.add})
	unstored := 0
	for n := range int64(300) {
		create, _ := creator(n)
		e, o, err := c.GetOrCreate(t.Context(), testKey(n), create)
		require.NoError(t, err)
		require.Equal(t, testEntry(n).Sections, e.Sections)
		if o == Unstored {
			unstored++
		}
	}
	assert.NotZero(t, unstored)
	assert.ErrorIs(t, errors.Join(w.take()...), syscall.ENOSPC)
	checked, bad, err := c.Verify()
	require.NoError(t, err)
	assert.Empty(t, bad)
	assert.Equal(t, 300-unstored, checked)
	s, err := c.Stats()
	require.NoError(t, err)
	assert.Zero(t, s.Temporary, "half-written files are removed")
	t.Logf("300 entries on 128 KiB: %d stored whole, %d not stored, 0 errors", checked, unstored)
	_, err = c.Prune(4 << 10)
	require.NoError(t, err)
	assert.True(t, c.Put(testKey(1000), testEntry(1000)))
}

func TestReadOnlyDisk(t *testing.T) {
	dir, w := tmpfs(t, "size=1m,mode=700"), new(warnings)
	require.True(t, open(t, dir).Put(testKey(1), testEntry(1)))
	require.NoError(t, syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""))
	later := func() time.Time { return time.Now().Add(48 * time.Hour) } // when use is recorded and the sweep is due
	c := Open(Options{Dir: dir, OnWarning: w.add, Now: later})
	_, o := c.Get(testKey(1))
	assert.Equal(t, Hit, o, "what is there serves")
	create, _ := creator(2)
	_, o, err := c.GetOrCreate(t.Context(), testKey(2), create)
	require.NoError(t, err)
	assert.Equal(t, Unstored, o)
	assert.ErrorIs(t, errors.Join(w.take()...), syscall.EROFS)
}

// asUser runs userRole as a user without any rights here.
func asUser(t *testing.T, dir string, env ...string) string {
	if os.Geteuid() != 0 {
		t.Skip("only root can become another user")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	in, err := os.Open(exe)
	require.NoError(t, err)
	defer in.Close()
	place, err := os.MkdirTemp("/tmp", "fusec-test-") // where others can reach it
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(place) })
	require.NoError(t, os.Chmod(place, 0o755))
	copied := filepath.Join(place, "test")
	out, err := os.OpenFile(copied, os.O_CREATE|os.O_WRONLY, 0o755)
	require.NoError(t, err)
	_, err = io.Copy(out, in)
	require.NoError(t, errors.Join(err, out.Close()))
	cmd := role(t, "user", dir)
	cmd.Path, cmd.Dir = copied, "/"
	cmd.Env = append([]string{roleEnv + "=user", dirEnv + "=" + dir}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 64321, Gid: 64321}}
	text, err := cmd.CombinedOutput()
	require.NoError(t, err, string(text))
	return string(text)
}

// A user whose home cannot be written, or who has none, works without a cache or
// with one among the temporary files.
func TestUsersWithoutAHome(t *testing.T) {
	unwritable := []string{"cannot use the folder", "created, not stored"}
	for name, c := range map[string]struct {
		dir  string
		env  []string
		want []string
	}{
		"home of root":   {env: []string{"HOME=/root"}, want: unwritable},
		"home in /proc":  {env: []string{"HOME=/proc"}, want: unwritable},
		"folder of root": {dir: private(t), want: []string{"cache disabled", "created, not stored"}},
		"no home":        {env: []string{"TMPDIR=/tmp"}, want: []string{"created <nil>\nhit <nil>\n"}},
	} {
		got := asUser(t, c.dir, c.env...)
		for _, want := range c.want {
			assert.Contains(t, got, want, name)
		}
		assert.NotContains(t, got, "error", name)
	}
	require.NoError(t, os.RemoveAll("/tmp/fusec-64321"))
}

// A link where an entry, a lock or the folder should be is not followed to anything
// that others could have written.
func TestSymlinksSwappedIn(t *testing.T) {
	dir, w := private(t), new(warnings)
	c := Open(Options{Dir: dir, OnWarning: w.add})
	path := c.rw.path(testKey(1))
	elsewhere := filepath.Join(t.TempDir(), "evil")
	require.NoError(t, os.WriteFile(elsewhere, encoded(t, testKey(1), testEntry(666)), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.Symlink(elsewhere, path))
	_, o := c.Get(testKey(1))
	assert.Equal(t, Missing, o)
	assert.ErrorIs(t, errors.Join(w.take()...), syscall.ELOOP)
	create, _ := creator(1)
	e, o, err := c.GetOrCreate(t.Context(), testKey(1), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o)
	assert.Equal(t, testEntry(1).Sections, e.Sections)
	info, err := os.Lstat(path)
	require.NoError(t, err)
	assert.True(t, info.Mode().IsRegular(), "the link is replaced, not written through")
	evil, err := os.ReadFile(elsewhere)
	require.NoError(t, err)
	assert.Equal(t, encoded(t, testKey(1), testEntry(666)), evil)
	w.take()

	victim := filepath.Join(t.TempDir(), "victim")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, lockDir), 0o700))
	require.NoError(t, os.Symlink(victim, filepath.Join(dir, lockDir, "kernel-"+testKey(2).Sum.String())))
	create, _ = creator(2)
	_, o, err = c.GetOrCreate(t.Context(), testKey(2), create)
	require.NoError(t, err)
	assert.Equal(t, Created, o, "without the lock")
	assert.NoFileExists(t, victim)
}

// Whatever lies where an entry or a lock belongs, nobody waits for it: a pipe has a
// reader at once, and no writer ever.
func TestWhatIsNoFileIsNotWaitedFor(t *testing.T) {
	w := new(warnings)
	c := Open(Options{Dir: private(t), OnWarning: w.add})
	path := c.rw.path(testKey(1))
	lock := filepath.Join(c.Dir(), lockDir, string(Kernel)+"-"+testKey(1).Sum.String())
	for _, name := range []string{path, lock} {
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
		require.NoError(t, syscall.Mkfifo(name, 0o600))
	}
	done := make(chan Outcome, 1)
	go func() {
		create, _ := creator(1)
		_, o, err := c.GetOrCreate(context.Background(), testKey(1), create)
		assert.NoError(t, err)
		done <- o
	}()
	select {
	case o := <-done:
		assert.Equal(t, Created, o)
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a pipe")
	}
	assert.Contains(t, errors.Join(w.take()...).Error(), "expected a regular file")
	_, o := c.Get(testKey(1))
	assert.Equal(t, Hit, o, "the entry takes the place of the pipe")
}

func TestFoldersThatOthersCanReplaceAreRefused(t *testing.T) {
	parent := filepath.Join(t.TempDir(), "everybody")
	dir := filepath.Join(parent, "cache")
	require.NoError(t, os.MkdirAll(dir, 0o700))
	require.NoError(t, os.Chmod(parent, 0o777))
	assert.Contains(t, refused(t, Options{Dir: dir}), "in place of "+dir)
	require.NoError(t, os.Chmod(parent, 0o777|os.ModeSticky))
	assert.Equal(t, dir, open(t, dir).Dir(), "the sticky bit protects it, as in /tmp")
}

// A clock that runs backwards loses nothing and blocks nothing.
func TestClockRunningBackwards(t *testing.T) {
	c, clk := aged(t, 30_000)
	for n := range int64(400) {
		clk.t = clk.t.Add(-time.Duration(rand.IntN(7200)) * time.Second)
		create, _ := creator(n)
		_, o, err := c.GetOrCreate(t.Context(), testKey(n), create)
		require.NoError(t, err)
		require.Equal(t, Created, o)
		_, o = c.Get(testKey(n))
		require.Equal(t, Hit, o)
	}
	s, err := c.Stats()
	require.NoError(t, err)
	assert.LessOrEqual(t, s.Bytes, int64(31_000), "the cap holds")
}

// Network file systems report errors of operations that took place (an answer was
// lost, the request sent again), keep removed files that are open, and know no locks.
func TestNetworkFileSystems(t *testing.T) {
	type step struct {
		op     string
		after  bool // it takes place, and then reports the error
		failed error
	}
	var steps []step
	for _, failed := range []error{syscall.ENOENT, syscall.ESTALE, syscall.EBUSY, syscall.EIO} {
		for _, op := range []string{"rename", "remove"} {
			steps = append(steps, step{op, true, failed}, step{op, false, failed})
		}
	}
	steps = append(steps, step{"lock", false, syscall.ENOLCK}, step{"lock", false, syscall.EOPNOTSUPP},
		step{"read", false, syscall.ESTALE}, step{"readdir", false, syscall.ESTALE})
	for _, s := range steps {
		w := new(warnings)
		fsys := &networkFS{step: s.op, after: s.after, failed: s.failed}
		c := Open(Options{Dir: private(t), OnWarning: w.add, FS: fsys, MaxBytes: 2000})
		for round := range 3 {
			for n := range int64(10) {
				create, _ := creator(n)
				e, _, err := c.GetOrCreate(t.Context(), testKey(n), create)
				require.NoError(t, err, "%+v round %d", s, round)
				require.Equal(t, testEntry(n).Sections, e.Sections, "%+v", s)
			}
		}
		fsys.step = ""
		w.take()
		_, bad, err := c.Verify()
		require.NoError(t, err)
		assert.Empty(t, bad, "%+v", s)
	}
	t.Logf("%d kinds of failure, 30 requests each: 0 errors, 0 bad entries", len(steps))
}

// networkFS fails one operation on every second call.
type networkFS struct {
	osFS
	step   string
	after  bool
	failed error
	calls  int
}

func (f *networkFS) do(op, path string, run func() error) error {
	f.calls++
	if op != f.step || f.calls%2 == 0 {
		return run()
	}
	if f.after {
		run()
	}
	return &fs.PathError{Op: op, Path: path, Err: f.failed}
}

func (f *networkFS) Rename(from, to string) error {
	return f.do("rename", from, func() error { return f.osFS.Rename(from, to) })
}

func (f *networkFS) Remove(name string) error {
	return f.do("remove", name, func() error { return f.osFS.Remove(name) })
}

func (f *networkFS) ReadDir(name string) (list []fs.DirEntry, err error) {
	err = f.do("readdir", name, func() error { list, err = f.osFS.ReadDir(name); return err })
	return list, err
}

func (f *networkFS) Read(name string, limit int64) (b []byte, info fs.FileInfo, err error) {
	err = f.do("read", name, func() error { b, info, err = f.osFS.Read(name, limit); return err })
	return b, info, err
}

func (f *networkFS) TryLock(name string) (release func(), held bool, err error) {
	err = f.do("lock", name, func() error { release, held, err = f.osFS.TryLock(name); return err })
	return release, held, err
}

// Two versions of fusec share a folder: neither sees, spoils or counts as damaged
// what the other wrote, and the sweep bounds both together.
func TestTwoVersionsShareAFolder(t *testing.T) {
	dir := private(t)
	c := open(t, dir)
	k := testKey(1)
	other := Key{Kind: k.Kind, Fields: k.Fields, Sum: sumOf(formatVersion+1, k.Kind, k.Fields)}
	require.NotEqual(t, k.Sum, other.Sum, "they have names of their own")
	foreign := encoded(t, k, testEntry(2))
	foreign[8]++
	foreign = append(foreign, bytes.Repeat([]byte("of a longer format"), 100)...)
	path := c.rw.path(other)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, foreign, 0o600))

	create, calls := creator(1)
	for range 3 {
		e, _, err := c.GetOrCreate(t.Context(), k, create)
		require.NoError(t, err)
		assert.Equal(t, testEntry(1).Sections, e.Sections)
	}
	assert.EqualValues(t, 1, calls.Load())
	checked, bad, err := c.Verify()
	require.NoError(t, err)
	assert.Equal(t, 1, checked)
	assert.Empty(t, bad)
	assert.FileExists(t, path)
	infos, err := c.List()
	require.NoError(t, err)
	require.Len(t, infos, 2)
	assert.True(t, errors.Is(infos[0].Err, errVersion) != errors.Is(infos[1].Err, errVersion))
	_, _, ok, err := c.Why(testKey(2))
	require.NoError(t, err)
	assert.True(t, ok, "the nearest is one of its own")

	old := time.Now().Add(-100 * time.Hour)
	require.NoError(t, os.Chtimes(path, old, old))
	_, err = c.Prune(1000)
	require.NoError(t, err)
	assert.NoFileExists(t, path, "the least recently used goes, whoever wrote it")
	assert.True(t, has(c, 1))
	assert.True(t, strings.HasPrefix(path, dir))
}
