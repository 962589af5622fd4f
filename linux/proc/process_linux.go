package proc

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrGone: the process has ended (a zombie has, too).
var ErrGone = errors.New("the process has ended")

// Process is one process, held by pidfd and /proc directory.
type Process struct {
	pid   int
	pidfd *os.File
	dir   *os.File // /proc/PID; reads in it fail with ESRCH when the process is gone
}

// Open takes hold of a pid. Whoever else waits for the process can have it replaced before Open, not
// after. ErrGone when there is none. Needs kernel 5.3.
func Open(pid int) (*Process, error) {
	if pid <= 0 {
		return nil, fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil, classify(pid, err)
	}
	return hold(pid, os.NewFile(uintptr(fd), "pidfd"))
}

// FromPidfd takes hold of the process of a pidfd that somebody passed in. It owns the file from here
// on. ErrGone when the process has ended or is of a pid namespace that this one cannot name.
func FromPidfd(f *os.File) (*Process, error) {
	text, err := os.ReadFile("/proc/self/fdinfo/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		f.Close()
		return nil, err
	}
	words, err := statusField(text, "Pid")
	if err != nil || len(words) != 1 {
		f.Close()
		return nil, errors.New("descriptor is not a pidfd")
	}
	pid, err := strconv.Atoi(words[0])
	if err != nil || pid <= 0 { // -1: reaped; 0: not in our namespace
		f.Close()
		return nil, fmt.Errorf("process of pidfd: %w", ErrGone)
	}
	return hold(pid, f)
}

// hold opens the /proc directory and then makes sure that the pidfd still lives: until a process is
// reaped its number is its own, so the directory is that of the pidfd's process.
func hold(pid int, pidfd *os.File) (*Process, error) {
	p := &Process{pid: pid, pidfd: pidfd}
	var err error
	p.dir, err = os.Open("/proc/" + strconv.Itoa(pid))
	if err == nil {
		err = p.mustLive()
	}
	if err != nil {
		p.Close()
		return nil, classify(pid, err)
	}
	return p, nil
}

// Close lets go of the process.
func (p *Process) Close() error {
	err := p.pidfd.Close()
	if p.dir != nil {
		err = errors.Join(err, p.dir.Close())
	}
	return err
}

// PID is its number in this pid namespace.
func (p *Process) PID() int { return p.pid }

// Pidfd stays the Process's.
func (p *Process) Pidfd() *os.File { return p.pidfd }

// Alive tells whether the process has not ended. It does not wait.
func (p *Process) Alive() (bool, error) {
	fds := []unix.PollFd{{Fd: int32(p.pidfd.Fd()), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return n == 0, err
	}
}

func (p *Process) mustLive() error {
	alive, err := p.Alive()
	if err == nil && !alive {
		err = ErrGone
	}
	return err
}

// Signal sends a signal through the pidfd.
func (p *Process) Signal(sig unix.Signal) error {
	return classify(p.pid, unix.PidfdSendSignal(int(p.pidfd.Fd()), sig, nil, 0))
}

// UIDs reads all four.
func (p *Process) UIDs() (UIDs, error) {
	text, err := p.read("status")
	if err != nil {
		return UIDs{}, err
	}
	return parseUIDs(text)
}

// SamePIDNamespace tells whether the process is in the pid namespace of this one's /proc: its status
// then names one pid only, not one for each namespace below. Unlike the ns/pid link this needs no
// right to trace the process.
func (p *Process) SamePIDNamespace() (bool, error) {
	text, err := p.read("status")
	if err != nil {
		return false, err
	}
	words, err := statusField(text, "NSpid")
	return len(words) == 1, err
}

// StartTime is in clock ticks after boot: with the pid it names a process for this boot.
func (p *Process) StartTime() (uint64, error) {
	text, err := p.read("stat")
	if err != nil {
		return 0, err
	}
	return parseStart(text)
}

// Cgroup is the text of /proc/PID/cgroup.
func (p *Process) Cgroup() ([]byte, error) { return p.read("cgroup") }

// Children lists the children of all its threads, zombies included. A write to cgroup.procs moves
// the process alone; those stay where they are. Needs CONFIG_PROC_CHILDREN.
func (p *Process) Children() ([]int, error) {
	tids, err := p.list("task")
	if err != nil {
		return nil, err
	}
	var out []int
	for _, tid := range tids {
		text, err := p.read(fmt.Sprintf("task/%d/children", tid))
		if errors.Is(err, ErrGone) || errors.Is(err, fs.ErrNotExist) {
			if _, there := p.read(fmt.Sprintf("task/%d/stat", tid)); there == nil {
				return nil, errors.New("this kernel does not list the children of a process (CONFIG_PROC_CHILDREN)")
			}
			continue // a thread that ended
		}
		if err != nil {
			return nil, err
		}
		pids, err := parsePids(text)
		if err != nil {
			return nil, err
		}
		out = append(out, pids...)
	}
	return out, p.mustLive()
}

func (p *Process) read(name string) ([]byte, error) {
	f, err := p.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	return b, classify(p.pid, err)
}

// list returns the numeric names in a folder of /proc/PID.
func (p *Process) list(name string) ([]int, error) {
	f, err := p.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil, classify(p.pid, err)
	}
	out := make([]int, 0, len(names))
	for _, n := range names {
		if v, err := strconv.Atoi(n); err == nil {
			out = append(out, v)
		}
	}
	return out, nil
}

func (p *Process) open(name string, flags int) (*os.File, error) {
	fd, err := unix.Openat(int(p.dir.Fd()), name, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, classify(p.pid, &fs.PathError{Op: "open", Path: p.dir.Name() + "/" + name, Err: err})
	}
	return os.NewFile(uintptr(fd), name), nil
}

// classify names the process and turns the kernel's words for "gone" into ErrGone.
func classify(pid int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, unix.ESRCH), errors.Is(err, ErrGone),
		errors.Is(err, fs.ErrNotExist) && pid > 0 && unix.Kill(pid, 0) == unix.ESRCH:
		return fmt.Errorf("process %d: %w", pid, ErrGone)
	}
	return fmt.Errorf("process %d: %w", pid, err)
}
