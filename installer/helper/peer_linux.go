package helper

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// KernelPeers reads SO_PEERCRED, SO_PEERPIDFD (Linux 6.5) and SO_PEERGROUPS (4.13).
type KernelPeers struct{}

// Identify implements Peers. Before 6.5 the process is held by pid and start time, read again
// for each proof.
func (KernelPeers) Identify(uc *net.UnixConn) (Peer, error) {
	raw, err := uc.SyscallConn()
	if err != nil {
		return Peer{}, fmt.Errorf("peer: %w", err)
	}
	var p Peer
	var inner error
	err = raw.Control(func(fd uintptr) { p, inner = identify(int(fd)) })
	if err = errors.Join(err, inner); err != nil {
		return Peer{}, fmt.Errorf("peer: %w", err)
	}
	return p, nil
}

func identify(fd int) (Peer, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return Peer{}, fmt.Errorf("SO_PEERCRED: %w", err)
	}
	p := Peer{UID: cred.Uid, PID: int(cred.Pid), Groups: peerGroups(fd)}
	pidfd, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PEERPIDFD)
	switch {
	case err == nil:
		unix.CloseOnExec(pidfd)
		p.alive = func() error { return pidfdAlive(pidfd) }
		p.close = func() error { return unix.Close(pidfd) }
		return p, nil
	case errors.Is(err, unix.ENOPROTOOPT):
		p.alive, err = heldByStart(p.PID)
		return p, err
	}
	return Peer{}, fmt.Errorf("SO_PEERPIDFD: %w", err) // EINVAL: the peer is gone
}

// pidfdAlive polls: a reaped peer still has a valid pidfd, which is readable then (measured on 6.18).
func pidfdAlive(pidfd int) error {
	return aliveBy(func() (int, error) {
		return unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, 0)
	})
}

// aliveBy asks again where a signal came between, as the Go runtime sends them to its threads: poll fails then
// although it does not wait (one call in 100,000 on a busy machine, 6.18).
func aliveBy(poll func() (int, error)) error {
	n, err := poll()
	for errors.Is(err, unix.EINTR) {
		n, err = poll()
	}
	if err != nil {
		return fmt.Errorf("poll pidfd: %w", err)
	}
	if n != 0 {
		return errors.New("the process that opened this connection has ended")
	}
	return nil
}

// heldByStart is for kernels before 6.5: a pid with another start time is another process.
func heldByStart(pid int) (alive func() error, err error) {
	start, err := startTime(pid)
	if err != nil {
		return nil, err
	}
	return func() error { return sameStart(pid, start) }, nil
}

func sameStart(pid int, want string) error {
	got, err := startTime(pid)
	if err != nil || got != want {
		return errors.New("the process that opened this connection has ended")
	}
	return nil
}

// startTime is field 22 of /proc/PID/stat (proc_pid_stat(5)), counted behind the name, which may
// hold spaces and parentheses.
func startTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	fields := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("/proc/%d/stat: %d fields", pid, len(fields))
	}
	return string(fields[19]), nil
}

// peerGroups returns the supplementary groups; nil when the kernel does not tell. golang.org/x/sys
// has no call for an option that returns a list.
func peerGroups(fd int) []uint32 {
	groups := make([]uint32, 64)
	for {
		size := uint32(len(groups) * 4)
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&groups[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return groups[:size/4]
		case errno == unix.ERANGE && len(groups) < 1<<16:
			groups = make([]uint32, size/4)
		default:
			return nil
		}
	}
}
