//go:build unix

package hold

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Tell is how a launcher reports its target to the starter.
type Tell struct{ fd int }

// Running says that the target executes. Before it, a launcher can fail; after it, the target is what
// everything is about.
func (t Tell) Running() { t.write(record{kind: recordRunning}) }

// Refused says that the kernel did not execute the target, in place of Running.
func (t Tell) Refused(err syscall.Errno) { t.write(record{kind: recordRefused, value: uint32(err)}) }

// Stopped says that a signal has stopped the target.
func (t Tell) Stopped(by syscall.Signal) { t.write(record{kind: recordStopped, value: uint32(by)}) }

// Ended says how the target ended.
func (t Tell) Ended(s syscall.WaitStatus) { t.write(record{kind: recordEnded, value: uint32(s)}) }

// write sends a record to the starter; one that is gone needs none. At most PIPE_BUF: it is not torn.
func (t Tell) write(r record) bool {
	r.text = r.text[:min(len(r.text), 1024)]
	b := r.encode()
	n, err := unix.Write(t.fd, b)
	return err == nil && n == len(b)
}

func errnoOf(err error) syscall.Errno {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EINVAL
	}
	return errno
}

// readWithRights fills b with the head of a frame and returns the descriptors that came with it.
func readWithRights(b []byte) (files []int, err error) {
	rights := make([]byte, unix.CmsgSpace(maxFiles*4))
	for have := 0; have < len(b); {
		n, rn, _, _, err := unix.Recvmsg(controlFD, b[have:], rights, 0)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n == 0 {
			return files, errors.Join(errors.New("the starter is gone"), err)
		}
		have += n
		messages, err := unix.ParseSocketControlMessage(rights[:rn])
		if err != nil {
			return files, err
		}
		for _, m := range messages {
			fds, err := unix.ParseUnixRights(&m)
			if err != nil {
				return files, err
			}
			for _, fd := range fds {
				unix.CloseOnExec(fd)
			}
			files = append(files, fds...)
		}
	}
	return files, nil
}

// hand puts files at the descriptors from 3 on. What was there moves behind them: the report too.
func (t *Tell) hand(files []int) error {
	above := controlFD + len(files)
	for _, fd := range append([]*int{&t.fd}, pointers(files)...) {
		if *fd >= above {
			continue
		}
		moved, err := unix.FcntlInt(uintptr(*fd), unix.F_DUPFD_CLOEXEC, above)
		if err != nil {
			return os.NewSyscallError("fcntl", err)
		}
		*fd = moved
	}
	for i, fd := range files {
		if err := duplicate(fd, controlFD+i); err != nil {
			return err
		}
	}
	return nil
}

func pointers(values []int) []*int {
	var to []*int
	for i := range values {
		to = append(to, &values[i])
	}
	return to
}

// ListenVariables gives env with the variables of sd_listen_fds(3) for this process, in place of others.
func ListenVariables(env []string, count int) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		return strings.HasPrefix(v, "LISTEN_FDS=") || strings.HasPrefix(v, "LISTEN_PID=") || strings.HasPrefix(v, "LISTEN_FDNAMES=")
	})
	return append(env, fmt.Sprintf("LISTEN_FDS=%d", count), "LISTEN_PID="+strconv.Itoa(syscall.Getpid()))
}
