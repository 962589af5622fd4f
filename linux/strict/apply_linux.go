package strict

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// apply carries out the actions in the mount namespace of this process.
func apply(actions []Action) error {
	// Mounts of the host still come in, none goes out. In a user namespace it is so already.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return &Error{"make mounts private", err}
	}
	kept, err := keep(actions)
	defer func() {
		for _, fd := range kept {
			unix.Close(fd)
		}
	}()
	if err != nil {
		return err
	}
	for _, a := range actions {
		if err := a.apply(kept); err != nil && !(a.Gone && err == unix.ENOENT) {
			return &Error{a.Do + " " + a.Path, err}
		}
	}
	return nil
}

// keep opens what is bound later, while it can be named.
func keep(actions []Action) (map[string]int, error) {
	kept := map[string]int{}
	for _, a := range actions {
		if a.Do != doBind || below(a.From, "/run") && a.Path != a.From {
			continue // made by an action before
		}
		fd, err := unix.Open(a.From, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return kept, &Error{"open " + a.From, err}
		}
		kept[a.From] = fd
	}
	return kept, nil
}

func (a Action) apply(kept map[string]int) error {
	switch a.Do {
	case doMount:
		return unix.Mount(a.Type, a.Path, a.Type, mountFlags(a.Flags), a.Data)
	case doBind:
		from := a.From
		if fd, ok := kept[a.From]; ok {
			from = "/proc/self/fd/" + strconv.Itoa(fd)
		}
		return unix.Mount(from, a.Path, "", unix.MS_BIND|unix.MS_REC, "")
	case doDir:
		err := unix.Mkdir(a.Path, a.Mode)
		if err == unix.EEXIST {
			return nil
		}
		if err == nil {
			err = unix.Chmod(a.Path, a.Mode) // the umask is the user's
		}
		return err
	case doLink:
		return os.Symlink(a.From, a.Path)
	case doFile:
		return os.WriteFile(a.Path, []byte(a.Data), os.FileMode(a.Mode))
	}
	return fmt.Errorf("no such action")
}
