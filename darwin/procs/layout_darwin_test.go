package procs

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What is read of struct kinfo_proc and struct xucred, where xnu has it (bsd/sys/sysctl.h, proc.h, ucred.h;
// 64 bits, the same on both processors). "go vet" for darwin compiles these or does not.
var (
	info unix.KinfoProc
	cred unix.Xucred

	_ [648]byte = [unsafe.Sizeof(info)]byte{}
	_ [0]byte   = [unsafe.Offsetof(info.Proc.P_starttime)]byte{}
	_ [32]byte  = [unsafe.Offsetof(info.Proc.P_flag)]byte{}
	_ [36]byte  = [unsafe.Offsetof(info.Proc.P_stat)]byte{}
	_ [40]byte  = [unsafe.Offsetof(info.Proc.P_pid)]byte{}
	_ [296]byte = [unsafe.Offsetof(info.Eproc)]byte{}
	_ [560]byte = [unsafe.Offsetof(info.Eproc) + unsafe.Offsetof(info.Eproc.Ppid)]byte{}
	_ [564]byte = [unsafe.Offsetof(info.Eproc) + unsafe.Offsetof(info.Eproc.Pgid)]byte{}

	_ [76]byte = [unsafe.Sizeof(cred)]byte{}
	_ [4]byte  = [unsafe.Offsetof(cred.Uid)]byte{}
	_ [8]byte  = [unsafe.Offsetof(cred.Ngroups)]byte{}
	_ [12]byte = [unsafe.Offsetof(cred.Groups)]byte{}
)

// SOL_LOCAL, LOCAL_PEERCRED, LOCAL_PEERPID of <sys/un.h>, NOTE_EXIT and EVFILT_PROC of <sys/event.h>.
var (
	_ [0]byte = [unix.SOL_LOCAL]byte{}
	_ [1]byte = [unix.LOCAL_PEERCRED]byte{}
	_ [2]byte = [unix.LOCAL_PEERPID]byte{}
	_ [5]byte = [-unix.EVFILT_PROC]byte{}
	_ [1]byte = [unix.NOTE_EXIT >> 31]byte{}
)
