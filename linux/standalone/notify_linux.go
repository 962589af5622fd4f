package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// notifier is the socket of NOTIFY_SOCKET (sd_notify(3)). Anybody may write to it, so a message
// counts only with the pid that the kernel gives with it.
type notifier struct {
	conn *net.UnixConn
	path string
}

// listenNotify makes the socket. It is in the file system, not abstract: abstract names belong to
// a network namespace, and any process could have taken ours before.
func listenNotify(path string) (*notifier, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, err
	}
	if err = passCredentials(conn); err == nil {
		err = os.Chmod(path, 0o666)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("listen %s: %w", path, err)
	}
	return &notifier{conn, path}, nil
}

func passCredentials(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	})
	return errors.Join(err, set)
}

// notice is one message of a process.
type notice struct {
	pid   int
	ready bool // READY=1
	// keep is what FDSTORE=1 came with, under the name of FDNAME; the receiver's.
	keep *os.File
}

// receive calls handle with each message of a process that says who it is, until close.
func (n *notifier) receive(handle func(notice)) {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(16*4))
	for {
		size, oobSize, _, _, err := n.conn.ReadMsgUnix(buf, oob)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		pid, fds := senderOf(oob[:oobSize])
		m := notice{pid: pid}
		name, store := "", false
		for line := range strings.Lines(string(buf[:size])) {
			line = strings.TrimRight(line, "\n")
			m.ready = m.ready || line == "READY=1"
			store = store || line == "FDSTORE=1"
			if n, ok := strings.CutPrefix(line, "FDNAME="); ok {
				name = n
			}
		}
		if store && len(fds) == 1 && fdName.MatchString(name) {
			m.keep = os.NewFile(uintptr(fds[0]), name)
			fds = nil
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
		if pid > 0 {
			handle(m)
		} else if m.keep != nil {
			m.keep.Close()
		}
	}
}

// fdName is a name that LISTEN_FDNAMES takes.
var fdName = regexp.MustCompile(`^[a-z-]{1,64}$`)

// senderOf reads the credentials and takes the descriptors that were sent along.
func senderOf(oob []byte) (pid int, files []int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0, nil
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			pid = int(cred.Pid)
		}
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			files = append(files, fds...)
		}
	}
	return pid, files
}

func (n *notifier) close() {
	n.conn.Close()
	os.Remove(n.path)
}
