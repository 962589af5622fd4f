//go:build unix

package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Lock is a held lock file. The kernel lets go of it when the process ends, however it ends.
type Lock struct {
	disk *Disk
	file *os.File
	path string
	made bool
}

// Held is the error of TakeLock when another process keeps the lock.
type Held struct {
	Path string
	PID  int // 0 when not known
}

func (h *Held) Error() string {
	if h.PID == 0 {
		return fmt.Sprintf("another minhost holds it; look: fuser -v %s", quote(h.Path))
	}
	return fmt.Sprintf("process %d holds it; look: ps -p %[1]d -o pid,user,lstart,args", h.PID)
}

const lockPoll = 25 * time.Millisecond

// TakeLock locks path for this process, and waits at most wait for another one to let go. The
// folder is made (root, 0755) when it is not there; its parent must exist.
func TakeLock(ctx context.Context, d *Disk, path string, wait time.Duration) (*Lock, error) {
	start := time.Now()
	for {
		l, err := tryLock(d, path)
		if err == nil {
			return l, nil
		}
		patience := time.Duration(-1)
		var held *Held
		switch {
		case errors.As(err, &held):
			patience = wait
		case errors.Is(err, errMoved):
			patience = wait + movePatience
		}
		if time.Since(start) >= patience {
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if ended := (SystemClock{}).Sleep(ctx, lockPoll); ended != nil {
			return nil, errors.Join(ended, err)
		}
	}
}

// movePatience bounds the time that other processes may keep making and removing the file.
const movePatience = 5 * time.Second

// errMoved: another process makes, removes or replaces the file just now; look again.
var errMoved = errors.New("other processes keep replacing it")

func tryLock(d *Disk, path string) (*Lock, error) {
	rel, err := relative(path)
	if err != nil {
		return nil, err
	}
	if err := d.lockFile(path); err != nil {
		return nil, err
	}
	before, err := d.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
	if err != nil {
		return nil, err
	}
	if !before.Mode.IsRegular() {
		return nil, ErrNotRegular
	}
	f, err := d.root.OpenFile(rel, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errMoved
	}
	if err != nil {
		return nil, cause(err)
	}
	l := &Lock{disk: d, file: f, path: path}
	if err := l.grab(rel); err != nil {
		f.Close()
		return nil, err
	}
	return l, nil
}

// lockFile makes the file, and its folder with it, when they are not there.
func (d *Disk) lockFile(path string) error {
	if _, err := d.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	release, err := d.guard(path)
	if err != nil {
		return err
	}
	defer release()
	dir, mine := filepath.Dir(path), Attr{UID: -1, GID: -1, Mode: 0o600}
	if _, err := d.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return d.MkdirWith(dir, Attr{UID: -1, GID: -1, Mode: 0o755},
			Content{Name: filepath.Base(path), Data: lockText(0, true), Attr: mine})
	}
	if _, err := d.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return d.WriteFile(path, lockText(0, false), mine)
}

// guard locks the folder above the lock's own while the lock file comes or goes: two processes
// would meet under the same temporary name otherwise. It is held for some system calls only.
func (d *Disk) guard(path string) (release func(), err error) {
	above := filepath.Dir(filepath.Dir(path))
	rel, err := relative(above)
	if err != nil {
		return nil, err
	}
	f, err := d.root.Open(rel)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", above, cause(err))
	}
	err = flock(f, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errMoved
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return func() { f.Close() }, nil
}

func (l *Lock) grab(rel string) error {
	err := flock(l.file, syscall.LOCK_EX|syscall.LOCK_NB)
	pid, made := readLock(l.file)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return &Held{Path: l.path, PID: pid}
	}
	if err != nil {
		return err
	}
	mine, err := l.file.Stat()
	if err != nil {
		return err
	}
	if now, err := l.disk.root.Lstat(rel); err != nil || !os.SameFile(mine, now) {
		return errMoved
	}
	l.made = made
	_, err = l.file.WriteAt(lockText(os.Getpid(), made), 0)
	return err
}

// lockText always has the same length: it is written over itself in one call.
func lockText(pid int, made bool) []byte {
	return fmt.Appendf(nil, "pid %10d folder-made %-5t\n", pid, made)
}

func readLock(f *os.File) (pid int, made bool) {
	b := make([]byte, len(lockText(0, false)))
	n, _ := f.ReadAt(b, 0)
	text := strings.TrimSpace(string(b[:n]))
	if _, err := fmt.Sscanf(text, "pid %d folder-made %t", &pid, &made); err != nil {
		return 0, false
	}
	return pid, made
}

func flock(f *os.File, how int) error {
	for {
		err := syscall.Flock(int(f.Fd()), how)
		if err != syscall.EINTR {
			return err
		}
	}
}

// Release lets go; the file stays for the next one.
func (l *Lock) Release() error { return l.file.Close() }

// Remove removes the file, and the folder if TakeLock made it and nothing else is in it, and lets
// go. Only Undo calls it, last. A process that waits for the lock notices and makes a new file.
func (l *Lock) Remove() error {
	release, err := l.guard()
	if err != nil {
		return errors.Join(fmt.Errorf("remove lock %s: %w", l.path, err), l.file.Close())
	}
	defer release()
	if l.made {
		err = l.disk.RemoveWith(filepath.Dir(l.path), filepath.Base(l.path))
	}
	if !l.made || errors.Is(err, ErrInUse) {
		err = l.disk.Remove(l.path)
	}
	return errors.Join(ignoreMissing(err), l.file.Close())
}

func (l *Lock) guard() (release func(), err error) {
	for start := time.Now(); ; time.Sleep(lockPoll / 5) {
		release, err = l.disk.guard(l.path)
		if !errors.Is(err, errMoved) || time.Since(start) > movePatience {
			return release, err
		}
	}
}
