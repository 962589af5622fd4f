package main

import (
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/gominimal/minhost/resolverd"
)

// keepSmall makes the answerer's memory what answering takes. Of its 12 MiB after a start 10 were pages of
// the program's file that the kernel had mapped while the packages of all roles began, 2 remain; and the
// collector lets garbage grow to 4 MiB however little is in use, unless told otherwise.
func keepSmall() error {
	debug.SetGCPercent(resolverd.GCPercent)
	debug.FreeOSMemory() // collects first, which reads much of the program too
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return fmt.Errorf("give back pages: %w", err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return fmt.Errorf("give back pages: %w", err)
	}
	for line := range strings.Lines(string(maps)) {
		// "00400000-00a73000 r-xp 00000000 fe:00 10134612    /usr/bin/minhost"
		fields := strings.Fields(line)
		if len(fields) != 6 || fields[5] != program || !strings.HasPrefix(fields[1], "r-") {
			continue
		}
		if err := giveBack(fields[0]); err != nil {
			return fmt.Errorf("give back pages %s: %w", fields[0], err)
		}
	}
	return nil
}

// giveBack unmaps the pages of a range that nobody can have written to. What is read again comes from the
// page cache.
func giveBack(addresses string) error {
	low, high, _ := strings.Cut(addresses, "-")
	from, err := strconv.ParseUint(low, 16, 64)
	if err != nil {
		return err
	}
	to, err := strconv.ParseUint(high, 16, 64)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_MADVISE, uintptr(from), uintptr(to-from), unix.MADV_DONTNEED); errno != 0 {
		return errno
	}
	return nil
}
