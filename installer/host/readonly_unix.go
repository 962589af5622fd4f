//go:build linux || darwin

package host

import (
	"fmt"
	"os"
	"syscall"
)

// mountedReadOnly is ST_RDONLY on Linux and MNT_RDONLY on macOS. Linux reports it for read-only
// bind mounts too.
const mountedReadOnly = 1

func readOnly(f *os.File) (bool, error) {
	var st syscall.Statfs_t
	for {
		err := syscall.Fstatfs(int(f.Fd()), &st)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("statfs %s: %w", f.Name(), err)
		}
		return st.Flags&mountedReadOnly != 0, nil
	}
}
