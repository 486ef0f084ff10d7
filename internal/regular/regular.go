// Package regular opens and reads regular files, and nothing else: their size is known
// before they are read. A pipe could wait for ever, a device never ends.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// What can be wrong with a file, in the Err of an *fs.PathError.
var (
	ErrKind  = errors.New("not a regular file")
	ErrSize  = errors.New("the file is too large")
	ErrGrown = errors.New("the file changed while it was read")
)

// Open opens a regular file for reading, and returns its info. It does not wait.
// Links are followed.
func Open(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|noWait, 0)
	return checked(f, path, err)
}

// OpenIn is Open for a file below a root.
func OpenIn(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|noWait, 0)
	return checked(f, name, err)
}

// checked closes what is no regular file.
func checked(f *os.File, path string, err error) (*os.File, fs.FileInfo, error) {
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("%w: it is a %s", ErrKind, kind(info.Mode()))}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeDevice != 0:
		return "device"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "special file"
}

// ReadFile returns the contents of a regular file of at most limit bytes. It holds no
// more memory than the file had bytes when it was opened.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f, info, limit)
}

// Read is ReadFile for a file that Open has opened.
func Read(f *os.File, info fs.FileInfo, limit int64) ([]byte, error) {
	size := info.Size()
	if size > limit {
		return nil, &fs.PathError{Op: "read", Path: f.Name(),
			Err: fmt.Errorf("%w: it has %d bytes, expected at most %d", ErrSize, size, limit)}
	}
	b := make([]byte, size+1) // one more, which is there only where the file grows
	n, err := io.ReadFull(f, b)
	switch {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return nil, err
	case int64(n) != size:
		return nil, &fs.PathError{Op: "read", Path: f.Name(),
			Err: fmt.Errorf("%w: it had %d bytes", ErrGrown, size)}
	}
	return b[:n:n], nil
}
