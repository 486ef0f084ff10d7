package cache

import (
	"io/fs"
	"sync"
	"time"
)

// faultFS is the file system of the machine, some of whose operations fail.
type faultFS struct {
	osFS
	fail func(op, path string) error
}

func (f faultFS) Read(name string, limit int64) ([]byte, fs.FileInfo, error) {
	if err := f.fail("read", name); err != nil {
		return nil, nil, err
	}
	return f.osFS.Read(name, limit)
}

func (f faultFS) Create(name string) (File, error) {
	if err := f.fail("create", name); err != nil {
		return nil, err
	}
	file, err := f.osFS.Create(name)
	return faultFile{file, name, f.fail}, err
}

func (f faultFS) MkdirAll(name string) error {
	if err := f.fail("mkdir", name); err != nil {
		return err
	}
	return f.osFS.MkdirAll(name)
}

func (f faultFS) Rename(from, to string) error {
	if err := f.fail("rename", from); err != nil {
		return err
	}
	return f.osFS.Rename(from, to)
}

func (f faultFS) Remove(name string) error {
	if err := f.fail("remove", name); err != nil {
		return err
	}
	return f.osFS.Remove(name)
}

func (f faultFS) Chtimes(name string, t time.Time) error {
	if err := f.fail("chtimes", name); err != nil {
		return err
	}
	return f.osFS.Chtimes(name, t)
}

func (f faultFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if err := f.fail("readdir", name); err != nil {
		return nil, err
	}
	return f.osFS.ReadDir(name)
}

func (f faultFS) TryLock(name string) (func(), bool, error) {
	if err := f.fail("lock", name); err != nil {
		return nil, false, err
	}
	return f.osFS.TryLock(name)
}

// faultFile writes half of what it is given before it fails.
type faultFile struct {
	File
	name string
	fail func(op, path string) error
}

func (f faultFile) Write(b []byte) (int, error) {
	if err := f.fail("write", f.name); err != nil {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, err
	}
	return f.File.Write(b)
}

func (f faultFile) Sync() error {
	if err := f.fail("sync", f.name); err != nil {
		return err
	}
	return f.File.Sync()
}

// warnings collects what OnWarning is told.
type warnings struct {
	mu   sync.Mutex
	errs []error
}

func (w *warnings) add(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.errs = append(w.errs, err)
}

func (w *warnings) take() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := w.errs
	w.errs = nil
	return errs
}
