package cache

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"time"
)

const (
	entryExt   = ".entry"
	tempPrefix = ".tmp-"
	// touchEvery bounds how often a read writes to the disk: use is recorded to the hour.
	touchEvery = time.Hour
	// tempAge is the age at which a temporary file counts as left by a dead process.
	tempAge = time.Hour
	// maxQuarantine is how many bad entries are kept for inspection.
	maxQuarantine = 16

	quarantineDir = "quarantine"
	lockDir       = "lock"
	stampName     = "sweep.stamp"
)

// layer is one folder of entries:
//
//	kernel/3f/3f0c....entry   an entry, in the shard of the first byte of its key
//	kernel/3f/.tmp-...        one being written
//	lock/                     locks held by processes that create an entry
//	quarantine/               entries that could not be read
//	sweep.stamp               its time is that of the last sweep
type layer struct {
	fs       FS
	dir      string
	writable bool
}

func newLayer(fsys FS, dir string, writable bool) *layer {
	return &layer{fs: fsys, dir: dir, writable: writable}
}

func (l *layer) shard(k Key) string {
	return filepath.Join(l.dir, string(k.Kind), hex.EncodeToString(k.Sum[:1]))
}

func (l *layer) path(k Key) string { return filepath.Join(l.shard(k), k.Sum.String()+entryExt) }

// isEntryName reports whether name is that of an entry in the given shard.
func isEntryName(shard, name string) bool {
	sum, ok := strings.CutSuffix(name, entryExt)
	return ok && len(sum) == 2*len(Hash{}) && strings.HasPrefix(sum, shard) && isHex(sum)
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// get reads an entry. A bad one is moved aside. err is a warning for the user, whether or not
// there is an entry.
func (l *layer) get(k Key, now time.Time) (e Entry, ok bool, err error) {
	path := l.path(k)
	b, info, err := l.fs.Read(path, maxEntry)
	if err != nil {
		if transient(err) {
			err = nil
		}
		return Entry{}, false, err
	}
	found, e, err := decodeEntry(b)
	if err == nil && found.Sum != k.Sum {
		err = fmt.Errorf("%w: expected %v, found %v", errWrongKey, k, found)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
		return Entry{}, false, errors.Join(err, l.quarantine(path))
	}
	return e, true, l.touch(path, info.ModTime(), now)
}

// touch records a use for the sweep. A time in the future means that the clock was set back,
// and is corrected.
func (l *layer) touch(path string, used, now time.Time) error {
	if age := now.Sub(used); !l.writable || age.Abs() < touchEvery {
		return nil
	}
	if err := l.fs.Chtimes(path, now); err != nil && !transient(err) {
		return fmt.Errorf("cannot record the use of an entry: %w", err)
	}
	return nil
}

// publish writes the file of an entry: under a temporary name that nobody else has,
// then renamed, so that no reader sees a part of it.
func (l *layer) publish(k Key, b []byte) error {
	if !l.writable {
		return fmt.Errorf("%s is read only", l.dir)
	}
	temp, err := l.writeTemp(l.shard(k), b)
	if err == nil {
		err = l.fs.Rename(temp, l.path(k))
	}
	if err != nil && temp != "" {
		l.fs.Remove(temp) // if this fails, the sweep removes it
	}
	return err
}

// writeTemp returns the temporary file that it made, even if it could not fill it.
func (l *layer) writeTemp(dir string, b []byte) (string, error) {
	temp := filepath.Join(dir, fmt.Sprintf("%s%016x", tempPrefix, rand.Uint64()))
	f, err := l.fs.Create(temp)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.fs.MkdirAll(dir); err == nil {
			f, err = l.fs.Create(temp)
		}
	}
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	return temp, errors.Join(err, f.Close())
}

// quarantine moves a bad entry aside, for inspection, and removes the oldest ones there.
// Another process may have replaced the entry by a good one in between. Then the good one is
// moved, and will be created again, which costs time but is no error.
func (l *layer) quarantine(path string) error {
	if !l.writable {
		return nil
	}
	dir := filepath.Join(l.dir, quarantineDir)
	if err := l.fs.MkdirAll(dir); err != nil {
		return err
	}
	to := filepath.Join(dir, fmt.Sprintf("%s.%016x", filepath.Base(path), rand.Uint64()))
	if err := l.fs.Rename(path, to); err != nil && !transient(err) {
		return err
	}
	return l.trimQuarantine(maxQuarantine)
}

func (l *layer) trimQuarantine(keep int) error {
	files, err := l.files(quarantineDir)
	sortOldestFirst(files)
	for i := 0; i < len(files)-keep; i++ {
		err = errors.Join(err, l.remove(files[i].path))
	}
	return err
}

func (l *layer) remove(path string) error {
	if err := l.fs.Remove(path); err != nil && !transient(err) {
		return err
	}
	return nil
}

// tryLock takes the advisory lock of that name, without waiting.
func (l *layer) tryLock(name string) (release func(), held bool, err error) {
	path := filepath.Join(l.dir, lockDir, name)
	release, held, err = l.fs.TryLock(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = l.fs.MkdirAll(filepath.Dir(path)); err == nil {
			release, held, err = l.fs.TryLock(path)
		}
	}
	return release, held, err
}
