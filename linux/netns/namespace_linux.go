package netns

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ErrThreads: the threads of a process are in different namespaces.
var ErrThreads = errors.New("its threads are in different network namespaces")

// Namespace is a network namespace, held open.
type Namespace struct {
	f  *os.File
	id uint64
}

// Host is the namespace of this process.
func Host() (*Namespace, error) { return open("/proc/self/ns/net") }

// Of opens the namespace of a process: the one that all its threads are in, else ErrThreads. fs.ErrNotExist
// when the process has ended. A pid may be another process's by the time of the answer: hold a pidfd and ask
// it afterwards. Needs CAP_SYS_PTRACE for the processes of others.
func Of(pid int) (*Namespace, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	n, err := open(dir + "/ns/net")
	if err != nil {
		return nil, gone(err)
	}
	tids, err := numbers(dir + "/task")
	for _, tid := range tids {
		var id uint64
		if id, err = idOf(fmt.Sprintf("%s/task/%d/ns/net", dir, tid)); errors.Is(gone(err), fs.ErrNotExist) {
			err = nil // a thread that ended
			continue
		}
		if err == nil && id != n.id {
			err = fmt.Errorf("process %d: %w", pid, ErrThreads)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		n.Close()
		return nil, gone(err)
	}
	return n, nil
}

func open(path string) (*Namespace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("stat %s: %w", path, err)
	}
	return &Namespace{f, st.Ino}, nil
}

// idOf follows the link without opening what it leads to.
func idOf(path string) (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st.Ino, nil
}

// ID is its number while it is held or has a process.
func (n *Namespace) ID() uint64 { return n.id }

// File stays the Namespace's.
func (n *Namespace) File() *os.File { return n.f }

// Close lets go of it.
func (n *Namespace) Close() error { return n.f.Close() }

// Users lists the processes of which a thread is in the namespace. It looks at every thread of the host.
func (n *Namespace) Users() ([]int, error) {
	pids, err := numbers("/proc")
	if err != nil {
		return nil, err
	}
	var in []int
	for _, pid := range pids {
		dir := fmt.Sprintf("/proc/%d/task", pid)
		tids, err := numbers(dir)
		if err != nil {
			if errors.Is(gone(err), fs.ErrNotExist) {
				continue
			}
			return nil, err
		}
		for _, tid := range tids {
			id, err := idOf(fmt.Sprintf("%s/%d/ns/net", dir, tid))
			if errors.Is(gone(err), fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return nil, err
			}
			if id == n.id {
				in = append(in, pid)
				break
			}
		}
	}
	return in, nil
}

func numbers(dir string) ([]int, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	var out []int
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	return out, err
}

// gone makes fs.ErrNotExist of the kernel's other word for a process that has ended.
func gone(err error) error {
	if errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	return err
}
