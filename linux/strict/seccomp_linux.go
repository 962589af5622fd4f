package strict

import (
	"fmt"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// architectures that the filter is written for; all are little endian.
var architectures = map[string]struct{ arch, foreign uint32 }{
	"amd64":   {unix.AUDIT_ARCH_X86_64, 0x40000000}, // __X32_SYSCALL_BIT
	"arm64":   {unix.AUDIT_ARCH_AARCH64, 0},
	"riscv64": {unix.AUDIT_ARCH_RISCV64, 0},
}

// ipprotoSMC makes an AF_INET socket speak SMC, over RDMA where both ends can: past every filter of
// packets (linux/in.h, kernel 6.11).
const ipprotoSMC = 256

// kernelRules are what no namespace and no cgroup confines.
//
//   - socket families: a verdict is on IP packets. AF_VSOCK reaches the hypervisor and other guests,
//     AF_ALG, AF_TIPC, AF_BLUETOOTH and the rest have their own ways out, or only bugs.
//   - io_uring: its worker threads and polled rings are beyond this filter.
//   - keys: request_key(2) has the kernel start a program of root's outside, which looks names up
//     (dns_resolver); keyrings of an account are shared with its other processes.
//   - TIOCSTI and TIOCLINUX type into a terminal, whose shell is outside.
func kernelRules() (Rules, error) {
	a, ok := architectures[runtime.GOARCH]
	if !ok {
		return Rules{}, fmt.Errorf("there is no filter of system calls for %s", runtime.GOARCH)
	}
	return Rules{
		Arch: a.arch, Foreign: a.foreign,
		Absent: []uint32{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
			unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY},
		Ioctl: unix.SYS_IOCTL, Requests: []uint32{unix.TIOCSTI, unix.TIOCLINUX},
		Sockets:   []uint32{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR},
		Families:  []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK},
		Protocols: []uint32{ipprotoSMC},
		ENOSYS:    uint32(unix.ENOSYS), EPERM: uint32(unix.EPERM),
		EAFNOSUPPORT: uint32(unix.EAFNOSUPPORT), EPROTONOSUPPORT: uint32(unix.EPROTONOSUPPORT),
	}, nil
}

// filterCalls loads the filter for every thread. It needs no_new_privs.
func filterCalls() error {
	rules, err := kernelRules()
	if err != nil {
		return err
	}
	raw, err := bpf.Assemble(rules.Filter())
	if err != nil {
		return err
	}
	code := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		code[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(code)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	return nil
}

// abstractABI is the version of Landlock that knows scopes: Linux 6.12.
const abstractABI = 6

// scopeAbstract keeps this thread, and what it starts, from abstract unix sockets of others: they
// belong to the network namespace, which is the host's. Before Linux 6.12, and where Landlock is
// not built in or not switched on, it does nothing.
func scopeAbstract() error {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 || abi < abstractABI {
		return nil
	}
	attr := unix.LandlockRulesetAttr{Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET}
	size := unsafe.Offsetof(attr.Scoped) + unsafe.Sizeof(attr.Scoped) // what ABI 6 knows
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), size, 0)
	if errno != 0 {
		return os.NewSyscallError("landlock_create_ruleset", errno)
	}
	defer unix.Close(int(fd))
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	return nil
}
