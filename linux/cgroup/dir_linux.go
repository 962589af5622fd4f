package cgroup

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// dir is an open directory of the cgroup file system. All reads and writes go through it, so they
// mean that directory for as long as it is open, whatever happens to its name.
type dir struct {
	f    *os.File
	name string // below the mount, for messages
}

// openMount opens the mount point. Its path is root's own (mountinfo) and may hold links above.
func openMount(point string) (dir, error) {
	fd, err := unix.Open(point, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return dir{}, &fs.PathError{Op: "open", Path: point, Err: err}
	}
	d := dir{os.NewFile(uintptr(fd), point), ""}
	// On hybrid hosts a directory of cgroup v1 looks the same and loads into rules without complaint
	// (CASES B06).
	var st unix.Statfs_t
	if err := unix.Fstatfs(fd, &st); err != nil {
		d.close()
		return dir{}, &fs.PathError{Op: "statfs", Path: point, Err: err}
	}
	if uint32(st.Type) != unix.CGROUP2_SUPER_MAGIC {
		d.close()
		return dir{}, fmt.Errorf("%s: not a cgroup2 file system (type %#x)", point, uint32(st.Type))
	}
	return d, nil
}

// at opens name, one component, in d: beneath it, no link, no other mount. Needs kernel 5.6, which
// everything here does (cgroup.kill needs 5.14).
func (d dir) at(name string, flags int) (*os.File, error) {
	opened := -1
	err := d.with(func(fd int) (err error) {
		opened, err = unix.Openat2(fd, name, &unix.OpenHow{
			Flags:   uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV,
		})
		return err
	})
	if err != nil {
		return nil, d.fail("open", name, err)
	}
	return os.NewFile(uintptr(opened), d.join(name)), nil
}

func (d dir) sub(name string) (dir, error) {
	f, err := d.at(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return dir{}, err
	}
	return dir{f, d.join(name)}, nil
}

func (d dir) read(name string) ([]byte, error) {
	f, err := d.at(name, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// write writes once: the kernel takes each write as one command.
func (d dir) write(name, text string) error {
	f, err := d.at(name, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write([]byte(text))
	return err
}

func (d dir) mkdir(name string) error {
	if err := d.with(func(fd int) error { return unix.Mkdirat(fd, name, 0o755) }); err != nil {
		return d.fail("mkdir", name, err)
	}
	if err := d.allow(name); err != nil {
		return errors.Join(err, d.rmdir(name)) // the next try has another name
	}
	return nil
}

// allow gives back the bits that the umask of whoever started us may have taken: runners must be able to look in.
func (d dir) allow(name string) error {
	s, err := d.sub(name)
	if err != nil {
		return err
	}
	defer s.close()
	return s.f.Chmod(0o755)
}

func (d dir) rmdir(name string) error {
	if err := d.with(func(fd int) error { return unix.Unlinkat(fd, name, unix.AT_REMOVEDIR) }); err != nil {
		return d.fail("rmdir", name, err)
	}
	return nil
}

// subs names the directories in d: its child cgroups.
func (d dir) subs() ([]string, error) {
	f, err := d.at(".", unix.O_RDONLY|unix.O_DIRECTORY) // a read position of our own
	if err != nil {
		return nil, err
	}
	defer f.Close()
	list, err := f.ReadDir(-1)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range list {
		if e.IsDir() {
			out = append(out, e.Name())
		}
	}
	return out, nil
}

// id is the cgroup id, 64 bits, that rules match: the inode of the open directory, never of a path
// looked up again. On 32-bit kernels st_ino holds only its lower half (CASES B34), so the file handle,
// which carries it whole (kernel 5.5), is asked first; everywhere else both are equal.
func (d dir) id() (uint64, error) {
	var id uint64
	err := d.with(func(fd int) error {
		h, _, err := unix.NameToHandleAt(fd, "", unix.AT_EMPTY_PATH)
		if err == nil {
			var ok bool
			if id, ok = handleID(h.Type(), h.Bytes()); ok {
				return nil
			}
		}
		var st unix.Stat_t
		err = unix.Fstat(fd, &st)
		id = st.Ino
		return err
	})
	if err != nil {
		return 0, d.fail("stat", "", err)
	}
	return id, nil
}

// handleID reads the id from a kernfs file handle (type 0xfe, FILEID_KERNFS).
func handleID(kind int32, b []byte) (uint64, bool) {
	if kind != 0xfe || len(b) != 8 {
		return 0, false
	}
	return binary.NativeEndian.Uint64(b), true
}

// with keeps the directory open while do works with its number: another goroutine may close it, and the number
// may be that of another box's leaf a moment later. One that is closed is as one that was removed: leaves are
// closed when they are.
func (d dir) with(do func(fd int) error) error {
	raw, err := d.f.SyscallConn()
	if err != nil {
		return err
	}
	var did error
	if err := raw.Control(func(fd uintptr) { did = do(int(fd)) }); err != nil {
		return unix.ENOENT
	}
	return did
}

// fd is for those who keep the directory open themselves.
func (d dir) fd() int { return int(d.f.Fd()) }

func (d dir) close() error { return d.f.Close() }

func (d dir) join(name string) string {
	switch {
	case name == "" || name == ".":
		return d.name
	case d.name == "":
		return name
	}
	return d.name + "/" + name
}

func (d dir) fail(op, name string, err error) error {
	// In a directory that was removed while open, kernfs has no children (ENOENT) or no device.
	if errors.Is(err, unix.ENODEV) {
		err = unix.ENOENT
	}
	return &fs.PathError{Op: op + " cgroup", Path: d.join(name), Err: err}
}
