package cache

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// osFS is the file system of the machine.
type osFS struct{}

func (osFS) Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	f, err := os.OpenFile(name, os.O_RDONLY|noFollow|noWait, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("%s: expected a regular file, found %v", name, info.Mode())
	}
	b := make([]byte, min(limit, info.Size()))
	n, err := io.ReadFull(f, b)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		err = nil // the file has become shorter; the decoder will report it
	}
	return b[:n], info, err
}

func (osFS) Create(name string) (File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL|noFollow, 0o600)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osFS) MkdirAll(name string) error                 { return os.MkdirAll(name, 0o700) }
func (osFS) Rename(from, to string) error               { return os.Rename(from, to) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) Chtimes(name string, t time.Time) error     { return os.Chtimes(name, t, t) }
func (osFS) Lstat(name string) (fs.FileInfo, error)     { return os.Lstat(name) }
func (osFS) Readlink(name string) (string, error)       { return os.Readlink(name) }

// TryLock makes the lock file and removes it with the lock. If the file was removed between
// opening and locking, it is no longer the lock, and TryLock starts again.
func (osFS) TryLock(name string) (release func(), held bool, err error) {
	for range 100 {
		f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|noFollow|noWait, 0o600)
		if err != nil {
			return nil, false, err
		}
		held, err := lockFile(f)
		if err != nil || !held {
			f.Close()
			return nil, false, err
		}
		if sameFile(f, name) {
			return func() { os.Remove(name); f.Close() }, true, nil
		}
		f.Close()
	}
	return nil, false, nil
}

func sameFile(f *os.File, name string) bool {
	a, errA := f.Stat()
	b, errB := os.Lstat(name)
	return errA == nil && errB == nil && os.SameFile(a, b)
}
