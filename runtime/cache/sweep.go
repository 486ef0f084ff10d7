package cache

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	sweepEvery = 24 * time.Hour
	// A process that writes checks the size of the folder at its first entry, and then each
	// time it has written this part of the cap.
	scanPart = 32
)

// file is a file of a layer, with the facts that the sweep needs.
type file struct {
	path string
	kind Kind // of an entry
	size int64
	used time.Time
}

func sortOldestFirst(files []file) {
	slices.SortFunc(files, func(a, b file) int {
		return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path))
	})
}

// sweepIfDue is called after each entry that is written: by the writer, so that no
// daemon is needed to keep the cache within its bounds.
func (c *Cache) sweepIfDue() {
	if c.rw == nil {
		return
	}
	due := c.rw.sweepDue(c.now())
	if !due {
		if c.scanned.Swap(true) && c.unscanned.Load() < c.maxBytes/scanPart {
			return
		}
		c.unscanned.Store(0)
		size, err := c.rw.size()
		c.warn(err)
		due = size > c.maxBytes
	}
	if due {
		_, err := c.sweep(c.maxBytes)
		c.warn(err)
	}
}

// Prune removes the least recently used entries where the cache is larger than
// maxBytes, down to 90 % of that, and temporary files that nobody writes any more.
// It returns the bytes that it freed.
func (c *Cache) Prune(maxBytes int64) (freed int64, err error) {
	if c.rw == nil {
		return 0, nil
	}
	return c.sweep(maxBytes)
}

// sweep sweeps unless another process does so at the moment.
func (c *Cache) sweep(maxBytes int64) (int64, error) {
	release, held, err := c.rw.tryLock("sweep")
	if err != nil || !held {
		return 0, err
	}
	defer release()
	now := c.now()
	stampErr := c.rw.stamp(now) // before sweeping, so that other processes do not sweep too
	freed, err := c.rw.sweep(maxBytes, now)
	if err = errors.Join(stampErr, err); err != nil {
		err = fmt.Errorf("cannot sweep the cache: %w", err)
	}
	return freed, err
}

func (l *layer) stampPath() string { return filepath.Join(l.dir, stampName) }

// sweepDue reports whether the last sweep was a day ago, or in the future: then the
// clock was set back, and waiting for it could take for ever.
func (l *layer) sweepDue(now time.Time) bool {
	info, err := l.fs.Stat(l.stampPath())
	return err != nil || now.Sub(info.ModTime()).Abs() >= sweepEvery
}

func (l *layer) stamp(now time.Time) error {
	f, err := l.fs.Create(l.stampPath())
	if err == nil {
		err = f.Close()
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return l.fs.Chtimes(l.stampPath(), now)
}

func (l *layer) sweep(maxBytes int64, now time.Time) (freed int64, err error) {
	entries, temps, err := l.scan()
	drop := func(f file) {
		if e := l.remove(f.path); e != nil {
			err = errors.Join(err, e)
			return
		}
		freed += f.size
	}
	writing := int64(0) // bytes of files that somebody may still be writing
	for _, f := range temps {
		if now.Sub(f.used) > tempAge {
			drop(f)
		} else {
			writing += f.size
		}
	}
	bad, e := l.files(quarantineDir)
	err = errors.Join(err, e, l.sweepLocks(now))
	total := sizeOf(entries) + sizeOf(bad) + writing
	if total <= maxBytes {
		return freed, err
	}
	sortOldestFirst(entries)
	for _, f := range append(bad, entries...) { // unusable files are removed first
		if total <= maxBytes-maxBytes/10 {
			break
		}
		drop(f)
		total -= f.size
	}
	return freed, err
}

// sweepLocks removes lock files that killed processes left: by taking and
// releasing them, so that one in use stays.
func (l *layer) sweepLocks(now time.Time) error {
	locks, err := l.files(lockDir)
	for _, f := range locks {
		if now.Sub(f.used) < tempAge || filepath.Base(f.path) == "sweep" {
			continue
		}
		release, held, e := l.fs.TryLock(f.path)
		if held {
			release()
		}
		err = errors.Join(err, e)
	}
	return err
}

func sizeOf(files []file) (n int64) {
	for _, f := range files {
		n += f.size
	}
	return n
}

// size is that of all files of the layer which grow with use.
func (l *layer) size() (int64, error) {
	entries, temps, err := l.scan()
	bad, e := l.files(quarantineDir)
	return sizeOf(entries) + sizeOf(temps) + sizeOf(bad), errors.Join(err, e)
}

// scan lists entries and temporary files. Names that are neither are left alone.
func (l *layer) scan() (entries, temps []file, err error) {
	for _, kind := range Kinds() {
		shards, e := l.readDir(string(kind))
		err = errors.Join(err, e)
		for _, shard := range shards {
			if !shard.IsDir() || len(shard.Name()) != 2 || !isHex(shard.Name()) {
				continue
			}
			files, e := l.files(filepath.Join(string(kind), shard.Name()))
			err = errors.Join(err, e)
			for _, f := range files {
				f.kind = kind
				switch name := filepath.Base(f.path); {
				case isEntryName(shard.Name(), name):
					entries = append(entries, f)
				case strings.HasPrefix(name, tempPrefix):
					temps = append(temps, f)
				}
			}
		}
	}
	return entries, temps, err
}

// files lists the regular files of a folder of the layer; a missing folder has none.
func (l *layer) files(dir string) ([]file, error) {
	list, err := l.readDir(dir)
	var out []file
	for _, d := range list {
		if !d.Type().IsRegular() {
			continue
		}
		info, e := d.Info()
		switch {
		case e == nil:
			path := filepath.Join(l.dir, dir, d.Name())
			out = append(out, file{path: path, size: info.Size(), used: info.ModTime()})
		case !transient(e):
			err = errors.Join(err, e)
		}
	}
	return out, err
}

func (l *layer) readDir(dir string) ([]fs.DirEntry, error) {
	list, err := l.fs.ReadDir(filepath.Join(l.dir, dir))
	if err != nil && transient(err) {
		return nil, nil
	}
	return list, err
}
