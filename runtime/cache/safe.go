package cache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxLinks is how many symbolic links a path may lead through, as in Linux.
const maxLinks = 40

var errTooManyLinks = errors.New("too many symbolic links")

// safePath follows the symbolic links of an absolute path and returns the path without any. It
// checks every folder on the way, including those above the targets of links. It refuses a path
// if a user other than root could replace the last folder, because its contents are read and
// run.
//
// The rule is the same for each folder on the way, including the root. It belongs to this user
// or to root, and nobody else can write to it. A folder with the sticky bit, such as /tmp, is
// allowed, because only its owner can replace a file there. A link must also belong to this
// user or to root. If something is missing, the error is fs.ErrNotExist, and everything above
// it was checked.
func safePath(fsys FS, path string) (string, error) {
	if filepath.Separator != '/' { // owners and modes mean nothing on such systems
		return filepath.EvalSymlinks(path)
	}
	at, rest, links := "/", split(path), 0
	for len(rest) > 0 {
		info, err := fsys.Lstat(at)
		if err != nil {
			return "", err
		}
		if err := safeAncestor(at, path, info); err != nil {
			return "", err
		}
		if rest[0] == ".." { // of a link's target
			at, rest = filepath.Dir(at), rest[1:]
			continue
		}
		next := filepath.Join(at, rest[0])
		if info, err = fsys.Lstat(next); err != nil {
			return "", err
		}
		rest = rest[1:]
		if info.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("%s: %w", path, errTooManyLinks)
		}
		if uid, ok := stranger(info); ok {
			return "", fmt.Errorf("the link %s, on the way to %s, belongs to user %d: expected this user or root",
				next, path, uid)
		}
		target, err := fsys.Readlink(next)
		if err != nil {
			return "", err
		}
		if filepath.IsAbs(target) {
			at = "/"
		}
		rest = append(split(target), rest...)
	}
	return at, nil
}

// split returns the elements of a path, ".." among them.
func split(path string) []string {
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" && part != "." {
			parts = append(parts, part)
		}
	}
	return parts
}

// safeAncestor refuses a folder in which another user could replace what is on the way
// to path.
func safeAncestor(at, path string, info fs.FileInfo) error {
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", at)
	}
	if uid, ok := stranger(info); ok {
		return fmt.Errorf("user %d can put a folder of theirs in place of %s: %s belongs to them, expected this user "+
			"or root", uid, path, at)
	}
	if info.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	const replaced = "other users can put a folder of theirs in place of %s: %s has mode %v: chmod %s it"
	switch perm := info.Mode().Perm(); {
	case perm&0o002 != 0:
		return fmt.Errorf(replaced, path, at, perm, "o-w")
	case perm&0o020 != 0 && !ownGroup(info):
		return fmt.Errorf(replaced, path, at, perm, "g-w")
	}
	return nil
}

// stranger returns the owner of a file where that is neither this user nor root.
func stranger(info fs.FileInfo) (uid int, ok bool) {
	uid, ok = owner(info)
	return uid, ok && uid != os.Geteuid() && uid != 0
}
