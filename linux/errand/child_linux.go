package errand

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Do is one errand, in the child: it gets its parameters and the files of the Spec, and returns the
// descriptor that it made, if any. It runs on the main thread, which stays its own.
type Do func(in json.RawMessage, files []*os.File) (*os.File, error)

// Table names errands.
type Table map[string]Do

// pairFD is where os/exec puts the first of ExtraFiles.
const pairFD = 3

// Child is the other side of Run: the hidden subcommand "errand NAME JSON". What goes wrong in the errand
// is its answer, not an error of Child.
func Child(args []string, table Table) error {
	if len(args) != 2 {
		return errors.New("errand: want NAME JSON")
	}
	runtime.LockOSThread() // namespaces are a thread's
	pair := os.NewFile(pairFD, "errand")
	if _, err := unix.GetsockoptInt(pairFD, unix.SOL_SOCKET, unix.SO_TYPE); err != nil {
		return fmt.Errorf("errand: descriptor %d: %w", pairFD, err)
	}
	do := table[args[0]]
	var f *os.File
	err := fmt.Errorf("there is no errand %q", args[0])
	if do != nil {
		f, err = do(json.RawMessage(args[1]), given())
	}
	var a answer
	if err != nil {
		a.Error = err.Error()
		errors.As(err, &a.Errno)
	}
	return send(pair, a, f)
}

// given are the files of the Spec: open descriptors from behind the pair on, without a gap.
func given() []*os.File {
	var out []*os.File
	for fd := pairFD + 1; ; fd++ {
		flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
		// What the runtime opened for itself is close-on-exec, what came through exec is not.
		if err != nil || flags&unix.FD_CLOEXEC != 0 {
			return out
		}
		unix.CloseOnExec(fd)
		out = append(out, os.NewFile(uintptr(fd), "given"))
	}
}

func send(pair *os.File, a answer, f *os.File) error {
	b, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("errand: %w", err)
	}
	var rights []byte
	if f != nil {
		defer f.Close()
		rights = unix.UnixRights(int(f.Fd()))
	}
	for {
		if err = unix.Sendmsg(int(pair.Fd()), b, rights, nil, unix.MSG_NOSIGNAL); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
