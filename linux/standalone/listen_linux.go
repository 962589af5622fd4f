package standalone

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// firstFD is SD_LISTEN_FDS_START of sd_listen_fds(3).
const firstFD = 3

// ExecListen is `minhost exec-listen`: between fork and exec it does what only the child itself can
// do, and then becomes the program given after "--". LISTEN_PID must be the pid of the process that
// uses the sockets, which the parent does not know before it forks; and a process can give up its
// own rights only. It returns only when something failed.
//
//	exec-listen --names a,a,b [--gate] [--uid N --gid N] -- PROGRAM ARGS...
//
// The sockets are descriptors 3 and up, one for each name. With --gate the next one is a pipe: the
// program is started after one byte came out of it, and not at all when it closes. With --uid the
// program has that uid and gid, no groups, no capability now or ever, and no_new_privs.
func ExecListen(args []string) error {
	set := flag.NewFlagSet("exec-listen", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	names := set.String("names", "", "")
	gate := set.Bool("gate", false, "")
	uid, gid := set.Int("uid", 0, ""), set.Int("gid", 0, "")
	if err := set.Parse(args); err != nil {
		return fmt.Errorf("exec-listen: %w", err)
	}
	argv := set.Args()
	if len(argv) == 0 || *names == "" || (*uid == 0) != (*gid == 0) || *uid < 0 || *gid < 0 {
		return errors.New("exec-listen: want --names NAME,... [--gate] [--uid N --gid N] -- PROGRAM ARGS...: started by minhost supervise only")
	}
	n := strings.Count(*names, ",") + 1
	if *gate {
		if err := passGate(firstFD + n); err != nil {
			return err
		}
	}
	if err := closeOnExec(firstFD + n); err != nil {
		return err
	}
	// Capability sets, bounding set and no_new_privs belong to a thread; exec keeps those of the
	// thread that calls it.
	runtime.LockOSThread()
	if *uid != 0 {
		if err := dropTo(*uid, *gid); err != nil {
			return err
		}
	}
	environ := append(os.Environ(),
		"LISTEN_FDS="+strconv.Itoa(n),
		"LISTEN_FDNAMES="+strings.ReplaceAll(*names, ",", ":"),
		"LISTEN_PID="+strconv.Itoa(os.Getpid()),
	)
	return fmt.Errorf("exec %s: %w", argv[0], unix.Exec(argv[0], argv, environ))
}

// passGate waits until the supervisor has written down who we are.
func passGate(fd int) error {
	f := os.NewFile(uintptr(fd), "gate")
	if f == nil {
		return errors.New("exec-listen: no gate")
	}
	defer f.Close()
	if _, err := f.Read(make([]byte, 1)); err != nil {
		return fmt.Errorf("exec-listen: the supervisor is gone: %w", err)
	}
	return nil
}

// closeOnExec marks every descriptor from the first one on: nothing that a shell or sudo left open
// reaches the program.
func closeOnExec(first int) error {
	err := unix.CloseRange(uint(first), math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC)
	if err == nil {
		return nil
	}
	// Before kernel 5.11.
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return fmt.Errorf("close descriptors: %w", err)
	}
	for _, e := range entries {
		if fd, err := strconv.Atoi(e.Name()); err == nil && fd >= first {
			unix.CloseOnExec(fd)
		}
	}
	return nil
}

// dropTo gives up everything for good. The calling thread must be locked.
func dropTo(uid, gid int) error {
	for c := uintptr(0); ; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) && c > 0 {
			break // one past the last capability of this kernel
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	if err := syscall.Setgroups(nil); err != nil {
		return fmt.Errorf("drop groups: %w", err)
	}
	if err := syscall.Setresgid(gid, gid, gid); err != nil {
		return fmt.Errorf("become gid %d: %w", gid, err)
	}
	if err := syscall.Setresuid(uid, uid, uid); err != nil {
		return fmt.Errorf("become uid %d: %w", uid, err)
	}
	// Leaving uid 0 empties the permitted and effective sets, not the inheritable one.
	hdr := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&hdr, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("set no_new_privs: %w", err)
	}
	return nil
}
