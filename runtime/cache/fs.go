package cache

import (
	"io"
	"io/fs"
	"time"
)

// FS is what the store needs of a file system. It exists so that tests can make a disk fail;
// everyone else leaves Options.FS nil. Names are paths of the operating system. Methods must be
// safe for concurrent use.
type FS interface {
	// Read returns up to limit bytes of the regular file name, and its info.
	Read(name string, limit int64) ([]byte, fs.FileInfo, error)
	// Create opens a new file for writing and fails where name exists.
	Create(name string) (File, error)
	// MkdirAll makes a folder and those above it, for the owner only.
	MkdirAll(name string) error
	Rename(from, to string) error
	Remove(name string) error
	ReadDir(name string) ([]fs.DirEntry, error)
	Stat(name string) (fs.FileInfo, error)
	Chtimes(name string, t time.Time) error
	Lstat(name string) (fs.FileInfo, error) // of a symbolic link itself
	Readlink(name string) (string, error)
	// TryLock takes the advisory lock that the file name stands for. It does not
	// wait: held is false where another has it. release is nil unless held.
	TryLock(name string) (release func(), held bool, err error)
}

// File is a file being written.
type File interface {
	io.WriteCloser
	Sync() error
}
