package tensor

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// writeFile lets write fill a temporary file beside path, and renames it into place. If path is
// not a regular file (a pipe, a device), it is written directly. If it is a symbolic link, the
// file that it points to is replaced, not the link.
func writeFile(path string, write func(io.Writer) error) error {
	return replaceFile(path, write, fast)
}

// durability says whether a file must be on the disk, and not only in the system's memory, when
// the call returns.
type durability bool

const (
	fast    durability = false
	durable durability = true
)

// replaceFile is writeFile with a durability.
func replaceFile(path string, write func(io.Writer) error, how durability) error {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return writeDirect(path, write)
	}
	f, err := createTemp(path)
	if err != nil {
		return err
	}
	err = fill(f, write, how)
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err == nil && how == durable {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		os.Remove(f.Name()) // the first error is the one to report
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

func writeDirect(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if err := fill(f, write, fast); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// createTemp is os.CreateTemp with the permissions that an ordinary new file has.
func createTemp(path string) (*os.File, error) {
	dir, base := filepath.Split(path)
	for range 100 {
		name := filepath.Join(dir, fmt.Sprintf(".%s.%08x.tmp", base, rand.Uint32()))
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
	}
	return nil, fmt.Errorf("write %s: no free temporary name in its folder", path)
}

func fill(f *os.File, write func(io.Writer) error, how durability) error {
	w := bufio.NewWriterSize(f, 1<<16)
	err := write(w)
	if err == nil {
		err = w.Flush()
	}
	if err == nil && how == durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
