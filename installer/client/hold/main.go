//go:build unix

package hold

import (
	"encoding/binary"
	"encoding/gob"
	"errors"
	"io"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Descriptors of a held child beside the standard ones.
const (
	controlFD = 3
	reportFD  = 4
)

// statusNotRun is the exit status of a held child that never became the target: the starter
// knows better what happened.
const statusNotRun = 125

// Main is the held child: it closes what it inherited, says that it is held, waits and executes
// the target. It returns an exit status only when that failed or the starter is gone.
//
// It uses plain system calls: a descriptor of the runtime's poller would not matter, since it is
// closed on execution, but every one less is one less to reason about.
func Main() int {
	if err := seal(); err != nil {
		return statusNotRun
	}
	if n, err := unix.Write(reportFD, []byte{readyByte}); n != 1 || err != nil {
		return statusNotRun
	}
	var t Target
	if err := gob.NewDecoder(descriptor(controlFD)).Decode(&t); err != nil {
		return statusNotRun
	}
	err := syscall.Exec(t.Path, t.Args, t.Env) // puts the soft limit of descriptors back, too
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		errno = syscall.EINVAL
	}
	_, _ = unix.Write(reportFD, binary.LittleEndian.AppendUint32(nil, uint32(errno)))
	return statusNotRun
}

// descriptor reads without the runtime's poller.
type descriptor int

func (d descriptor) Read(b []byte) (int, error) {
	for {
		n, err := unix.Read(int(d), b)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, err
		case n == 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

// seal closes every inherited socket at once (a helper refuses a process that holds one) and
// marks everything else, control and report too, to be closed when the target is executed. This
// program opens files with close-on-exec, but what it inherited itself may lack it.
func seal() error {
	names, err := os.ReadDir("/dev/fd")
	if err != nil {
		// No /proc: all is marked in one go. A socket then stays until the execution, and the
		// helper says so.
		return closeFrom(controlFD)
	}
	for _, entry := range names {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd < controlFD {
			continue
		}
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) != nil {
			continue // the descriptor of the listing itself
		}
		if fd > reportFD && stat.Mode&unix.S_IFMT == unix.S_IFSOCK {
			unix.Close(fd)
			continue
		}
		unix.CloseOnExec(fd)
	}
	return nil
}
