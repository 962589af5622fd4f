//go:build unix

package hold

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// The starter sends targets on a unix socket, since descriptors come with them: four octets of
// length, then a gob. The child answers on a pipe in records of a kind, a value and a text.
const (
	recordReady   = 'h' // held: nothing of this program is open in it any more
	recordRefused = 'x' // the kernel did not execute the target; the value is the errno
	recordFailed  = 'f' // the launcher could not prepare; the text says why. The child is held on
	recordRunning = 'r' // the launcher has started the target
	recordStopped = 's' // by the signal of the value
	recordEnded   = 'e' // with the wait status of the value
)

// maxFrame bounds what a child reads: arguments and environment of an execution are at most 6 MiB
// on Linux (MAX_ARG_STRINGS and the stack).
const maxFrame = 16 << 20

// maxFiles is what one message of the kernel carries at most (SCM_MAX_FD).
const maxFiles = 253

type record struct {
	kind  byte
	value uint32
	text  string
}

// errNoRecord is the end of the report: the child has become the target, or ended.
var errNoRecord = errors.New("no record")

func (r record) encode() []byte {
	b := append([]byte{r.kind}, make([]byte, 8)...)
	binary.LittleEndian.PutUint32(b[1:], r.value)
	binary.LittleEndian.PutUint32(b[5:], uint32(len(r.text)))
	return append(b, r.text...)
}

func readRecord(from io.Reader) (record, error) {
	var head [9]byte
	switch _, err := io.ReadFull(from, head[:]); {
	case errors.Is(err, io.EOF):
		return record{}, errNoRecord
	case err != nil:
		return record{}, err
	}
	r := record{kind: head[0], value: binary.LittleEndian.Uint32(head[1:])}
	text := make([]byte, min(binary.LittleEndian.Uint32(head[5:]), 4096))
	_, err := io.ReadFull(from, text)
	r.text = string(text)
	return r, err
}

// streams gives both ends of the control socket.
func streams() (*net.UnixConn, *os.File, error) {
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	ours := os.NewFile(uintptr(fds[0]), "control")
	defer ours.Close()
	theirs := os.NewFile(uintptr(fds[1]), "control")
	conn, err := net.FileConn(ours)
	if err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// send writes a target; its files go with the first octets.
func send(to *net.UnixConn, t Target) error {
	if len(t.Files) > maxFiles {
		return fmt.Errorf("%d files are more than the %d of a message", len(t.Files), maxFiles)
	}
	var frame bytes.Buffer
	frame.Write(make([]byte, 4))
	sent := wireTarget{t.Path, t.Args, t.Env, t.Within, len(t.Files)}
	if err := gob.NewEncoder(&frame).Encode(sent); err != nil {
		return err
	}
	binary.LittleEndian.PutUint32(frame.Bytes(), uint32(frame.Len()-4))
	var rights []byte
	if len(t.Files) > 0 {
		fds := make([]int, len(t.Files))
		for i, f := range t.Files {
			fds[i] = int(f.Fd())
		}
		rights = unix.UnixRights(fds...)
	}
	n, _, err := to.WriteMsgUnix(frame.Bytes(), rights, nil)
	if err == nil && n < frame.Len() {
		_, err = to.Write(frame.Bytes()[n:])
	}
	return err
}

// wireTarget is a Target on its way: files are counted, they travel beside it.
type wireTarget struct {
	Path      string
	Args, Env []string
	Within    []byte
	Files     int
}

// interruptible ends a read of f when the context ends.
func interruptible(ctx context.Context, f interface{ SetReadDeadline(time.Time) error }) (stop func() bool) {
	return context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
}
