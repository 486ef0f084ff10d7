package fusec

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/fusec/fusec/internal/regular"
	"github.com/fusec/fusec/parser"
)

// ErrOutside says that an import leads out of the folders that imports may come from.
var ErrOutside = errors.New("it is outside the folders that imports may come from")

// maxSource is how long a source may be, in bytes.
var maxSource = int64(parser.DefaultLimits.Bytes)

// ImportsFrom returns a Source.ReadFile that reads regular files below the given folders and no
// others. A file that is not below one of them, by its name or because a symbolic link leads out of
// the folder, is refused with ErrOutside and is not opened.
func ImportsFrom(folders ...string) func(name string) ([]byte, error) {
	return func(name string) ([]byte, error) {
		path, err := filepath.Abs(filepath.FromSlash(name))
		if err != nil {
			return nil, err
		}
		err = fmt.Errorf("%w: %s", ErrOutside, strings.Join(folders, ", "))
		for _, folder := range folders {
			below, ok := relative(folder, path)
			if !ok {
				continue
			}
			var text []byte
			if text, err = readBelow(folder, below); err == nil {
				return text, nil
			}
			var at *fs.PathError
			if errors.As(err, &at) {
				at.Path = name // the name as it was imported, not the one below the folder
			}
		}
		return nil, err
	}
}

// relative is the path of a file below a folder, where it is below it.
func relative(folder, path string) (below string, ok bool) {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return "", false
	}
	below, err = filepath.Rel(folder, path)
	return below, err == nil && filepath.IsLocal(below)
}

// readBelow reads a file below a folder. A link that leads out of the folder is refused.
func readBelow(folder, name string) ([]byte, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, info, err := regular.OpenIn(root, name)
	if err != nil {
		return nil, outside(folder, err)
	}
	defer f.Close()
	return regular.Read(f, info, maxSource)
}

// outside reports whether a file below a folder could not be opened because a link leads out of the
// folder. That error comes from package os and has no number, while every error of the system has one.
func outside(folder string, err error) error {
	var number syscall.Errno
	if errors.As(err, &number) || errors.Is(err, regular.ErrKind) {
		return err
	}
	return fmt.Errorf("%w: a link leads out of %s", ErrOutside, folder)
}

// ReadSource reads a regular file that may import others: those below its own folder, and
// below the given roots. An import from elsewhere is a mistake in the source.
func ReadSource(path string, roots ...string) (Source, error) {
	text, err := regular.ReadFile(path, maxSource)
	return Source{Name: path, Text: text, ReadFile: ImportsFrom(append([]string{filepath.Dir(path)}, roots...)...)}, err
}
