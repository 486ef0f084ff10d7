//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link an error. noWait keeps the opening of a pipe from
// waiting for the other end; what is not a regular file is refused once it is open.
const (
	noFollow = syscall.O_NOFOLLOW
	noWait   = syscall.O_NONBLOCK
)

// lockFile takes the lock of an open file, without waiting.
func lockFile(f *os.File) (held bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		}
		return err == nil, err
	}
}

// owner returns the user a file belongs to.
func owner(info fs.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(st.Uid), true
}

// ownGroup reports whether a file's group gives no access to other users. It is root's, or the
// private group that many systems give each user, with the user's number.
func ownGroup(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Gid == 0 || st.Gid == st.Uid)
}

// transient reports errors that mean that the file is gone, and not that the disk has failed.
func transient(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE) || errors.Is(err, syscall.ENOTDIR)
}
