package strict

import (
	"fmt"
	"syscall"
)

// Spec is how strict one start is. The zero value hides what is to be hidden on every host.
type Spec struct {
	// Dir is the absolute working directory of the target.
	Dir string
	// Nameservers replace those of /etc/resolv.conf; without any its content stays as it is.
	Nameservers []string
	// Hide are further paths that shall not be there: folders are empty, anything else is no socket.
	// What does not exist is left out.
	Hide []string
	// Terminal says that descriptor 0 is the target's own terminal: it controls the target, and is
	// /dev/console, where ttyname(3) finds it.
	Terminal bool
	// Bare makes no namespaces and hides nothing: only the session of a terminal is made.
	Bare bool
}

// Program is what is started.
type Program struct {
	Spec
	Path string // no search
	Args []string
	Env  []string
	// Files is how many descriptors from 3 on the target has, told in LISTEN_FDS and LISTEN_PID.
	Files int
}

// Error says which step of the preparation failed. Nothing of the target ran, and nothing is left.
type Error struct {
	Op  string
	Err error
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Op, e.Err) }
func (e *Error) Unwrap() error { return e.Err }

// Watcher is told how a target does, in this order, by one goroutine: Running or Refused, then
// Stopped any number of times, then Ended.
type Watcher interface {
	Running()
	Refused(syscall.Errno)
	Stopped(by syscall.Signal)
	Ended(syscall.WaitStatus)
}
