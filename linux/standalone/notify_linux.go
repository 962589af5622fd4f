package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
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
	if err := passCredentials(conn); err == nil {
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

// receive calls ready with the pid of each process that says READY=1, until close.
func (n *notifier) receive(ready func(pid int)) {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(unix.SizeofUcred)+unix.CmsgSpace(16*4))
	for {
		size, oobSize, _, _, err := n.conn.ReadMsgUnix(buf, oob)
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			continue
		}
		pid := senderOf(oob[:oobSize])
		for line := range strings.Lines(string(buf[:size])) {
			if pid > 0 && strings.TrimRight(line, "\n") == "READY=1" {
				ready(pid)
			}
		}
	}
}

// senderOf reads the credentials, and closes descriptors that somebody sent along.
func senderOf(oob []byte) int {
	pid := 0
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return 0
	}
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			pid = int(cred.Pid)
		}
		if fds, err := unix.ParseUnixRights(&messages[i]); err == nil {
			for _, fd := range fds {
				unix.Close(fd)
			}
		}
	}
	return pid
}

func (n *notifier) close() {
	n.conn.Close()
	os.Remove(n.path)
}
