package procs

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// xucredVersion is XUCRED_VERSION of <sys/ucred.h>: of another one nobody knows what it means.
const xucredVersion = 0

// CredOf reads LOCAL_PEERCRED and LOCAL_PEERPID of <sys/un.h> from a connected unix socket. The user and the
// groups are those of the moment of connect. The process is the one that used the other end last (last_pid of
// its socket), which is another one than connected where it was inherited; ENOTCONN once nobody has it.
func CredOf(fd int) (Cred, error) {
	x, err := unix.GetsockoptXucred(fd, unix.SOL_LOCAL, unix.LOCAL_PEERCRED)
	if err == nil && x.Version != xucredVersion {
		err = fmt.Errorf("version %d, want %d", x.Version, xucredVersion)
	}
	if err != nil {
		return Cred{}, fmt.Errorf("LOCAL_PEERCRED: %w", err)
	}
	pid, err := unix.GetsockoptInt(fd, unix.SOL_LOCAL, unix.LOCAL_PEERPID)
	if err != nil {
		return Cred{}, fmt.Errorf("LOCAL_PEERPID: %w", err)
	}
	groups := x.Groups[:min(max(int(x.Ngroups), 0), len(x.Groups))]
	return Cred{UID: x.Uid, PID: pid, Groups: groups}, nil
}
