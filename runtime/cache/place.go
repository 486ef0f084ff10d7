package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
)

// Env is the environment variable that places the cache: "off", or folders as in
// PATH, the first to write to (empty: none) and the others only to read.
const Env = "FUSEC_CACHE"

// Place says which folders a cache consists of.
type Place struct {
	Dir      string   // writable; "" for none
	ReadOnly []string // read after Dir
}

// Locate returns the folders that the environment asks for: FUSEC_CACHE, else fusec
// in $XDG_CACHE_HOME or ~/.cache, else, for users without a home, a folder of their
// own among the temporary files.
func Locate(getenv func(string) string) Place {
	switch v := getenv(Env); v {
	case "":
		return Place{Dir: defaultDir(getenv)}
	case "off":
		return Place{}
	default:
		list := filepath.SplitList(v)
		p := Place{Dir: list[0]}
		for _, dir := range list[1:] {
			if dir != "" {
				p.ReadOnly = append(p.ReadOnly, dir)
			}
		}
		return p
	}
}

func defaultDir(getenv func(string) string) string {
	if dir := getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) { // the standard ignores relative ones
		return filepath.Join(dir, "fusec")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "fusec")
	}
	if dir, err := os.UserCacheDir(); err == nil && filepath.Separator == '\\' {
		return filepath.Join(dir, "fusec")
	}
	return filepath.Join(os.TempDir(), "fusec-"+strconv.Itoa(os.Getuid()))
}

// openWritable makes the folder if it is missing, and checks that no other user can write to
// it, because the code in the cache is run. The folders above it are checked first, so that
// nothing is made where others could replace it.
func openWritable(fsys FS, dir string) (*layer, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	_, err = safePath(fsys, path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fsys.MkdirAll(path)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot use the folder (set %s to one that can be written, or to off): %w", Env, err)
	}
	path, info, err := resolve(fsys, path)
	if err != nil {
		return nil, err
	}
	if uid, ok := owner(info); ok && uid != os.Geteuid() {
		return nil, fmt.Errorf("%s belongs to user %d and this process runs as %d: set %s to a folder of its own",
			path, uid, os.Geteuid(), Env)
	}
	return newLayer(fsys, path, true), nil
}

// openReadOnly opens a folder of this user or of root.
func openReadOnly(fsys FS, dir string) (*layer, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	path, info, err := resolve(fsys, path)
	if err != nil {
		return nil, err
	}
	if uid, ok := stranger(info); ok {
		return nil, fmt.Errorf("%s belongs to user %d: expected this user or root", path, uid)
	}
	return newLayer(fsys, path, false), nil
}

// resolve follows links and returns the folder behind them: private to its owner, and
// in no place where others could replace it.
func resolve(fsys FS, path string) (string, fs.FileInfo, error) {
	dir, err := safePath(fsys, path)
	if err != nil {
		return "", nil, err
	}
	info, err := fsys.Lstat(dir)
	switch {
	case err != nil:
		return "", nil, err
	case !info.IsDir():
		return "", nil, fmt.Errorf("%s is not a folder: set %s to one", dir, Env)
	case filepath.Separator == '/' && info.Mode().Perm()&0o022 != 0:
		return "", nil, fmt.Errorf("other users can write to %s (mode %v): chmod go-w it", dir, info.Mode().Perm())
	}
	return dir, info, nil
}
