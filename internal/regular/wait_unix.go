//go:build unix

package regular

import "syscall"

// noWait keeps opening a pipe from waiting for its writer.
const noWait = syscall.O_NONBLOCK
