package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// Holdings looks at every descriptor of every thread: sockets are copied (pidfd_getfd, kernel 5.6)
// and asked for their family, which no link in /proc tells. A socket that only a thread with a table
// of its own has cannot be copied through the pidfd of the process: its Domain is -1, it is Refused.
// Needs CAP_SYS_PTRACE for the processes of others.
func (p *Process) Holdings() (Holdings, error) {
	tids, err := p.list("task")
	if err != nil {
		return nil, err
	}
	var out Holdings
	seen := map[string]bool{} // by link: "socket:[inode]"
	// The leader first: what its table has is looked at there.
	tids = slices.DeleteFunc(tids, func(tid int) bool { return tid == p.pid })
	for _, tid := range append([]int{p.pid}, tids...) {
		found, err := p.holdings(tid, seen)
		if errors.Is(err, fs.ErrNotExist) && tid != p.pid {
			continue // a thread that ended
		}
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, p.mustLive()
}

func (p *Process) holdings(tid int, seen map[string]bool) (Holdings, error) {
	base := fmt.Sprintf("task/%d/fd", tid)
	fds, err := p.list(base)
	if err != nil {
		return nil, err
	}
	var out Holdings
	var buf [64]byte
	for _, fd := range fds {
		n, err := unix.Readlinkat(int(p.dir.Fd()), fmt.Sprintf("%s/%d", base, fd), buf[:])
		if errors.Is(err, unix.ENOENT) {
			continue // closed meanwhile
		}
		if err != nil {
			return nil, classify(p.pid, fmt.Errorf("descriptor %d: %w", fd, err))
		}
		link := string(buf[:n]) // cut at 64 octets, which is enough for the links that matter
		h := Holding{FD: fd, TID: tid, Kind: linkKind(link), Domain: -1}
		if h.Kind == Other || (tid != p.pid && seen[link]) {
			continue
		}
		seen[link] = true
		if h.Kind == Socket && tid == p.pid {
			if h.Domain, err = p.domain(fd); err != nil {
				return nil, err
			}
		}
		out = append(out, h)
	}
	return out, nil
}

// domain asks a socket of the process for its address family.
func (p *Process) domain(fd int) (int, error) {
	own, err := unix.PidfdGetfd(int(p.pidfd.Fd()), fd, 0)
	switch {
	case errors.Is(err, unix.EBADF): // closed since it was listed: not held still, so not to be trusted
		return -1, nil
	case errors.Is(err, unix.EPERM):
		return -1, fmt.Errorf("process %d: descriptor %d: copying it needs CAP_SYS_PTRACE: %w", p.pid, fd, err)
	case err != nil:
		return -1, classify(p.pid, fmt.Errorf("descriptor %d: %w", fd, err))
	}
	defer unix.Close(own)
	family, err := unix.GetsockoptInt(own, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil {
		return -1, nil
	}
	return family, nil
}
