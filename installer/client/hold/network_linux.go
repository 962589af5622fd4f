package hold

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// networkWord tells the child that it was started in a network namespace of its own.
const networkWord = "network"

// attributes are those of a new child. Its namespaces are made with it, since this program, which has
// many threads, could not enter a user namespace later.
func attributes(o Options, pidfd *int) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Setpgid: !o.Session, Setsid: o.Session, PidFD: pidfd}
	if !o.Network {
		return a, nil
	}
	a.Cloneflags = unix.CLONE_NEWNET
	if uid, gid := os.Geteuid(), os.Getegid(); uid != 0 {
		a.Cloneflags |= unix.CLONE_NEWUSER
		a.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		a.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
		a.AmbientCaps = []uintptr{unix.CAP_NET_ADMIN} // for loopback: execution takes all others
	}
	return a, nil
}

// entering is the command that enters the network namespace of a process and goes on as args.
func entering(pid int, args []string) (path string, command []string) {
	const nsenter = "/usr/bin/nsenter"
	program, err := os.Executable() // /proc/self/exe is nsenter by then
	if err != nil {
		program = args[0]
	}
	command = []string{nsenter, "--target", strconv.Itoa(pid), "--net"}
	if os.Geteuid() != 0 {
		command = append(command, "--user", "--preserve-credentials")
	}
	return nsenter, append(append(command, "--", program), args[1:]...)
}

// network brings up loopback in the network namespace that was made for this child, and gives the
// right to do so back.
func network(args []string) error {
	if !slices.Contains(args, networkWord) {
		return nil
	}
	if err := loopbackUp(); err != nil {
		return fmt.Errorf("loopback of the new network namespace: %w", err)
	}
	if os.Geteuid() == 0 {
		return nil
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	// The execution of the target is this thread's or a child's of it, and its permitted set was all
	// that ambient rights could come from. The thread is main's.
	return os.NewSyscallError("capset", unix.Capset(&header, &none[0]))
}

// loopbackUp uses a unix socket: one of the internet families would count as brought along if it
// were not closed in time.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	return os.NewSyscallError("SIOCSIFFLAGS", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request))
}
