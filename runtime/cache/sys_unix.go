//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cache

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// noFollow makes opening a symbolic link an error. noWait keeps opening a pipe from
// waiting for the other end: what is no regular file is refused once it is open.
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

// ownGroup reports whether a file's group is no way in for other users: root's, or the
// private group that many systems give each user, which has the user's number.
func ownGroup(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && (st.Gid == 0 || st.Gid == st.Uid)
}

// transient reports errors that mean the file is gone, not that the disk is ill.
func transient(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESTALE) || errors.Is(err, syscall.ENOTDIR)
}
