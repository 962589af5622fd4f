package helper

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// KernelPeers reads LOCAL_PEERCRED and LOCAL_PEERPID of <sys/un.h>.
type KernelPeers struct{}

// Identify implements Peers. macOS has no handle of a process: it is held by pid and start time, read
// again for each proof. Groups come along, the first of them the effective one.
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
	cred, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err != nil {
		return Peer{}, fmt.Errorf("LOCAL_PEERCRED: %w", err)
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return Peer{}, fmt.Errorf("LOCAL_PEERPID: %w", err)
	}
	start, err := startOf(pid)
	if err != nil {
		return Peer{}, err
	}
	groups := cred.Groups[:min(max(int(cred.Ngroups), 0), len(cred.Groups))]
	return Peer{UID: cred.Uid, PID: pid, Groups: groups, alive: func() error {
		now, err := startOf(pid)
		if err != nil || now != start {
			return errors.New("the process that opened this connection has ended")
		}
		return nil
	}}, nil
}

// startOf is p_starttime; a zombie (SZOMB, 5) has ended.
func startOf(pid int) (string, error) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	if k.Proc.P_stat == 5 || int(k.Proc.P_pid) != pid {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return fmt.Sprintf("%d.%06d", k.Proc.P_starttime.Sec, k.Proc.P_starttime.Usec), nil
}
