package client

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"

	"github.com/gominimal/minhost/installer/api"
)

// Files of a root file system that a net plan is about.
const (
	resolvConf = "etc/resolv.conf"
	hostsFile  = "etc/hosts"
)

// maxFile is more than any hosts file of use.
const maxFile = 4 << 20

// maxLinks is the kernel's own bound (path_resolution(7)).
const maxLinks = 40

// Rootfs is the root file system of a box, as a runner sees it from outside.
type Rootfs struct {
	// Dir is its folder. Nothing outside is written, wherever links in it lead.
	Dir string
	// HostResolvConf is the host's own file, for a plan with resolver host; "" is /etc/resolv.conf.
	HostResolvConf string
}

// Write carries out resolver and hosts of a net plan, as DESIGN.md section 8 has it: none leaves the root file
// system alone, host writes the host's servers only where it has none (no file, an empty one, a link to nowhere),
// nameservers replaces. Hosts that the plan names get their lines, others keep theirs.
//
// A file is never edited: a new one takes its name, since the old one may be a hard link that other root
// file systems share, or a link to elsewhere. Missing folders are made. Writing twice changes nothing more. What
// resolv.conf cannot say is an error that names it: a port, a fourth server.
func (r Rootfs) Write(p api.NetPlan) error {
	if err := r.write(p); err != nil {
		return fmt.Errorf("root file system %s: %w", api.Text(r.Dir), err)
	}
	return nil
}

func (r Rootfs) write(p api.NetPlan) error {
	root, err := os.OpenRoot(r.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	switch p.Resolver {
	case api.ResolverNone:
	case api.ResolverHost:
		err = r.fromHost(root)
	case api.ResolverNameservers:
		var text []byte
		if text, err = resolverText(p.Nameservers); err == nil {
			err = replace(root, resolvConf, text)
		}
	default:
		err = fmt.Errorf("resolver %q is not known", api.Text(string(p.Resolver)))
	}
	if err != nil || len(p.Hosts) == 0 {
		return err
	}
	old, err := contents(root, hostsFile)
	if err != nil {
		return err
	}
	text, err := hostsText(old, p.Hosts)
	if err != nil {
		return err
	}
	return replace(root, hostsFile, text)
}

// fromHost copies the host's servers where there are none.
func (r Rootfs) fromHost(root *os.Root) error {
	old, err := contents(root, resolvConf)
	if err != nil || len(bytes.TrimSpace(old)) > 0 {
		return err
	}
	from := r.HostResolvConf
	if from == "" {
		from = "/" + resolvConf
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("servers of the host: %w", err)
	}
	return replace(root, resolvConf, text)
}

// contents reads a file as a process in the box would: absolute links begin at the root file system. nil
// without a file, or where links lead nowhere.
func contents(root *os.Root, name string) ([]byte, error) {
	for range maxLinks {
		info, err := root.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil:
			return nil, err
		case info.Mode().IsRegular():
			return regular(root, name)
		case info.Mode()&fs.ModeSymlink == 0:
			return nil, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is no file but %v", info.Mode())}
		}
		to, err := root.Readlink(name)
		if err != nil {
			return nil, err
		}
		if !path.IsAbs(to) {
			to = path.Join("/", path.Dir(name), to)
		}
		name = strings.TrimPrefix(path.Clean(to), "/")
		if name == "" {
			return nil, nil
		}
	}
	return nil, nil // a circle of links is no file
}

// regular reads a file that was one a moment ago: a pipe in its place must not hold the runner up, nor an endless
// file fill its memory.
func regular(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxFile) {
		err = &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("it is no file of at most %d octets", maxFile)}
	}
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(f, maxFile))
}

// replace gives a new file the name, in one step.
func replace(root *os.Root, name string, text []byte) error {
	if err := folder(root, path.Dir(name)); err != nil {
		return err
	}
	temporary := path.Join(path.Dir(name), "."+path.Base(name)+"."+rand.Text())
	f, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close()) // whatever the umask
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return nil
}

// folder makes a folder that is not there.
func folder(root *os.Root, name string) error {
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return root.MkdirAll(name, 0o755)
	case err != nil:
		return err
	case !info.IsDir():
		return &fs.PathError{Op: "make folder", Path: name, Err: fs.ErrExist}
	}
	return nil
}
