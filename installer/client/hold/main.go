//go:build unix

package hold

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"runtime"
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

// Launcher starts a target that has something Within, tells how it does, and returns its exit status
// when it has ended. An error says that it could not be prepared; nothing may be left of the attempt.
// The descriptors of files are the launcher's, and marked to be closed on execution.
type Launcher func(t Target, files []int, tell Tell) (status int, err error)

// Main is the held child, called with what follows Command: it closes what it inherited, says that it is held, waits and executes
// the target. It returns an exit status only when that failed, the starter is gone, or launch, which
// may be nil, has come to the target's end.
//
// It uses plain system calls: a descriptor of the runtime's poller would not matter, since it is
// closed on execution, but every one less is one less to reason about.
func Main(args []string, launch Launcher) int {
	// Capabilities, the signal at a parent's end and the execution are a thread's.
	runtime.LockOSThread()
	if err := seal(); err != nil {
		return statusNotRun
	}
	tell := Tell{reportFD}
	if err := network(args); err != nil {
		tell.write(record{kind: recordFailed, text: err.Error()})
		return statusNotRun
	}
	if !tell.write(record{kind: recordReady}) {
		return statusNotRun
	}
	for {
		t, files, err := receive()
		if err != nil {
			return statusNotRun
		}
		if len(t.Within) == 0 {
			err := execute(t, files, &tell)
			tell.Refused(errnoOf(err))
			return statusNotRun
		}
		status, err := 0, errors.New("this program launches nothing")
		if launch != nil {
			status, err = launch(t, files, tell)
		}
		if err == nil {
			awaitClosed()
			return status
		}
		for _, fd := range files {
			unix.Close(fd)
		}
		if !tell.write(record{kind: recordFailed, text: err.Error()}) {
			return statusNotRun
		}
	}
}

// awaitClosed returns when the starter has read that the target runs: what comes behind that is
// how it ended. A starter that is gone has nothing open.
func awaitClosed() {
	for {
		if _, err := unix.Read(controlFD, make([]byte, 1)); err != unix.EINTR {
			return
		}
	}
}

// execute replaces the child by the target, which puts the soft limit of descriptors back, too.
func execute(t Target, files []int, tell *Tell) error {
	if len(files) > 0 {
		if err := tell.hand(files); err != nil {
			return err
		}
		t.Env = ListenVariables(t.Env, len(files))
	}
	return syscall.Exec(t.Path, t.Args, t.Env)
}

// receive reads one target and its descriptors, without the runtime's poller.
func receive() (Target, []int, error) {
	var head [4]byte
	files, err := readWithRights(head[:])
	if err != nil {
		return Target{}, nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxFrame {
		return Target{}, files, fmt.Errorf("a target of %d octets", size)
	}
	frame := make([]byte, size)
	for have := 0; have < len(frame); {
		n, err := unix.Read(controlFD, frame[have:])
		switch {
		case err == unix.EINTR:
		case err != nil:
			return Target{}, files, err
		case n == 0:
			return Target{}, files, errors.New("the starter is gone")
		default:
			have += n
		}
	}
	var w wireTarget
	if err := gob.NewDecoder(bytes.NewReader(frame)).Decode(&w); err != nil {
		return Target{}, files, err
	}
	if w.Files != len(files) {
		return Target{}, files, fmt.Errorf("%d of %d descriptors came", len(files), w.Files)
	}
	return Target{Path: w.Path, Args: w.Args, Env: w.Env, Within: w.Within}, files, nil
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
