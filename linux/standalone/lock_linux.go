package standalone

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Held is the error of a second supervisor: one is enough.
type Held struct {
	Path string
	PID  int
}

// A holder that let go in between, or is in another pid namespace, has no number: kill 0 would end the reader.
func (h *Held) Error() string {
	if h.PID <= 0 {
		return fmt.Sprintf("lock %s: a supervisor that cannot be seen from here holds it; look for it with: lslocks", h.Path)
	}
	return fmt.Sprintf("lock %s: supervisor %d holds it already; end it with: kill %d", h.Path, h.PID, h.PID)
}

// slotSize is the length of one note about a child in the lock file. Notes have places of their
// own, so one is replaced by one small write and never half.
const slotSize = 64

// lock is the supervisor's: a POSIX record lock, which the kernel drops when the process ends and
// whose holder it can name. The file is for root alone: whoever may open it could take a read lock
// and keep every supervisor out.
type lock struct {
	file *os.File
}

func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &l)
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		pid, _, _ := holder(f)
		f.Close()
		return nil, &Held{Path: path, PID: pid}
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	// Undo removes the file; whoever opened it before that must not hold a lock nobody sees.
	if mine, err := f.Stat(); err == nil {
		if there, err := os.Lstat(path); err != nil || !os.SameFile(mine, there) {
			f.Close()
			return nil, fmt.Errorf("lock %s: replaced while it was taken; try again", path)
		}
	}
	return &lock{file: f}, nil
}

// release lets go of the lock. The file stays: removing it would let two supervisors hold "it".
func (l *lock) release() { l.file.Close() }

// holder asks the kernel who has the lock. The pid is 0 for a process of another pid namespace.
func holder(f *os.File) (pid int, held bool, err error) {
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l); err != nil {
		return 0, false, err
	}
	return max(int(l.Pid), 0), l.Type != unix.F_UNLCK, nil
}

// Running tells whether a supervisor holds the lock, and its pid. No file: none runs. It needs
// root: fs.ErrPermission otherwise.
func Running(path string) (pid int, ok bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, fmt.Errorf("open lock: %w", err)
	}
	defer f.Close()
	pid, ok, err = holder(f)
	if err != nil {
		return 0, false, fmt.Errorf("lock %s: %w", path, err)
	}
	return pid, ok, nil
}

// note is what the lock file keeps of one child. Pid and start time (clock ticks since boot, field
// 22 of /proc/PID/stat) together are never given twice in one boot.
type note struct {
	role  string
	pid   int
	start uint64
}

func (l *lock) write(slot int, n note) error {
	line := fmt.Sprintf("%s %d %d", n.role, n.pid, n.start)
	line += strings.Repeat(" ", slotSize-1-len(line)) + "\n"
	_, err := l.file.WriteAt([]byte(line), int64(slot)*slotSize)
	return err
}

// notes reads all notes; what is no note is passed over.
func (l *lock) notes() []note {
	b, _ := io.ReadAll(io.NewSectionReader(l.file, 0, 8*slotSize))
	var all []note
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		pid, err1 := strconv.Atoi(f[1])
		start, err2 := strconv.ParseUint(f[2], 10, 64)
		if err1 == nil && err2 == nil && pid > 1 {
			all = append(all, note{f[0], pid, start})
		}
	}
	return all
}

// startTime reads field 22 of /proc/PID/stat. The name, field 2, may hold spaces and brackets.
func startTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	f := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	if len(f) < 20 {
		return 0, fmt.Errorf("read /proc/%d/stat: %d fields", pid, len(f))
	}
	return strconv.ParseUint(f[19], 10, 64)
}
