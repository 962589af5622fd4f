package rig

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// query is the part of union bpf_attr that BPF_PROG_QUERY reads and writes (linux/bpf.h, 6.6).
type query struct {
	target, attachType, flags, attachFlags uint32
	programs                               uint64
	count, _                               uint32
	programFlags, linkIDs, linkFlags       uint64
	revision                               uint64
}

// attached lists the BPF programs attached to a cgroup itself, by attach type, as "type:id".
func attached(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var found []string
	for kind := uint32(0); kind < 64; kind++ {
		var ids [64]uint32
		q := query{target: uint32(f.Fd()), attachType: kind, count: uint32(len(ids)), programs: uint64(uintptr(unsafe.Pointer(&ids)))}
		_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_QUERY, uintptr(unsafe.Pointer(&q)), unsafe.Sizeof(q))
		runtime.KeepAlive(&ids)
		if errno != 0 {
			continue // no attach type of cgroups
		}
		for _, id := range ids[:q.count] {
			found = append(found, fmt.Sprintf("%d:%d", kind, id))
		}
	}
	slices.Sort(found)
	return found, nil
}

// detach takes every program off a cgroup itself.
func detach(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := attached(dir)
	for _, entry := range all {
		var kind, id uint32
		if _, err := fmt.Sscanf(entry, "%d:%d", &kind, &id); err != nil {
			return err
		}
		byID := struct{ id, next, flags uint32 }{id: id}
		prog, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_GET_FD_BY_ID, uintptr(unsafe.Pointer(&byID)), unsafe.Sizeof(byID))
		if errno != 0 {
			return fmt.Errorf("open program %d: %w", id, errno)
		}
		what := struct{ target, prog, kind, flags uint32 }{uint32(f.Fd()), uint32(prog), kind, 0}
		_, _, errno = unix.Syscall(unix.SYS_BPF, unix.BPF_PROG_DETACH, uintptr(unsafe.Pointer(&what)), unsafe.Sizeof(what))
		unix.Close(int(prog))
		if errno != 0 {
			return fmt.Errorf("detach program %d: %w", id, errno)
		}
	}
	return err
}
