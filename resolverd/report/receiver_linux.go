package report

import (
	"errors"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// Listen makes the socket at path. Everybody may write to it, for the answerer's user is made up by systemd at
// its start and no file can be given to it: the credentials of each datagram tell, and Handler.Admit decides.
func Listen(path string) (*Receiver, error) {
	conn, err := bind(path, func(conn *net.UnixConn, fresh string) error {
		return errors.Join(passCredentials(conn), os.Chmod(fresh, 0o666))
	})
	if err != nil {
		return nil, err
	}
	return &Receiver{conn: conn, path: path, sender: sender, oob: 256, admit: Peer.Answerer}, nil
}

func passCredentials(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) { set = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, 1) })
	return errors.Join(err, set)
}

// sender reads the credentials, and closes descriptors that somebody sent along. Without
// credentials it is nobody.
func sender(oob []byte) Peer {
	nobody := Peer{PID: -1, UID: ^uint32(0)}
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nobody
	}
	p := nobody
	for i := range messages {
		if cred, err := unix.ParseUnixCredentials(&messages[i]); err == nil {
			p = Peer{cred.Pid, cred.Uid}
		}
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			unix.Close(fd)
		}
	}
	return p
}
