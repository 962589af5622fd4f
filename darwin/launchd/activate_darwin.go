package launchd

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"
)

// launch_activate_socket(3), of liblaunch in libSystem, without cgo: the way golang.org/x/sys calls
// libSystem. The linker writes the import into the Mach-O file.

//go:cgo_import_dynamic libc_launch_activate_socket launch_activate_socket "/usr/lib/libSystem.B.dylib"
//go:cgo_import_dynamic libc_free free "/usr/lib/libSystem.B.dylib"

//go:linkname syscall_syscall syscall.syscall
func syscall_syscall(fn, a1, a2, a3 uintptr) (r1, r2 uintptr, err syscall.Errno)

var (
	launchActivateSocket uintptr // address of a trampoline, set by the linker
	libcFree             uintptr
)

// Activate takes over the sockets that launchd holds for this process, from every name. None is no
// error: the process was not started by launchd, or its plist lists none.
func Activate(names ...string) ([]*os.File, error) {
	var all []*os.File
	for _, name := range names {
		files, err := activate(name)
		if err != nil {
			for _, f := range all {
				f.Close()
			}
			return nil, fmt.Errorf("sockets %s of launchd: %w", name, err)
		}
		all = append(all, files...)
	}
	return all, nil
}

func activate(name string) ([]*os.File, error) {
	text, err := syscall.BytePtrFromString(name)
	if err != nil {
		return nil, err
	}
	var list *int32 // int launch_activate_socket(const char *name, int **fds, size_t *cnt): 0 or an errno
	var count uint
	r, _, _ := syscall_syscall(launchActivateSocket, uintptr(unsafe.Pointer(text)), uintptr(unsafe.Pointer(&list)), uintptr(unsafe.Pointer(&count)))
	switch errno := syscall.Errno(uint32(r)); errno { // of an int the register's upper half says nothing
	case 0:
	case syscall.ENOENT, syscall.ESRCH: // no such name in the plist; no job of launchd
		return nil, nil
	default:
		return nil, errno
	}
	var files []*os.File
	for _, fd := range unsafe.Slice(list, count) {
		syscall.CloseOnExec(int(fd))
		files = append(files, os.NewFile(uintptr(fd), name))
	}
	syscall_syscall(libcFree, uintptr(unsafe.Pointer(list)), 0, 0)
	return files, nil
}
